"""``Host``: the hosts of a measurement, and the targets and job files of each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headstack._native import InputError


@dataclass(frozen=True)
class Host:
    """A host as given by the user."""

    name: str
    """Name of the host in results: the ssh name without user and port."""
    address: str
    """``host`` or ``user@host``, or a worker of a cluster."""
    port: int | None = None
    job_file: str | None = None
    """Job file of this host only."""
    targets: tuple[str, ...] = ()
    """Targets of this host only, which replace the common targets."""


def host_of(text: str) -> Host:
    """Parses a host of the form ``[USER@]HOST[:PORT][=FILE.fio]``; an IPv6 address is in brackets.

    >>> host_of("root@a:2222=reads.fio")
    Host(name='a', address='root@a', port=2222, job_file='reads.fio', targets=())
    >>> host_of("[::1]:22").address
    '::1'
    """
    place, has_file, job_file = text.strip().partition("=")
    user, at, rest = place.rpartition("@")
    if rest.startswith("["):
        name, closed, port = rest[1:].partition("]")
        port = port.removeprefix(":")
        if not closed:
            name = ""
    elif rest.count(":") > 1:
        name, port = rest, ""
    else:
        name, _, port = rest.partition(":")
    # ssh would take a name that begins with a dash as an option.
    is_wrong = not name or place.startswith("-") or any(letter.isspace() for letter in place)
    if is_wrong or (port and not (port.isdigit() and 0 < int(port) < 65536)) or (has_file and not job_file):
        raise InputError(f"--hosts: {text!r} is not a host; use HOST, USER@HOST:PORT or HOST=FILE.fio")
    return Host(name, f"{user}{at}{name}", int(port) if port else None, job_file or None)


def hosts_of(text: str) -> list[Host]:
    """Parses a comma-separated list of hosts, or for ``@LIST`` a file with one host per line, as in fio; ``#`` begins a
    comment.

    >>> _ = Path("hosts.list").write_text("a\\nroot@b:22  # the other one\\n")
    >>> [host.name for host in hosts_of("@hosts.list")]
    ['a', 'b']
    """
    if not text.startswith("@"):
        return name_uniquely([host_of(word) for word in text.split(",") if word.strip()])
    with open(text[1:], encoding="utf-8") as file:
        lines = [line.partition("#")[0].strip() for line in file]
    return name_uniquely([host_of(line) for line in lines if line])


def name_uniquely(hosts: Sequence[Host]) -> list[Host]:
    """Returns the hosts with distinct names; entries with equal names get the port or a number."""
    if not hosts:
        raise InputError("--hosts: no host is named")
    taken: set[str] = set()
    named = []
    for host in hosts:
        alike = sum(other.name == host.name for other in hosts)
        name = f"{host.name}:{host.port}" if alike > 1 and host.port is not None else host.name
        number = 2
        while name in taken:
            name, number = f"{host.name}#{number}", number + 1
        taken.add(name)
        named.append(replace(host, name=name))
    return named


def with_targets(hosts: Sequence[Host], texts: Iterable[str]) -> list[Host]:
    """Returns the hosts, each with the targets that ``HOST=PATH`` assigns to it.

    >>> with_targets([Host("a", "a")], ["a=/dev/sdb", "a=/dev/sdc"])[0].targets
    ('/dev/sdb', '/dev/sdc')
    """
    own: dict[str, list[str]] = {}
    for text in texts:
        name, _, path = text.partition("=")
        if not name or not path:
            raise InputError(f"--target: {text!r} names no host; use HOST=PATH, for example a=/dev/sdb")
        if name not in {host.name for host in hosts}:
            raise InputError(f"--target: host {name!r} is unknown; allowed: {', '.join(host.name for host in hosts)}")
        own.setdefault(name, []).append(path)
    return [replace(host, targets=tuple(own.get(host.name, host.targets))) for host in hosts]


def fio_clients(arguments: Sequence[str]) -> tuple[list[Host], list[str]]:
    """Parses the hosts of fio's ``--client=HOST JOBFILE...``, each with the job file after it or the common job file.
    Returns the hosts and the other arguments. A client that is a file contains a list of hosts.

    >>> [(host.name, host.job_file) for host in fio_clients(["--client=a", "x.fio", "--client=b", "y.fio"])[0]]
    [('a', 'x.fio'), ('b', 'y.fio')]
    >>> [(host.name, host.job_file) for host in fio_clients(["--client=a", "--client=b", "x.fio"])[0]]
    [('a', 'x.fio'), ('b', 'x.fio')]
    """
    groups: list[tuple[list[Host], list[str]]] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        name, has_value, value = word.partition("=")
        if name == "--client":
            client = value if has_value else next(words, "")
            groups.append((_clients(client), []))
        elif word.startswith("-") or not groups:
            rest.append(word)
        else:
            groups[-1][1].append(word)
    hosts: list[Host] = []
    last = groups[-1][1] if groups else []
    for named, files in groups:
        own = files or last
        if len(own) > 1:
            raise InputError(f"--client: {len(own)} job files for {named[0].name}; name only one")
        hosts += [replace(host, job_file=own[0] if own else None) for host in named]
    return (name_uniquely(hosts) if hosts else []), rest


def _clients(text: str) -> list[Host]:
    if os.path.isfile(text):
        return hosts_of(f"@{text}")
    if text.startswith("sock:"):
        raise InputError(f"--client: {text}: not a host; headstack connects by ssh, so name a host")
    for kind in ("ip:", "ip4:", "ip6:"):
        text = text.removeprefix(kind)
    # The port belongs to fio's server, which headstack does not use.
    return [host_of(text.partition(",")[0])]

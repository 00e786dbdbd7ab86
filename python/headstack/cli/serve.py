"""``headstack serve``, ``headstack ctl`` and ``headstack top``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from headstack._native import InputError, format_bytes
from headstack.cli.command import Brief
from headstack.cli.completing import FOLDER, SOCKET, SYSTEM
from headstack.cli.files import KEPT, OUTPUT, SOURCE, KeptFile
from headstack.cli.formats import output_options
from headstack.cli.loading import with_subcommands
from headstack.cli.output import Outputs, progress
from headstack.cli.simulate.runs import Command
from headstack.cli.simulate.varying import option_of
from headstack.io import signals
from headstack.io.counts import agreed, counted
from headstack.io.tables import to_json
from headstack.io.values import duration_ns
from headstack.live.serving import SYSTEM_OPTIONS, Live, Serving, endpoints
from headstack.live.serving import serve as start

if TYPE_CHECKING:
    from headstack.live.status import Client, Fidelity

CLIENTS_TOLD = 4
"""Clients that the report tells of: those with the most requests."""


def system_options(command: Command) -> Command:
    """Adds the options that vary the system."""
    options = (option_of(option) for option in SYSTEM_OPTIONS)
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(list(options)), command)


@with_subcommands({"top": "serve", "ctl": "serve"})
@click.command(cls=Brief)
@click.argument("system", type=SYSTEM, metavar="SYSTEM", help="A drive or an array, or a latency.")
@click.option(
    "--nbd",
    "nbd",
    multiple=True,
    metavar="ENDPOINT",
    help="unix:PATH, tcp:[HOST:]PORT (127.0.0.1 and ::1 without a HOST), stdio, or systemd for its sockets.",
)
@click.option("--stdio", is_flag=True, help="The same as --nbd stdio.")
@click.option(
    "--socket-mode", default="600", metavar="MODE", show_default=True, help="Who may connect to unix sockets, in octal."
)
@click.option(
    "--tls-certificate", type=SOURCE, metavar="FILE", help="Encrypt where clients ask: the server's certificate, PEM."
)
@click.option("--tls-key", type=SOURCE, metavar="FILE", help="Its key, PEM.")
@click.option(
    "--tls-client-ca", type=SOURCE, metavar="FILE", help="Clients have to show a certificate of this authority, PEM."
)
@click.option("--tls-required", is_flag=True, help="Serve nobody in the clear.")
@click.option("--fuse", metavar="DIR", type=FOLDER, help="Mount a directory with a file for each LUN.")
@click.option("--loop", is_flag=True, help="With --fuse, as root: make block devices of these files.")
@click.option("--ublk", is_flag=True, help="Be a block device of the kernel's, as root, for each LUN: /dev/ublkbN.")
@click.option("--size", metavar="SIZE", help="Of a device of constant latency.  [default: 1GiB]")
@click.option(
    "--data",
    default="memory",
    metavar="memory|discard|FILE",
    type=KeptFile("memory", "discard"),
    show_default=True,
    help="Where bytes are: a FILE survives the server; discarded ones read as zeros.",
)
@click.option("--adopt", is_flag=True, help="Serve, and change, a FILE of the right size that no server has left.")
@click.option(
    "--memory",
    metavar="SIZE",
    help="For requests and connections, beside the data.  [default: a quarter of what is free, at most 1GiB]",
)
@click.option("--keep", multiple=True, metavar="RANGE", help="With --data discard: bytes kept all the same (0..64MiB).")
@click.option("--speed", default=1.0, metavar="N", show_default=True, help="0.1 is ten times slower than real time.")
@click.option("--floor", metavar="TIME", help="What the path costs, if it is not to be measured at the start.")
@click.option("--faults", type=SOURCE, metavar="FILE.toml", help='What goes wrong, and when: see the page "Faults".')
@click.option(
    "--journal", type=KEPT, metavar="FILE", help="Keep each write, flush and trim with its data and its end, and marks."
)
@click.option("--realtime/--no-realtime", default=True, show_default=True, help="Ask for SCHED_FIFO.")
@click.option("--control", metavar="SOCKET", type=SOCKET, help='Take orders there: "headstack ctl", "headstack top".')
@click.option("--metrics", metavar="[HOST:]PORT", help="Answer HTTP with Prometheus' text.")
@click.option(
    "--record", type=OUTPUT, metavar="FILE.parquet", help="Write what came, and when the model finished it, as a trace."
)
@click.option(
    "--require",
    metavar="valid:TIME",
    help="End with exit code 1 unless the session is valid for latencies from TIME on.",
)
@click.option("--run", "command", metavar="COMMAND", help="Carry out a shell command, then end; see above.")
@output_options(json="Write how true the session was (- for stdout).")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing while it runs.")
@system_options
@signals.held()
def serve(
    system: str,
    nbd: tuple[str, ...],
    stdio: bool,
    command: str | None,
    require: str | None,
    json_path: str | None,
    quiet: bool,
    **given: Any,
) -> int:
    """Export a simulated SYSTEM as a live block device, until Ctrl-C.

    \b
    headstack serve cheetah-x15-36lp --nbd unix:/tmp/s
    headstack serve atlas-10k-iii-73 --ublk --run 'mkfs.ext4 $device'
    headstack serve va-7100 --fuse /mnt/va --loop --data va.img --control /tmp/c
    headstack serve wd1200bb --run 'fio --name=j --ioengine=nbd --uri=$uri --rw=randread --runtime=10'

    SYSTEM is a drive or an array of the catalogue or of a file, or a part of it (NAME@RANGE): each request takes the
    time that it would take there. constant:10ms is a device on which everything takes 10 ms. The session ends with a
    report: how late answers were, how deep the queue was, what its clients waited for, and for which latencies that
    makes it valid.

    A COMMAND finds $uri, and with --fuse $disk, with --ublk or --loop $device; without an ENDPOINT a socket is made for
    it. Its exit code is that of the session, unless what is required of that is not so.
    """
    required_ns = None if require is None else valid_from_ns(require)
    with ExitStack() as stack:
        places = endpoints((*nbd, "stdio") if stdio else nbd)
        if not any(places) and given["fuse"] is None and not given["ublk"]:
            if command is None:
                raise InputError("nowhere to be found: give --nbd unix:PATH, another ENDPOINT, --fuse DIR or --ublk")
            folder = stack.enter_context(TemporaryDirectory(prefix="headstack-"))
            places = places._replace(unix=(f"{folder}/nbd",))
        outputs = Outputs({"json_path": json_path}, {"json": fidelity_as_json})
        varied = {o.name: given.pop(o.name) for o in SYSTEM_OPTIONS}
        options = {name: text for name, text in varied.items() if text is not None}
        serving = Serving(**places._asdict(), **given, options=options)
        with preconditioning(quiet) as show:
            live = start(system, serving, show)
        # A client on standard output would take words for protocol.
        out = sys.stderr if places.stdio or outputs.has_stdout else sys.stdout
        code = 0
        try:
            if not quiet:
                print("\n".join(greeting(live, serving)), file=out, flush=True)
            if command is None:
                live.wait()
            else:
                code = carry_out(command, live, serving)
        except KeyboardInterrupt:
            pass
        if live.was_unmounted:
            print("headstack: the directory was unmounted from outside", file=sys.stderr)
        fidelity = live.stop()
        if not quiet:
            print("\n".join(report(fidelity)), file=out, flush=True)
        outputs.write(fidelity)
        if required_ns is not None and not is_valid(fidelity["valid_above_ns"], required_ns):
            print(f"headstack: --require {require}: {fidelity['verdict']}", file=sys.stderr)
            code = code or 1
    return code


@contextmanager
def preconditioning(quiet: bool) -> Iterator[Callable[[float], object] | None]:
    """Shows on stderr how far the preconditioning of SSDs is, once it has begun."""
    with ExitStack() as stack:
        shown: list[Callable[[float], object] | None] = []

        def show(share: float) -> None:
            if share > 0 and not shown:
                shown.append(stack.enter_context(progress("preconditioning", quiet=False)))
            if shown and shown[0] is not None:
                shown[0](share)

        yield None if quiet else show


def fidelity_as_json(fidelity: Fidelity, path: Path | None = None) -> str:
    """How true a session was, as JSON."""
    return to_json(fidelity, path)


def valid_from_ns(text: str) -> int:
    """The latency of ``valid:TIME``."""
    what, _, time = text.partition(":")
    if what != "valid" or not time:
        raise InputError(f"--require: {text!r} is unknown; allowed: valid:TIME, such as valid:1ms")
    latency_ns = duration_ns("--require", time)
    if latency_ns <= 0:
        raise InputError(f"--require: {time} is not a latency; more than 0s is allowed")
    return latency_ns


def is_valid(valid_above_ns: int | None, latency_ns: int) -> bool:
    """Whether a session that is valid above a latency is valid for latencies from this one on."""
    return valid_above_ns is not None and valid_above_ns <= latency_ns


def carry_out(command: str, live: Live, serving: Serving) -> int:
    """Carries out a shell command that finds the export in its environment; its exit code, as shells number signals."""
    found = dict(zip(("uri",), addresses(live, serving), strict=False))
    found |= dict(zip(("disk",), live.files, strict=False)) | dict(zip(("device",), live.devices, strict=False))
    with signals.raising():
        code = subprocess.run(command, shell=True, env=os.environ | found, check=False).returncode
    return code if code >= 0 else 128 - code


def greeting(live: Live, serving: Serving) -> list[str]:
    """The lines that a session begins with: the system, and the addresses of its exports."""
    names = [name for name, _ in live.exports]
    total = sum(length for _, length in live.exports)
    luns = "" if len(names) == 1 else f" in {len(names)} exports ({', '.join(names)})"
    lines = [f"serving {live.name}: {format_bytes(total)}{luns}"]
    lines += [f"  {uri}" for uri in addresses(live, serving)]
    if live.metrics is not None:
        lines.append(f"  http://{live.metrics}/metrics")
    lines += [f"  {file}" for file in live.files]
    lines += [f"  {device}" for device in live.devices]
    for place in live.addresses:
        if not is_loopback(place):
            lines.append(
                f"  {place} can be reached from other machines: whoever does may read and write everything there"
            )
    if live.metrics is not None and not is_loopback(live.metrics):
        lines.append(f"  {live.metrics} can be reached from other machines: whoever does may read the metrics")
    if serving.control is not None:
        lines.append(f"  orders: headstack ctl {serving.control} status; headstack top {serving.control}")
    lines += [f"  note: {note}" for note in live.notes]
    status = live.order({"do": "status"})["fidelity"]
    lines.append(f"  the path costs {status['floor_ns'] / 1e3:.0f} us, taken into account; Ctrl-C ends")
    return lines


def is_loopback(place: str) -> bool:
    """Whether only this machine reaches ``HOST:PORT``."""
    return place.startswith(("127.", "[::1]:"))


def addresses(live: Live, serving: Serving) -> list[str]:
    """The addresses of the first export for clients of NBD."""
    name = "" if len(live.exports) == 1 else live.exports[0][0]
    scheme = "nbds" if serving.tls_required else "nbd"
    sockets = [f"{scheme}+unix:///{name}?socket={os.path.abspath(place)}" for place in serving.unix]
    return sockets + [f"{scheme}://{place}/{name}" for place in live.addresses]


def report(fidelity: Fidelity) -> list[str]:
    """The lines that a session ends with: its lateness, its clients and its verdict."""
    lateness_ns = {
        "p50": fidelity["lateness_p50_ns"],
        "p99": fidelity["lateness_p99_ns"],
        "p99.9": fidelity["lateness_p999_ns"],
        "most": fidelity["lateness_max_ns"],
    }
    late = ", ".join(f"{name} {ns / 1e3:.0f} us" for name, ns in lateness_ns.items())
    scheduling = {"realtime": "SCHED_FIFO", "shared": "a shared processor"}[fidelity["scheduling"]]
    lines = [
        f"{fidelity['requests']:,} requests, at most {fidelity['deepest_queue']:,} at a time; clock on {scheduling}",
        f"late: {late}; floor {fidelity['floor_ns'] / 1e3:.0f} us",
    ]
    lines += [client(seen) for seen in fidelity["clients"][:CLIENTS_TOLD] if seen["turns"]["requests"]]
    if len(fidelity["clients"]) > CLIENTS_TOLD:
        lines.append(f"and {len(fidelity['clients']) - CLIENTS_TOLD} more clients")
    if fidelity["canary"]["count"]:
        waited_us = fidelity["canary"]["p99_ns"] / 1e3
        pressure = fidelity["pressure_share"]
        pressed = "" if pressure is None else f"; {pressure:.0%} of the time somebody here waited for a processor"
        lines.append(f"a client of ordinary priority beside them: p99 {waited_us:.0f} us late{pressed}")
    if fidelity["below_floor"]:
        below = counted(fidelity["below_floor"], "request")
        lines.append(
            f"{below} {agreed(fidelity['below_floor'], 'was', 'were')} due sooner than this machine can answer"
        )
    if fidelity["speed"] != 1:
        lines.append(f"time ran {fidelity['speed']:g} times as fast as the wall's")
    return [*lines, fidelity["verdict"]]


def client(seen: Client) -> str:
    """A client's requests, its rate, and its waits for a processor, as a line."""
    turns, waits = seen["turns"], seen["waits"]
    name = "a client elsewhere" if seen["pid"] is None else f"{seen['name'] or 'a client'} ({seen['pid']})"
    told = f"{name}: {turns['requests']:,} requests, at most {turns['depth']:,} at a time"
    served_ns, turned_ns = turns["served_ns"], turns["turned_ns"]
    if served_ns + turned_ns:
        told += f", {served_ns / (served_ns + turned_ns):.0%} of the rate that this allows"
    if waits is not None:
        told += f"; it waited {waits['waited_share']:.0%} of the time for a processor"
    return told


@click.command()
@click.argument("socket", metavar="SOCKET", type=SOCKET, help="What --control of the export names.")
@click.argument("words", nargs=-1, required=True, metavar="ORDER...", help="A word and KEY=VALUE pairs, or JSON.")
def ctl(socket: str, words: tuple[str, ...]) -> None:
    """Give an ORDER to a running export by its control SOCKET.

    \b
    headstack ctl /tmp/c status
    headstack ctl /tmp/c metrics
    headstack ctl /tmp/c inject errno kinds='["flush"]' at=flush:7 once
    headstack ctl /tmp/c inject fail-slow kinds=write time=5ms
    headstack ctl /tmp/c clear number=0
    headstack ctl /tmp/c mark transaction 17
    headstack ctl /tmp/c stop

    Clear ends the fault of that number in the log ("injections"), or all of them without a number; release ends hangs
    and answers what they hold.

    An order is a word and KEY=VALUE pairs, or its JSON. The answer is printed as JSON, or as the text that it is.
    """
    from headstack.live.control import Control, order_of  # start-up time

    with Control(socket) as control:
        answer = control.order(order_of(words))
    if isinstance(answer, str):
        print(answer, end="" if answer.endswith("\n") else "\n")
    elif answer is not None:
        print(to_json(answer), end="")


@click.command()
@click.argument("socket", metavar="SOCKET", type=SOCKET, help="What --control of the export names.")
@click.option("--interval", default="1s", metavar="TIME", show_default=True, help="Between two looks.")
@click.option("--once", is_flag=True, help="Show one interval and end.")
def top(socket: str, interval: str, once: bool) -> None:
    """Show what the hardware of a running export is doing, until Ctrl-C."""
    from headstack.live.top import watch  # start-up time

    try:
        watch(socket, interval, once)
    except KeyboardInterrupt:
        print()

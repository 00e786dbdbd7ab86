"""``headstack serve``, ``headstack ctl`` and ``headstack top``."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
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
from headstack.cli.output import Outputs
from headstack.cli.simulate.runs import Command
from headstack.cli.simulate.varying import option_of
from headstack.io import signals
from headstack.io.counts import agreed, counted
from headstack.io.tables import to_json
from headstack.io.values import duration_ns
from headstack.live.serving import SYSTEM_OPTIONS, Live, Serving, endpoints
from headstack.live.serving import serve as start_export

if TYPE_CHECKING:
    from headstack.live.status import Client, Fidelity

CLIENTS_SHOWN = 4
"""Maximum number of clients in the report, which lists the clients with the most requests."""


def system_options(command: Command) -> Command:
    """Adds the options that vary the system."""
    options = (option_of(option) for option in SYSTEM_OPTIONS)
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(list(options)), command)


@with_subcommands({"top": "serve", "ctl": "serve"})
@click.command(cls=Brief)
@click.argument(
    "system",
    type=SYSTEM,
    metavar="SYSTEM",
    help="Drive, array, cloud volume or TOML file, NAME@RANGE, or constant:LATENCY.",
)
@click.option(
    "--nbd",
    "nbd",
    multiple=True,
    metavar="ENDPOINT",
    help="NBD endpoint: unix:PATH, tcp:[HOST:]PORT (default host: loopback), stdio, or systemd for its sockets.",
)
@click.option("--stdio", is_flag=True, help="Same as --nbd stdio.")
@click.option(
    "--socket-mode",
    default="600",
    metavar="MODE",
    show_default=True,
    help="File mode of unix sockets, in octal, for example 660.",
)
@click.option(
    "--tls-certificate", type=SOURCE, metavar="FILE", help="TLS certificate of the server (PEM); clients may encrypt."
)
@click.option("--tls-key", type=SOURCE, metavar="FILE", help="Private key of --tls-certificate (PEM).")
@click.option(
    "--tls-client-ca",
    type=SOURCE,
    metavar="FILE",
    help="Authority (PEM) that must have signed the certificates of clients.",
)
@click.option("--tls-required", is_flag=True, help="Refuse clients that do not encrypt.")
@click.option("--fuse", metavar="DIR", type=FOLDER, help="Mount a directory with one file for each LUN.")
@click.option("--loop", is_flag=True, help="With --fuse, as root: create a loop device for each file.")
@click.option("--ublk", is_flag=True, help="Create a kernel block device /dev/ublkbN for each LUN, as root.")
@click.option("--size", metavar="SIZE", help="Capacity of constant:LATENCY, for example 10GiB.  [default: 1GiB]")
@click.option(
    "--data",
    default="memory",
    metavar="memory|discard|FILE",
    type=KeptFile("memory", "discard"),
    show_default=True,
    help="Where to store data: in memory, in a FILE that survives the server, or nowhere (discard: reads "
    "return zeros).",
)
@click.option("--adopt", is_flag=True, help="Use, and modify, a FILE of the right size that headstack did not create.")
@click.option(
    "--memory",
    metavar="SIZE",
    help="Memory for requests and connections, without the data.  [default: 25 % of free memory, at most 1GiB]",
)
@click.option("--keep", multiple=True, metavar="RANGE", help="With --data discard: bytes to store anyway, 0 to 64MiB.")
@click.option(
    "--speed", default=1.0, metavar="N", show_default=True, help="Speed relative to real time; 0.1 is ten times slower."
)
@click.option(
    "--floor",
    metavar="TIME",
    help="Latency of the path to the client, for example 20us.  [default: measured at the start]",
)
@click.option(
    "--faults", type=SOURCE, metavar="FILE.toml", help='Fault file: faults to inject, and when; see the page "Faults".'
)
@click.option(
    "--journal",
    type=KEPT,
    metavar="FILE",
    help="Record all writes, flushes, trims and marks in FILE, for headstack crash.",
)
@click.option(
    "--realtime/--no-realtime", default=True, show_default=True, help="Request real-time scheduling (SCHED_FIFO)."
)
@click.option(
    "--control",
    metavar="SOCKET",
    type=SOCKET,
    help='Control socket for "headstack serve ctl" and "headstack serve top".',
)
@click.option("--metrics", metavar="[HOST:]PORT", help="HTTP address for Prometheus metrics, for example 9102.")
@click.option(
    "--record",
    type=OUTPUT,
    metavar="FILE.parquet",
    help="Write the requests, with the model's completion times, as a trace.",
)
@click.option(
    "--require",
    metavar="valid:TIME",
    help="Exit with code 1 unless the session is valid for latencies of TIME or more, for example valid:1ms.",
)
@click.option(
    "--run", "command", metavar="COMMAND", help="Run a shell command on the device, then end; see --help --all."
)
@output_options(json="Write the accuracy report of the session as JSON (- for stdout).")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing while serving.")
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
    **options: Any,
) -> int:
    """Export a simulated system as a live block device.

    \b
    headstack serve 990-pro-2tb --nbd unix:/tmp/s
    headstack serve exos-x24-24tb --ublk --run 'mkfs.ext4 $device'
    headstack serve zfs-raidz2-8-nas --fuse /mnt/nas --loop --data nas.img --control /tmp/c
    headstack serve aws-gp3-500 --run 'fio --name=j --ioengine=nbd --uri=$uri --rw=randread --runtime=10'

    Each request completes after its simulated latency. Press Ctrl-C to end. SYSTEM is a name from the catalogue, a TOML
    file, or a part of either (NAME@RANGE); with constant:10ms every request takes 10 ms. At the end headstack prints
    how late its answers were, the queue depth, the waits of the clients, and the latencies for which the session is
    valid.

    COMMAND can use $uri; with --fuse also $disk, with --ublk or --loop $device. Without an endpoint headstack creates a
    socket for it. Its exit code is the exit code of headstack, unless --require fails.
    """
    required_ns = None if require is None else parse_required_latency_ns(require)
    with ExitStack() as stack:
        places = endpoints((*nbd, "stdio") if stdio else nbd)
        if not any(places) and options["fuse"] is None and not options["ublk"]:
            if command is None:
                raise InputError("no export endpoint; add --nbd unix:PATH, --fuse DIR or --ublk")
            folder = stack.enter_context(TemporaryDirectory(prefix="headstack-"))
            places = places._replace(unix=(f"{folder}/nbd",))
        outputs = Outputs({"json_path": json_path}, {"json": write_fidelity_json})
        varied = {o.name: options.pop(o.name) for o in SYSTEM_OPTIONS}
        changed = {name: text for name, text in varied.items() if text is not None}
        serving = Serving(**places._asdict(), **options, options=changed)
        live = start_export(system, serving)
        # On standard output, a client would take messages for protocol data.
        out = sys.stderr if places.stdio or outputs.has_stdout else sys.stdout
        code = 0
        try:
            if not quiet:
                print("\n".join(format_greeting(live, serving)), file=out, flush=True)
            if command is None:
                live.wait()
            else:
                code = run_command(command, live, serving)
        except KeyboardInterrupt:
            pass
        if live.was_unmounted:
            print("headstack: the directory was unmounted from outside", file=sys.stderr)
        fidelity = live.stop()
        if not quiet:
            print("\n".join(format_report(fidelity)), file=out, flush=True)
        outputs.write(fidelity)
        if required_ns is not None and not is_valid(fidelity["valid_above_ns"], required_ns):
            print(f"headstack: --require {require}: {fidelity['verdict']}", file=sys.stderr)
            code = code or 1
    return code


def write_fidelity_json(fidelity: Fidelity, path: Path | None = None) -> str:
    """Writes the fidelity of a session as JSON."""
    return to_json(fidelity, path)


def parse_required_latency_ns(text: str) -> int:
    """Parses ``valid:TIME``, in nanoseconds."""
    word, _, time = text.partition(":")
    if word != "valid" or not time:
        raise InputError(f"--require: {text!r} is unknown; write valid:TIME, for example valid:1ms")
    latency_ns = duration_ns("--require", time)
    if latency_ns <= 0:
        raise InputError(f"--require: {time} is not a latency; write a time above 0s")
    return latency_ns


def is_valid(valid_above_ns: int | None, latency_ns: int) -> bool:
    """Whether a session is valid for this latency and all longer latencies."""
    return valid_above_ns is not None and valid_above_ns <= latency_ns


def run_command(command: str, live: Live, serving: Serving) -> int:
    """Runs a shell command with the export in its environment. Returns the exit code, or 128 plus the signal."""
    environment = dict(zip(("uri",), nbd_addresses(live, serving), strict=False))
    environment |= dict(zip(("disk",), live.files, strict=False)) | dict(zip(("device",), live.devices, strict=False))
    with signals.raising():
        code = subprocess.run(command, shell=True, env=os.environ | environment, check=False).returncode
    return code if code >= 0 else 128 - code


def format_greeting(live: Live, serving: Serving) -> list[str]:
    """Formats the first lines of a session: the system and the addresses of its exports."""
    names = [name for name, _ in live.exports]
    total = sum(length for _, length in live.exports)
    luns = "" if len(names) == 1 else f" in {len(names)} exports ({', '.join(names)})"
    lines = [f"serving {live.name}: {format_bytes(total)}{luns}"]
    lines += [f"  {uri}" for uri in nbd_addresses(live, serving)]
    if live.metrics is not None:
        lines.append(f"  http://{live.metrics}/metrics")
    lines += [f"  {file}" for file in live.files]
    lines += [f"  {device}" for device in live.devices]
    for place in live.addresses:
        if not is_loopback(place):
            lines.append(
                f"  warning: {place} is reachable from other machines; anyone who connects can read and write all data"
            )
    if live.metrics is not None and not is_loopback(live.metrics):
        lines.append(
            f"  warning: {live.metrics} is reachable from other machines; anyone who connects can read the metrics"
        )
    if serving.control is not None:
        lines.append(f"  control: headstack serve ctl {serving.control} status; headstack serve top {serving.control}")
    lines += [f"  note: {note}" for note in live.notes]
    status = live.order({"do": "status"})["fidelity"]
    lines.append(f"  path latency {status['floor_ns'] / 1e3:.0f} us, compensated; press Ctrl-C to end")
    return lines


def is_loopback(place: str) -> bool:
    """Whether ``HOST:PORT`` is reachable only from this machine."""
    return place.startswith(("127.", "[::1]:"))


def nbd_addresses(live: Live, serving: Serving) -> list[str]:
    """Returns the NBD addresses of the first export."""
    name = "" if len(live.exports) == 1 else live.exports[0][0]
    scheme = "nbds" if serving.tls_required else "nbd"
    sockets = [f"{scheme}+unix:///{name}?socket={os.path.abspath(place)}" for place in serving.unix]
    return sockets + [f"{scheme}://{place}/{name}" for place in live.addresses]


def format_report(fidelity: Fidelity) -> list[str]:
    """Formats the last lines of a session: its lateness, its clients and its verdict."""
    lateness_ns = {
        "p50": fidelity["lateness_p50_ns"],
        "p99": fidelity["lateness_p99_ns"],
        "p99.9": fidelity["lateness_p999_ns"],
        "most": fidelity["lateness_max_ns"],
    }
    late = ", ".join(f"{name} {ns / 1e3:.0f} us" for name, ns in lateness_ns.items())
    scheduling = {"realtime": "SCHED_FIFO", "shared": "a shared processor"}[fidelity["scheduling"]]
    lines = [
        f"{fidelity['requests']:,} requests, queue depth at most {fidelity['deepest_queue']:,}; clock on {scheduling}",
        f"late: {late}; floor {fidelity['floor_ns'] / 1e3:.0f} us",
    ]
    lines += [format_client(each) for each in fidelity["clients"][:CLIENTS_SHOWN] if each["turns"]["requests"]]
    if len(fidelity["clients"]) > CLIENTS_SHOWN:
        lines.append(f"and {len(fidelity['clients']) - CLIENTS_SHOWN} more clients")
    if fidelity["canary"]["count"]:
        waited_us = fidelity["canary"]["p99_ns"] / 1e3
        pressure = fidelity["pressure_share"]
        pressure_text = (
            "" if pressure is None else f"; processes here waited for a processor {pressure:.0%} of the time"
        )
        lines.append(f"a client of normal priority next to them: p99 {waited_us:.0f} us late{pressure_text}")
    if fidelity["below_floor"]:
        below = counted(fidelity["below_floor"], "request")
        lines.append(
            f"{below} {agreed(fidelity['below_floor'], 'was', 'were')} due sooner than this machine can answer"
        )
    if fidelity["speed"] != 1:
        lines.append(f"simulated time ran at {fidelity['speed']:g} times the speed of real time")
    return [*lines, fidelity["verdict"]]


def format_client(seen: Client) -> str:
    """Formats the requests, rate and processor waits of a client in one line."""
    turns, waits = seen["turns"], seen["waits"]
    name = "a remote client" if seen["pid"] is None else f"{seen['name'] or 'a client'} ({seen['pid']})"
    line = f"{name}: {turns['requests']:,} requests, queue depth at most {turns['depth']:,}"
    served_ns, turned_ns = turns["served_ns"], turns["turned_ns"]
    if served_ns + turned_ns:
        line += f", {served_ns / (served_ns + turned_ns):.0%} of the rate that this allows"
    if waits is not None:
        line += f"; it waited for a processor {waits['waited_share']:.0%} of the time"
    return line


@click.command()
@click.argument("socket", metavar="SOCKET", type=SOCKET, help="Control socket, as given to --control of the export.")
@click.argument(
    "words", nargs=-1, required=True, metavar="ORDER...", help="Order: a word and KEY=VALUE pairs, or JSON."
)
def ctl(socket: str, words: tuple[str, ...]) -> None:
    """Send an order to a running export through its control socket.

    \b
    headstack serve ctl /tmp/c status
    headstack serve ctl /tmp/c inject fail-slow kinds=write time=5ms
    headstack serve ctl /tmp/c clear number=0
    headstack serve ctl /tmp/c stop

    The answer is printed as JSON or text. "clear" ends the fault with this number in the log ("injections"), or without
    a number all faults. "release" ends hangs and answers the held requests. More orders:

    \b
    headstack serve ctl /tmp/c metrics
    headstack serve ctl /tmp/c inject errno kinds='["flush"]' at=flush:7 once
    headstack serve ctl /tmp/c mark transaction 17
    """
    from headstack.live.control import Control, order_of  # start-up time

    with Control(socket) as control:
        answer = control.order(order_of(words))
    if isinstance(answer, str):
        print(answer, end="" if answer.endswith("\n") else "\n")
    elif answer is not None:
        print(to_json(answer), end="")


@click.command()
@click.argument("socket", metavar="SOCKET", type=SOCKET, help="Control socket, as given to --control of the export.")
@click.option(
    "--interval", default="1s", metavar="TIME", show_default=True, help="Time between two updates, for example 1s."
)
@click.option("--once", is_flag=True, help="Print one interval and exit.")
def top(socket: str, interval: str, once: bool) -> None:
    """Show utilization and queues of a running export.

    \b
    headstack serve top /tmp/c
    headstack serve top /tmp/c --interval 5s --once
    """
    from headstack.live.top import watch  # start-up time

    try:
        watch(socket, interval, once)
    except KeyboardInterrupt:
        print()

"""Options, progress and exit codes of commands that measure real targets."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import click

from headstack._native import WRITING_STOPPED
from headstack.cli.completing import Among
from headstack.io import signals
from headstack.io.columns import is_plain
from headstack.io.counts import agreed, counted
from headstack.io.terminal import clear, remark, rewrite
from headstack.io.values import whole
from headstack.measurement.access import ENGINES, SLOTS, Access, Progress
from headstack.measurement.measurement import BY_HAND
from headstack.measurement.specs import ProgressReport
from headstack.results.results import Results

Command = Callable[..., Any]

SHOW_EVERY_S = 1.0
"""Time between two lines of progress, in seconds."""
ANSWER_WITHIN_S = 0.3
"""Time in seconds to wait for requests in flight before printing a message. A working device answers sooner."""
RATE_OVER_S_MIN = 0.1
"""Minimum time over which a rate is calculated, in seconds."""
EXIT_FAILED, EXIT_IN_USE, EXIT_RUN = 1, 1, 3


def permission_options(command: Command) -> Command:
    """Adds the options for write permission and the I/O engine."""
    decorators = [
        click.option(
            "--destroy",
            metavar="NAME|SERIAL",
            multiple=True,
            help="Name or serial number of the device, or address of the export, whose data may be destroyed; may "
            "be repeated.",
        ),
        click.option(
            "--signature",
            "over",
            metavar="NAME",
            multiple=True,
            help="Signature on the device that may be overwritten, for example ext4; may be repeated.",
        ),
        click.option("--create", metavar="SIZE", help="Create the file with this size, for example 1GiB."),
        click.option("--overwrite", is_flag=True, help="Allow writing to an existing file."),
        click.option("--buffered", is_flag=True, help="Use the page cache instead of direct I/O."),
        click.option(
            "--engine",
            metavar="|".join(ENGINES),
            type=Among(ENGINES),
            default="auto",
            help="I/O engine.",
        ),
        click.option(
            "--connections",
            metavar="N",
            default="1",
            help="Connections of each thread to an NBD server.",
            show_default=True,
        ),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


def one_thread_options(command: Command) -> Command:
    """Adds the options for write permission and a single thread."""
    slots = click.option(
        "--slots",
        metavar="N",
        default=str(SLOTS),
        help="Largest queue depth with --rate (open loop).",
        show_default=True,
    )
    return permission_options(slots(command))


def access_options(command: Command) -> Command:
    """Adds the options of ``one_thread_options`` and the number of threads."""
    threads = click.option(
        "--threads", metavar="N", default="1", help="Number of threads that issue requests.", show_default=True
    )
    return one_thread_options(threads(command))


def access_of(options: dict[str, Any]) -> Access:
    """Removes the access options from the options of a command; missing access options have their defaults."""
    return Access(
        destroy=tuple(options.pop("destroy")),
        over=tuple(options.pop("over")),
        create=options.pop("create"),
        overwrite=options.pop("overwrite"),
        buffered=options.pop("buffered"),
        engine=options.pop("engine"),
        threads=whole("threads", options.pop("threads", "1")),
        slots=whole("slots", options.pop("slots", str(SLOTS))),
        connections=whole("connections", options.pop("connections")),
        zoned=options.pop("zoned", None),
        open_zones=whole("open-zones", options.pop("open_zones", None) or "0"),
    )


def error_option(command: Command) -> Command:
    """Adds the option to accept failed requests."""
    return click.option("--continue-on-error", is_flag=True, help="Exit with code 0 even if requests failed.")(command)


def exit_code_of_runs(results: Results, continue_on_error: bool = False) -> int:
    """Returns the exit code of a measurement; reports an early end and failed requests on stderr."""
    code = exit_code_of_early_end(next((row["ended_early"] for row in results if row["ended_early"] is not None), None))
    return code or exit_code_of_failures(sum(row["errors"] for row in results), continue_on_error)


def exit_code_of_failures(errors: int, continue_on_error: bool) -> int:
    """Returns the exit code for a number of failed requests, and reports them on stderr."""
    if errors == 0 or continue_on_error:
        return 0
    requests = "1 request" if errors == 1 else f"{errors:,} requests"
    print(f"headstack: {requests} failed (add --continue-on-error to accept this)", file=sys.stderr)
    return EXIT_FAILED


def exit_code_of_broken_limits(broken: Iterable[str]) -> int:
    """Returns the exit code for jobs that ended at a limit in their job file, and reports each job on stderr."""
    code = 0
    for line in broken:
        print(f"headstack: {line}", file=sys.stderr)
        code = EXIT_FAILED
    return code


def exit_code_of_early_end(ended: str | None) -> int:
    """Reports the reason of an early end on stderr and returns its exit code; returns 0 if there is no reason."""
    if ended is None:
        return 0
    print(f"headstack: ended early; results up to then are kept: {ended}", file=sys.stderr)
    return exit_code_of_reason(ended)


def exit_code_of_reason(ended: str) -> int:
    """Returns the exit code for the reason of an early end."""
    if WRITING_STOPPED in ended:
        return EXIT_IN_USE
    return signals.exit_code() if ended == BY_HAND else EXIT_RUN


HOSTS_SHOWN = 6
"""Maximum number of hosts whose rates are all shown; with more hosts, only the slowest and the fastest are shown."""


@dataclass(frozen=True)
class LastProgress:
    """The counts of the last line of progress."""

    at_s: float
    run: int = -1
    completed: int = 0
    bytes: int = 0
    response_s: float = 0.0
    hosts: Mapping[str, int | None] = field(default_factory=dict)
    """Completed requests of each host."""


def _format_host_rates(hosts: list[tuple[str, int | None]], last: LastProgress, passed_s: float) -> list[str]:
    """Formats the rate of each host of a measurement from several hosts."""
    if len(hosts) < 2:
        return []
    rates = [
        (n, None if completed is None else (completed - (last.hosts.get(n) or 0)) / passed_s) for n, completed in hosts
    ]
    if len(hosts) > HOSTS_SHOWN:
        present = sorted(((rate, name) for name, rate in rates if rate is not None))
        missing = len(rates) - len(present)
        ends = [f"{name} {rate:,.0f}" for rate, name in (present[:1] + present[-1:])]
        return [f"{len(hosts)} hosts: {' to '.join(ends)}", *([f"{missing} missing"] if missing else [])]
    return [f"{name} {'missing' if rate is None else f'{rate:,.0f}'}" for name, rate in rates]


@contextmanager
def measurement_progress(quiet: bool) -> Iterator[Progress | None]:
    """Shows progress of measurements on stderr: one rewritten line on a terminal, else a line every ten seconds."""
    if quiet:
        yield None
        return
    on_terminal = not is_plain(sys.stderr)
    yield _progress_printer(on_terminal)
    if on_terminal:
        clear(sys.stderr)


def _progress_printer(on_terminal: bool) -> Progress:
    shown_at, ending_at = time.monotonic(), 0.0
    last = LastProgress(shown_at)
    every = SHOW_EVERY_S if on_terminal else 10 * SHOW_EVERY_S

    def show(now: ProgressReport) -> None:
        nonlocal shown_at, ending_at, last
        at = time.monotonic()
        if now["ending"]:
            ending_at = ending_at or at
            if now["under_way"] and at - ending_at > ANSWER_WITHIN_S and shown_at != math.inf:
                shown_at = math.inf
                waiting = now["under_way"]
                requests, pronoun = counted(waiting, "request"), agreed(waiting, "it", "them")
                message = f"ending; waiting for {requests} in flight; another Ctrl-C abandons {pronoun}"
                remark(sys.stderr, f"headstack: {message}", on_terminal)
            return
        if now["run"] != last.run:
            last = LastProgress(at, now["run"])
        # With many short runs, show only some.
        passed = at - last.at_s
        if at - shown_at < every or passed < RATE_OVER_S_MIN:
            return
        shown_at = at
        count = now["completed"] - last.completed
        rate, mb_per_s = count / passed, (now["bytes"] - last.bytes) / passed / 1e6
        mean_ms = (now["response_s"] - last.response_s) / count * 1e3 if count else 0.0
        left_s = now["elapsed_s"] * (1 / now["share"] - 1) if now["share"] > 0 else None
        parts = [f"{rate:,.0f} IOPS", f"{mb_per_s:,.1f} MB/s", f"mean {mean_ms:,.3f} ms" if count else "no completion"]
        if left_s is not None:
            parts.append(f"{left_s:,.0f} s left")
        if now["runs"] > 1:
            parts.append(f"run {now['run'] + 1} of {now['runs']}")
        parts += _format_host_rates(now.get("hosts", []), last, passed)
        if now["errors"]:
            parts.append(f"{now['errors']} errors")
        hosts = dict(now.get("hosts", []))
        last = LastProgress(at, now["run"], now["completed"], now["bytes"], now["response_s"], hosts)
        rewrite(sys.stderr, f"headstack: {', '.join(parts)}", on_terminal)

    return show

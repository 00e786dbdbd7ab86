"""``headstack judge``: finds slow disks in monitoring data."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from headstack._native import InputError
from headstack.cli.command import Brief
from headstack.cli.completing import SYSTEM, Among
from headstack.cli.files import KEPT, OUTPUT, SOURCE, read_from
from headstack.cli.formats import output_options, report_writers
from headstack.cli.output import Outputs, print_notes_of, print_table, say, verbose_option, wide_option
from headstack.diagnosis.judging.verdict import FINE
from headstack.io import signals
from headstack.io.columns import Column, Figures, Names, Prose, Words
from headstack.io.tables import written
from headstack.io.values import duration_ns, number

if TYPE_CHECKING:
    from headstack.diagnosis.judging.history import Entry
    from headstack.diagnosis.judging.observations import Observations
    from headstack.diagnosis.judging.session import Session
    from headstack.diagnosis.judging.verdict import Verdict

PEERS = ("auto", "host", "model", "none")
COLUMNS: tuple[Column, ...] = (
    Names("host"),
    Names("disk"),
    Words("verdict", 0),
    Words("since\n(UTC)", 1),
    Figures("times as\nslow", 1),
    Figures("confidence\n%", 2),
    Words("compared\nwith", 4),
    Prose("why", 2),
    Prose("cause", 3),
    Prose("next step", 1),
)
FINE_SHOWN = 24
"""Maximum number of fine disks to list; if there are more, only their number is printed."""


@click.command(cls=Brief)
@click.argument("inputs", nargs=-1, type=SOURCE, metavar="INPUT...", help="Monitoring files and folders; - for stdin.")
@click.option(
    "--live",
    metavar="TIME",
    help="Watch this machine's disks at this interval, for example 15s, until Ctrl-C; INPUTs name disks.",
)
@click.option("--prometheus", metavar="URL", help="Query the node_exporter metrics of this Prometheus server.")
@click.option("--token-file", type=SOURCE, metavar="FILE", help="File with the bearer token for the server.")
@click.option("--ca-file", type=SOURCE, metavar="FILE", help="File with the certificate authority of the server (PEM).")
@click.option(
    "--match", default="", metavar="MATCHERS", help='Series to query, for example job="node",instance=~"db.*".'
)
@click.option(
    "--since",
    default="336h",
    metavar="TIME",
    show_default=True,
    help="Time range to query, up to now, for example 24h.",
)
@click.option(
    "--step", default="60s", metavar="TIME", show_default=True, help="Time between two queried points, for example 15s."
)
@click.option(
    "--columns",
    type=SOURCE,
    metavar="TEXT",
    help='Columns of a table, for example "disk=dev,time=ts:s,every=15s,latency=lat:ms", or a file that declares them.',
)
@click.option("--every", metavar="TIME", help="Interval of blocks without a time, for example 15s.")
@click.option("--timezone", metavar="NAME", help="Time zone of local times, for example Europe/Berlin.  [default: UTC]")
@click.option("--host", metavar="NAME", help="Host name of the disks, which overrides the input's.")
@click.option(
    "--peers",
    default="auto",
    type=Among(PEERS),
    metavar="auto|host|model|none",
    show_default=True,
    help="What to compare disks with: disks of the same host, of the same model, or only their own past.",
)
@click.option(
    "--twin",
    "twins",
    multiple=True,
    type=SYSTEM,
    metavar="[DISK=|MODEL=]SYSTEM",
    help="Compare a disk, or disks of a model, with a simulated drive of the catalogue or calibrated model; may be "
    "repeated.",
)
@click.option(
    "--limits",
    multiple=True,
    metavar="[DISK=]LIMIT",
    help="Limit in force, for example gp3:3000/s,125MiB/s or sdb=500/s; may be repeated.",
)
@click.option(
    "--maintenance",
    multiple=True,
    metavar="WINDOW",
    help="Leave out a maintenance window in --timezone, for example 2026-11-29T02:00/04:00, 'daily 02:00-04:00' or "
    "'sat,sun 22:00-05:00'; may be repeated.",
)
@click.option(
    "--false-alarms",
    default="0.001",
    metavar="N",
    show_default=True,
    help="Accepted false alarms per disk and year.",
)
@click.option(
    "--state", "state_path", type=KEPT, metavar="FILE", help="State file: resume from it, and keep the state in it."
)
@click.option(
    "--history",
    "history_path",
    type=KEPT,
    metavar="FILE",
    help="Append changed verdicts to this file; without an INPUT, show it.",
)
@click.option(
    "--export",
    "export_place",
    metavar="[HOST:]PORT",
    help="With --live: HTTP address for Prometheus metrics, for example 9101.",
)
@click.option(
    "--rules",
    "rules_path",
    type=OUTPUT,
    metavar="FILE",
    help="Write Prometheus alerting rules with thresholds from the verdicts (YAML).",
)
@output_options(json=None, html=None, markdown=None)
@wide_option
@verbose_option
@signals.held()
def judge(
    inputs: tuple[str, ...],
    live: str | None,
    prometheus: str | None,
    state_path: str | None,
    history_path: str | None,
    export_place: str | None,
    json_path: str | None,
    **options: Any,
) -> int:
    """Find slow disks in monitoring data, and what makes disks wait.

    \b
    headstack judge iostat.json
    headstack judge --live 15s --state judge.state --export 9101
    headstack judge --prometheus http://prometheus:9090 --match 'job="node"' --html fleet.html
    headstack judge fleet.parquet --columns host=host,disk=disk,time=ts:s,every=15s,latency=us:us

    INPUT is detected by content, also a pasted excerpt: iostat, sar, zpool iostat, /proc/diskstats, node_exporter,
    Prometheus, CloudWatch, collectl, ceph osd perf, CSV, Parquet; vmstat, mdstat, smart-log and fio add facts.

    With --state you can pass a growing log again and again; headstack reads only the new part. Exit codes: 1 a disk is
    slow; 5 a limit, 6 the host, 7 other work or 8 the queue makes a disk wait; 4 not enough data for any verdict;
    otherwise 0. State and history are written after all outputs.
    """
    try:
        import numpy  # noqa: F401  # start-up time
        import polars  # noqa: F401  # start-up time
    except ImportError:
        raise InputError("judge needs numpy and polars: pip install 'headstack[judge]'") from None
    from headstack.diagnosis.judging.history import history as entries_of  # start-up time
    from headstack.diagnosis.judging.judge import judge as by_statistics  # start-up time
    from headstack.diagnosis.judging.maintenance import Maintenance  # start-up time
    from headstack.diagnosis.judging.report import report_of  # start-up time
    from headstack.diagnosis.judging.session import Session  # start-up time
    from headstack.diagnosis.judging.sources.files import How  # start-up time
    from headstack.diagnosis.judging.sources.times import zone_of  # start-up time
    from headstack.diagnosis.judging.suspects.limits import limits_of  # start-up time
    from headstack.diagnosis.judging.twins import twins_of  # start-up time

    report_paths = {name: value for name, value in options.items() if name.endswith("_path")}
    writers = {"json": write_json} | report_writers(report_of)
    rules_writer = partial(write_rules, is_exported=export_place is not None)
    outputs = Outputs(report_paths | {"json_path": json_path}, writers, rules=rules_writer)
    if history_path is not None and not (inputs or live or prometheus):
        print_history(entries_of(Path(history_path)))
        return 0
    check_usage(inputs, live, prometheus, export_place)
    if history_path is not None and Path(history_path).exists():
        # Refuse a file that another program wrote, before judging.
        entries_of(Path(history_path))
    reading = How(
        zone=None if options["timezone"] is None else zone_of(options["timezone"]),
        every_s=None if options["every"] is None else parse_seconds("--every", options["every"]),
        host=options["host"],
    )
    settings = {
        "peers": options["peers"],
        "twin": twins_of(options["twins"]) or None,
        "limits": limits_of(options["limits"]),
        "false_alarms_per_drive_year": number("--false-alarms", options["false_alarms"]),
    }
    windows = Maintenance.of(options["maintenance"], reading.zone)
    session = Session(by_statistics, reading, settings, maintenance=windows)
    if state_path is not None:
        session.resume(Path(state_path))
    server = (
        None
        if prometheus is None
        else ServerOptions(
            prometheus, options["token_file"], options["ca_file"], options["match"], options["since"], options["step"]
        )
    )
    parts = read_parts(tuple(map(read_from, inputs)), live, server, options["columns"], session)
    out = partial(print, flush=True) if live is not None and not outputs.has_stdout else None
    kept_files = KeptFiles(state_path, history_path, is_live=live is not None)
    is_ended = judge_all(parts, session, kept_files, export_place, out)
    outputs.write(session, lambda: print_verdicts(session))
    kept_files.finish(session)
    # Only a signal ends --live, so the verdict is printed after a signal too.
    return signals.exit_code() if is_ended and live is None else session.exit_code


def check_usage(inputs: tuple[str, ...], live: str | None, prometheus: str | None, export_place: str | None) -> None:
    """Raises ``InputError`` unless there is exactly one kind of input."""
    if live is not None and prometheus is not None:
        raise InputError("--live, --prometheus: give only one of them")
    if prometheus is not None and inputs:
        raise InputError(f"--prometheus: {inputs[0]}: cannot be combined with INPUT; remove one of them")
    if live is None and prometheus is None and not inputs:
        raise InputError("nothing to judge; name files or folders, or add --live 15s or --prometheus URL")
    if export_place is not None and live is None:
        raise InputError("--export: needs --live TIME")


def parse_seconds(name: str, text: str) -> float:
    """Parses a duration above 0, in seconds."""
    value_s = duration_ns(name, text) / 1e9
    if value_s <= 0:
        raise InputError(f"{text} is out of range; write a time above 0s", key=name)
    return value_s


class ServerOptions(NamedTuple):
    """The options of a Prometheus server."""

    url: str
    token_file: str | None
    ca_file: str | None
    match: str
    """Matchers that select the series."""
    since: str
    """Length of the queried time range."""
    step: str
    """Time between two queried points."""


def read_parts(
    inputs: tuple[str, ...], live: str | None, server: ServerOptions | None, columns: str | None, session: Session
) -> Iterator[Observations]:
    """Returns the observations in parts."""
    from headstack.diagnosis.judging import live as living  # start-up time
    from headstack.diagnosis.judging.sources import kinds as sources  # start-up time
    from headstack.diagnosis.judging.sources.prometheus import Server, rows_of_server  # start-up time
    from headstack.diagnosis.judging.sources.table import declaration  # start-up time

    if live is not None:
        return living.observe(inputs, parse_seconds("--live", live), session.how)
    if server is not None:
        step_s, to_s = parse_seconds("--step", server.step), time.time()
        from_s = to_s - parse_seconds("--since", server.since)
        if session.judged_s:
            # The first interval begins at the last point already judged.
            from_s = max(from_s, min(session.judged_s.values()) - step_s)
        answering = Server.of(server.url, server.token_file, server.ca_file)
        rows = rows_of_server(answering, server.match, from_s, to_s, step_s, session.how)
        return sources.in_parts(rows, "prometheus", session.how)
    return sources.parts(inputs, session.how, None if columns is None else declaration(columns))


class KeptFiles:
    """The state and history files, if they are requested.

    Both are written after all outputs, so that observations missing from a failed output are judged again.
    With --live, both are also written during the run, because live observations cannot be repeated."""

    KEEP_S = 60.0
    """Time between two writes of the state with --live, in seconds."""

    def __init__(self, state_path: str | None, history_path: str | None, *, is_live: bool) -> None:
        self.state_path, self.history_path, self.is_live = state_path, history_path, is_live
        self._kept_s = time.monotonic()
        self._changes: list[tuple[tuple[Verdict, ...], float]] = []
        self._kinds: dict[tuple[str, str], str] = {}

    def after(self, session: Session) -> None:
        """Records changed verdicts, and writes the state if it is due."""
        if self.history_path is not None and session.span_s is not None:
            changed = tuple(
                verdict for verdict in session.verdicts if self._kinds.get((verdict.host, verdict.disk)) != verdict.kind
            )
            self._kinds |= {(verdict.host, verdict.disk): verdict.kind for verdict in changed}
            self._changes += [(changed, session.span_s[1])] if changed else []
        if self.is_live:
            self._record()
            if time.monotonic() - self._kept_s >= self.KEEP_S:
                self._keep(session)

    def finish(self, session: Session) -> None:
        """Appends to the history and keeps the state."""
        self._record()
        self._keep(session)

    def _record(self) -> None:
        from headstack.diagnosis.judging.history import record  # start-up time

        while self._changes:
            assert self.history_path is not None
            record(Path(self.history_path), *self._changes.pop(0))

    def _keep(self, session: Session) -> None:
        if self.state_path is not None:
            session.store(Path(self.state_path))
        self._kept_s = time.monotonic()


def judge_all(
    parts: Iterator[Observations],
    session: Session,
    kept_files: KeptFiles,
    export_place: str | None,
    out: Callable[[str], object] | None,
) -> bool:
    """Judges the observations part by part. Returns true if a signal ended the loop."""
    from headstack.diagnosis.judging.exporter import Exporter, exposition  # start-up time

    with ExitStack() as stack:
        exporter = None if export_place is None else stack.enter_context(Exporter(export_place))
        if exporter is not None and out is not None:
            out(f"metrics at http://{exporter.address}/metrics")
        last_kinds: dict[tuple[str, str], str] = {}
        try:
            while True:
                with signals.raising():
                    part = next(parts, None)
                if part is None:
                    is_ended = False
                    break
                session.take(part)
                kept_files.after(session)
                if exporter is not None:
                    exporter.text = exposition(
                        session.verdicts, session.span_s[1] if session.span_s else None, session.left_out
                    )
                for verdict in session.verdicts if out is not None else ():
                    if last_kinds.get((verdict.host, verdict.disk)) != verdict.kind and out is not None:
                        out(f"{format_time(time.time())} {verdict.host} {verdict.disk}: {verdict.kind}: {verdict.why}")
                    last_kinds[verdict.host, verdict.disk] = verdict.kind
        except KeyboardInterrupt:
            is_ended = True
    return is_ended


def write_json(session: Session, path: Path | None = None) -> str:
    """Writes the verdicts as JSON."""
    return written(json.dumps(session.document(), indent=1, ensure_ascii=False) + "\n", path)


def write_rules(session: Session, path: Path | None = None, *, is_exported: bool) -> str:
    """Writes alerting rules for Prometheus."""
    from headstack.diagnosis.judging.alert_rules import alert_rules  # start-up time

    return written(alert_rules(session, is_exported=is_exported), path)


def print_verdicts(session: Session) -> None:
    """Prints the table of verdicts, slow disks first, with headline and caveats."""
    from headstack.diagnosis.judging.session import headline  # start-up time

    say(f"{headline(session)}\n")
    notable = [verdict for verdict in session.verdicts if verdict.kind != FINE]
    fine = [verdict for verdict in session.verdicts if verdict.kind == FINE]
    shown = notable + (fine if len(fine) <= FINE_SHOWN else [])
    if shown:
        columns, rows = COLUMNS, [format_row(verdict) for verdict in shown]
        empty = {n for n, column in enumerate(columns) if column.rank and not any(row[n] for row in rows)}
        shown_columns = [n for n in range(len(columns)) if n not in empty]
        print_table([columns[n] for n in shown_columns], [[row[n] for n in shown_columns] for row in rows])
        print()
    if len(fine) > FINE_SHOWN:
        say(f"{len(fine):,} more disks are fine (--json lists all)")
    print_notes_of(session.caveats)


def format_row(verdict: Verdict) -> list[str]:
    """Formats the row of a disk."""
    slower = ""
    if verdict.slower is not None:
        low, high = f"{verdict.slower.low:.2f}", f"{verdict.slower.high:.2f}"
        slower = (
            f"at least {low}" if verdict.slower.is_lower_bound else f"{verdict.slower.factor:.2f} ({low} to {high})"
        )
    cause = "" if verdict.cause is None else f"{verdict.cause.name}: {verdict.cause.evidence}"
    return [
        verdict.host,
        verdict.disk,
        verdict.kind,
        "" if verdict.since_s is None else format_time(verdict.since_s),
        slower,
        "" if verdict.confidence is None else f"{100 * verdict.confidence:.3g}",
        verdict.method or "",
        verdict.why,
        cause,
        verdict.next_step,
    ]


def format_time(time_s: float) -> str:
    """Formats a time in UTC, so that logs of several machines can be compared."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M")


def print_history(entries: list[Entry]) -> None:
    """Prints changes of verdicts, oldest first."""
    columns = (
        Words("at\n(UTC)", 0),
        Names("host"),
        Names("disk"),
        Words("before", 1),
        Words("verdict", 0),
        Prose("why"),
    )
    rows = [
        [format_time(entry.at_s), entry.host, entry.disk, entry.before or "", entry.kind, entry.why]
        for entry in entries
    ]
    print_table(columns, rows)

"""``headstack doctor``: diagnoses this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from headstack.cli.files import SOURCE
from headstack.cli.formats import output_options, report_writers
from headstack.cli.output import Outputs, print_notes_of, print_table, progress, say, verbose_option, wide_option
from headstack.io import signals
from headstack.io.columns import Column, Figures, Names, Prose, Words
from headstack.io.counts import counted

if TYPE_CHECKING:
    from headstack.diagnosis.doctor.diagnosis import Diagnosis

COLUMNS: tuple[Column, ...] = (
    Names("device"),
    Words("kind", 0),
    Prose("model", 3, least=12),
    Figures("size", 1),
    Prose("used by", 1, least=12),
    Words("scheduler", 2),
    Words("write\ncache", 2),
    Figures("queue", 3),
    Figures("read-\nahead", 4),
    Figures("IOPS", 0),
    Figures("latency", 0),
    Words("health", 1),
    Words("verdict", 0),
)
"""The columns of ``report.DEVICE_HEADS``."""


@click.command()
@click.option(
    "--time",
    default="20s",
    metavar="TIME",
    show_default=True,
    help="Length of the observation, for example 60s; 0s skips it.",
)
@click.option(
    "--limits",
    multiple=True,
    metavar="[DISK=]LIMIT",
    help="Limit in force, for example gp3:3000/s,125MiB/s or sdb=500/s; may be repeated.",
)
@click.option(
    "--measure",
    type=SOURCE,
    metavar="FOLDER|FILE|DEV",
    help="Also read it at random for 6 s: a device, a file, or the largest file of a folder.",
)
@output_options(json=None, html=None, markdown=None)
@wide_option
@verbose_option
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@signals.held()
def doctor(time: str, limits: tuple[str, ...], measure: str | None, quiet: bool, **options: Any) -> int:
    """Diagnose this machine: devices, limits, stack, pressure, and what to change.

    \b
    headstack doctor
    headstack doctor --time 60s --limits gp3:3000/s,125MiB/s
    headstack doctor --measure /var/lib/postgresql/data --html doctor.html

    Reads the kernel's files and the health data of drives, observes all disks, and reports at most three findings,
    each with the file and its value, the command that changes it, and the expected effect. Nothing is written or
    changed. Without root, it lists what it could not read.

    Exit codes: 1 a drive or an array is failing or slow, or data are at risk; 5 a limit, 6 the host, 7 other work or 8
    the queue makes requests wait; 0 for settings, and if nothing was found.
    """
    from headstack.diagnosis.doctor import diagnosis as diagnoses  # start-up time
    from headstack.diagnosis.doctor.report import report_of  # start-up time

    outputs = Outputs(options, {"json": diagnoses.Diagnosis.to_json} | report_writers(report_of))
    with progress("observing", quiet) as show, signals.raising():
        diagnosis = diagnoses.doctor(time=time, limits=limits, measure=measure, progress=show)
    outputs.write(diagnosis, lambda: print_diagnosis(diagnosis))
    return diagnosis.exit_code


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Prints answer, findings, devices, limits, and what could not be seen."""
    from headstack.diagnosis.doctor.report import (  # start-up time
        device_row,
        finding_lines,
        limit_lines,
        measured_lines,
        pressure_line,
    )

    host = diagnosis.host
    say(diagnosis.answer)
    for number, finding in enumerate(diagnosis.findings, 1):
        print()
        say("\n".join(finding_lines(number, finding)))
    if diagnosis.further:
        say(f"\n{counted(diagnosis.further, 'more finding')} of less effect")
    rows = [device_row(device, host) for device in host.devices]
    if rows:
        print()
        shown = [n for n in range(len(COLUMNS)) if any(row[n] for row in rows)]
        print_table([COLUMNS[n] for n in shown], [[row[n] for n in shown] for row in rows])
    print()
    for line in (pressure_line(host), *limit_lines(host), *measured_lines(diagnosis)):
        if line:
            say(line)
    print_notes_of([f"not seen: {line}" for line in diagnosis.unseen])

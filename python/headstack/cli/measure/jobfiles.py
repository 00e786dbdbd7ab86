"""Options for job files of fio, Iometer and vdbench, measured and simulated."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import click

from headstack._native import InputError
from headstack.catalogue.options import OPTIONS
from headstack.cli.completing import Among
from headstack.cli.files import OUTPUT, SOURCE, check_outputs, check_sources
from headstack.cli.output import print_results
from headstack.cli.targets import exit_code_of_reason
from headstack.io.atomic_files import write_text
from headstack.io.json_text import page_of
from headstack.io.values import choice, duration_ns
from headstack.measurement.access import SLOTS, Access
from headstack.measurement.jobfiles import fio_terse
from headstack.measurement.jobfiles.fio_json import Fields
from headstack.measurement.jobfiles.fio_status import Status
from headstack.measurement.jobfiles.job_file import JobFile
from headstack.measurement.jobfiles.jobs import JobResults
from headstack.measurement.jobfiles.targets import names_of

Command = Callable[..., Any]

ARGUMENTS = "--"
"""Value of ``--fio`` if fio's own arguments follow."""
FORMATS = ("json", "json+", "terse")
"""fio's output formats, except ``normal``; the option takes a list."""
STATED = tuple(
    o.name for o in OPTIONS if o.group in ("Workload", "Load", "Length") and o.name not in ("seed", "interval")
)
"""Options of a run that a job file sets itself."""
OF_WORKLOADS = ("verify", "ledger", "resume", "lun")
"""Options of a measurement of a workload, which a job file sets itself or does not support."""


def job_options(command: Command) -> Command:
    """Adds the options for job files and fio's output."""
    decorators = [
        click.option(
            "--fio",
            type=SOURCE,
            metavar="FILE.fio",
            is_flag=False,
            flag_value=ARGUMENTS,
            help="fio job file; or -- and fio's options.",
        ),
        click.option("--icf", type=SOURCE, metavar="FILE.icf", help="Iometer configuration file (.icf)."),
        click.option(
            "--vdbench", type=SOURCE, metavar="FILE", help="vdbench parameter file; NAME=VALUE sets its variables."
        ),
        click.option("--section", metavar="NAME", multiple=True, help="Run only this job of a fio job file."),
        click.option(
            "--output-format",
            metavar="|".join(FORMATS),
            type=Among(FORMATS),
            help="Print results in fio's formats, for example json,terse.",
        ),
        click.option("--terse-version", metavar="2|3|4|5", help="Version of fio's terse format, for example 3."),
        click.option(
            "--output", type=OUTPUT, metavar="FILE", help="Write the --output-format to a file instead of stdout."
        ),
        click.option("--minimal", is_flag=True, help="Same as --output-format terse."),
        click.option(
            "--status-interval", metavar="TIME", help="Print interim results at this interval, for example 10s."
        ),
        click.option("--readonly", is_flag=True, help="Refuse job files that write or trim."),
        click.option(
            "--parse-only",
            is_flag=True,
            help="Parse the job file, print options that are handled differently, and exit.",
        ),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


@dataclass(frozen=True)
class FioFormat:
    """The requested output formats of fio."""

    names: tuple[str, ...]
    terse_version: int = fio_terse.USUAL

    @property
    def plus(self) -> bool:
        """Whether JSON has histograms."""
        return "json+" in self.names

    def text(self, document: Fields) -> str:
        """Formats a document of ``fio_json`` in fio's order: terse lines, then JSON."""
        terse = fio_terse.fio_terse(document, self.terse_version) if "terse" in self.names else ""
        has_json = any(name.startswith("json") for name in self.names)
        return terse + (page_of(document) if has_json else "")


def fio_format(wanted: str | None, minimal: bool, version: str | None) -> FioFormat | None:
    """Returns the formats in a list; without a list, ``--minimal`` means terse."""
    wanted = wanted or ("terse" if minimal else None)
    terse_version = str(fio_terse.USUAL) if version is None else version
    choice("--terse-version", terse_version, tuple(str(number) for number in fio_terse.VERSIONS))
    if wanted is None:
        if version is not None:
            raise InputError("--terse-version: needs --output-format terse")
        return None
    names = tuple(name.strip() for name in wanted.split(","))
    for name in names:
        choice("--output-format", name, FORMATS)
    if version is not None and "terse" not in names:
        raise InputError(f"--terse-version: needs terse in --output-format {wanted}")
    return FioFormat(names, int(terse_version))


@dataclass(frozen=True)
class JobRequest:
    """A job file on the command line."""

    file: JobFile
    places: list[str]
    """Targets or systems."""
    format: FioFormat | None
    """The requested output formats of fio."""
    output: str | None
    status_s: float | None = None
    """Time between two interim results, in seconds."""
    parse_only: bool = False
    """Whether to parse the job file without running it."""
    interim: list[str] = field(default_factory=list)
    """Interim results to write to ``output``."""

    def refuse_others(self, options: Mapping[str, Any], access: Access | None = None) -> None:
        """Refuses options that the job file sets itself."""
        conflicting = [name for name in STATED if options.get(name) is not None]
        # File trees keep a ledger only with --ledger.
        of_workloads = [name for name in OF_WORKLOADS if not (self.file.tree_phases and name == "ledger")]
        conflicting += [name for name in of_workloads if options.get(name)]
        if access is not None:
            used = {"buffered": access.buffered, "engine": access.engine != "auto"}
            used |= {"zoned": access.zoned is not None, "open_zones": access.open_zones > 0}
            conflicting += [name for name, is_used in used.items() if is_used]
            conflicting += [
                name for name, default in (("threads", 1), ("slots", SLOTS)) if getattr(access, name) != default
            ]
        if conflicting:
            raise InputError(f"--{conflicting[0].replace('_', '-')}: set by {self.file.source}; remove the option")

    def report(self, results: JobResults, is_stdout_taken: bool) -> None:
        """Prints remarks on stderr and the requested results: fio's formats, or tables."""
        self.print_remarks(results.remarks)
        if self.format is not None:
            text = self.format.text(results.fio_json(self.format.plus))
            if self.output is None:
                print(text, end="")
            else:
                write_text(self.output, "".join([*self.interim, text]))
        if not is_stdout_taken and (self.format is None or self.output is not None):
            print_results(results, with_streams=True)

    def print_remarks(self, remarks: Iterable[str]) -> None:
        """Prints on stderr which options are handled differently."""
        for remark in remarks:
            print(f"headstack: {remark}", file=sys.stderr)

    def status(self) -> Status | None:
        """Returns the interim reports at this interval; ``None`` without an interval."""
        if self.status_s is None:
            return None
        form = self.format or FioFormat(("json",))

        def report(document: Fields) -> None:
            text = form.text(document)
            if self.output is None:
                print(text, end="", flush=True)
            else:
                self.interim.append(text)

        return Status(self.status_s, report, plus=form.plus)


def take_job_request(words: tuple[str, ...], workload: str | None, options: dict[str, Any]) -> JobRequest | None:
    """Removes the options for job files from the options of a command. Returns ``None`` if no file is named."""
    paths = {name: options.pop(name) for name in ("fio", "icf", "vdbench")}
    sections, wanted, output = options.pop("section"), options.pop("output_format"), options.pop("output")
    minimal, status, version = options.pop("minimal"), options.pop("status_interval"), options.pop("terse_version")
    readonly, parse_only = options.pop("readonly"), options.pop("parse_only")
    named = [name for name, path in paths.items() if path is not None]
    if not named:
        without_file = {"--section": sections, "--output-format": wanted, "--output": output, "--minimal": minimal}
        without_file |= {
            "--terse-version": version,
            "--status-interval": status,
            "--readonly": readonly,
            "--parse-only": parse_only,
        }
        for option, value in without_file.items():
            if value:
                raise InputError("needs a job file; add --fio, --icf or --vdbench FILE", key=option)
        return None
    if len(named) > 1:
        raise InputError(f"--{named[0]}, --{named[1]}: give only one of them")
    if workload is not None:
        raise InputError(f"--workload: set by the job file of --{named[0]}; remove one of them")
    [name] = named
    if sections and (name != "fio" or paths["fio"] == ARGUMENTS):
        raise InputError("--section: only fio job files have sections")
    if name == "fio" and paths["fio"] == ARGUMENTS:
        places, arguments, of_program = split_arguments(list(words))
        wanted = of_program.get("output-format", wanted)
        if "output" in of_program:
            output = of_program["output"]
            check_outputs(output)
        minimal |= "minimal" in of_program
        version = of_program.get("terse-version", version)
        status = of_program.get("status-interval", status)
        readonly |= "readonly" in of_program
        parse_only |= "parse-only" in of_program
        file = JobFile.fio_arguments(arguments)
    elif name == "fio":
        file, places = JobFile.fio(paths["fio"], sections), list(words)
    elif name == "icf":
        file, places = JobFile.icf(paths["icf"]), list(words)
    else:
        variables = [word for word in words if is_variable(word)]
        places = [word for word in words if not is_variable(word)]
        file = JobFile.vdbench(paths["vdbench"], **dict(word.split("=", 1) for word in variables))
    # The folders of file trees may not exist yet.
    if not file.tree_phases:
        check_sources(*(places or names_of(file.phases)))
    if readonly:
        file.refuse_writes()
    form = fio_format(wanted, minimal, version)
    if status is not None and form is None:
        raise InputError("--status-interval: needs --output-format")
    check_fio_output(options, form, output)
    return JobRequest(file, places, form, output, None if status is None else parse_status_interval(status), parse_only)


def check_fio_output(options: Mapping[str, Any], form: FioFormat | None, output: str | None) -> None:
    """Refuses --output without a format, and a second output to stdout."""
    if output is not None:
        if form is None:
            raise InputError("--output: needs --output-format")
    elif form is not None and "-" in (options.get("json_path"), options.get("csv_path")):
        raise InputError("--output-format: only one output can be stdout; write it to a file with --output")


def parse_status_interval(text: str) -> float:
    """Parses a duration as fio does: in seconds if it has no unit."""
    seconds = duration_ns("--status-interval", f"{text}s" if text.isdigit() else text) / 1e9
    if seconds <= 0:
        raise InputError(f"--status-interval: {text} is out of range; write a time above 0s")
    return seconds


OF_PROGRAM = ("output", "output-format", "status-interval", "terse-version")
OF_PROGRAM_ALONE = ("minimal", "readonly", "parse-only")
"""Options of fio that are not part of a job."""


def split_arguments(words: list[str]) -> tuple[list[str], list[str], dict[str, str]]:
    """Splits a command line into the words before fio's arguments, the arguments of jobs, and fio's own options."""
    first = next((index for index, word in enumerate(words) if word.startswith("--")), len(words))
    places = [word for word in words[:first] if os.path.basename(word) != "fio"]
    left: list[str] = []
    of_program: dict[str, str] = {}
    rest = iter(words[first:])
    for argument in rest:
        name, separator, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in OF_PROGRAM:
            of_program[name] = value if separator else next(rest, "")
        elif argument.startswith("--") and name in OF_PROGRAM_ALONE:
            of_program[name] = ""
        else:
            left.append(argument)
    return places, left, of_program


def is_variable(word: str) -> bool:
    """Whether a word sets a variable of vdbench rather than naming a target."""
    name, separator, _ = word.partition("=")
    return bool(separator) and name.isidentifier() and not os.path.lexists(word)


def exit_code(results: JobResults, code: int) -> int:
    """Returns the exit code of a measurement; reports an early end on stderr."""
    if code or results.stopped is None:
        return code
    print(f"headstack: ended early; results up to then are kept: {results.stopped}", file=sys.stderr)
    return exit_code_of_reason(results.stopped)

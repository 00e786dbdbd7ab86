"""Job files of fio, Iometer and vdbench on the command line, measured and simulated."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import click

from headstack._native import InputError
from headstack.atomic_files import write_text
from headstack.cli.files import OUTPUT, SOURCE, check_outputs, check_sources
from headstack.cli.output import print_results
from headstack.cli.targets import code_of
from headstack.jobfiles import JobFile, JobResults
from headstack.jobfiles.targets import names_of
from headstack.measurement import SLOTS, Access
from headstack.options import OPTIONS
from headstack.values import choice

Command = Callable[..., Any]

ARGUMENTS = "--"
"""What ``--fio`` is given where fio's own arguments follow."""
FORMATS = ("json", "json+")
"""Of fio's output formats."""
STATED = tuple(
    o.name for o in OPTIONS if o.group in ("Workload", "Load", "Length") and o.name not in ("seed", "interval")
)
"""Options of a run that a job file states itself."""
OF_WORKLOADS = ("verify", "ledger", "resume", "lun")
"""Options of measurements of a workload, which a job file states itself or cannot have."""


def job_options(command: Command) -> Command:
    """Which job file, and what is printed of it as fio prints it."""
    decorators = [
        click.option(
            "--fio",
            type=SOURCE,
            metavar="FILE.fio",
            is_flag=False,
            flag_value=ARGUMENTS,
            help="A job file of fio; or -- and its options.",
        ),
        click.option("--icf", type=SOURCE, metavar="FILE.icf", help="A configuration file of Iometer."),
        click.option(
            "--vdbench", type=SOURCE, metavar="FILE", help="A parameter file of vdbench; NAME=VALUE sets its variables."
        ),
        click.option("--section", metavar="NAME", multiple=True, help="Only this job of a job file of fio."),
        click.option("--output-format", metavar="|".join(FORMATS), help="Print a job file's results as fio does."),
        click.option("--output", type=OUTPUT, metavar="FILE", help="Where to, instead of stdout."),
    ]
    return reduce(lambda wrapped, decorate: decorate(wrapped), reversed(decorators), command)


@dataclass(frozen=True)
class AskedJobs:
    """A job file on the command line."""

    file: JobFile
    places: list[str]
    """Targets or systems."""
    format: str | None
    """Of fio's outputs, the one that is wanted."""
    output: str | None

    def refuse_others(self, given: dict[str, Any], access: Access | None = None) -> None:
        """Refuses options for what the job file states itself."""
        own = [name for name in STATED if given.get(name) is not None]
        own += [name for name in OF_WORKLOADS if given.get(name)]
        if access is not None:
            used = {"buffered": access.buffered, "engine": access.engine != "auto"}
            own += [name for name, is_used in used.items() if is_used]
            own += [name for name, usual in (("threads", 1), ("slots", SLOTS)) if getattr(access, name) != usual]
        if own:
            raise InputError(f"--{own[0].replace('_', '-')}: {self.file.source} states its own; leave the option out")

    def tell(self, results: JobResults, is_stdout_taken: bool) -> None:
        """Remarks on stderr, and what was asked for: fio's JSON, or tables."""
        for remark in results.remarks:
            print(f"headstack: {remark}", file=sys.stderr)
        if self.format is not None:
            text = results.to_fio_json(plus=self.format == "json+")
            if self.output is None:
                print(text, end="")
            else:
                write_text(self.output, text)
        if not is_stdout_taken and (self.format is None or self.output is not None):
            print_results(results, with_streams=True)


def asked_jobs(words: tuple[str, ...], workload: str | None, given: dict[str, Any]) -> AskedJobs | None:
    """Takes the options for job files out of those of a command; ``None`` where no file is named."""
    paths = {name: given.pop(name) for name in ("fio", "icf", "vdbench")}
    sections, wanted, output = given.pop("section"), given.pop("output_format"), given.pop("output")
    named = [name for name, path in paths.items() if path is not None]
    if not named:
        for option, value in (("--section", sections), ("--output-format", wanted), ("--output", output)):
            if value:
                raise InputError(f"{option}: belongs to a job file; name one by --fio, --icf or --vdbench")
        return None
    if len(named) > 1:
        raise InputError(f"--{named[0]}, --{named[1]}: only one of them can be given")
    if workload is not None:
        raise InputError(f"--workload: the job file of --{named[0]} states its own; leave one of them out")
    [name] = named
    if sections and (name != "fio" or paths["fio"] == ARGUMENTS):
        raise InputError("--section: only job files of fio have sections")
    if name == "fio" and paths["fio"] == ARGUMENTS:
        places, arguments, of_program = split_arguments(list(words))
        wanted = of_program.get("output-format", wanted)
        if "output" in of_program:
            output = of_program["output"]
            check_outputs(output)
        file = JobFile.fio_arguments(arguments)
    elif name == "fio":
        file, places = JobFile.fio(paths["fio"], sections), list(words)
    elif name == "icf":
        file, places = JobFile.icf(paths["icf"]), list(words)
    else:
        variables = [word for word in words if is_variable(word)]
        places = [word for word in words if not is_variable(word)]
        file = JobFile.vdbench(paths["vdbench"], **dict(word.split("=", 1) for word in variables))
    check_sources(*(places or names_of(file.phases)))
    if wanted is not None:
        choice("--output-format", wanted, FORMATS)
    if output is not None:
        if wanted is None:
            raise InputError("--output: says where --output-format goes; name one")
    elif wanted is not None and "-" in (given.get("json_path"), given.get("csv_path")):
        raise InputError("--output-format: only one output can have stdout; send it to a file by --output")
    return AskedJobs(file, places, wanted, output)


def split_arguments(words: list[str]) -> tuple[list[str], list[str], dict[str, str]]:
    """What stands before fio's arguments; these, without those of its program that say what is printed; and those."""
    first = next((index for index, word in enumerate(words) if word.startswith("--")), len(words))
    places = [word for word in words[:first] if os.path.basename(word) != "fio"]
    left: list[str] = []
    of_program: dict[str, str] = {}
    rest = iter(words[first:])
    for argument in rest:
        name, separator, value = argument.removeprefix("--").partition("=")
        if argument.startswith("--") and name in ("output", "output-format"):
            of_program[name] = value if separator else next(rest, "")
        else:
            left.append(argument)
    return places, left, of_program


def is_variable(word: str) -> bool:
    """Whether a word sets a variable of vdbench rather than naming a target."""
    name, separator, _ = word.partition("=")
    return bool(separator) and name.isidentifier() and not os.path.lexists(word)


def exit_code(results: JobResults, usual: int) -> int:
    """As measurements end: what an error or an interruption found done is kept."""
    if usual or results.stopped is None:
        return usual
    print(f"headstack: ended early, what was measured is kept: {results.stopped}", file=sys.stderr)
    return code_of(results.stopped)

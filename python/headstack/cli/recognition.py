"""Recognizes files by their content with the readers of the commands, and names the command that takes each."""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from headstack import _native
from headstack._native import InputError, format_bytes
from headstack.io.counts import agreed, counted
from headstack.io.encodings import decoded

TEXT_BYTES_MAX = 64 << 20
"""Maximum size of a file that is parsed as JSON or text, in bytes."""
TRACE_REQUESTS = 1000
"""Number of requests to read to recognize a trace."""
FOLDER_FILES = 200
"""Maximum number of files of a folder to examine."""
NAMED_MAX = 3
"""Maximum number of systems that a title lists."""

RESULTS, FIO, BASELINE = "results", "fio", "baseline"
"""File kinds that ``compare`` takes."""
COMPARABLE = (RESULTS, FIO, BASELINE)
FIO_TEXT = "fio text"


class Recognized(NamedTuple):
    """A file or folder, with the command that takes it."""

    path: str
    kind: str
    """A word for programs, such as ``results`` or ``trace``."""
    title: str
    """A description for people, such as ``fio JSON: 4 loads of fio 3.33``."""
    command: str
    """A whole command, to be copied."""

    @property
    def line(self) -> str:
        """File, description and command in one line."""
        return f"{self.path}: {self.title}: {self.command}"


def recognize(path: str) -> Recognized | None:
    """Recognizes an existing file or folder. Returns ``None`` if no command takes it."""
    mode = os.stat(path).st_mode
    if stat.S_ISBLK(mode):
        return Recognized(path, "device", "block device", f"headstack measure {_quoted(path)}")
    if stat.S_ISDIR(mode):
        return _folder(path)
    if not stat.S_ISREG(mode) or not os.path.getsize(path):
        return None
    for recognizer in RECOGNIZERS:
        # A reader that fails after it has started does not take the file.
        with suppress(InputError, OSError, UnicodeError, EOFError, ImportError):
            recognized = recognizer(path)
            if recognized is not None:
                return recognized
    return None


def _quoted(path: str) -> str:
    """Quotes a path for a shell, and prefixes ``./`` to a path that looks like an option."""
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def _text(path: str) -> str | None:
    """Returns the content of a text file, or ``None`` if the file is binary or very large."""
    if os.path.getsize(path) > TEXT_BYTES_MAX:
        return None
    with open(path, "rb") as file:
        content = file.read()
    text = decoded(content)
    return None if "\0" in text[:4096] else text


def _results(path: str) -> Recognized | None:
    """Recognizes results of headstack: JSON, or the CSV and Parquet of their table."""
    if path.endswith((".csv", ".parquet")):
        from headstack.comparison.points import points_of_side  # start-up time

        points = points_of_side(path, "")
        title = f"table of {counted(len(points), 'result')} of {points[0].system}"
        return Recognized(path, RESULTS, title, f"headstack compare {_quoted(path)}")
    text = _text(path)
    if text is None or text.lstrip()[:1] != "[":
        return None
    native = _native.Results.from_json(text)
    if not len(native):
        return None
    wholes = [native.whole(index) for index in range(len(native))]
    modes = list(dict.fromkeys(whole["mode"] for whole in wholes))
    systems = list(dict.fromkeys(str(row["system"]) for row in (native[index] for index in range(len(native)))))
    names = ", ".join(systems[:NAMED_MAX]) + (f" and {len(systems) - NAMED_MAX} more" * (len(systems) > NAMED_MAX))
    title = f"{counted(len(native), 'result')} of headstack, {' and '.join(modes)}: {names}"
    return Recognized(path, RESULTS, title, f"headstack compare {_quoted(path)}")


STORED_COMMANDS: dict[str, tuple[str, str]] = {
    "baseline": ("baseline of runs", "headstack compare NEW.json --baseline {}"),
    "characterization": ("characterization of a device", "headstack lab predict {} -w oltp-8k"),
    "inspection": ("saved inspection of devices", "headstack inspect {}"),
}
"""Title and command of each headstack format that commands read, by the name of the format."""


def _stored(path: str) -> Recognized | None:
    """Recognizes JSON that names a headstack format."""
    text = _text(path)
    if text is None or not text.lstrip().startswith("{") or '"headstack' not in text[:4096]:
        return None
    try:
        document = json.loads(text)
    except ValueError:
        return None
    from headstack.diagnosis.inspection.stored import MARK as INSPECTION  # start-up time
    from headstack.diagnosis.judging.history import MARK as HISTORY  # start-up time

    if INSPECTION in document:
        name = "inspection"
    elif HISTORY in document:
        command = f"headstack judge --history {_quoted(path)}"
        return Recognized(path, "judge history", "history of verdicts on disks", command)
    elif "headstack_judge" in document:
        command = f"headstack judge iostat.log --state {_quoted(path)}"
        return Recognized(path, "judge state", "state of judge", command)
    else:
        name = str(document.get("format", "")).removeprefix("headstack ")
    if name not in STORED_COMMANDS:
        return None
    title, command = STORED_COMMANDS[name]
    return Recognized(path, name, title, command.format(_quoted(path)))


def _histories(path: str) -> Recognized | None:
    """Recognizes a history of verdicts, which has one entry per line, and a database of inspections."""
    with open(path, "rb") as file:
        begin = file.read(64)
    if begin.startswith(b'{"headstack_judge_history"'):
        command = f"headstack judge --history {_quoted(path)}"
        return Recognized(path, "judge history", "history of verdicts on disks", command)
    if begin.startswith(b"SQLite format 3\0"):
        from headstack.diagnosis.inspection import history  # start-up time

        devices = history.devices(Path(path))
        title = f"database of inspections of {counted(len(devices), 'device')}"
        return Recognized(path, "inspections", title, f"headstack inspect history --db {_quoted(path)}")
    return None


def _fio(path: str) -> Recognized | None:
    """Recognizes fio's JSON, also between other lines, and fio's logs."""
    from headstack.measurement.fio import loads, logs  # start-up time

    if logs.is_log(path):
        log = logs.read(path)
        title = f"fio log of {log.measure} over time"
        return Recognized(path, "fio log", title, f"headstack compare plot {_quoted(path)}")
    text = _text(path)
    if text is None or ('"fio version"' not in text and '"jobs"' not in text and '"client_stats"' not in text):
        return None
    found_loads = loads.loads_in_text(text, path)
    if not found_loads:
        return None
    version = found_loads[0].row["version"]
    title = f"fio JSON: {counted(len(found_loads), 'load')}{f' of fio {version}' if version else ''}"
    return Recognized(path, FIO, title, f"headstack compare {_quoted(path)}")


DESCRIPTIONS: tuple[tuple[str, Callable[[str], Any], str], ...] = (
    ("system", _native.load_system, "headstack run {} -w oltp-8k"),
    ("demand", _native.load_demand, "headstack run 990-pro-2tb -w {}"),
    ("faults", lambda path: _native.load_faults(path, None), "headstack run md-raid6-12x16tb -w oltp-8k --faults {}"),
)
"""Loaders of descriptions in TOML, each with the command that takes them."""

LAB_COMMANDS = {"study": "headstack lab study run {}", "fit": "headstack lab fit {}"}
"""Commands that take the folder of a study."""


def _description(path: str) -> Recognized | None:
    """Recognizes TOML: drives, arrays, volumes, workloads, scenarios, faults, studies, and columns of tables."""
    if not path.endswith(".toml"):
        return None
    text = _text(path) or ""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    quoted = _quoted(path)
    for kind, load, command in DESCRIPTIONS:
        try:
            description = load(path)
        except InputError:
            continue
        # A loaded system or demand has its own kind: drive, array, workload or scenario.
        name = next(iter(description)) if kind != "faults" else "schedule of faults"
        return Recognized(path, name, f"description of a {name}" * (kind != "faults") or name, command.format(quoted))
    folder = _quoted(os.path.dirname(path) or ".")
    for kind, read in (("study", _native.read_study), ("fit", _native.read_fit)):
        with suppress(InputError):
            read(path, text)
            title = "study" if kind == "study" else "inverse study"
            return Recognized(path, kind, title, LAB_COMMANDS[kind].format(folder))
    from headstack.diagnosis.judging.sources.table import checked  # start-up time

    with suppress(InputError):
        checked(document, path)
        command = f"headstack judge TABLE.csv --columns {quoted}"
        return Recognized(path, "columns", "columns of a table of disks", command)
    if {"time", "offset", "length"} & document.keys():
        command = f"headstack trace analyze TABLE.csv --columns {quoted}"
        return Recognized(path, "columns", "columns of a table of requests", command)
    return None


JOB_MARKS = (
    ("fio", re.compile(r"^\s*\[[^\]\n]+\]\s*$", re.MULTILINE), "--fio", "fio job file"),
    ("icf", re.compile(r"^'?\s*Version \d{4}\.", re.MULTILINE), "--icf", "Iometer configuration file"),
    ("vdbench", re.compile(r"^\s*(sd|wd|rd|fsd|fwd)=", re.MULTILINE), "--vdbench", "vdbench parameter file"),
)
"""Kinds of job files: name, a pattern of a line in every such file, option of ``measure``, and title."""


def _job_file(path: str) -> Recognized | None:
    """Recognizes job files of fio, Iometer and vdbench."""
    from headstack.measurement.jobfiles.job_file import JobFile  # start-up time

    text = _text(path)
    if text is None or len(text) > 1 << 20 or path.endswith(".toml"):
        return None
    readers: dict[str, Callable[[str], JobFile]] = {"fio": JobFile.fio, "icf": JobFile.icf, "vdbench": JobFile.vdbench}
    for kind, mark, option, title in JOB_MARKS:
        if not mark.search(text):
            continue
        try:
            jobs = readers[kind](path)
        except InputError as error:
            if not path.endswith(f".{kind}"):
                continue
            title += f" with an error ({error.message})"
        else:
            count = len(jobs.phases)
            title += f": {counted(count, 'phase')}" if count else ""
        command = f"headstack measure {option} {_quoted(path)} --parse-only"
        return Recognized(path, f"{kind} job file", title, command)
    return None


def _monitoring(path: str) -> Recognized | None:
    """Recognizes monitoring data of disks other than tables."""
    from headstack.diagnosis.judging.sources.kinds import kind_of  # start-up time

    kind = kind_of(Path(path))
    if kind is None:
        return None
    if kind.name == FIO_TEXT:
        return Recognized(path, FIO_TEXT, kind.title, kind.command)
    return Recognized(path, "monitoring", f"monitoring data: {kind.title}", kind.command.format(_quoted(path)))


def _saved_output(path: str) -> Recognized | None:
    """Recognizes outputs of smartctl, hdparm and nvme."""
    from headstack.diagnosis.inspection.collect import read_saved  # start-up time
    from headstack.diagnosis.inspection.model import program_of  # start-up time

    inspections = read_saved(path)
    if not inspections:
        return None
    programs = ", ".join(dict.fromkeys(program_of(source) for each in inspections for source in each.read_from))
    title = f"saved output of {programs}"
    return Recognized(path, "inspection", title, f"headstack inspect {_quoted(path)}")


def _trace(path: str) -> Recognized | None:
    """Recognizes traces in all formats."""
    from headstack.traces.traces import Trace, formats  # start-up time

    info = Trace(path, steps=(f"first={TRACE_REQUESTS}",)).info()
    name = info["meta"]["origin"][0]["format"]
    return Recognized(path, "trace", f"trace: {formats().get(name, name)}", f"headstack trace analyze {_quoted(path)}")


def _journal(path: str) -> Recognized | None:
    """Recognizes journals of exports, and logs of dm-log-writes."""
    from headstack.crash.recording import open as open_journal  # start-up time

    with open(path, "rb") as file:
        if not any(file.read(64)):
            return None
    events = open_journal(path).described["events"]
    title = f"journal of a device: {counted(events, 'event')}"
    return Recognized(path, "journal", title, f"headstack crash show {_quoted(path)}")


def _disksim(path: str) -> Recognized | None:
    """Recognizes parameter files of DiskSim."""
    if not path.endswith((".parv", ".diskspecs")):
        return None
    _native.import_disksim(path)
    command = f"headstack catalog drives import {_quoted(path)} -o drive.toml"
    return Recognized(path, "disksim", "parameter file of DiskSim", command)


def _table(path: str) -> Recognized | None:
    """Recognizes other tables, whose columns the user must declare."""
    if not path.endswith((".csv", ".tsv", ".parquet")):
        return None
    kind = "Parquet" if path.endswith(".parquet") else "CSV"
    columns = "disk=NAME,time=NAME:s,every=15s,latency=NAME:ms"
    command = f'headstack judge {_quoted(path)} --columns "{columns}"'
    return Recognized(path, "table", f"{kind} table; declare its columns (also for trace analyze)", command)


UNREADY = ("table", FIO_TEXT)
"""File kinds whose commands need more than the file."""


IMAGES = ((0, b"QFI\xfb", "qcow2 image"), (510, b"\x55\xaa", "disk image with a boot sector"))
"""Offset, magic number and title of images."""


def _image(path: str) -> Recognized | None:
    """Recognizes images of devices by their signatures, and other binary files of whole sectors."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        begin = file.read(1 << 17)
    title = next((title for at, magic, title in IMAGES if begin[at : at + len(magic)] == magic), None)
    if begin.startswith(b"QFI\xfb"):
        return Recognized(path, "image", f"{title}; export it first", f"qemu-nbd --read-only {_quoted(path)}")
    if title is None and (size % 512 or b"\0" not in begin):
        return None
    shown = f"{title or 'disk image or data file'}, {format_bytes(size)}"
    return Recognized(path, "image", shown, f"headstack measure {_quoted(path)}")


RECOGNIZERS: tuple[Callable[[str], Recognized | None], ...] = (
    _histories,
    _stored,
    _results,
    _fio,
    _description,
    _job_file,
    _saved_output,
    _trace,
    _monitoring,
    _journal,
    _disksim,
    _table,
    _image,
)
"""Recognizers in the order in which they are tried, the most specific first."""


def _folder(path: str) -> Recognized | None:
    """Recognizes a folder by the most frequent kind of its files."""
    for name, title in (("study.toml", "study"), ("fit.toml", "inverse study")):
        if os.path.exists(os.path.join(path, name)):
            kind = "study" if name == "study.toml" else "fit"
            return Recognized(path, kind, title, LAB_COMMANDS[kind].format(_quoted(path)))
    files = list(_files_of(path))
    recognized = [each for file in files[:FOLDER_FILES] if (each := recognize(file)) is not None]
    if not recognized:
        return None
    counts = Counter(each.kind for each in recognized)
    kind, count = counts.most_common(1)[0]
    example = next(each for each in recognized if each.kind == kind)
    command = FOLDER_COMMANDS.get(kind)
    if command is None:
        return example._replace(title=f"{example.title} (in folder {path})")
    shown = f"folder of {count} {agreed(count, 'file', 'files')}, such as {example.title}"
    return Recognized(path, kind, shown, command.format(_quoted(path)))


FOLDER_COMMANDS = {
    RESULTS: "headstack compare {}",
    FIO: "headstack compare {}",
    "fio log": "headstack compare plot {}",
    "monitoring": "headstack judge {}",
    "inspection": "headstack inspect {}",
    "trace": "headstack trace analyze {}",
}
"""Commands that take a folder of files of a kind."""


def _files_of(path: str) -> Iterator[str]:
    """Yields the files of a folder and its subfolders, sorted by name."""
    for folder, folders, names in os.walk(path):
        folders.sort()
        yield from (os.path.join(folder, name) for name in sorted(names) if not name.startswith("."))

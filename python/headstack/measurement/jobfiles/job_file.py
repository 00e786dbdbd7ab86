"""``JobFile``: a parsed job file of fio, Iometer or vdbench."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from headstack import _native
from headstack._native import InputError
from headstack.measurement.jobfiles.phases import ErrorRule, JobFileRead, JobPhase, Remark, TreePhase, writes


@dataclass(frozen=True)
class JobFile:
    """A job file: consecutive phases, each with jobs that run at the same time."""

    source: str
    """The file, or ``fio`` for arguments of its command line."""
    program: str
    """``fio``, ``icf`` (Iometer) or ``vdbench``."""
    phases: tuple[JobPhase, ...]
    remarks: tuple[str, ...]
    """Options that are ignored or handled differently, one line each, with the line of the file and the option's name.
    """
    options: dict[str, str] = field(default_factory=dict)
    """Options of all jobs, as written."""
    tree_phases: tuple[TreePhase, ...] = ()
    """Consecutive loads on files in folders; a job file has either these or ``phases``."""

    @classmethod
    def fio(cls, path: str | os.PathLike[str], sections: Iterable[str] = ()) -> JobFile:
        """Reads a job file of fio, with only the jobs of ``sections``, or all by default.

        Raises ``InputError`` with file and line for an unknown option, an invalid value, or an engine for neither files
        nor block devices.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
        >>> hs.JobFile.fio("job.fio").program
        'fio'
        """
        name = os.fspath(path)
        return cls._of(name, "fio", _native.read_fio(name, list(sections)))

    @classmethod
    def fio_arguments(cls, arguments: Sequence[str]) -> JobFile:
        """Reads the arguments of fio's command line: ``["--name=x", "--rw=randread", ...]``.

        >>> hs.JobFile.fio_arguments(["--name=reads", "--rw=randread", "--size=64M"]).phases[0]["jobs"][0]["name"]
        'reads'
        """
        file = cls._of("fio", "fio", _native.read_fio_arguments(list(arguments)))
        if "--readonly" in arguments:
            file.refuse_writes()
        return file

    @classmethod
    def icf(cls, path: str | os.PathLike[str]) -> JobFile:
        """Reads a configuration file of Iometer.

        >>> hs.JobFile.icf("missing.icf")
        Traceback (most recent call last):
        headstack.InputError: missing.icf: No such file or directory (os error 2)
        """
        name = os.fspath(path)
        return cls._of(name, "icf", _native.read_icf(name))

    @classmethod
    def vdbench(cls, path: str | os.PathLike[str], **substitutes: str) -> JobFile:
        """Reads a parameter file of vdbench. For example, ``size="10g"`` replaces ``$size`` in the file.

        >>> hs.JobFile.vdbench("missing.vdbench")
        Traceback (most recent call last):
        headstack.InputError: missing.vdbench: No such file or directory (os error 2)
        """
        name = os.fspath(path)
        return cls._of(name, "vdbench", _native.read_vdbench(name, list(substitutes.items())))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> JobFile:
        """Reads a job file, whose suffix names the format: ``.fio``, ``.icf`` or ``.vdbench``.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
        >>> len(hs.JobFile.load("job.fio").phases)
        1
        """
        readers = {".fio": cls.fio, ".icf": cls.icf, ".vdbench": cls.vdbench}
        ending = os.path.splitext(os.fspath(path))[1].lower()
        if ending not in readers:
            raise InputError(f"{os.fspath(path)}: unknown file format; use JobFile.fio, .icf or .vdbench")
        return readers[ending](path)

    def refuse_writes(self) -> None:
        """Raises ``InputError`` if a job writes or trims: fio's ``--readonly``.

        >>> hs.JobFile.fio_arguments(["--name=a", "--rw=write", "--size=1M"]).refuse_writes()
        Traceback (most recent call last):
        headstack.InputError: ...: readonly: job a writes or trims; only reads are allowed
        """
        for phase in self.phases:
            for job in phase["jobs"]:
                if writes(job):
                    raise InputError(
                        f"{self.source}: readonly: job {job['name']} writes or trims; only reads are allowed"
                    )
        for tree in self.tree_phases:
            raise InputError(f"{self.source}: readonly: {tree['name']} creates a tree of files; only reads are allowed")

    def going_on(self) -> JobFile:
        """Returns the file with all jobs set to continue after errors.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
        >>> hs.JobFile.load("job.fio").going_on().phases[0]["jobs"][0]["errors"]["reads_go_on"]
        True
        """
        rule: ErrorRule = {"reads_go_on": True, "writes_go_on": True, "end_all": False}
        phases = (phase | {"jobs": [job | {"errors": rule} for job in phase["jobs"]]} for phase in self.phases)
        return replace(self, phases=tuple(phases))

    @classmethod
    def _of(cls, source: str, program: str, read: JobFileRead) -> JobFile:
        remarks = tuple(remark_line(source, remark) for remark in read["remarks"])
        trees = tuple(read.get("tree_phases", ()))
        if not read["phases"] and not trees:
            raise InputError(f"{source}: contains no jobs")
        return cls(source, program, tuple(read["phases"]), remarks, dict(read["global"]), trees)


def remark_line(source: str, remark: Remark) -> str:
    """Formats a remark as a line, with the file's line and the option's name."""
    place = f"{source}:{remark['line']}" if remark["line"] else source
    return f"{place}: {remark['option']}: {remark['message']}"

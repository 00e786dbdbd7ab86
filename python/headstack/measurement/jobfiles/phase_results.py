"""``PhaseResults``: a run for each phase of a job file, with its jobs, or their groups, as streams."""

from __future__ import annotations

from collections.abc import Sequence

from headstack import _native
from headstack.measurement.jobfiles.job_file import JobFile
from headstack.measurement.jobfiles.outcome import Outcome
from headstack.measurement.jobfiles.phases import DiskUse
from headstack.results.columns import SHOWN_STREAMS, Shown
from headstack.results.results import Results


class PhaseResults(Results):
    """Results of the phases of a job file, one run each. ``JobResults`` adds fio's output formats."""

    def __init__(
        self, native: _native.Results, names: Sequence[str], file: JobFile, outcomes: Sequence[Outcome]
    ) -> None:
        super().__init__(native, names)
        self.file = file
        self.outcomes = list(outcomes)
        """The outcome of the phase of each run."""
        self.remarks: list[str] = list(file.remarks)
        """Options that are ignored or handled differently, one line each."""
        self.disks: list[DiskUse] = []
        """Use of the disks below real targets during the run: fio's ``disk_util``."""
        self.stopped: str | None = None
        """The reason why later phases were not run."""

    def shown_streams(self) -> tuple[list[Shown], list[list[str]]]:
        """Returns the jobs of each phase with several jobs; ``facts`` has further figures.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
        >>> results = hs.run_jobs("job.fio", "cheetah-x15-36lp")
        >>> results.shown_streams()[1]
        []
        """
        columns = [column for column in SHOWN_STREAMS if column.name not in ("system", "facts")]
        runs = (self.streams_of(run) for run in range(len(self)))
        rows = [stream | {"run": run} for run, streams in enumerate(runs, 1) if len(streams) > 1 for stream in streams]
        return columns, [[column.format(row[column.name]) for column in columns] for row in rows]

    def failures(self) -> int:
        """The number of failed requests whose errors should have ended their job.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
        >>> results = hs.run_jobs("job.fio", "cheetah-x15-36lp")
        >>> results.failures()
        0
        """
        failures = 0
        for run, outcome in enumerate(self.outcomes):
            whole = self._native.whole(run)
            names = _native.phase_stream_names(outcome.phase)
            by_name = {stream["name"]: stream["kinds"] for stream in whole["streams"]}
            if not by_name:
                by_name = {names[0][0]: whole["kinds"]}
            rules = {
                name: job["errors"] for job, copies in zip(outcome.phase["jobs"], names, strict=True) for name in copies
            }
            for name, kinds in by_name.items():
                # Only fio job files have such rules; read errors of a verification are counted separately.
                rule = rules.get(name) if self.file.program == "fio" else None
                for kind, counts in kinds.items():
                    goes_on = rule is not None and rule["reads_go_on" if kind == "read" else "writes_go_on"]
                    failures += 0 if goes_on else counts["errors"]
        return failures

    def broken_bounds(self) -> list[str]:
        """Jobs that ended at a limit in their job file (``max_latency``, ``rate_min``, ``rate_iops_min``), one line
        each.

        >>> _ = Path("job.fio").write_text("[reads]\\nrw=randread\\nsize=64M\\nnumber_ios=100\\n")
        >>> hs.run_jobs("job.fio", "cheetah-x15-36lp").broken_bounds()
        []
        """
        broken = []
        for run in range(len(self)):
            whole = self._native.whole(run)
            ended = (s["name"] for s in whole["streams"] if any(fact["name"] == "errno" for fact in s["facts"]))
            begins = tuple(f"{name} ended: " for name in ended)
            broken += [note for note in whole["notes"] if begins and note.startswith(begins)]
        return broken

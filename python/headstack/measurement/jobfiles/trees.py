"""Loads on files in folders, as vdbench's ``fsd`` and ``fwd`` define them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from headstack import _native
from headstack._native import InputError, RunError
from headstack.measurement.access import Progress
from headstack.measurement.jobfiles.job_file import JobFile
from headstack.measurement.jobfiles.phases import TreePhase
from headstack.results.results import Results


class TreeResults(Results):
    """Results of loads on files in folders: a run for each phase."""

    def __init__(self, native: _native.Results, file: JobFile) -> None:
        super().__init__(native)
        self.file = file
        self.remarks: list[str] = list(file.remarks)
        """Options that are ignored or handled differently, one line each."""


def measure_files(
    file: str | os.PathLike[str] | JobFile,
    anchors: Sequence[str | os.PathLike[str]] = (),
    *,
    seed: int = 1,
    ledger: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> TreeResults:
    """Runs the loads of a parameter file of vdbench on trees of files, phase after phase.

    ``anchors``, if given, replace the folders in the file, in the order in which the file names them. Each tree has its
    own folder, which must be empty, missing, or created by an earlier run. Nothing outside of these folders is changed.
    An interruption keeps the results so far. If the file has ``validate=yes``, ``ledger`` records the writes for
    ``verify_files`` after a crash.

    >>> text = "fsd=t,anchor=tree,depth=1,width=2,files=5,size=4k\\nfwd=w,fsd=t,operation=getattr,fileselect=once\\n"
    >>> _ = Path("stat.vdbench").write_text(text + "rd=r,fwd=w,fwdrate=max,format=yes,elapsed=5,interval=1\\n")
    >>> results = hs.measure_files("stat.vdbench")
    >>> [(row["operation"], row["count"]) for row in results.operations_of(0)]
    [('getattr', 10)]
    """
    read = file if isinstance(file, JobFile) else JobFile.vdbench(file)
    if not read.tree_phases:
        raise InputError(f"{read.source}: contains no loads on files in folders (fsd, fwd); use measure_jobs")
    if ledger is not None and not any(phase["verify"] for phase in read.tree_phases):
        raise InputError(f"{read.source} verifies nothing; add validate=yes to this file", key="ledger")
    phases = _placed(read, [os.fspath(anchor) for anchor in anchors])
    native = _native.measure_trees(phases, seed, ledger, progress)
    results = TreeResults(native, read)
    failed = results.failed_checks()
    if failed:
        raise RunError(f"a measurement failed an internal check, so its figures are not reliable: {failed[0]}")
    return results


def verify_files(
    anchor: str | os.PathLike[str],
    ledger: str | os.PathLike[str],
    *,
    power_loss: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Verifies the files that ``measure_files`` left in a folder by its ledger, after a normal end or a crash. With
    ``power_loss``, only flushed data must be present.

    >>> text = "validate=yes\\nfsd=t,anchor=kept,depth=0,files=5,size=4k\\nfwd=w,fsd=t,operation=write"
    >>> text += ",fileselect=once\\n"
    >>> _ = Path("write.vdbench").write_text(text + "rd=r,fwd=w,fwdrate=max,format=yes,elapsed=5,interval=1\\n")
    >>> _ = hs.measure_files("write.vdbench", ledger="kept.ledger")
    >>> hs.verify_files("kept", "kept.ledger").integrity(0)["intact"]
    40
    """
    return Results(_native.verify_tree(os.fspath(anchor), ledger, power_loss, progress))


def _placed(file: JobFile, anchors: Sequence[str]) -> list[TreePhase]:
    """Returns the phases with these anchors, which replace the anchors in the file in the order of their first use."""
    if not anchors:
        return list(file.tree_phases)
    names = list(dict.fromkeys(tree["name"] for phase in file.tree_phases for tree in phase["trees"]))
    if len(anchors) != len(names):
        raise InputError(f"{len(anchors)} folders for {len(names)} trees of {file.source}: {', '.join(names)}")
    places = dict(zip(names, anchors, strict=True))
    return [
        phase | {"trees": [tree | {"anchor": places[tree["name"]]} for tree in phase["trees"]]}
        for phase in file.tree_phases
    ]

"""``learn``: calibrates a model of a device, from its family and probes to the description. See docs/design/twin.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from headstack._native import InputError
from headstack.twin.device import Answers, Device, Requests
from headstack.twin.learnt import Learnt
from headstack.twin.session import OutOfTimeError, ProbeRun, Session, places

FAMILIES = ("disk", "flash", "array", "volume")


@dataclass(frozen=True)
class Calibration:
    """A device, the requests it ran, and the model learned from them."""

    family: str
    session: Session
    learnt: Learnt


class DoesNotFitError(InputError):
    """No family explains the device's answers."""


def learn(
    device: Device,
    families: Sequence[str] = (),
    *,
    seed: int = 1,
    budget_s: float = float("inf"),
    recorded: Sequence[ProbeRun] = (),
    progress: Callable[[str, float], object] | None = None,
    keep: Callable[[Session], object] = lambda session: None,
) -> Calibration:
    """Learns the model of a device: the first of ``families``, or of those suggested by a short test, that explains its
    answers.

    ``recorded`` are answers of an earlier calibration with the same seed, which are not repeated. ``keep`` is called
    with each session before it begins, so that its answers survive an interruption.

    Raises ``DoesNotFitError`` with the reason for each family.
    """
    # In order: the answers for one family precede those for the next.
    left, refused = list(recorded), []
    for family in families or suggested(device, seed):
        session = Session(device, seed, budget_s, progress, recorded=left)
        keep(session)
        module = import_module(f"headstack.twin.families.{family}")
        try:
            module.probes(session)
        except OutOfTimeError:
            refused.append(f"{family}: {budget_s:g} s of device time are too few; use a longer --time")
            continue
        if progress is not None:
            progress(f"finding the {family}", 0.0)
        learnt = module.learn(session)
        if learnt.fits:
            return Calibration(family, session, learnt)
        refused.append(f"{family}: {learnt.why}")
    raise DoesNotFitError(f"{device.name}: does not fit: {'; '.join(refused)}")


def suggested(device: Device, seed: int) -> list[str]:
    """Returns the families that a few random reads leave possible, the most likely first."""
    random = np.random.default_rng(seed)
    block = max(4096, device.block_bytes)
    times = device.ask(Requests.reads(places(random, 120, device.capacity_bytes, block), block)).response_ns
    median_ms = float(np.median(times)) / 1e6
    if median_ms > 2:
        return ["disk", "array"]
    return ["flash", "volume", "array"] if median_ms < 0.4 else ["volume", "flash", "array"]


def save_answers(runs: Sequence[ProbeRun], path: Path) -> None:
    """Writes all requests and answers, so that a calibration can resume, or be repeated without the device."""
    columns: dict[str, Any] = {
        "tests": np.array([run.test for run in runs]),
        "depths": np.array([run.requests.depth for run in runs]),
        "rested_s": np.array([run.rested_s for run in runs]),
    }
    for name in ("kinds", "offsets", "lengths", "times_ns"):
        parts = [getattr(run.requests, name) for run in runs]
        columns[name] = np.concatenate(parts) if parts else np.zeros(0)
        columns[f"{name}_count"] = np.array([len(part) for part in parts])
    for name in ("issued_ns", "completed_ns"):
        parts = [getattr(run.answers, name) for run in runs]
        columns[name] = np.concatenate(parts) if parts else np.zeros(0)
    with path.open("wb") as file:
        np.savez_compressed(file, **columns)


def load_answers(path: str) -> list[ProbeRun]:
    """Loads the output of ``save_answers``. Raises ``InputError`` for other files."""
    try:
        with np.load(path, allow_pickle=False) as file:
            columns = dict(file)
        ends = {name: np.cumsum(columns[f"{name}_count"])[:-1] for name in ("kinds", "offsets", "lengths", "times_ns")}
        parts = {name: np.split(columns[name], end) for name, end in ends.items()}
        answers = [np.split(columns[name], ends["offsets"]) for name in ("issued_ns", "completed_ns")]
        return [
            ProbeRun(
                str(test),
                Requests(
                    parts["kinds"][n],
                    parts["offsets"][n],
                    parts["lengths"][n],
                    int(columns["depths"][n]),
                    parts["times_ns"][n],
                ),
                Answers(answers[0][n], answers[1][n]),
                float(columns["rested_s"][n]),
            )
            for n, test in enumerate(columns["tests"])
        ]
    except (ValueError, KeyError, OSError, EOFError, BadZipFile) as error:
        raise InputError(f"{path}: not a file of calibration answers: {error}") from None

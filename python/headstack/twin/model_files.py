"""Writes a calibrated model as files: an ordinary description with a table ``[twin]``, and next to it the sample of
equally likely ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headstack import _native
from headstack.io.json_text import quoted

if TYPE_CHECKING:
    from headstack.twin.learning import Calibration


def render_files(calibration: Calibration, name: str, version: str) -> dict[str, str]:
    """Returns the files by name; ``name`` is that of the description without its suffix."""
    learnt, session = calibration.learnt, calibration.session
    sample = f"{name}.sample.json"
    table: Mapping[str, str | int | list[str]] = {
        "of": session.device.name,
        "class": calibration.family,
        "made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "version": version,
        "seed": session.seed,
        "requests": session.requests,
        "device_time": f"{session.device_s:.3f}s",
        "wrote": any(run.requests.change_contents for run in session.runs),
        "probes": list(dict.fromkeys(run.test for run in session.runs)),
        "sample": sample,
    }
    lines = ["", "[twin]", *(f"{key} = {quoted(value)}" for key, value in table.items())]
    for key, value in learnt.values.items():
        lines += ["", f"[twin.values.{quoted(key)}]"]
        bounds = {"low": value.low, "high": value.high, "how": value.how}
        lines += [f"{name} = {quoted(text)}" for name, text in bounds.items() if text is not None]
    for test, residual in learnt.residuals.items():
        lines += ["", f"[twin.residuals.{quoted(test)}]"]
        lines += [f"{figure} = {getattr(residual, figure):.5f}" for figure in ("mean", "p50", "p99")]
        lines.append(f"requests = {residual.requests}")
    texts = {sample: json.dumps({"version": 1, "systems": list(learnt.sample)})}
    texts[f"{name}.toml"] = _description(calibration, name, texts) + "\n".join(lines) + "\n"
    return texts


def _description(calibration: Calibration, name: str, beside: dict[str, str]) -> str:
    """Returns the best description; the member of an array is a file of its own, which is added to ``beside``."""
    best = calibration.learnt.best
    sources = {"default": f"A calibrated: {calibration.session.requests:,} requests of its own"}
    called = f"Twin of {calibration.session.device.name}"
    if "drive" in best:
        return _device(best["drive"], called, sources)
    array, member = best["array"], f"{name}.member.toml"
    (device,), (group,), (lun,) = array["devices"], array["groups"], array["luns"]
    beside[member] = _device(device, f"A member of the array, {calibration.session.device.name}", sources)
    lines = [
        f"name = {quoted(called)}",
        "",
        "[[drives]]",
        f"drive = {quoted(member)}",
        f"count = {len(array['members'])}",
        "",
        "[[groups]]",
        f"level = {quoted(group['level'])}",
        f'chunk_size = "{group["chunk_bytes"]}B"',
        "",
        "[[luns]]",
        'name = "lun"',
        f'size = "{lun["length_bytes"]}B"',
        "",
        "[sources]",
        f"default = {quoted(sources['default'])}",
    ]
    return "\n".join(lines) + "\n"


def _device(device: Mapping[str, Mapping[str, object]], called: str, sources: dict[str, str]) -> str:
    ((kind, description),) = device.items()
    return _native.drive_to_toml({kind: {**description, "name": called}}, sources)

"""What a phase of a job file does to its targets."""

from __future__ import annotations

from typing import Any


def writes(job: dict[str, Any]) -> bool:
    """Whether a job does anything but read."""
    return any(line["read_percent"] < 100 for line in job["workload"]["lines"])

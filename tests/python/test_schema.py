"""The published schema of results describes what the commands write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conftest import CHEETAH, REPOSITORY, SHORT, Headstack

SCHEMA = json.loads((REPOSITORY / "docs" / "results.schema.json").read_text())
CHECKER = jsonschema.Draft202012Validator(SCHEMA)


def written(headstack: Headstack, folder: Path, *command: str) -> list[dict[str, Any]]:
    """The results of a command, which are valid."""
    done = headstack(*command, "--json", "r.json")
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads((folder / "r.json").read_text())
    assert results
    CHECKER.validate(results)
    return results


@pytest.mark.parametrize(
    "command",
    [
        ("run", CHEETAH, "va-7100", "dc-s3700-400gb", "-w", "file-server", "--depth", "1,8", *SHORT),
        ("run", "atlas-10k-iii-73", "-w", "serverbench", "--depth", "10", *SHORT),
        ("curve", CHEETAH, "--rate", "50,500", "--requests", "2000"),
        ("measure", "data.bin", "--create", "4MiB", "--size", "4KiB", "--read", "50", "--time", "200ms", "--verify"),
    ],
)
def test_what_is_written_follows_the_schema(command: tuple[str, ...], headstack: Headstack, tmp_path: Path) -> None:
    written(headstack, tmp_path, *command)


def test_the_schema_refuses_what_is_none_of_it(headstack: Headstack, tmp_path: Path) -> None:
    [result] = written(headstack, tmp_path, "run", CHEETAH, *SHORT)
    for change in ({"seed": "7"}, {"schema": None}, {"mode": "guessed"}, {"unknown": 1}):
        assert not CHECKER.is_valid([result | change]), change
    del result["kinds"]
    assert not CHECKER.is_valid([result])

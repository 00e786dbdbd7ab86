"""Results and lists of names show themselves as tables in Python too."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import headstack as hs
from conftest import ATLAS, CHEETAH, Headstack


@pytest.mark.parametrize("group", ["drives", "arrays", "workloads", "scenarios"])
def test_a_list_of_names_is_the_table_of_the_command_line(group: str, headstack: Headstack) -> None:
    names = getattr(hs, group).list()
    shown = repr(names)
    assert shown == headstack("catalog", group, "list").stdout + f"names: {len(names)}"
    assert all(f"\n{name} " in shown for name in names)
    # It is a tuple like any other.
    assert names == tuple(names) == pickle.loads(pickle.dumps(names))


def test_some_of_the_drives_are_a_table_and_none_is_not() -> None:
    assert repr(hs.drives.list(kind="ssd", year="2010..2013")).endswith("\nnames: 2")
    assert repr(hs.drives.list(year="1900..1901")) == "()"


def test_results_are_their_table(monkeypatch: pytest.MonkeyPatch, headstack: Headstack) -> None:
    results = hs.run(ATLAS, depth=[1, 4], requests=500)
    shown = repr(results)
    assert shown.removesuffix("runs: 2") in headstack("run", ATLAS, "--depth", "1,4", "--requests", "500").stdout
    monkeypatch.setattr("headstack.io.columns.width_of", lambda _: 60)
    narrow = repr(results)
    assert max(map(len, narrow.partition("runs: 2")[0].splitlines())) <= 60
    assert narrow.splitlines()[-1].startswith("not shown: ")
    assert narrow.endswith("(to_csv has them)")


def test_comparisons_are_their_table(headstack: Headstack, tmp_path: Path) -> None:
    ours, theirs = (hs.run(system, depth=[1, 4], requests=500) for system in (ATLAS, CHEETAH))
    # Names of files that are too long to label rows: the table then names the sides, as in Python.
    files = ["baseline-of-a-year-ago.json", "results-of-this-week.json"]
    for results, name in zip((ours, theirs), files, strict=True):
        results.to_json(tmp_path / name)
    shown = repr(hs.compare(ours, theirs)).splitlines()
    printed = headstack("compare", *files).stdout.splitlines()
    assert shown[:-1] == printed[2 : 1 + len(shown)]
    assert {ATLAS, CHEETAH} <= {word.strip(",") for word in shown[-1].split()}

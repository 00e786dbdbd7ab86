"""``hs.judge``: what the command says, asked of Python."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import headstack as hs
from conftest import Headstack
from test_judge_command import SICK, T, fleet

CUT_S = T + 130_003
COLUMNS = {"host": "h", "disk": "d", "time": "t:s", "every": "60s", "read_latency": "us:us"} | {
    name: name for name in ("reads", "writes", "read_bytes", "write_bytes")
}


def renamed(frame: pl.DataFrame) -> pl.DataFrame:
    """The fleet as somebody else's table has it."""
    return frame.select(
        *("reads", "writes", "read_bytes", "write_bytes"),
        h="host",
        d="disk",
        t="start_s",
        us=pl.col("read_latency_s") * 1e6,
    )


def test_a_table_is_judged_as_its_file_is(headstack: Headstack, tmp_path: Path) -> None:
    frame = fleet()
    frame.write_parquet(tmp_path / "fleet.parquet")
    done = headstack("judge", "fleet.parquet", "--json", "v.json")
    assert done.returncode == 1, done.stderr
    judged = hs.judge(frame)
    assert json.loads(json.dumps(judged.document)) == json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    assert [one.disk for one in judged.slow] == [SICK]
    assert judged.verdicts[0] == judged.slow[0]
    assert hs.judge(tmp_path / "fleet.parquet").verdicts == judged.verdicts
    declared = hs.judge(renamed(frame), columns=COLUMNS)
    assert [(one.disk, one.kind, one.since_s) for one in declared.verdicts] == [
        (one.disk, one.kind, one.since_s) for one in judged.verdicts
    ]


def test_two_halves_are_judged_as_one() -> None:
    frame = fleet()
    first = hs.judge(frame.filter(pl.col("start_s") < CUT_S))
    kept = json.loads(json.dumps(first.state, allow_nan=False))
    # What was judged is left out.
    assert hs.judge(frame, state=kept).verdicts == hs.judge(frame).verdicts


def test_what_is_asked_wrongly_is_refused() -> None:
    frame = renamed(fleet().head(100))
    with pytest.raises(hs.InputError, match="table: a table with the columns"):
        hs.judge(frame)
    with pytest.raises(hs.InputError, match="nowhere: no such file"):
        hs.judge("nowhere")
    with pytest.raises(hs.InputError, match="columns: wear is unknown; allowed: time, "):
        hs.judge(frame, columns=COLUMNS | {"wear": "w"})
    with pytest.raises(hs.InputError, match="state: not a state of judge"):
        hs.judge(frame, columns=COLUMNS, state={})
    with pytest.raises(hs.InputError, match='every: "15"'):
        hs.judge(frame, columns=COLUMNS, every="15")

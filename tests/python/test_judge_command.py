"""``headstack judge`` as a command: verdicts, state from run to run, history, page, and what it tells Prometheus."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

from conftest import Headstack
from headstack import InputError
from headstack.diagnosis.judging.exporter import exposition
from headstack.diagnosis.judging.history import history, record
from headstack.diagnosis.judging.judge import judge
from headstack.diagnosis.judging.live import disks_of
from headstack.diagnosis.judging.report import spark
from headstack.diagnosis.judging.session import Session, in_order
from headstack.diagnosis.judging.sources import kinds as sources
from headstack.diagnosis.judging.sources.files import How
from headstack.diagnosis.judging.twins import SystemTwin, twins_of
from headstack.diagnosis.judging.verdict import FINE, SLOW, UNDECIDED, Cause, Slower, Verdict

T = 1_700_000_100 // 900 * 900
DISKS, DAYS, STEP_S = 8, 3, 60
SICK = "sdc"


def fleet(slow: float = 3.0) -> pl.DataFrame:
    """Eight disks of a host over three days of a load that comes and goes; on the third one takes longer."""
    noise = np.random.default_rng(7)
    minutes = DAYS * 24 * 60
    load = 200 + 100 * np.sin(np.arange(minutes) / 1440 * 2 * np.pi)
    tables = []
    for number in range(DISKS):
        disk = f"sd{chr(ord('a') + number)}"
        reads = noise.poisson(load * noise.normal(1, 0.05, minutes).clip(0.5))
        latency_s = 0.008 * (1 + reads / 1000) * noise.lognormal(0, 0.08, minutes)
        if disk == SICK:
            latency_s[2 * 1440 :] *= slow
        start_s = T + STEP_S * np.arange(minutes)
        tables.append(
            pl.DataFrame({"start_s": start_s, "reads": reads, "read_latency_s": latency_s}).with_columns(
                pl.lit("h1").alias("host"), pl.lit(disk).alias("disk"), pl.lit(float(STEP_S)).alias("length_s"),
                read_bytes=pl.col("reads") * 4096, writes=0, write_bytes=0,
            )
        )  # fmt: skip
    return pl.concat(tables).sort("start_s", "disk")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("judge") / "fleet.parquet"
    fleet().write_parquet(path)
    return path


def test_the_slow_disk_is_found_and_told_first(headstack: Headstack, log: Path, tmp_path: Path) -> None:
    done = headstack("judge", str(log), "--json", "v.json", "--html", "v.html", "--markdown", "v.md")
    assert done.returncode == 1, done.stderr
    first = next(line for line in done.stdout.splitlines() if line.startswith("h1 "))
    assert re.match(rf"h1 +{SICK} +slow +2023-11-1[67] ", first)
    assert done.stdout.startswith(f"1 of {DISKS} disks is slow: disk {SICK} of h1 by a factor of ")
    assert "(90 % interval " in done.stdout.partition("\n")[0]
    found = json.loads((tmp_path / "v.json").read_text())
    worst, *others = found["disks"]
    assert (worst["disk"], worst["kind"], worst["method"]) == (SICK, SLOW, "peers")
    assert 2.5 < worst["slower"]["low"] < 3.05
    assert 2.95 < worst["slower"]["high"] < 3.6
    assert abs(worst["since_s"] - (T + 2 * 86400)) < 3 * 3600
    assert {one["kind"] for one in others} == {FINE}
    assert found["intervals"] == DISKS * DAYS * 1440
    page, ticket = (tmp_path / "v.html").read_text(), (tmp_path / "v.md").read_text()
    assert "Disks, slow ones first" in page
    assert "| h1 | sdc | slow |" in ticket
    assert "▆" in ticket


def test_two_halves_are_judged_as_one_and_nothing_twice(log: Path, tmp_path: Path) -> None:
    frame = pl.read_parquet(log)

    def told(*parts: pl.DataFrame) -> tuple[object, Session]:
        for number, part in enumerate(parts):
            part.write_parquet(tmp_path / "part.parquet")
            session = Session(judge, How())
            if number:
                session.resume(tmp_path / "state.json")
            for observed in sources.parts([str(tmp_path / "part.parquet")], session.how):
                session.take(observed)
            session.store(tmp_path / "state.json")
        return [(one.disk, one.kind, one.since_s, one.slower, one.evidence) for one in session.verdicts], session

    cut_s = T + 2 * 86400 + 3 * 3600 + 420
    whole, _ = told(frame)
    halves, _ = told(frame.filter(pl.col("start_s") < cut_s), frame.filter(pl.col("start_s") >= cut_s))
    assert halves == whole
    # A log that grows is given from its beginning each time.
    grown, session = told(frame.filter(pl.col("start_s") < cut_s), frame)
    assert grown == whole
    assert "judged before" in " ".join(session.caveats)
    again, session = told(frame, frame)
    assert again == whole
    assert session.rows == 0


def test_counters_go_on_from_run_to_run(headstack: Headstack, tmp_path: Path) -> None:
    for run in range(2):
        lines = [
            f"{T + 10 * n}\n8 0 sda {100 * n} 0 800 {500 * n} 0 0 0 0 0 0 0\n" for n in range(5 * run, 5 * run + 5)
        ]
        (tmp_path / f"a{run}.log").write_text("".join(lines))
        done = headstack("judge", f"a{run}.log", "--host", "h", "--state", "s.json", "--json", "-")
        assert done.returncode == 4, done.stderr
        # The interval between both runs is one, too.
        assert json.loads(done.stdout)["intervals"] == 4 + run


def test_a_state_of_another_program_is_left_alone(headstack: Headstack, log: Path, tmp_path: Path) -> None:
    for text, says in (
        ("{}", "not a state of judge"),
        ('{"headstack_judge": 99}', "version 99 of the state; allowed: 1"),
    ):
        (tmp_path / "s.json").write_text(text)
        done = headstack("judge", str(log), "--state", "s.json")
        assert (done.returncode, says in done.stderr) == (2, True)
        assert (tmp_path / "s.json").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nothing to judge"),
        (("--live", "0s"), "--live: 0s is out of range"),
        (("--live", "15s", "nosuchdisk"), "not a disk of this machine"),
        (("--live", "15s", "--prometheus", "http://h"), "give only one of them"),
        (("a.log", "--export", "9101"), "--export: needs --live"),
        (("--prometheus", "ftp://h"), "is not an address"),
        (("missing.log",), "missing.log: No such file"),
        (("--twin", "nosuchsystem", "--live", "1s"), "nosuchsystem"),
    ],
)
def test_wrong_use_is_one_line(headstack: Headstack, arguments: tuple[str, ...], says: str) -> None:
    done = headstack("judge", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert says in done.stderr


def test_an_idle_disk_of_a_fleet_is_in_the_report(headstack: Headstack, log: Path, tmp_path: Path) -> None:
    frame = pl.read_parquet(log)
    idle = pl.when(pl.col("disk") == "sdh").then(0).otherwise(pl.col("reads"))
    frame.with_columns(reads=idle, read_bytes=idle * 4096).write_parquet(tmp_path / "idle.parquet")
    done = headstack(
        "judge", "idle.parquet", "--html", "v.html", "--markdown", "v.md", "--state", "s", "--history", "h"
    )
    assert done.returncode == 1, done.stderr
    assert "| h1 | sdh | undecided |" in (tmp_path / "v.md").read_text()
    assert re.search(r"h1 +sdh +undecided", done.stdout)


def test_state_and_history_are_written_after_the_outputs(
    headstack: Headstack, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> None:
        raise IndexError("made up")

    kept = ("--state", "s.json", "--history", "h.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr("headstack.diagnosis.judging.report.report_of", broken)
        done = headstack("judge", str(log), "--html", "v.html", *kept)
    # No verdict has the exit code of an internal error.
    assert done.returncode == 70
    assert "internal error: IndexError: made up; please report it" in done.stderr
    assert "Traceback" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == []
    done = headstack("judge", str(log), "--html", "v.html", *kept)
    assert done.returncode == 1, done.stderr
    assert f"1 of {DISKS} disks is slow" in done.stdout
    assert [one.kind for one in history(tmp_path / "h.jsonl")] == [SLOW]


def verdict(disk: str, kind: str, **more: object) -> Verdict:
    return Verdict("h", disk, kind, f"why {kind}", "next", **more)  # type: ignore[arg-type]


def test_the_slowest_come_first_and_numbers_count() -> None:
    some = (
        verdict("sd10", FINE), verdict("sd9", FINE), verdict("a", UNDECIDED),
        verdict("b", SLOW, slower=Slower(2, 1, 3)), verdict("c", SLOW, slower=Slower(5, 4, 6)),
    )  # fmt: skip
    assert [one.disk for one in in_order(some)] == ["c", "b", "a", "sd9", "sd10"]


def test_the_history_has_each_change_with_its_evidence(headstack: Headstack, tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    fine, slow = (
        verdict("a", FINE),
        verdict("a", SLOW, since_s=T, slower=Slower(2, 1.8, 2.2), cause=Cause("link", "said")),
    )
    written = [record(path, (one, verdict("b", FINE)), T + n) for n, one in enumerate((fine, slow, slow, fine, fine))]
    assert written == [0, 1, 0, 1, 0]
    entries = history(path)
    assert [(one.before, one.kind, one.at_s - T) for one in entries] == [(None, SLOW, 1), (SLOW, FINE, 3)]
    assert json.loads(path.read_text().splitlines()[0])["cause"]["evidence"] == "said"
    done = headstack("judge", "--history", str(path))
    assert done.returncode == 0
    assert re.search(r"h +a +slow +fine +why fine", done.stdout)
    # What the last line lost when the power went is not missed; what another program wrote is.
    path.write_text(path.read_text() + '{"headstack_jud')
    assert len(history(path)) == 2
    assert record(path, (slow,), T + 9) == 1
    assert [one.at_s - T for one in history(path)] == [1, 3, 9]
    old = json.loads(path.read_text().splitlines()[0]) | {"kind": "cannot tell"}
    path.write_text(json.dumps(old) + "\n")
    assert [entry.kind for entry in history(path)] == ["undecided"], "the name of earlier builds"
    path.write_text('{"headstack_judge_history": 1, "at_s": 1}\n')
    with pytest.raises(InputError, match="line 1: host is missing"):
        history(path)
    for foreign in ('{"x": 1}\n', "password: hunter2", "{", '{"x": 1}', "\n", "notes\n{"):
        path.write_text(foreign)
        with pytest.raises(InputError, match=r"line [12]: not an entry"):
            record(path, (slow,), T)
        assert path.read_text() == foreign
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a history of judge: not a text file"):
        record(path, (slow,), T)


def test_metrics_are_what_prometheus_reads() -> None:
    slow = verdict('sd"a\\', SLOW, model="X\n1", since_s=12.5, slower=Slower(2.5, 2, 3), confidence=0.99, evidence=1.5)
    idle = verdict("b", UNDECIDED, course=((1.0, 1.25),))
    text = exposition((slow, idle), 99.0)
    families = {one.name: one for one in text_string_to_metric_families(text)}
    assert {name for name, one in families.items() if one.type != "gauge"} == {"headstack_judge_maintenance_intervals"}
    assert families["headstack_judge_maintenance_intervals"].type == "counter"
    assert all(one.documentation.endswith(".") for one in families.values())
    of = {(s.labels["disk"], s.labels["verdict"]): s.value for s in families["headstack_disk_verdict"].samples}
    assert of[('sd"a\\', SLOW)] == 1
    assert of[("b", UNDECIDED)] == 1
    assert sum(of.values()) == 2
    ratios = families["headstack_disk_slowness_ratio"].samples
    assert [(s.labels.get("model"), s.value) for s in ratios] == [("X\n1", 2.5), (None, 1.25)]
    assert [s.value for s in families["headstack_disk_slow_since_timestamp_seconds"].samples] == [12.5]
    assert families["headstack_judge_last_interval_timestamp_seconds"].samples[0].value == 99


def test_looking_on_answers_http_and_keeps_its_state(tmp_path: Path) -> None:
    if not disks_of(()):
        from conftest import lacks

        lacks("kernel", "this machine has no disk")
    command = [sys.executable, "-c", "from headstack.cli.main import main; main()"]
    asked = ["judge", "--live", "1s", "--export", "0", "--state", "s.json"]
    with subprocess.Popen([*command, *asked], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            url = running.stdout.readline().split()[-1]
            deadline = time.monotonic() + 60
            while "headstack_disk_verdict{" not in (text := urllib.request.urlopen(url, timeout=10).read().decode()):
                assert time.monotonic() < deadline
                time.sleep(0.2)
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(url.replace("metrics", "else"), timeout=10)
        finally:
            running.send_signal(signal.SIGTERM)
            told, _ = running.communicate(timeout=60)
    assert list(text_string_to_metric_families(text))
    assert "undecided" in told
    assert running.returncode == 4
    kept = json.loads((tmp_path / "s.json").read_text())
    assert kept["readings"]
    assert kept["verdicts"]


def test_a_twin_predicts_the_latency_of_healthy_disks() -> None:
    twin = SystemTwin("wd1200bb")
    one, four = twin.expected("read", 1, 8192, 1.0), twin.expected("read", 4, 8192, 1.0)
    between = twin.expected("read", 2**1.5, 8192, 1.0)
    assert one is not None
    assert four is not None
    assert between is not None
    assert 0.005 < one.latency_s < between.latency_s < four.latency_s < 0.08
    assert between.apart is not None
    assert 0.03 < between.apart < 0.3
    assert between.level == 0.9
    mixed = twin.expected("read", 1, 8192, 0.5)
    assert mixed is not None
    assert (mixed.apart, mixed.why) == (None, "not known (0 of 9 disks measured with mixes of random reads and writes)")
    assert twin.expected("write", 1, 8192, 1.0) is None
    assert twin.expected("read", 1, None, 1.0) is None
    assert list(twins_of(["M=wd1200bb", "wd1200bb"])) == ["M", ""]
    with pytest.raises(InputError, match="give one for each"):
        twins_of(["M=wd1200bb", "M=wd1200bb"])


def test_small_curves_have_one_scale() -> None:
    course = [(0.0, 1.0), (1.0, 1.0), (12.0, 1.2), (23.0, 9.0)]
    drawn = spark(course, (0.0, 24.0))
    assert (len(drawn), drawn[0], drawn[1], drawn[2], drawn[12], drawn[23]) == (24, "▁", "▁", "·", "▃", "█")

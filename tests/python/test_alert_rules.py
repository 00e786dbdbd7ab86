"""`judge --rules` writes alerting rules for Prometheus, with thresholds from the verdicts."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from conftest import REPOSITORY, Headstack
from headstack.diagnosis.judging.alert_rules import SLOWER, alert_rules, in_order, loads_of
from headstack.diagnosis.judging.judge import judge
from headstack.diagnosis.judging.observations import Observations
from headstack.diagnosis.judging.session import Session
from headstack.diagnosis.judging.sources.files import How
from headstack.diagnosis.judging.suspects.limits import limits_of
from headstack.diagnosis.judging.suspects.record import COLUMNS, PLACE
from headstack.diagnosis.judging.verdict import UNDECIDED, Predicted, Verdict
from test_judge_command import SICK, fleet
from test_suspects import CASES, QUIET, log

PROMTOOL = shutil.which("promtool")
METRICS = {
    "node_disk_read_time_seconds_total",
    "node_disk_reads_completed_total",
    "node_disk_write_time_seconds_total",
    "node_disk_writes_completed_total",
    "node_disk_read_bytes_total",
    "node_disk_written_bytes_total",
    "node_disk_io_time_weighted_seconds_total",
    "node_disk_info",
    "node_pressure_io_waiting_seconds_total",
}


def rules_of(frame: pl.DataFrame, *limits: str, is_exported: bool = False) -> tuple[str, dict[str, Any]]:
    """Returns the text of the rules and the rules by alert, for a log of one disk."""
    session = Session(judge, How(), {"limits": limits_of(limits)})
    session.take(Observations(frame, "test"))
    text = alert_rules(session, is_exported=is_exported)
    groups = {group["name"]: group["rules"] for group in yaml.safe_load(text)["groups"]}
    return text, {rule["alert"]: rule for rule in groups["headstack-devices"]}


def threshold(rule: dict[str, Any], operator: str = ">") -> float:
    match = re.search(rf"{operator} ([\d.e+-]+)", rule["expr"])
    assert match is not None
    return float(match[1])


def test_latency_is_compared_with_the_disk_itself_before_it_became_slow() -> None:
    text, rules = rules_of(log(*CASES["slow"]))
    # 0.8 ms before, 2.4 ms now.
    for alert in ("DiskReadLatencyHigh", "DiskWriteLatencyHigh"):
        assert threshold(rules[alert]) == pytest.approx(0.8e-3 * SLOWER, rel=0.02)
        assert threshold(rules[alert], "<=") == 512, "500 IOPS"
        assert rules[alert]["for"] == "30m"
        assert rules[alert]["labels"] == {"severity": "warning", "host": "h", "disk": "sda"}
    assert "h sda: reads took 799 us in 60 intervals at up to 512 IOPS, before it became slow; " in text
    assert "DiskAtIopsLimit" not in rules
    assert set(re.findall(r"node_\w+", text)) <= METRICS | {"node_exporter"}


def test_a_limit_is_that_of_the_verdict_or_of_the_user() -> None:
    text, rules = rules_of(log(*CASES["limit"]))
    assert threshold(rules["DiskAtIopsLimit"], ">=") == pytest.approx(0.97 * 3000, rel=0.01)
    assert "h sda: 97% of the rate at which it stays since the change, 2,999 IOPS" in text
    assert threshold(rules["DiskReadLatencyHigh"]) == pytest.approx(0.8e-3 * SLOWER, rel=0.02)
    _, stated = rules_of(log(QUIET, QUIET), "gp3:3000/s,125MiB/s")
    assert threshold(stated["DiskAtIopsLimit"], ">=") == pytest.approx(2910)
    assert threshold(stated["DiskAtThroughputLimit"], ">=") == pytest.approx(0.97 * 125 * 1048576, rel=1e-5)
    assert "DiskAtIopsLimit" not in rules_of(log(QUIET, QUIET), "sdz=5/s")[1]


def test_a_queue_and_stalls_are_compared_with_those_in_order() -> None:
    busy = {"rate": 5000.0, "ms": 2.0, "io_pressure": 0.2}
    text, rules = rules_of(log(busy, busy))
    deepest = 5000 * 2e-3
    assert threshold(rules["DiskQueueLong"]) == pytest.approx(2 * deepest, rel=0.3)
    assert threshold(rules["HostWaitsForIo"]) == pytest.approx(0.4)
    _, quiet = rules_of(log(QUIET, QUIET))
    assert threshold(quiet["DiskQueueLong"]) == 2.0
    assert threshold(quiet["HostWaitsForIo"]) == 0.1
    assert "programs waited for I/O in 20.0% of the time or less" in text


def rows(*of: tuple[float, float, float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Returns rows of a record with a rate, a latency of reads in ms and a number of intervals."""
    table = np.zeros((len(of), len(COLUMNS)))
    for row, (rate, ms, intervals) in zip(table, of, strict=True):
        row[PLACE["length_s"]], row[PLACE["intervals"]] = 10.0 * intervals, intervals
        row[PLACE["requests"]] = row[PLACE["reads"]] = rate * 10.0 * intervals
        row[PLACE["read_wait_s"]] = row[PLACE["reads"]] * ms / 1e3
    return table


def test_thresholds_by_load() -> None:
    light, heavy = loads_of(rows((10.0, 4.0, 20.0), (90.0, 8.0, 8.0)), "read")
    assert [light.rate_max, light.latency_s] == pytest.approx([16.0, 4e-3])
    assert [heavy.rate_max, heavy.threshold_s] == pytest.approx([128.0, 8e-3 * SLOWER])
    # Too few intervals or requests at a load give none; a faster load above a slower one lowers no threshold.
    assert loads_of(rows((10.0, 4.0, 7.0), (0.3, 4.0, 9.0)), "read") == []
    light, heavy = loads_of(rows((10.0, 8.0, 20.0), (90.0, 4.0, 20.0)), "read")
    assert heavy.threshold_s == light.threshold_s
    # Intervals that vary much raise the threshold: two at 2 and 8 ms have a deviation of ln 2.
    (noisy,) = loads_of(rows((10.0, 2.0, 20.0), (10.0, 8.0, 20.0)), "read")
    assert noisy.threshold_s == pytest.approx(5e-3 * math.exp(3.1 * math.log(2.0)))
    assert loads_of(rows((10.0, 4.0, 20.0)), "write") == []


def test_a_disk_that_was_never_in_order_has_no_threshold_unless_predicted() -> None:
    verdict = Verdict("h", "sda", "slow", "", "", since_s=0.0)
    assert not len(in_order(verdict, rows((10.0, 4.0, 20.0)))[0])
    undecided = Verdict("h", "sda", UNDECIDED, "", "")
    assert len(in_order(undecided, rows((10.0, 4.0, 20.0)))[0]) == 1
    session = Session(judge, How(), {})
    session.take(Observations(log(QUIET, QUIET), "test"))
    (judged,) = session.verdicts
    session.verdicts = (Verdict("h", "sda", "slow", "", ""),)
    assert (
        "# h sda: no threshold of reads, because no interval is known in which the disk was in order."
        in alert_rules(session)
    )
    predicted = Predicted("exos", "reads", 0.1, 40.0, 1.0, 0.01, 0.009, 0.011, 0.9)
    session.verdicts = (Verdict("h", "sda", "slow", "", "", predicted=predicted),)
    text = alert_rules(session)
    assert "# h sda: exos is predicted at 10 ms, at most 11 ms; the threshold is 1.30 times the latter." in text
    assert "> 0.0143\n" in text
    assert judged.host == "h"


def test_a_serial_number_selects_the_disk() -> None:
    text, rules = rules_of(log(QUIET, QUIET).with_columns(disk=pl.lit('S3"\n'), host=pl.lit("db.1")))
    expression = rules["DiskReadLatencyHigh"]["expr"]
    assert expression.endswith('and on (instance, device) node_disk_info{serial="S3\\""}')
    assert 'instance=~"db\\\\.1(:[0-9]+)?"' in expression
    assert rules["DiskReadLatencyHigh"]["labels"]["disk"] == 'S3"\n'
    assert 'device="' not in text


def test_the_documented_rules_are_those_written_with_an_exporter() -> None:
    page = (REPOSITORY / "docs/judge.md").read_text(encoding="utf-8")
    (documented,) = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    text, _ = rules_of(log(QUIET, QUIET), is_exported=True)
    groups = {group["name"]: group for group in yaml.safe_load(text)["groups"]}
    assert yaml.safe_load(documented)["groups"] == [groups["headstack"]]
    assert "headstack_disk_verdict" not in rules_of(log(QUIET, QUIET))[0]


def test_nothing_judged_is_no_rule() -> None:
    assert yaml.safe_load(alert_rules(Session(judge, How(), {}))) == {"groups": []}


def test_the_command_writes_rules_that_prometheus_reads(headstack: Headstack, tmp_path: Path) -> None:
    fleet().write_parquet(tmp_path / "fleet.parquet")
    done = headstack("judge", "fleet.parquet", "--rules", "rules.yml", "--limits", "500/s,40MB/s")
    assert done.returncode == 1, done.stderr
    (group,) = yaml.safe_load((tmp_path / "rules.yml").read_text(encoding="utf-8"))["groups"]
    disks = {rule["labels"].get("disk") for rule in group["rules"]}
    assert SICK in disks
    assert len(disks) == 9, "eight disks, and the host"
    keys = [(rule["alert"], *sorted(rule["labels"].items())) for rule in group["rules"]]
    assert len(set(keys)) == len(keys)
    assert all(set(rule) == {"alert", "expr", "for", "labels", "annotations"} for rule in group["rules"])


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize("case", ["slow", "limit", "queue"])
def test_prometheus_accepts_the_rules(case: str, tmp_path: Path) -> None:
    text, _ = rules_of(log(*CASES[case]), "gp3:9000/s,125MiB/s", is_exported=True)
    (tmp_path / "rules.yml").write_text(text, encoding="utf-8")
    command = [str(PROMTOOL), "check", "rules", "rules.yml"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "SUCCESS" in checked.stdout

"""``headstack choose`` as a stranger types it: its files, what it refuses, and the same bytes however it is run."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack, interrupt
from headstack.choice import search
from headstack.choice.choose import Chooser
from headstack.choice.question_parser import parse_question
from headstack.simulation.shards import Shard
from test_choose import DRIVE, HOST, JOB, TYPED

QUICK = ("choose", *TYPED, "--drives", "2..4", "--survive", "1", "--store", "store", "-q")


def files(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.rglob("*.parquet") if not path.name.startswith(".")}


def test_all_that_is_written(headstack: Headstack, tmp_path: Path) -> None:
    shown = headstack(
        *(*QUICK, "--objective", "usd,bays", "--explain", "4 raid10", "-o", "best.toml", "--json", "answer.json"),
        *("--plot", "costs.png", "--html", "page.html", "--markdown", "ticket.md"),
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    told = json.loads((tmp_path / "answer.json").read_text())
    best = told["best"]
    assert f"Take {best['name']}" in shown.stdout
    assert "4 x exos-x16-16tb in raid10" in shown.stdout.split("\n\n")[-1]
    assert [name for name, _ in told["objectives"]] == ["usd", "bays"]
    assert told["frontier"][0]["name"] == best["name"]
    costs = [tuple(one["costs"]) for one in told["frontier"]]
    assert all(a[0] <= b[0] and a[1] > b[1] for a, b in itertools.pairwise(costs))
    assert (tmp_path / "best.toml").read_text() == best["toml"]
    assert (tmp_path / "costs.png").read_bytes()[:4] == b"\x89PNG"
    for name in ("page.html", "ticket.md"):
        assert best["name"] in (tmp_path / name).read_text()
    # The file is an array as any other.
    run = headstack("run", "best.toml", "-w", "file-server", "--requests", "500", "--json", "-")
    assert run.returncode == 0, run.stderr
    assert best["name"] in run.stdout
    swept = headstack(
        *("sweep", "best.toml", "-w", "file-server", "--requests", "500", "--store", "store", "-q"),
        *("--vary", "groups[0].chunk_size=64KiB,256KiB", "-o", "swept.csv"),
    )
    assert swept.returncode == 0, swept.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--limit", "p98=3ms"], "p98 is unknown; allowed: mean, p50"),
        (["--limit", "read.iops=3"], "rates apply to all requests together"),
        (["--capacity", "lots"], "capacity"),
        (["--capacity", "0TB"], "capacity: 0TB is out of range; must be above 0"),
        (["--among", "nearlin"], "among: 'nearlin' is neither a drive nor a class of drives; the closest is nearline"),
        (["--among", "constellation2-1tb"], "without a price: constellation2-1tb"),
        (["--not", "exoss"], "not: 'exoss' is not a drive, class, level or host; the closest is exos"),
        (["--not", "exos*"], "is not excluded by exos*"),
        (["--hosts", "md-raid6-12x16t"], "md-raid6-12x16tb"),
        (["--hosts", DRIVE], f"hosts: {DRIVE}: a single drive; name an array"),
        (["--levels", "raid7"], "levels: 'raid7' is not a candidate; allowed: raid0, raid1"),
        (["--levels", "draid2"], "use a form such as draid2:8d:1s"),
        (["--levels", "raidz2"], f"levels: raidz2: no host supports it ({HOST})"),
        (["--drives", "x"], "--drives: x: not a number of drives; use for example 8 or 4..24"),
        (["--drives", "9..4"], "drives: 9..4 is empty"),
        (["--drives", "30..40"], "no RAID level fits 30 to 40 drives in 24 bays, the default (set --bays)"),
        (["--scale", "x"], "--scale: 'x' is not a number"),
        (["--scale", "0x"], "scale: 0 is out of range; must be above 0"),
        (["--growth", "10"], "growth: needs --years"),
        (["--growth", "much", "--years", "2"], "--growth: 'much' is not a number"),
        (["--growth", "-100", "--years", "2"], "growth: -100% per year leaves no load"),
        (["--on", "yesterday"], "on: 'yesterday' is not a date"),
        (["--own-prices"], "prices: needs a file"),
        (["--objective", "money"], "objective: 'money' is unknown; allowed: usd, watts, bays, latency"),
        (["--objective", "usd,usd"], "objective: 'usd,usd' is not allowed; use one of usd"),
        (["--objective", ""], "objective: '' is not allowed; use one of usd"),
        (["--objective", "usd,watts,bays"], "or two of them for a frontier"),
        (["--afr", "dsk=2"], "afr: 'dsk' is neither a class nor a drive"),
        (["--afr", "disk"], "--afr: disk: rate is missing; use for example disk=1.5"),
        (["--afr", "disk=0"], "afr: disk: 0 %; must be above 0 and below 100"),
        (["--pue", "0.5"], "pue: 0.5 is less than the power of the drives; must be 1 or more"),
        (["--loss", "2"], "loss: 2 is not a probability of data loss"),
        (["--watts", "0"], "watts: 0 is out of range"),
        (["--budget", "-5"], "budget: -5 is out of range"),
        (["--reserve", "100"], "reserve: 100% leaves no capacity; must be below 100%"),
        (["--compression", "0"], "compression: 0 is out of range"),
        (["--chunk-sizes", "foo"], 'chunk-sizes: "foo" is not a size'),
        (["--caches", "2GiB"], f"caches: no host has one that can be set ({HOST})"),
        (["--volumes", "gp3"], "volumes: cloud volumes are billed monthly; add --years"),
        (["--no-arrays"], "hosts: no candidates: name hosts or cloud volumes"),
        (["--rate", "7"], "--rate: 2 rates for 1 workloads; give one for all"),
        (["--depth", "7"], "rate, depth: give only one of them"),
        (["-w", "oltp-8k"], "concurrent workloads need one rate each"),
        (["--shard", "1/2"], "--shard: needs --store DIR for its finished runs"),
        (["--shard", "3/2", "--store", "here"], "shard: '3/2': write NUMBER/COUNT"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_asked(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command line itself, within this process."""
    from headstack.cli.main import main

    if arguments[0] in ("--among", "--hosts"):
        typed = [*TYPED]
        del typed[typed.index(arguments[0]) : typed.index(arguments[0]) + 2]
    else:
        typed = [*TYPED]
    line = ["choose", *typed, *arguments]
    monkeypatch.setattr(sys, "argv", ["headstack", *line])
    with pytest.raises((SystemExit, hs.InputError)) as ended:
        main(line, standalone_mode=False)
    out, err = capsys.readouterr()
    message = str(ended.value) if isinstance(ended.value, hs.InputError) else err
    assert said in message
    assert "\n" not in message.strip()
    assert out == ""


def test_the_exit_codes(headstack: Headstack, tmp_path: Path) -> None:
    for arguments, said in (
        (["--limit", "p99=20ms"], "no load: name a workload, a scenario or a trace"),
        (["-w", "file-server", "--rate", "5"], "no limit; without a limit the smallest system always wins"),
    ):
        refused = headstack("choose", *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith("headstack: ")
        assert said in refused.stderr
        assert refused.stderr.count("\n") == 1
    # Nothing that is large enough: what binds is said, and nothing is written for a winner.
    large = headstack(*QUICK, "--capacity", "100PB", "-o", "best.toml")
    assert (large.returncode, large.stderr) == (1, "")
    assert "No system meets every limit" in large.stdout
    assert "capacity" in large.stdout.replace("100PB of data", "")
    fast = headstack(*QUICK, "--limit", "p99=1us", "-o", "best.toml", "--verbose")
    assert (fast.returncode, fast.stderr) == (1, "")
    assert "Nearest: " in fast.stdout
    assert "p99=1us" in fast.stdout
    assert not (tmp_path / "best.toml").exists()
    unknown = headstack(*QUICK, "--explain", "9 x nothing")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("headstack: --explain 9 x nothing: no candidate has this name; the closest is")
    assert unknown.stderr.count("\n") == 1


def test_the_same_bytes_interrupted_or_not(headstack: Headstack, tmp_path: Path) -> None:
    one = headstack(*QUICK, "--store", "one", "--json", "one.json", RAYON_NUM_THREADS="1")
    two = headstack(*QUICK, "--store", "two", "--json", "two.json", RAYON_NUM_THREADS="2")
    assert (one.returncode, two.returncode) == (0, 0)
    arguments = [*QUICK, "--store", "three", "--json", "three.json"]
    program = [sys.executable, "-c", "from headstack.cli.main import main; main()", *arguments]
    process = subprocess.Popen(program, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not files(tmp_path / "three") and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    interrupt(process, after_s=0.1)
    _, said = process.communicate(timeout=60)
    if process.returncode != 0:  # It may have been done.
        assert (process.returncode, said.count("\n")) == (130, 1)
        assert "interrupted; finished runs are kept" in said
        assert not (tmp_path / "three.json").exists()
    before = files(tmp_path / "three")
    assert before
    again = headstack(*arguments)
    assert again.returncode == 0
    assert before.items() <= files(tmp_path / "three").items()
    written = {(tmp_path / f"{name}.json").read_bytes() for name in ("one", "two", "three")}
    assert len(written) == 1
    assert files(tmp_path / "one") == files(tmp_path / "two") == files(tmp_path / "three")


def test_shards_are_the_first_runs_of_the_whole(
    headstack: Headstack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Blocks of two families, so that each of two shards has some.
    monkeypatch.setattr(search, "BLOCK", 2)
    job = JOB | {"among": [DRIVE, "exos-x10-10tb"], "drives": (2, 6), "requests": 4000}

    def question(store: str) -> Chooser:
        return parse_question(["file-server"], **job, store=tmp_path / store)

    runs = [question("parts").race(Shard(number, 2)) for number in (1, 2)]
    assert min(runs) > 0
    parts = files(tmp_path / "parts")
    when = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").rglob("*.parquet")}
    both, whole = question("parts").answer(), question("whole").answer()
    assert both == whole
    # What the shards did is found, and not done again.
    assert set(parts) & set(files(tmp_path / "whole"))
    assert set(files(tmp_path / "parts")) - set(parts) == set(files(tmp_path / "whole")) - set(parts)
    assert {path: path.stat().st_mtime_ns for path in when} == when
    typed = headstack(*QUICK, "--shard", "1/2")
    assert (typed.returncode, typed.stderr) == (0, "")
    assert "runs of shard 1/2 are in store; repeat the command without --shard to continue from there" in typed.stdout


def test_a_trace_a_scenario_and_two_workloads(tmp_path: Path) -> None:
    job = JOB | {"survive": 1, "store": tmp_path / "store", "drives": (3, 4)}
    trace = tmp_path / "recorded.parquet"
    hs.run("nearline-12-raid6", "file-server", rate=100, requests=4000, record=trace)
    replayed = hs.choose(trace, **(job | {"rates": []}))
    assert replayed.best is not None
    # All of a recording leaves nothing to chance.
    verdict = replayed.best.verdicts[0]
    assert (verdict.low, verdict.high) == (verdict.value, verdict.value)
    faster = parse_question([trace], **(job | {"rates": []}), scale=2.0).job.demand.rate_per_s
    assert faster == pytest.approx(2 * (parse_question([trace], **(job | {"rates": []})).job.demand.rate_per_s or 0))
    with pytest.raises(hs.InputError, match="traces are replayed only in normal service"):
        hs.choose(trace, **(job | {"rates": []}), rebuilding=True)
    both = parse_question(["file-server", "oltp-8k"], **(job | {"rates": [40, 30]}))
    found, _ = both.search(both.job, both.book)
    assert found.best is not None
    # What runs is the two of them: neither alone is as slow.
    alone = parse_question(["file-server"], **(job | {"rates": [40]}))
    least, _ = alone.search(alone.job, alone.book)
    assert least.best is not None
    assert least.best.candidate == found.best.candidate
    assert (least.best.estimates[0].value or 0) < (found.best.estimates[0].value or 0)
    scenario = parse_question(["demartek-web"], **(job | {"rates": [], "limits": ["p99=400ms"]}))
    found, _ = scenario.search(scenario.job, scenario.book)
    assert found.best is not None
    assert found.best.estimates[0].requests > 0


def test_a_system_that_is_never_rebuilt_fails_a_limit_while_rebuilding(tmp_path: Path) -> None:
    """As what a constraint costs looks at systems that survive fewer failures."""
    job = JOB | {"survive": 1, "store": tmp_path / "store", "drives": (3, 5), "limits": ["p99=300ms"]}
    rebuilt = parse_question(["file-server"], **job, rebuilding=True)
    found, _ = rebuilt.search(replace(rebuilt.job, survive=0), rebuilt.book)
    assert found.best is not None
    assert found.best.candidate.survives >= 1
    whys = {
        estimate.why
        for one in found.fails
        if not one.candidate.survives
        for estimate in one.estimates
        if estimate.impossible
    }
    assert whys == {"while rebuilding: a failed drive loses data, so there is no rebuild"}


def test_limits_while_rebuilding_and_least_of_latency(tmp_path: Path) -> None:
    job = JOB | {"survive": 1, "store": tmp_path / "store", "drives": (3, 5)}
    rebuilt = parse_question(["file-server"], **(job | {"limits": ["p99=300ms"]}), rebuilding=True)
    found, _ = rebuilt.search(rebuilt.job, rebuilt.book)
    (one,) = found.meets[:1]
    assert [limit.rebuilding for limit in rebuilt.job.limits] == [False, True]
    usual, degraded = (estimate.value for estimate in one.estimates)
    assert usual is not None
    assert degraded is not None
    assert degraded > usual
    least = parse_question(["file-server"], **job, objective="latency")
    found, _ = least.search(least.job, least.book)
    cheapest = parse_question(["file-server"], **job)
    cheap, _ = cheapest.search(cheapest.job, cheapest.book)
    assert found.best is not None
    assert cheap.best is not None
    assert (found.best.estimates[0].value or 0) < (cheap.best.estimates[0].value or 0)
    assert found.best.candidate.usd > cheap.best.candidate.usd

"""Sets of runs against each other: nothing is said where nothing is, what is there is found with the runs asked for."""

from __future__ import annotations

import doctest
import json
import math
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import headstack as hs
from conftest import CHEETAH, IS_TEST_ALL, Headstack
from headstack.comparison.differences import tails
from headstack.comparison.differences.cells import Cell
from headstack.comparison.differences.difference import Difference, compare_sides
from headstack.comparison.differences.estimates import (
    batches,
    correlation_time,
    e_value,
    holm_corrected,
    outliers,
    paired,
    sequence,
    unpaired,
)
from headstack.comparison.differences.gate import judge_limits, limits_of
from headstack.comparison.differences.headline import next_steps
from headstack.comparison.differences.runs import Outcome, Run, Side
from headstack.comparison.differences.student import chi_square_of, p_of, t_of

TRIES = 400 if IS_TEST_ALL else 100
MOST = 0.05 + 2 * math.sqrt(0.05 * 0.95 / TRIES)
"""Of false alarms, so many may come by chance where 5 % are allowed."""
ABBA = (0, 1, 1, 0)
ATLAS = "atlas-10k-iii-73"

Noise = Callable[[random.Random, int], list[float]]


def runs_of(values: Sequence[float], places: Sequence[float] | None, resolution: float = 0.0) -> Side:
    """Runs of these throughputs, as logarithms."""
    times = [None] * len(values) if places is None else [float(place) for place in places]
    outcomes = [
        {"": Outcome({"iops": math.exp(v), "mean_ms": 1 / math.exp(v), "p99_ms": 2 / math.exp(v)})} for v in values
    ]
    made = (Run(f"run {n}", at, resolution, one) for n, (at, one) in enumerate(zip(times, outcomes, strict=True)))
    return Side("side", tuple(made))


def compared(
    noise: Sequence[float], effect: float = 0.0, order: str = "abba", figures: str | None = None
) -> Difference:
    """Runs with this noise, one after the other; the first side is faster by ``effect``."""
    count = len(noise)
    sides = {"abba": [ABBA[n % 4] for n in range(count)], "blocks": [int(2 * n >= count) for n in range(count)]}[order]
    values = [[x + effect * (side == 0) for x, s in zip(noise, sides, strict=True) if s == side] for side in (0, 1)]
    places = [[n for n, s in enumerate(sides) if s == side] for side in (0, 1)]
    ours, theirs = (runs_of(v, p) for v, p in zip(values, places, strict=True))
    return compare_sides(ours, theirs, 0.01, 0.03, figures)


def white(draw: random.Random, n: int) -> list[float]:
    return [draw.gauss(0, 0.02) for _ in range(n)]


def drifting(draw: random.Random, n: int) -> list[float]:
    return [draw.gauss(0, 0.02) + 0.01 * k for k in range(n)]


def forgetful(draw: random.Random, n: int, rho: float = 0.8, sd: float = 0.02) -> list[float]:
    values = [draw.gauss(0, sd)]
    for _ in range(n - 1):
        values.append(rho * values[-1] + draw.gauss(0, sd * math.sqrt(1 - rho * rho)))
    return values


def spiky(draw: random.Random, n: int) -> list[float]:
    """As a machine whose other users come and go."""
    return [draw.gauss(0, 0.02) - (draw.random() < 0.1) * draw.expovariate(5) for _ in range(n)]


def says_a_difference(found: Difference) -> bool:
    return any(cell.verdict == "differs" for cell in found)


@pytest.mark.parametrize("noise", [white, drifting, forgetful, spiky])
@pytest.mark.parametrize("pairs", [4, 8])
def test_runs_that_are_alike_are_seldom_called_different(noise: Noise, pairs: int) -> None:
    draw = random.Random(pairs)
    said = sum(says_a_difference(compared(noise(draw, 2 * pairs))) for _ in range(TRIES))
    assert said / TRIES <= MOST


def test_unpaired_runs_that_are_alike_are_seldom_called_different() -> None:
    draw = random.Random(1)
    sides = [(runs_of(white(draw, 5), None), runs_of(white(draw, 5), None)) for _ in range(TRIES)]
    assert sum(says_a_difference(compare_sides(*both, 0.01, 0.03, None)) for both in sides) / TRIES <= MOST


def test_three_percent_are_found_with_as_many_runs_as_were_asked_for() -> None:
    draw, found, asked = random.Random(1), 0, []
    for _ in range(200):
        pilot = compared(white(draw, 12), figures="throughput")
        [cell] = pilot.cells
        asked.append(6 + (cell.more_runs or 0))
        found += (
            compared(white(draw, 2 * asked[-1]), effect=math.log(1.03), figures="throughput").cells[0].verdict
            == "differs"
        )
    assert found / 200 >= 0.9
    # They are not asked for in vain: with a known spread it would be 9 pairs, and a pilot does not know it.
    assert 9 <= sorted(asked)[100] <= 25


def test_drift_is_separated_from_a_difference() -> None:
    draw = random.Random(3)
    noise = [draw.gauss(0, 0.002) + 0.02 * n for n in range(20)]
    found = compared(noise, effect=0.01, figures="throughput")
    [cell] = found.cells
    assert (cell.estimate.design, cell.estimate.with_drift, cell.verdict) == ("paired", True, "differs")
    assert cell.interval[0] < 0.01 < cell.interval[1]
    assert cell.interval[1] - cell.interval[0] < 0.01
    # All runs of one side first: nobody can tell them apart, and that is said.
    blocks = compared(noise, figures="throughput")
    assert not blocks.remarks[0].endswith("difference")
    blocks = compared(noise, order="blocks", figures="throughput")
    assert blocks.cells[0].estimate.design == "unpaired"
    assert "a drift would look like a difference" in " ".join(blocks.remarks)


def test_remarks_on_the_method_are_apart_from_those_that_call_for_action() -> None:
    draw = random.Random(4)
    few = compared([draw.gauss(0, 0.002) for _ in range(8)], order="blocks")
    on_runs, on_method = few.remarks_on_runs, few.remarks_on_method
    assert few.remarks == (*on_runs, *on_method)
    for words in ("each run is one sample", "questions at once"):
        assert any(words in remark for remark in on_method), (words, few.remarks)
        assert not any(words in remark for remark in on_runs)
    assert any("a drift would look like a difference" in remark for remark in on_runs)


def test_mixed_runs_that_do_not_come_in_pairs_have_their_drift_taken_out() -> None:
    draw = random.Random(4)
    order = [0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0]
    values = [draw.gauss(0, 0.002) + 0.02 * n for n in range(len(order))]
    sides = [
        runs_of(
            [v for v, s in zip(values, order, strict=True) if s == side], [n for n, s in enumerate(order) if s == side]
        )
        for side in (0, 1)
    ]
    [cell] = compare_sides(sides[0], sides[1], 0.01, 0.03, "throughput").cells
    assert (cell.estimate.design, cell.estimate.with_drift) == ("unpaired", True)
    assert abs(cell.estimate.log) < 0.005


def test_one_long_run_of_each_is_compared_by_batches() -> None:
    draw = random.Random(5)

    def told(n: int, effect: float = 0.0) -> float | None:
        sides = [[100 * (1 + effect * side + x) for x in forgetful(draw, n, 0.8, 0.1)] for side in (0, 1)]
        found = batches(sides[0], sides[1])
        return None if found.design == "none" else found.p

    known = [p for p in (told(600) for _ in range(TRIES)) if p is not None]
    # A t-test of the intervals, as if each were independent, is wrong in half of all cases.
    assert len(known) > 0.9 * TRIES
    assert sum(p <= 0.05 for p in known) / len(known) <= MOST + 0.02
    assert sum((told(600, 0.2) or 1) <= 0.05 for _ in range(50)) >= 45
    # Fewer than six batches of five correlation times say nothing.
    assert sum(told(60) is None for _ in range(50)) >= 45
    assert correlation_time(forgetful(draw, 20_000, 0.8)) == pytest.approx(9, rel=0.3)


def test_looking_after_each_pair_is_allowed_with_the_intervals_for_that() -> None:
    draw, any_time, naive = random.Random(6), 0, 0
    for _ in range(TRIES):
        ratios = [draw.gauss(0, 0.02) for _ in range(30)]
        looks = range(3, 31)
        any_time += any(not low < 0 < high for low, high in (sequence(ratios[:n], 0.05) for n in looks))
        naive += any(paired(ratios[:n], [1, -1, 1, -1, 1, -1, 1][:n]).p <= 0.05 for n in range(3, 8))
    assert any_time / TRIES <= MOST
    assert naive / TRIES > 0.08


def test_the_interval_at_any_time_is_where_the_e_value_reaches_its_bar() -> None:
    ratios = [0.031, 0.028, 0.035, 0.030, 0.027, 0.033]
    for end in sequence(ratios, 0.05):
        assert e_value([ratio - end for ratio in ratios]) == pytest.approx(20)
    assert sequence(ratios[:2], 0.05) == (-math.inf, math.inf)


def test_students_t_and_chi_square_are_those_of_the_tables() -> None:
    assert [t_of(0.975, n) for n in (1, 2, 5, 30)] == pytest.approx([12.7062, 4.30265, 2.57058, 2.04227], rel=1e-5)
    assert [chi_square_of(q, 9) for q in (0.05, 0.2, 0.95)] == pytest.approx([3.32511, 5.38005, 16.9190], rel=1e-5)
    assert p_of(-2.57058, 5) == pytest.approx(0.05, rel=1e-5)


def test_rearranging_says_its_least() -> None:
    six = paired([0.01] * 5 + [0.011], [1, -1] * 3)
    assert (six.p_permuted, six.p_least) == (2 / 64, 2 / 64)
    assert paired([0.01, 0.01, -0.03, 0.002], [1, -1] * 2).p_permuted == 1.0
    four = unpaired([1.0, 1.01, 1.02, 1.03], [0.9, 0.91, 0.92, 0.93])
    assert four.p_permuted == four.p_least == pytest.approx(2 / 70)
    many = paired([0.01, 0.02, -0.001, 0.015] * 5, [1, -1] * 10)
    assert many.p_permuted is not None
    assert 0 < many.p_permuted < 0.01


def test_many_questions_are_held_to_five_percent_together() -> None:
    assert holm_corrected([0.02, 0.5, 0.04, 0.6]) == pytest.approx([0.08, 1.0, 0.12, 1.0])
    draw = random.Random(7)

    def side(places: Sequence[int]) -> Side:
        loads = [f"load {n}" for n in range(10)]
        made = ({load: Outcome({"iops": math.exp(draw.gauss(0, 0.02))}) for load in loads} for _ in places)
        return Side("side", tuple(Run("", float(at), 0.0, one) for at, one in zip(places, made, strict=True)))

    found = [compare_sides(side((0, 3, 4, 7, 8, 11)), side((1, 2, 5, 6, 9, 10)), 0.01, 0.03, None) for _ in range(200)]
    assert len(found[0]) == 10
    assert sum(map(says_a_difference, found)) / 200 <= 0.08
    assert sum(any(cell.estimate.p <= 0.05 for cell in one) for one in found) / 200 > 0.25


def test_three_verdicts() -> None:
    draw = random.Random(8)
    quiet = [draw.gauss(0, 0.001) for _ in range(16)]
    [slower] = compared(quiet, effect=-0.04, figures="throughput").cells
    assert slower.verdict == "differs"
    assert slower.in_words(0.01, 0.03).startswith("lower by 3.")
    [same] = compared(quiet, figures="throughput").cells
    assert same.verdict == "same"
    assert same.in_words(0.01, 0.03).startswith("no difference larger than 0.")
    [short] = compared(white(draw, 8), figures="throughput").cells
    assert short.verdict == "too short"
    assert "more runs of each would detect 3 %" in short.in_words(0.01, 0.03)
    assert short.least_seen > 0.02
    [alone] = compare_sides(runs_of([1.0], [1]), runs_of([2.0], [2]), 0.01, 0.03, "throughput").cells
    assert (alone.verdict, alone.more_runs) == ("too short", None)


def test_what_lies_in_one_bin_of_a_histogram_is_not_known_closer() -> None:
    sides = [runs_of([x] * 4, places, 1 / 64) for x, places in ((0.0, (0, 3, 4, 7)), (0.001, (1, 2, 5, 6)))]
    exact, binned = (compare_sides(sides[0], sides[1], 0.001, 0.03, name).cells[0] for name in ("throughput", "p99"))
    assert (exact.verdict, binned.verdict) == ("differs", "too short")


def test_outliers_are_named_and_counted() -> None:
    assert outliers([1.0, 1.01, 0.99, 1.02, 3.0]) == [4]
    noise = [0.001 * n for n in range(12)]
    noise[0] = 1.0
    found = compared(noise, figures="throughput")
    assert found.cells[0].apart == ("run 0",)
    assert "outliers, included: run 0" in found.remarks
    assert found.cells[0].ours > math.exp(0.1)


def test_a_run_in_which_nothing_was_complete_is_named() -> None:
    draw = random.Random(11)
    ours, theirs = (runs_of(white(draw, 4), None) for _ in range(2))
    stalled = Side("side", (*ours.runs, Run("stalled", None, 0.0, {"": Outcome({})})))
    found = compare_sides(stalled, theirs, 0.01, 0.03, None)
    assert found.cells[0].estimate.counts == (4, 4)
    assert "no request completed, left out: stalled" in found.remarks


@pytest.mark.parametrize(
    ("effect", "pairs", "sd", "verdict"),
    [
        (-0.05, 8, 0.002, "exceeded"),
        (-0.005, 8, 0.002, "met"),
        (0.05, 8, 0.002, "met"),
        (0.0, 3, 0.05, "undecided"),
        (-0.05, 3, 0.05, "undecided"),
    ],
)
def test_a_limit_is_met_exceeded_or_undecided(effect: float, pairs: int, sd: float, verdict: str) -> None:
    draw = random.Random(9)
    found = compared([draw.gauss(0, sd) for _ in range(2 * pairs)], effect=effect)
    verdicts = judge_limits(limits_of(["slower=3%"]), found.cells)
    assert [(one.cell.figure, one.verdict) for one in verdicts] == [("iops", verdict), ("mean_ms", verdict)]
    assert all("3%" in one.in_words for one in verdicts)


def test_a_limit_is_of_the_worse_side_alone() -> None:
    for figure, effect in (("throughput", -0.04), ("p99", -0.04)):
        draw = random.Random(10)
        found = compared([draw.gauss(0, 0.001) for _ in range(16)], effect=effect)
        [verdict] = judge_limits(limits_of([f"{figure}=3%"]), found.cells)
        assert verdict.verdict == "exceeded"
    with pytest.raises(hs.InputError, match="elapsed=3%: not all runs have this figure"):
        judge_limits(limits_of(["elapsed=3%"]), found.cells)
    for wrong in ("slower", "slower=0%", "speed=3%", "slower=x"):
        with pytest.raises(hs.InputError, match="fail-if"):
            limits_of([wrong])


# The command.


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Simulated runs of two drives, a seed each."""
    top = tmp_path_factory.mktemp("sets")
    for name, system in (("a", CHEETAH), ("b", ATLAS)):
        (top / name).mkdir()
        for seed in range(1, 5):
            hs.run(system, "file-server", requests=400, warm_up=0, seed=seed).to_json(top / name / f"{seed}.json")
    return top


def test_folders_and_patterns_of_our_results(folders: Path, headstack: Headstack, tmp_path: Path) -> None:
    for ours, theirs in (("a", "b"), ("a/*.json", "b/[1-4].json")):
        done = headstack("compare", str(folders / ours), "--against", str(folders / theirs), "--json", "out.json")
        assert done.returncode == 0, done.stderr
        told = json.loads((tmp_path / "out.json").read_text())
        assert told["format"] == "headstack difference"
        assert [len(told["runs"][side]) for side in ("ours", "theirs")] == [4, 4]
        assert {row["figure"] for row in told["figures"]} >= {"throughput", "mean", "p50", "p99", "p99.9"}
        assert done.stdout.partition("\n")[0].startswith(
            f"{folders / ours} is faster than {folders / theirs}: throughput "
        )
    (folders / "a" / "bad.json").write_text("{")
    try:
        done = headstack("compare", str(folders / "a"), "--against", str(folders / "b"), "--verbose")
        assert done.returncode == 0
        assert f"left out: {folders / 'a' / 'bad.json'}: " in done.stdout
        refused = headstack("compare", str(folders / "a" / "bad.json"), "--against", str(folders / "b"))
        assert refused.returncode == 2
    finally:
        (folders / "a" / "bad.json").unlink()


def test_a_file_that_is_meant_twice_counts_once(folders: Path, headstack: Headstack, tmp_path: Path) -> None:
    """Runs that were named again and again would look like runs that agree."""
    link = tmp_path / "link.json"
    link.symlink_to(folders / "a" / "1.json")
    sources = [str(folders / "a"), str(folders / "a" / "1.json"), str(link)]
    done = headstack("compare", *sources, "--against", str(folders / "b"), "--json", "out.json", "--verbose")
    assert len(json.loads((tmp_path / "out.json").read_text())["runs"]["ours"]) == 4
    for named in sources[1:]:
        assert f"left out: {named}: given twice, counted once" in done.stdout


def test_names_that_the_shell_puts_in_place_of_a_pattern_are_of_their_side(
    folders: Path, headstack: Headstack, tmp_path: Path
) -> None:
    ours, theirs = ([str(folders / side / f"{n}.json") for n in range(1, 5)] for side in ("a", "b"))
    for words in (
        [*ours, "--against", *theirs, "--json", "out.json"],
        [*ours, "--json", "out.json", "--against", theirs[0], "--against", *theirs[1:]],
        ["--json", "out.json", "--against", str(folders / "b"), *ours],
    ):
        assert headstack("compare", *words).returncode == 0
        told = json.loads((tmp_path / "out.json").read_text())["runs"]
        assert [len(told[side]) for side in ("ours", "theirs")] == [4, 4], words


def test_exit_codes_of_limits(folders: Path, headstack: Headstack, tmp_path: Path) -> None:
    a, b = (str(folders / name) for name in "ab")
    codes = {}
    for name, ours, theirs, limit in (
        ("same", a, a, "slower=90%"),
        ("short", a, a, "p99.9=0.01%"),
        ("wrong", a, b, "slower"),
    ):
        codes[name] = headstack("compare", ours, "--against", theirs, "--fail-if", limit)
    assert [one.returncode for one in codes.values()] == [0, 4, 2]
    assert "undecided whether p99.9=0.01% is met" in codes["short"].stderr
    found = hs.difference(a, b)
    iops = next(cell for cell in found if cell.figure == "iops")
    ours, theirs = (a, b) if iops.estimate.log < 0 else (b, a)
    assert iops.verdict == "differs"
    shown = headstack("compare", ours, "--against", theirs, "--fail-if", "slower=3%")
    assert shown.returncode == 1
    assert "is worse by" in shown.stderr


def test_a_baseline_is_stored_and_compared(folders: Path, headstack: Headstack, tmp_path: Path) -> None:
    a, b = (str(folders / name) for name in "ab")
    kept = headstack("compare", a, "--save-baseline", "base.json")
    assert (kept.returncode, kept.stdout) == (0, "saved 4 runs to base.json\n")
    direct = headstack("compare", b, "--against", a, "--csv", "-")
    again = headstack("compare", b, "--baseline", "base.json", "--csv", "-")
    assert direct.returncode == again.returncode == 0
    assert direct.stdout == again.stdout
    (tmp_path / "base.json").write_text('{"format": "headstack baseline", "schema": 1, "runs": [{}]}')
    broken = headstack("compare", b, "--baseline", "base.json")
    assert broken.returncode == 2
    assert "base.json: not a complete baseline" in broken.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--quiet",), "nothing to compare"),
        (("x.json",), "x.json: no such file or folder"),
        (("a/1.json", CHEETAH, "--fail-if", "slower=3%"), "--fail-if: applies only to sets of runs"),
        (("a", "--against", "b", "--tolerance", "5%"), "--tolerance: applies only to points"),
        (("a", "--against", "b", "--pairs", "3"), "--pairs: needs --run"),
        (("a", "--against", "b", "--baseline", "a/1.json"), "--baseline, --against: give only one"),
        (("--against", "b"), "FILES are missing"),
        (("--run", "true"), "--run: given 1 times"),
        (("--run", "true", "--run", "true", "--pairs", "2"), "--pairs: 2"),
        (("--run", "x {}", "--run", "true"), "only one command contains {}"),
        (("a", "--save-baseline", "new.json", "--fail-if", "slower=3%"), "--fail-if: needs two sets"),
        (("a", "--against", "nowhere"), "nowhere: no such file"),
        (("a", "--against", "b", "--figures", "p98"), "'p98' is unknown"),
    ],
)
def test_forms_are_told_apart(
    arguments: tuple[str, ...], why: str, folders: Path, headstack: Headstack, tmp_path: Path
) -> None:
    for name in "ab":
        (tmp_path / name).symlink_to(folders / name)
    done = headstack("compare", *arguments)
    assert done.returncode == 2
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_commands_are_run_in_turn_and_timed(headstack: Headstack, tmp_path: Path) -> None:
    slow, fast = "echo a >> order; sleep 0.06", "echo b >> order; sleep 0.02"
    done = headstack(
        *("compare", "--run", slow, "--run", fast, "--pairs", "4", "--warm-ups", "1", "--json", "out.json", "-q"),
        *("--fail-if", "slower=10%"),
    )
    assert done.returncode in (1, 4), done.stderr
    assert (tmp_path / "order").read_text().replace("\n", "") == "ab" + "abba" * 2
    [row] = json.loads((tmp_path / "out.json").read_text())["figures"]
    assert (row["figure"], row["design"], row["runs_ours"]) == ("elapsed", "paired", 4)
    assert row["ours"] > 0.06
    failing = headstack("compare", "--run", "true", "--run", "echo no >&2; exit 7", "-q")
    assert failing.returncode == 3
    assert "exit code 7: no" in failing.stderr


MADE = """
import sys, json, random
name, path = sys.argv[1:]
draw = random.Random(path)
iops = (1000 if name == "a" else 1100) * draw.gauss(1, 0.002)
lat = {"min": 1, "max": 10, "mean": 1e9 / iops, "stddev": 1, "N": 9, "percentile": {"99.000000": 1e9 / iops}}
read = {"iops": iops, "bw_bytes": iops * 4096, "runtime": 1000, "total_ios": 9, "lat_ns": lat, "clat_ns": lat}
job = {"jobname": "x", "job options": {"rw": "randread"}, "read": read}
json.dump({"fio version": "fio-3.33", "timestamp_ms": 5, "jobs": [job]}, open(path, "w"))
"""


def test_commands_stop_at_the_first_verdict(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(MADE)
    commands = [f"{sys.executable} made.py {name} {{}}" for name in "ab"]
    done = headstack(
        *("compare", "--run", commands[0], "--run", commands[1], "--pairs", "40", "--stop-early", "-q"),
        *("--figures", "throughput,mean", "--keep", "kept", "--json", "out.json"),
    )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "out.json").read_text())
    assert {row["verdict"] for row in told["figures"]} == {"differs"}
    assert told["at_any_time"]
    pairs = told["figures"][0]["runs_ours"]
    assert 3 <= pairs < 20
    assert len(list((tmp_path / "kept").iterdir())) == 2 * pairs
    assert told["figures"][0]["difference_high"] < -0.08


def test_a_report_has_every_question(folders: Path) -> None:
    found = hs.difference(folders / "a", folders / "b")
    report = found.report()
    table = report.sections[0].figures[1]
    assert table.kind == "table"
    assert len(table.rows) == len(found)
    assert report.summary.startswith("first is faster than second: throughput ")
    assert [figure.kind for figure in report.sections[0].figures] == ["bars", "table"]


def test_a_load_of_each_side_may_be_what_is_compared() -> None:
    ones, fours = ([hs.run(CHEETAH, "file-server", depth=d, requests=300, seed=n) for n in (1, 2, 3)] for d in (1, 4))
    found = hs.difference(ones, fours)
    cells: list[Cell] = list(found)
    assert {cell.load for cell in cells} == {"file-server, depth 1 against file-server, depth 4"}


def stalling(draw: random.Random, n: int) -> list[float]:
    """As a machine that takes the processor away for a tenth to a half of some runs."""
    return [draw.gauss(0, 0.01) + math.log(1 - (draw.random() < 0.2) * draw.uniform(0.1, 0.5)) for _ in range(n)]


@pytest.mark.parametrize("noise", [white, spiky, stalling])
def test_the_middle_of_pairs_seldom_says_a_difference_that_is_not(noise: Noise) -> None:
    draw, pairs = random.Random(11), 24
    found = [compared(noise(draw, 2 * pairs), figures="throughput").cells[0] for _ in range(TRIES)]
    assert sum(cell.verdict == "differs" for cell in found) / TRIES <= MOST
    # It decides where tails are long, and nowhere else.
    share = sum(cell.estimate.stalls is not None for cell in found) / TRIES
    assert share < 0.05 if noise is white else share > 0.6


def test_stalls_do_not_hide_three_percent() -> None:
    draw, found, asked, effect = random.Random(12), 0, [], math.log(1.03)
    for _ in range(100):
        [cell] = compared(spiky(draw, 20), effect=effect, figures="throughput").cells
        asked.append(10 + (cell.more_runs or 0))
        # What a pilot asks for is made; of all pairs alone, some 220 would be needed.
        [cell] = compared(spiky(draw, 2 * asked[-1]), effect=effect, figures="throughput").cells
        found += cell.verdict == "differs"
    assert found / 100 >= 0.9
    assert sorted(asked)[50] <= 100


def test_stalls_of_one_side_are_attributed_to_it() -> None:
    draw = random.Random(13)
    calm, stalls = [draw.gauss(0, 0.01) for _ in range(30)], [(n % 3 == 0) * 0.4 for n in range(30)]
    ours = runs_of([a - b for a, b in zip(calm, stalls, strict=True)], [2 * n + n % 2 for n in range(30)])
    theirs = runs_of([draw.gauss(0, 0.01) for _ in range(30)], [2 * n + 1 - n % 2 for n in range(30)])
    [cell] = compare_sides(ours, theirs, 0.01, 0.03, "throughput").cells
    assert cell.estimate.stalls is None
    assert cell.verdict == "differs"
    assert cell.estimate.log < -0.08


def test_an_undecided_verdict_states_the_detectable_difference() -> None:
    draw = random.Random(14)
    noise = [draw.gauss(0, 0.3) for _ in range(20)]
    found = compared(noise, figures="throughput")
    [cell] = found.cells
    assert cell.more_runs is not None
    assert cell.more_runs > 200
    assert cell.reach is not None
    assert 0.05 < cell.reach < 0.3
    assert found.headline.startswith("not enough data for a verdict: throughput of side differs by ")
    [step] = next_steps(found.cells, found.detect)
    assert (
        f"{cell.more_runs:,} more runs of each would detect 3 % in every figure; 200 runs of each would detect" in step
    )
    # What 200 are said to tell, they do.
    reached = 0
    for _ in range(50):
        [cell_of_200] = compared(
            [draw.gauss(0, 0.3) for _ in range(400)], effect=math.log1p(cell.reach), figures="throughput"
        ).cells
        reached += cell_of_200.verdict == "differs"
    assert reached >= 45
    # At a second from run to run.
    [effort] = [line for line in found.remarks if "minutes" in line]
    minutes = f"{2 * cell.more_runs / 60:,.0f} minutes"
    assert effort == f"{cell.more_runs:,} more runs of each would take {minutes} at the current rate"


def test_thousands_of_pairs_are_rearranged() -> None:
    ratios = [0.01 * (-1) ** n for n in range(1200)]
    assert paired(ratios, [1, -1] * 600).p_permuted is not None


def test_the_middle_of_pairs_is_as_its_examples_say() -> None:
    done = doctest.testmod(tails)
    assert (done.attempted, done.failed) == (4, 0)

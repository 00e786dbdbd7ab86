"""Studies: from a file to verdicts; what is wrong is said in one line with its place."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack
from headstack import _native
from headstack.studies.claims import Verdict
from headstack.studies.power import Tolerance
from headstack.studies.scorecard import Legend, first_difference, scorecard

HEAD = """\
title    = "Two drives"
question = "Which is quicker?"

[[grids]]
name      = "runs"
systems   = ["cheetah-x15-36lp", "atlas-10k-iii-73"]
workloads = ["file-server"]
settings  = { depth = [1, 4], requests = 500 }
within    = ["25ms"]
keep      = ["percentiles", "components"]

[[published]]
file = "theirs.csv"
grid = "runs"
by   = ["system", "depth"]

[[tables]]
name  = "gains"
title = "Gains"
sql   = \"\"\"
select depth, 100 * (ours.iops / theirs.iops - 1) as found
from (from runs where system = 'cheetah-x15-36lp') as ours
join (from runs where system = 'atlas-10k-iii-73') as theirs using (depth)
order by depth\"\"\"

[[claims]]
id        = "gain"
says      = "The Cheetah is 30 % faster"
sql       = "select depth, 30 as published, found from gains order by depth"
tolerance = "15 points"

[[pictures]]
name  = "curves"
title = "Curves"
kind  = "lines"
sql   = "select iops as x, mean_ms as y, system as series, depth as label from runs order by run"
"""
THEIRS = "system,depth,iops\ncheetah-x15-36lp,1,157\natlas-10k-iii-73,1,120\n"
OPEN = '[[open]]\nwhat = "w"\ngrids = ["runs"]\nothers = [{ what = "o" }]\n'
CLAIM = '\n[[claims]]\nid = "c"\nsays = "s"\n'


def put(folder: Path, text: str = HEAD, theirs: str = THEIRS) -> Path:
    """A study in a folder of its own."""
    study = folder / "mine"
    study.mkdir(exist_ok=True)
    (study / "study.toml").write_text(text)
    (study / "theirs.csv").write_text(theirs)
    return study


def line_of(text: str, part: str) -> int:
    return 1 + text[: text.index(part)].count("\n")


def test_a_study_gives_verdicts_tables_and_figures(tmp_path: Path) -> None:
    outcome = hs.studies.run(put(tmp_path))
    (claim,) = outcome.claims
    assert claim.verdict == Verdict.PREDICTED
    assert claim.unit == "points"
    runs = hs.run(["cheetah-x15-36lp", "atlas-10k-iii-73"], "file-server", depth=[1, 4], requests=500)
    gains = [100 * (runs[n]["iops"] / runs[n + 2]["iops"] - 1) for n in (0, 1)]
    assert [row[2] for row in claim.rows] == pytest.approx(gains)
    assert claim.errors == pytest.approx([gain - 30 for gain in gains])
    assert outcome.data["runs"].columns[:5] == ["run", "system", "workload", "capacity_gb", "depth"]
    knees = list(outcome.data["runs_curves"].dicts())
    assert [row["system"] for row in knees] == ["cheetah-x15-36lp", "atlas-10k-iii-73"]
    within = runs.iops_at("25ms")["cheetah-x15-36lp"]
    assert within is not None
    assert knees[0]["iops_at_25ms"] == pytest.approx(within.iops)
    percentiles = {(row["run"], row["percent"]): row["ms"] for row in outcome.data["runs_percentiles"].dicts()}
    assert percentiles[2, 99.0] == runs.percentile_ms(1, 99)
    busy = [row for row in outcome.data["runs_components"].dicts() if row["run"] == 1]
    assert max(row["utilization_percent"] for row in busy) == pytest.approx(runs[0]["utilization_percent"])
    (curves,) = outcome.figures
    assert curves.kind == "lines"
    assert [series.name for series in curves.series] == ["cheetah-x15-36lp", "atlas-10k-iii-73"]
    assert curves.series[0].x == [runs[0]["iops"], runs[1]["iops"]]
    assert [table.name for table in outcome.tables] == ["gains"]
    assert {run.system for run in outcome.runs} == {"cheetah-x15-36lp", "atlas-10k-iii-73"}


@pytest.mark.parametrize(
    ("column", "notes", "table"),
    [
        ("utilization_percent", 0, "runs_components"),
        ("busy_percent", 1, "runs_components"),
        ("utilization_percent", 0, "runs"),
        ("utilisation_percent", 1, "runs"),
    ],
)
def test_the_earlier_name_of_a_column_is_read_with_one_note(
    column: str, notes: int, table: str, tmp_path: Path
) -> None:
    sql = f"select 100 as published, max({column}) as found, min({column}) as least from {table}"
    claim = f'\n[[claims]]\nid = "c"\nsays = "s"\nsql = "{sql}"\ntolerance = "100 points"\n'
    _native.take_notes_of_renamed_keys()
    found = hs.studies.run(put(tmp_path, HEAD + claim)).claims[-1]
    assert 0 < found.rows[0][1] <= 100
    assert _native.take_notes_of_renamed_keys() == [f"`{column}` is now `utilization_percent`"] * notes


def test_what_is_not_of_runs_or_compares_runs_is_not_predicted(tmp_path: Path) -> None:
    few = """sql = \"\"\"
select 'by hand' as what, 1 as published, 1 as found
union all select 'by hand, too', 2, 2
union all select 'run', 150, iops from runs where system = 'cheetah-x15-36lp' and depth = 1\"\"\"
tolerance = "50%"
"""
    own = 'sql = "select 0.99 * iops as published, iops as found from runs"\ntolerance = "50%"\nmissing = "a figure"\n'
    text = f"{HEAD}{CLAIM}{few}{CLAIM.replace(chr(34) + 'c' + chr(34), chr(34) + 'd' + chr(34))}{own}"
    gain, of_few, of_own = hs.studies.run(put(tmp_path, text)).claims
    assert (gain.verdict, of_few.verdict, of_own.verdict) == (
        Verdict.PREDICTED,
        Verdict.CONFIGURED,
        Verdict.NOT_TESTABLE,
    )
    assert "1 from runs" in of_few.evidence
    assert of_own.rows == ()


def test_the_bytes_do_not_depend_on_threads(tmp_path: Path, headstack: Headstack) -> None:
    study = str(put(tmp_path))
    for threads in ("1", "2"):
        done = headstack("lab", "study", "run", study, "-o", f"out-{threads}", RAYON_NUM_THREADS=threads)
        assert done.returncode == 0, done.stderr
    one, two = (tmp_path / f"out-{threads}" / "mine" for threads in ("1", "2"))
    names = sorted(path.name for path in one.iterdir())
    assert {"outcome.json", "runs.csv", "gains.csv", "runs_curves.csv"} <= set(names)
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_a_run_study_is_shown_again(tmp_path: Path, headstack: Headstack) -> None:
    assert "run the study first" in headstack("lab", "study", "show", "mine").stderr
    ran = headstack("lab", "study", "run", str(put(tmp_path)), "-q")
    assert ran.returncode == 0, ran.stderr
    assert headstack("lab", "study", "show", "mine").stdout == ran.stdout
    shown = headstack("lab", "study", "show", "mine", "--claim", "gain").stdout
    assert "error (points)" in shown
    assert "allowed: gain" in headstack("lab", "study", "show", "mine", "--claim", "nosuch").stderr
    with (tmp_path / "studies-out" / "mine" / "runs.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 4
    outcome = json.loads((tmp_path / "studies-out" / "mine" / "outcome.json").read_text())
    assert outcome["runs"][0]["description_hash"]


REPLAY = """\
title    = "A recording"
question = "Does it come out the same?"

[[grids]]
name     = "again"
kind     = "replay"
record   = { system = "cheetah-x15-36lp", workloads = ["file-server"], settings = { depth = [1, 4], requests = 400 } }
systems  = ["cheetah-x15-36lp", "wd1200bb"]
settings = { mode = "asap" }

[[grids]]
name      = "first"
systems   = ["cheetah-x15-36lp"]
workloads = ["file-server"]
settings  = { depth = [1, 4], requests = 400 }

[[claims]]
id        = "same"
says      = "A drive replays its own recording in its own time"
sql       = \"\"\"
select depth, first.iops as published, again.iops as found
from first join again using (system, workload, depth) order by all\"\"\"
tolerance = "2%"
missing   = "Both figures are of runs here."
"""


def test_recordings_are_replayed_with_what_was_recorded(tmp_path: Path) -> None:
    outcome = hs.studies.run(put(tmp_path, REPLAY))
    rows = list(outcome.data["again"].dicts())
    assert [(row["system"], row["workload"], row["depth"]) for row in rows] == [
        (system, "file-server", depth) for depth in (1, 4) for system in ("cheetah-x15-36lp", "wd1200bb")
    ]
    recordings = list(outcome.data["again_recorded"].dicts())
    assert [row["depth"] for row in recordings] == [1, 4]
    assert [row["requests"] for row in recordings for _ in range(2)] == [row["requests"] for row in rows]
    assert all(0 <= row["lowest_byte"] < row["highest_end_byte"] for row in recordings)
    (claim,) = outcome.claims
    assert claim.verdict == Verdict.NOT_TESTABLE, "what is published is a run of ours, too"


def test_an_interrupted_study_goes_on_where_it_was(tmp_path: Path, headstack: Headstack) -> None:
    """Several portions for each worker: some are kept when the study is interrupted, and not run again."""
    text = HEAD.replace("requests = 500", "requests = 150000, seed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]")
    study = str(put(tmp_path, text))
    command = [
        sys.executable,
        "-c",
        "from headstack.cli.main import main; main()",
        "study",
        "run",
        study,
        "--store",
        "kept",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list(tmp_path.glob("kept/*/*.parquet")):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert "finished runs are kept: repeat the command to resume" in process.stderr.read()
    assert process.returncode == 143
    assert not (tmp_path / "studies-out").exists()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("kept/*/*.parquet")}
    assert headstack("lab", "study", "run", study, "--store", "kept").returncode == 0
    assert headstack("lab", "study", "run", study, "--store", "other", "-o", "whole").returncode == 0
    after = {path: path.stat().st_mtime_ns for path in tmp_path.glob("kept/*/*.parquet")}
    assert len(after) > len(before) > 0
    assert before.items() <= after.items()
    for path in (tmp_path / "studies-out" / "mine").iterdir():
        assert path.read_bytes() == (tmp_path / "whole" / "mine" / path.name).read_bytes(), path.name


def test_a_miss_without_a_reason_ends_with_1(tmp_path: Path, headstack: Headstack) -> None:
    study = put(tmp_path, f'{HEAD}{CLAIM}sql = "select false as holds"\n')
    assert headstack("lab", "study", "run", str(study)).returncode == 1


@pytest.mark.parametrize(
    ("claim", "where", "message"),
    [
        ('sql = "select 1 as published, 1 as found"', "says", "tolerance: this key is missing"),
        ("", "says", "sql: this key is missing"),
        ('sql = "select 1 as published, 1 as found"\ntolerance = "wide"', "wide", "'wide' is not a tolerance"),
        ('sql = "select 1 as found"\ntolerance = "5%"', "1 as found", "found has nothing to compare with"),
        ('sql = "select depth from runs"', "select depth from runs", "must return found and published, or holds"),
        ('sql = "select 1 as holds where false"', "where false", "no rows"),
        ('sql = "select null as found, 1 as published"\ntolerance = "5%"', "select null", "row 1 () has no found"),
        ('sql = "select iopss from runs"', "iopss", "iopss"),
        ('sql = "select true as holds"\nmissing = "much"', "much", "c agrees with the published figures"),
        ('sql = "select true as holds"\ncontradicted = "no"', '"no"', "c agrees with the published figures"),
        ('missing = "a"\ncontradicted = "no"', '"a"', "not both"),
        (
            'sql = "select true as holds"\nconfigured = "us"',
            '"us"',
            "its evidence contains no run and rests on published figures",
        ),
        ('sql = "select sum(iops) < 500 as holds from runs"\ncontradicted = "it is"', '"it is"', "c rests on runs"),
        ('missing = "a"\ntolerence = "5%"', "tolerence", "did you mean `tolerance`?"),
        (
            'sql = "select iops as published, iops as found from runs"\ntolerance = "5%"',
            "select iops",
            "published contains results of headstack's runs",
        ),
    ],
)
def test_bad_claims_are_refused_with_their_line(
    claim: str, where: str, message: str, tmp_path: Path, headstack: Headstack
) -> None:
    text = f"{HEAD}{CLAIM}{claim}\n"
    shown = headstack("lab", "study", "run", str(put(tmp_path, text)))
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1), shown.stderr
    assert message in shown.stderr
    after = line_of(text, CLAIM.strip())
    place = int(shown.stderr.split("study.toml:")[1].split(":")[0])
    assert place == after + 3 + claim[: claim.find(where)].count("\n") if where in claim else place >= after
    assert not (tmp_path / "studies-out").exists()


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ('"atlas-10k-iii-73"]', '"atlas-10k-iii-37"]', "grids[0].systems[1]", "atlas-10k-iii-37"),
        ('"file-server"', '"file-sever"', "grids[0].workloads[0]", "file-sever"),
        ("depth = [1, 4]", "depht = [1, 4]", "grids[0].settings", "depht: unknown option"),
        ("requests = 500", 'requests = "many"', "grids[0].settings", "'many' is not a whole number"),
        ('name  = "gains"', 'name  = "runs"', "tables[0].name", "'runs' is also the name of grids[0]"),
        ('name      = "runs"', 'name      = "the runs"', "grids[0].name", "cannot name a table"),
        ('file = "theirs.csv"', 'file = "ours.csv"', "published[0].file", "does not exist"),
        ('by   = ["system", "depth"]', 'by   = ["system", "size"]', "published[0].by[1]", "no column 'size'"),
        ('within    = ["25ms"]', 'within    = ["25"]', "grids[0].within", "25"),
        ("[[tables]]", '[tolerances]\n"4%" = "so"\n\n[[tables]]', "tolerances.4%", "no claim has this tolerance"),
        ("[[tables]]", f"{OPEN}on = ['other']\n\n[[tables]]", "open[0].on[0]", "no claim has the id 'other'"),
        ("[[tables]]", f"{OPEN}on = ['gain']\n\n[[tables]]", "open[0].others[0]", "add names or settings"),
        (
            "[[tables]]",
            '[[chosen]]\nwhat = "w"\non = ["x"]\n\n[[tables]]',
            "chosen[0].on[0]",
            "no claim has the id 'x'",
        ),
        ("mean_ms as y, ", "", "pictures[0].sql", "no column 'y'"),
        ('kind  = "lines"', 'kind  = "line"', "pictures[0].kind", "did you mean `lines`?"),
    ],
)
def test_bad_studies_are_refused_with_their_line(
    old: str, new: str, key: str, message: str, tmp_path: Path, headstack: Headstack
) -> None:
    text = HEAD.replace(old, new)
    assert text != HEAD
    shown = headstack("lab", "study", "run", str(put(tmp_path, text)))
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1), shown.stderr
    assert f": {key}" in shown.stderr
    assert message in shown.stderr
    assert not (tmp_path / "studies-out").exists()


def test_a_published_row_without_a_run_is_refused(tmp_path: Path, headstack: Headstack) -> None:
    shown = headstack("lab", "study", "run", str(put(tmp_path, theirs=THEIRS + "wd1200bb,1,76\n")))
    assert shown.returncode == 2
    assert "theirs.csv:4: no run of the grid runs has system wd1200bb, depth 1" in shown.stderr


def test_unknown_studies_are_named(headstack: Headstack, tmp_path: Path) -> None:
    shown = headstack("lab", "study", "run", "nosuch")
    assert shown.returncode == 2
    assert all(name in shown.stderr for name in hs.studies.listed())
    (tmp_path / "empty").mkdir()
    assert "the folder has no study.toml" in headstack("lab", "study", "run", "empty").stderr


@pytest.mark.parametrize(
    ("text", "tolerance"),
    [
        ("5%", Tolerance(5, "%")),
        ("5 %", Tolerance(5, "%")),
        ("6 points", Tolerance(6, "points")),
        ("0.1ms", Tolerance(0.1, "ms")),
        ("3", Tolerance(3, "")),
        ("-3", None),
        ("about 3", None),
    ],
)
def test_tolerances(text: str, tolerance: Tolerance | None) -> None:
    assert Tolerance.parse(text) == tolerance


def test_a_legend_explains_each_text_once() -> None:
    legend = Legend("T")
    assert [legend.key(text) for text in ("a count", "whole percent", "a count")] == ["T1", "T2", "T1"]
    assert legend.lines("Reasons:") == ["Reasons:\n", "- T1: a count", "- T2: whole percent", ""]
    assert Legend("F").lines("Fitted:") == []


def test_the_scorecard_tells_where_it_is_out_of_date(tmp_path: Path) -> None:
    outcome = hs.studies.run(put(tmp_path))
    text = scorecard([outcome])
    assert "| gain | The Cheetah is 30 % faster | predicted |" in text
    file = tmp_path / "scorecard.md"
    file.write_text(text)
    assert first_difference(file, text) is None
    file.write_text(text.replace("30 %", "31 %"))
    assert "31 % faster" in (first_difference(file, text) or "")
    file.write_text(text + "more\n")
    assert "instead of" in (first_difference(file, text) or "")

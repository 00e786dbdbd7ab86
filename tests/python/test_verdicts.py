"""Verdicts follow from what a claim's figures rest on, which is tried and not stated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headstack as hs
from conftest import REPOSITORY
from headstack import _native
from headstack.studies.claims import Judged, Verdict
from headstack.studies.evidence import Rests
from headstack.studies.power import Power, Tolerance
from headstack.studies.provenance import CLAIM

DOCUMENTS = "Compaq|StorageReview|Mark5C|Demartek|VA 7100|HP,"
IN_VIEW = re.compile(r"fitted|in view|chosen")

STUDY = """\
title    = "Two drives"
question = "Which is quicker?"

[[grids]]
name      = "runs"
systems   = ["cheetah-x15-36lp", "mine.toml"]
workloads = ["file-server"]
settings  = { depth = [1, 4], requests = 500 }

[[tables]]
name = "fast"
sql  = "select depth, iops from runs where system like 'cheetah%'"
"""


def judged(folder: Path, claim: str, more: str = "", drive: str = "") -> Judged:
    """The claim of a study of the Cheetah X15-36LP and a drive of the study's own."""
    source = drive or "C as the other"
    text = f'{STUDY}{more}\n[[claims]]\nid = "my.claim"\nsays = "s"\n{claim}\n'
    (folder / "study.toml").write_text(text)
    (folder / "theirs.csv").write_text("depth,iops\n1,160\n4,210\n")
    other = _native.drive_toml("cheetah-x15-36lp").replace("[sources]", f'[sources]\n"spindle.speed" = "{source}"')
    (folder / "mine.toml").write_text(re.sub(r'\n"spindle.speed" += "(?!C as the|I fitted).*', "", other))
    (found,) = hs.studies.run(folder).claims
    return found


NEAR = 'tolerance = "20%"'
THEIRS = "sql = 'select depth, theirs.iops as published, fast.iops as found from fast join theirs using (depth)'"
LITTLE = "sql = 'select depth as published, iops * mean_ms / 1000 as found from runs'"


@pytest.mark.parametrize(
    ("claim", "verdict", "rests", "evidence"),
    [
        (
            f"{THEIRS}\n{NEAR}",
            Verdict.PREDICTED,
            Rests.RUNS,
            "2 figures, mean error",
        ),
        # Little's law: so many requests are outstanding because the study asked for it.
        (
            f"{LITTLE}\n{NEAR}\nconfigured = 'the depth'",
            Verdict.CONFIGURED,
            Rests.RUNS,
            "stated by the depth",
        ),
        ("sql = 'select depth in (1, 4) as holds from runs'", Verdict.CONFIGURED, Rests.INPUTS, "4 of 4 hold"),
        (
            "sql = 'select rpm = 15000 as holds from drives limit 1'",
            Verdict.MISSED,
            Rests.INPUTS,
            "missed, without a stated reason",
        ),
        ("sql = 'select iops > 100 as holds from theirs'", Verdict.ARITHMETIC, Rests.PUBLISHED, "2 of 2 hold"),
        (
            "sql = 'select iops < 200 as holds from theirs'\ncontradicted = '210 is more'",
            Verdict.CONTRADICTED,
            Rests.PUBLISHED,
            "1 of 2 hold; 210 is more",
        ),
        (
            "sql = 'select depth, iops > 10000 as holds from fast'\nmissing = 'a faster drive'",
            Verdict.MISSED,
            None,
            "0 of 2 hold; a faster drive",
        ),
        ("missing = 'the trace'", Verdict.NOT_TESTABLE, None, "the trace"),
        (
            f"sql = 'select 1 as published, 1 as found union all select 160, iops from fast where depth = 1'\n{NEAR}",
            Verdict.PREDICTED,
            Rests.RUNS,
            "1 from runs",
        ),
    ],
)
def test_a_verdict_says_what_figures_rest_on(
    claim: str, verdict: Verdict, rests: Rests | None, evidence: str, tmp_path: Path
) -> None:
    found = judged(tmp_path, claim)
    assert found.verdict == verdict, found.evidence
    assert rests is None or found.rests == rests
    assert evidence in found.evidence


PREDICTS = f"sql = 'select iops as found, 160 as published from runs where depth = 1'\n{NEAR}"


def test_what_was_chosen_on_a_claim_is_never_predicted(tmp_path: Path) -> None:
    assert judged(tmp_path, PREDICTS).verdict == Verdict.PREDICTED
    stated = judged(tmp_path, PREDICTS, drive="I fitted to what somebody saw (my.claim)")
    assert (stated.verdict, stated.chosen) == (Verdict.FITTED, ("spindle.speed of mine",))
    chosen = judged(tmp_path, PREDICTS, '\n[[chosen]]\nwhat = "which drives"\non = ["my.claim"]\n')
    assert (chosen.verdict, chosen.chosen) == (Verdict.FITTED, ("which drives",))
    assert "tuned on it: which drives" in chosen.evidence
    elsewhere = '\n[[chosen]]\nwhat = "which drives"\non = ["my.claim"]\nsystems = ["mine.toml"]\n'
    assert judged(tmp_path, PREDICTS, elsewhere).verdict == Verdict.FITTED


def test_open_choices_are_made_otherwise(tmp_path: Path) -> None:
    """Under the names of what was chosen, so that the same queries find them."""
    more = """
[[open]]
what   = "one request at a time"
grids  = ["runs"]
on     = ["my.claim"]
others = [
    { what = "write caches off", settings = { write_cache = "off" } },
    { what = "a slow drive", names = { cheetah-x15-36lp = "wd1200bb" } },
]
"""
    claim = f"{THEIRS}\n{NEAR}"
    found = judged(tmp_path, claim, more)
    assert found.verdict == Verdict.PREDICTED
    uncached, slow = found.otherwise
    assert (uncached.open_choice, uncached.other) == ("one request at a time", "write caches off")
    assert uncached.evidence != found.evidence
    assert not slow.agrees
    assert slow.evidence.startswith("2 figures, mean error 5")
    alone = hs.run("wd1200bb", "file-server", depth=[1, 4], requests=500)
    worst = min(100 * (row["iops"] / published - 1) for row, published in zip(alone, (160, 210), strict=True))
    assert slow.evidence.endswith(f"worst {worst:+.3g}%")


def test_power_is_what_a_constant_would_miss() -> None:
    rows = [{"published": p, "found": f} for p, f in ((100, 101), (200, 190), (300, 310), (400, 399))]
    power = Power.of(rows, Tolerance(10, "%"))
    assert power is not None
    # A constant for the first row is the mean of the others, 300, and so on.
    assert power.null_mean == pytest.approx((200 + 33.333333 + 22.222222 + 50) / 4)
    assert (power.null_within, power.rows, power.pairs_right, power.pairs) == (0, 4, 6, 6)
    assert power.mean == pytest.approx((1 + 5 + 10 / 3 + 0.25) / 4)
    assert Power.of(rows[:3], Tolerance(10, "%")) is None


SHIPPED = [hs.studies.load(name) for name in hs.studies.listed()]


@pytest.mark.parametrize("study", SHIPPED, ids=lambda study: study.name)
def test_every_tolerance_says_where_it_comes_from(study: hs.studies.Study) -> None:
    without = [
        claim["id"]
        for claim in study.claims
        if claim["tolerance"] and not claim["because"] and claim["tolerance"] not in study.tolerances
    ]
    assert not without


def test_values_that_were_chosen_on_a_document_name_the_claims() -> None:
    """Of all descriptions that ship: values that were fitted to one of the documents, or chosen with it in view."""
    ids = {claim["id"] for study in SHIPPED for claim in study.claims}
    named, missing = set(), []
    systems: list[hs.Drive | hs.Array] = [hs.Drive.load(name) for name in _native.drive_ids()]
    systems += [hs.Array.load(name) for name in _native.array_ids()]
    for system in systems:
        sources = [(one["key"], one["source"] or "") for one in system.stated]
        for key, source in [*sources, *((one["key"], one["rule"]) for one in system.derived)]:
            claims = set(CLAIM.findall(source)) & {id for id in CLAIM.findall(source) if id.startswith("S0.")}
            assert claims <= ids, f"{system.name}: {key}: {source}"
            named |= claims
            if IN_VIEW.search(source) and re.search(DOCUMENTS, source) and not claims:
                missing.append(f"{system.name}: {key}: {source}")
    assert not missing
    assert {"S0.39", "S0.79", "S0.82", "S0.99", "S0.128", "S0.134"} <= named


def test_the_page_of_labels_is_what_the_program_says() -> None:
    """The words of the verdicts are explained where users look for them."""
    text = (REPOSITORY / "python/headstack/studies/shipped/README.md").read_text(encoding="utf-8")
    assert all(f"| {verdict} |" in text for verdict in Verdict)

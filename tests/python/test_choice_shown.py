"""Text of an answer: the summary, the full text at any width, the explanation of a system, the ticket."""

from __future__ import annotations

import doctest
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

import choices
from choices import ALL, BEST, CLOUD, FRONTIER, NOTHING, OPEN, PLAIN, RUNNERS_UP, SLOW, WATTS, p99
from headstack._native import InputError
from headstack.choice import render, words
from headstack.choice.answer import SSD_STATE, Answer, Part, Reason, Relaxed, Verdict

SAMPLES = Path(__file__).parent / "samples" / "choice"


def sentences_by_subject(answer: Answer) -> dict[str, list[str]]:
    """The remarks by subject."""
    found: dict[str, list[str]] = {}
    for what, sentence in words.remarks(answer):
        found.setdefault(what, []).append(sentence)
    return found


def test_the_examples_of_words_run() -> None:
    assert doctest.testmod(words).attempted > 10
    assert doctest.testmod(words).failed == 0


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("width", [100, 60])
def test_the_text_is_that_of_the_samples(name: str, width: int) -> None:
    """HEADSTACK_WRITE_DOCS=1 renews them; what is read there is what people see."""
    sample = SAMPLES / f"{name}-{width}.txt"
    text = render.format_full(ALL[name], width) + "\n"
    if os.environ.get("HEADSTACK_WRITE_DOCS"):
        sample.parent.mkdir(exist_ok=True)
        sample.write_text(text, encoding="utf-8")
    assert text == sample.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ALL)
def test_the_summary_is_that_of_the_samples_and_fits_a_screen(name: str) -> None:
    sample = SAMPLES / f"{name}-summary.txt"
    text = render.format_summary(ALL[name], 80) + "\n"
    if os.environ.get("HEADSTACK_WRITE_DOCS"):
        sample.write_text(text, encoding="utf-8")
    assert text == sample.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= render.SCREEN_LINES


@pytest.mark.parametrize("width", [None, 80, 100, 200])
def test_a_summary_has_the_answer_one_table_and_three_notes(width: int | None) -> None:
    many = replace(PLAIN, undecided=(OPEN, *(replace(OPEN, name=f"{n} x y, h", host="h") for n in range(9))))
    for answer in (*ALL.values(), many):
        text = render.format_summary(answer, width)
        assert len(text.split("\n")) <= render.SCREEN_LINES
        assert text.count("───\n") == 1
        subjects = [line.split(":")[0] for line in text.split("\n") if line.split(":")[0] in words.NOTE_PRIORITY]
        assert 1 <= len(subjects) <= render.NOTES_MAX
        assert text.endswith("add --verbose")
    hidden = render.format_summary(many, 80).split("\n")[-1]
    assert re.fullmatch(r"\d more systems?, \d+ more notes: add --verbose", hidden)


def test_a_volume_without_a_host_keeps_its_name() -> None:
    cloud = replace(CLOUD, best=replace(CLOUD.best or BEST, name="gp3, 466GiB, 4000/s", host=""), runners_up=())
    assert "1  gp3, 466GiB, 4000/s " in render.format_summary(cloud, 80)


def test_the_state_of_ssds_is_a_note_after_warnings() -> None:
    state = f"{SSD_STATE}: 990-pro-2tb"
    assert ("warning", state) in words.select_notes(replace(PLAIN, warnings=(state,)), 9)
    warned = replace(PLAIN, warnings=("prices are old", state))
    assert ("warning", "prices are old") in words.select_notes(warned, 9)


@pytest.mark.parametrize("name", ALL)
def test_the_ticket_is_that_of_the_samples(name: str) -> None:
    sample = SAMPLES / f"{name}-ticket.txt"
    text = render.format_markdown(ALL[name])
    if os.environ.get("HEADSTACK_WRITE_DOCS"):
        sample.write_text(text, encoding="utf-8")
    assert text == sample.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("width", [40, 60, 80, 100, 132, 200])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for text in (render.format_full(ALL[name], width), render.format_summary(ALL[name], width)):
        lines = text.split("\n")
        assert [line for line in lines if len(line) > width] == []
        assert lines[0].startswith(("Take ", "No system "))


def test_the_answer_comes_first_with_its_number_and_interval() -> None:
    assert render.format_full(PLAIN).split("\n")[0] == (
        "Take 8 x exos-x18-18tb in raid6, md-raid6-12x16tb: $3,210; p99 17.2 ms (16.8 to 17.9), limit 20 ms: met."
    )
    assert "$6,300 ($175 a month for 36 months)" in words.headline(CLOUD)
    assert "48.0 W; $6,470" in words.headline(WATTS)


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (17.23, 16.8, 17.9, "17.2 ms (16.8 to 17.9)"),
        (17.23, 16.1, 18.4, "17.2 ms (16.1 to 18.4)"),
        (17.23, 14.0, 19.1, "17 ms (14 to 19)"),
        (0.84213, 0.839, 0.8452, "0.842 ms (0.839 to 0.845)"),
        (19.93, 19.8, 19.96, "19.93 ms (19.80 to 19.96)"),
        (19.0, None, None, "19.0 ms"),
        (5.0, 5.0, 5.0, "5.00 ms (5.00 to 5.00)"),
        (431.0, 380.0, 490.0, "430 ms (380 to 490)"),
    ],
)
def test_the_interval_decides_how_many_digits_are_shown(
    value: float, low: float | None, high: float | None, text: str
) -> None:
    assert words.format_verdict(p99(value, low, high, "meets")) == f"p99 {text}, limit 20 ms: met"


def test_undecided_figures_get_no_extra_digit() -> None:
    told = words.format_verdict(p99(19.97, 18.9, 21.1, "undecided", "few requests"))
    assert told == "p99 20.0 ms (18.9 to 21.1), limit 20 ms: undecided (few requests)"


def test_a_limit_has_its_figure_condition_and_unit() -> None:
    degraded = replace(p99(31.2, 30.1, 32.6, "does not"), limit="p99=20ms while rebuilding")
    assert words.format_verdict(degraded).startswith(
        "p99 while rebuilding 31.2 ms (30.1 to 32.6), limit 20 ms: not met"
    )
    rate = Verdict("iops=4000", "meets", "1/s", 4000, 4391.2, 4350, 4432)
    assert words.format_verdict(rate) == "iops 4,390/s (4,350 to 4,430), limit 4,000/s: met"
    stuck = words.format_verdict(p99(None, None, None, "does not"))
    assert stuck == "p99: the queue grows without bound, limit 20 ms: not met"


def test_every_sentence_is_of_a_field() -> None:
    found = sentences_by_subject(PLAIN)
    assert found["binding"] == [
        "p99 22 ms instead of 20 ms saves $289: 7 x exos-x18-18tb in raid6, md-raid6-12x16tb wins"
    ]
    assert found["not binding"] == ["capacity 36 TB instead of 40 TB; survive 0 instead of 1"]
    assert found["another wins"][0].endswith("more expensive: 9 x exos-x16-16tb in raid6, md-raid6-12x16tb at $3,298")
    assert found["same winner"] == ["with exos-x18-18tb 10 % cheaper; flash at half its price"]
    assert found["possible saving"][0].startswith("$289 at most")
    assert found["left out"][0] == "5,120: too small (by stated properties)"
    assert "1 in 48,000 per year" in found["durability"][0]
    assert found["durability inputs"] == [
        "1.4 % of drives fail per year (Backblaze's fleet, 2024); a rebuild takes 29.4 h (simulated)"
    ]
    assert len(found["warning"]) == 2
    bare = replace(
        PLAIN,
        best=replace(BEST, breaks_first="", rate_at_limit=None, durability=None, model_error="", verdicts=(), parts=()),
        undecided=(),
        upgrade=None,
        relaxed=(),
        sensitivity=(),
        alike=(),
        tell_apart="",
        left_out=(),
        warnings=(),
    )
    assert list(sentences_by_subject(bare)) == ["candidates"]


def test_a_constraint_may_be_dropped_and_a_load_may_be_a_depth() -> None:
    dropped = replace(NOTHING, relaxed=(Relaxed("survive=2", "without", "a", 0.0, True),))
    assert sentences_by_subject(dropped)["binding"] == ["without survive 2 allows a"]
    depth = replace(PLAIN, relaxed=(Relaxed("load=depth 16", "depth 14", "b", 90.0, True),))
    assert sentences_by_subject(depth)["binding"] == ["load depth 14 instead of depth 16 saves $90: b wins"]
    degraded = replace(PLAIN, relaxed=(Relaxed("p99=20ms while rebuilding", "22 ms", "b", 90.0, False),))
    assert sentences_by_subject(degraded)["not binding"] == ["p99 while rebuilding 22 ms instead of 20 ms"]


def test_an_upgrade_is_compared_with_the_best() -> None:
    name = RUNNERS_UP[1].name
    assert sentences_by_subject(PLAIN)["next upgrade"] == [f"{name}: $145 more; carries 702/s, 70 % more than the best"]
    untold = replace(PLAIN, upgrade=replace(RUNNERS_UP[1], rate_at_limit=None, rate_per_s=453.5))
    assert sentences_by_subject(untold)["next upgrade"] == [
        f"{name}: $145 more; carries at least 454/s, 10 % more than the best"
    ]
    closed = replace(PLAIN, upgrade=replace(RUNNERS_UP[1], rate_at_limit=None, rate_per_s=None))
    assert sentences_by_subject(closed)["next upgrade"] == [f"{name}: $145 more"]


def test_headroom_is_a_percentage_or_a_factor() -> None:
    assert sentences_by_subject(PLAIN)["breaks first"] == [
        "p99=20ms, by the drives; carries 412/s within the limits, 37 % more than the job's 300/s"
    ]
    assert "40 times the job's 300/s" in sentences_by_subject(WATTS)["breaks first"][0]
    over = replace(PLAIN, best=replace(BEST, rate_at_limit=262.0))
    assert "13 % less than the job's 300/s" in sentences_by_subject(over)["breaks first"][0]


def test_without_a_solution_the_nearest_system_and_the_binding_limit_are_named() -> None:
    assert words.headline(NOTHING).startswith(
        "No system meets every limit (12,480 candidates searched). "
        "Nearest: 6 x exos-x18-18tb in raid6, md-raid6-12x16tb: $2,632"
    )
    assert sentences_by_subject(NOTHING)["binding"] == [
        "bays 7 instead of 6 allows 7 x exos-x18-18tb in raid6, md-raid6-12x16tb"
    ]
    assert sentences_by_subject(NOTHING)["not enough"] == ["p99 22 ms instead of 20 ms"]
    unsure = replace(NOTHING, undecided=(OPEN,))
    assert "No system is certain to meet every limit (12,480 candidates searched, 1 undecided)" in words.headline(
        unsure
    )
    empty = replace(NOTHING, nearest=None, candidates=1)
    assert render.format_full(empty).startswith("No system meets every limit (1 candidate searched).\n")


def test_the_table_has_the_winner_the_runners_up_and_undecided_systems() -> None:
    columns, rows = render.answer_table(PLAIN)
    titles = [column.title for column in columns]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "6", "?"]
    first = dict(zip(titles, rows[0], strict=True))
    assert first["price $"] == "3,210"
    assert first["p99 limit 20 ms"] == "17.2\n16.8 to 17.9"
    assert first["verdict"] == "met"
    assert (first["at the limit /s"], first["headroom %"], first["bays"], first["W"]) == ("412", "37", "8", "75.2")
    assert rows[-1][titles.index("verdict")] == "undecided"
    assert "W" not in [column.title for column in render.answer_table(CLOUD)[0]]


def test_an_objective_without_a_column_has_one_of_its_own() -> None:
    columns, rows = render.answer_table(replace(PLAIN, objective="p99", unit="ms", best=replace(BEST, cost=17.23)))
    assert columns[3].title == "p99 ms"
    assert rows[0][3] == "17.2"


def test_prices_have_their_dates_and_sources() -> None:
    assert words.format_price_items(BEST)[0] == (
        "8 x exos-x18-18tb at $289 = $2,312 (2026-01-15, a shop's page, stored copy)"
    )
    assert words.format_price_items(CLOUD.runners_up[0])[0].startswith(
        "36 months of io1 2,000 GiB 4,500 IOPS, space at $434"
    )
    power = replace(BEST, parts=(Part("electricity", 1977.5, 0.117, "", "a rate of one's own", "kWh"),))
    assert words.format_price_items(power) == [
        "1,978 kWh of electricity at $0.117 = $231 (assumed, a rate of one's own)"
    ]


def test_why_one_was_not_chosen() -> None:
    slow = render.explain(PLAIN, SLOW.name)
    assert slow.startswith(f"{SLOW.name}: not chosen: p99 of 20 ms is not met\n  $2,632; p99 27.4 ms")
    dearer = render.explain(PLAIN, RUNNERS_UP[3].name.upper())
    assert f"it costs $708 more than {BEST.name}" in dearer
    assert "is undecided: the model's error reaches over" in render.explain(PLAIN, OPEN.name)
    assert "it is indistinguishable from the best; to decide: a twin" in render.explain(PLAIN, RUNNERS_UP[0].name)
    assert render.explain(PLAIN, BEST.name).startswith(f"{BEST.name}: chosen: $3,210; p99 17.2 ms")
    tied = replace(PLAIN, runners_up=(replace(RUNNERS_UP[2], cost=BEST.cost),), looked_at=())
    assert f"it costs the same as {BEST.name}" in render.explain(tied, RUNNERS_UP[2].name)


def test_words_of_a_name_find_all_that_have_them() -> None:
    lines = render.explain(PLAIN, "raid10 exos-x18-18tb").split("\n")
    assert [line.split(":")[0] for line in lines[::2]] == [
        "6 x exos-x18-18tb in raid10, md-raid6-12x16tb",
        "8 x exos-x18-18tb in raid10, md-raid6-12x16tb",
    ]
    assert render.explain(PLAIN, "raid6").split("\n")[-1].endswith("more systems have these words in their names")


def test_a_candidate_left_out_without_a_run_is_explained_if_its_name_was_kept() -> None:
    assert render.explain(PLAIN, "raid5") == (
        "4 x exos-x18-18tb in raid5, md-raid6-12x16tb: left out: survives too few failures (by stated properties)"
    )


def test_an_unknown_name_is_refused_with_the_closest() -> None:
    with pytest.raises(InputError) as refused:
        render.explain(PLAIN, "8 x exos-x18-18tb in raid7")
    text = str(refused.value)
    assert "\n" not in text
    assert "the closest is '8 x exos-x18-18tb in raid" in text
    assert "left out without a name: 5,120 too small, 2,495 survives too few failures, 48 no price" in text


def test_a_ticket_has_tables_and_stays_short() -> None:
    ticket = render.format_markdown(PLAIN)
    assert ticket.startswith("**Take 8 x exos-x18-18tb in raid6, md-raid6-12x16tb: \\$3,210; ")
    rows = [line for line in ticket.split("\n") if line.startswith("|")]
    assert "| exos-x18-18tb | \\$289 | 8 | 2,312 | 2026-01-15 | a shop's page, stored copy |" in rows
    assert "17.2 (16.8 to 17.9)" in rows[2]
    for answer in ALL.values():
        assert len(render.format_markdown(answer).splitlines()) <= render.LINES_MAX
    long = replace(
        FRONTIER,
        best=replace(FRONTIER.best or BEST, parts=BEST.parts * 20),
        frontier=FRONTIER.frontier * 9,
        undecided=(OPEN,) * 40,
        warnings=tuple(f"the price of d{n} is old" for n in range(500)),
        left_out=tuple(Reason(f"r{n}", 1, "stated") for n in range(90)),
        relaxed=tuple(Relaxed(f"c{n}=1ms", "2 ms", "x", 1.0, True) for n in range(50)),
        question=tuple(f"line {n}" for n in range(9)),
    )
    assert len(render.format_markdown(long).splitlines()) <= render.LINES_MAX
    assert "494 more" in render.format_markdown(long)


def test_a_ticket_reads_no_mark_up_into_names() -> None:
    ticket = render.format_markdown(replace(PLAIN, best=replace(BEST, name="a|b_c <d>"), warnings=("*old*",)))
    assert r"a\|b\_c &lt;d>" in ticket
    assert r"\*old\*" in ticket
    counts = {len(re.findall(r"(?<!\\)\|", line)) for line in ticket.splitlines()[4:13] if line.startswith("|")}
    assert len(counts) == 1


def test_the_answers_made_by_hand_are_as_the_search_gives_them() -> None:
    for answer in ALL.values():
        assert all(one.says == one.verdicts[0].says for one in answer.looked_at)
        costs = [one.cost for one in answer.looked_at]
        assert costs == sorted(costs)
    assert choices.BEST.headroom == pytest.approx(0.374, abs=1e-3)

"""Tables as text: what fits is shown, names stay whole, and what is left out is told."""

from __future__ import annotations

import io

import pytest

from headstack.io.columns import Column, Figures, Names, Prose, Words, drawn, folded, is_plain, width_of

COLUMNS = [Names("name"), Words("maker", 2), Figures("rate\nMB/s", 0), Figures("dies", 3), Prose("source", 1, least=10)]
ROWS = [
    ["a-long-name-of-a-drive", "Somebody Ltd.", "1,234.5", "8", "the data sheet, and a test of it"],
    ["b", "Another", "7.0", "", "known to all"],
]


def test_everything_is_shown_where_nobody_counts_columns() -> None:
    assert drawn(COLUMNS, ROWS) == (
        "                                          rate\n"
        "name                    maker             MB/s  dies  source\n"
        "───────────────────────────────────────────────────────────────────────────────────────\n"
        "a-long-name-of-a-drive  Somebody Ltd.  1,234.5     8  the data sheet, and a test of it\n"
        "b                       Another            7.0        known to all",
        [],
    )


def test_prose_is_folded_before_columns_are_left_out() -> None:
    table, left_out = drawn(COLUMNS, ROWS, 80)
    assert table == (
        "                                          rate\n"
        "name                    maker             MB/s  dies  source\n"
        "────────────────────────────────────────────────────────────────────────────────\n"
        "a-long-name-of-a-drive  Somebody Ltd.  1,234.5     8  the data sheet, and a\n"
        "                                                      test of it\n"
        "b                       Another            7.0        known to all"
    )
    assert left_out == []


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (65, ["name", "maker", "rate MB/s", "dies", "source"]),
        (64, ["name", "maker", "rate MB/s", "source"]),
        # What is next in rank is too wide, and what comes after it is not.
        (58, ["name", "rate MB/s", "dies", "source"]),
        (49, ["name", "rate MB/s", "source"]),
        (38, ["name", "rate MB/s", "dies"]),
        # What is always shown is shown although it does not fit.
        (20, ["name", "rate MB/s"]),
    ],
)
def test_columns_are_shown_by_rank_as_far_as_there_is_room(width: int, shown: list[str]) -> None:
    table, left_out = drawn(COLUMNS, ROWS, width)
    assert [column.title for column in COLUMNS if column.title not in left_out] == shown
    assert all(name in table for name, *_ in ROWS)
    assert width == 20 or max(map(len, table.splitlines())) <= width


def test_words_are_never_broken() -> None:
    for width in range(1, 60):
        table, _ = drawn([Names("name"), Prose("told", 0)], [["x", "well-known, at /dev/disk/by-id/wwn-0x5000"]], width)
        assert {"well-known,", "at", "/dev/disk/by-id/wwn-0x5000"} <= set(table.split())
    assert folded("one two", 1) == ["one", "two"]
    assert folded("", 5) == [""]


def test_headings_alone_are_bold() -> None:
    table, _ = drawn([Names("name"), Figures("a\nb")], [["x", "1"]], None, bold=True)
    assert table.splitlines() == ["\x1b[1m      a\x1b[0m", "\x1b[1mname  b\x1b[0m", "────────", "x     1"]


def test_a_column_without_a_heading_has_a_title() -> None:
    assert Column("").title == "remarks"


def test_a_file_has_no_width() -> None:
    assert width_of(io.StringIO()) is None
    assert is_plain(io.StringIO())

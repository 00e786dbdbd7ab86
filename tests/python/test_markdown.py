"""Reports for tickets: the answer first, tables that GitHub reads, and what the figures were made by."""

from __future__ import annotations

import re
from pathlib import Path

import headstack as hs
from conftest import CHEETAH, Headstack
from headstack.report.figures import Axis, Claim, Lines, Report, Section, Series, Table
from headstack.report.markdown import REMARKS_MAX, ROWS_MAX, to_markdown


def test_a_ticket_begins_with_the_answer_and_says_how_to_come_by_it() -> None:
    results = hs.run([CHEETAH, "970-evo-1tb"], depth=[1, 4], requests=2000)
    report = results.report()
    lines = to_markdown(report).splitlines()
    assert lines[0] == f"**{report.summary}**"
    shown = [figure for section in report.sections for figure in section.figures if figure.says]
    assert [line for line in lines if line.startswith("- ")][: len(shown)] == [f"- {f.title}: {f.says}" for f in shown]
    runs = dict.fromkeys(f"{run.system} `{run.description_hash[:12]}` seed 1" for run in report.runs)
    assert lines[-1] == f"headstack {report.version}: {', '.join(runs)}"
    table = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    heads = table[0]
    mean = heads.index("mean ms")
    assert table[1][mean] == "---:"
    assert [row[mean].strip() for row in table[2:]] == [f"{row['mean_ms']:.2f}" for row in results]


def test_no_text_of_a_ticket_is_mark_up_and_long_ones_end() -> None:
    table = Table("t", "T", ["a|b", "n", "empty"], [[f"<i>_{n}_", n / 3, None] for n in range(ROWS_MAX + 5)])
    remarks = "\n\n".join(f"Remark {n}." for n in range(REMARKS_MAX + 2))
    curve = Lines("c", "C", Axis("x"), Axis("y"), [Series("s", [1], [2])])
    report = Report("R", "why *so*?", "First.\n\nSecond.", [Section("S", "", [curve, table])], remarks=remarks)
    text = to_markdown(report)
    assert text.startswith("**First.**\n\nSecond.\n\nQuestion: why \\*so\\*?\n")
    assert "| a\\|b | n |\n| :--- | ---: |\n| &lt;i>\\_0\\_ | 0 |\n| &lt;i>\\_1\\_ | 0.3333 |\n" in text
    assert "5 more rows" in text
    assert text.count("- Remark") == REMARKS_MAX
    assert text.endswith("- and 2 more remarks\n\nheadstack\n")


def test_a_study_tells_its_claims() -> None:
    claims = [Claim("A1", "It does", "predicted", "Yes."), Claim("A2", "It does not", "missed", "No.")]
    text = to_markdown(Report("R", "", "Two claims.", claims=claims))
    assert "| A1 | It does | predicted |\n| A2 | It does not | missed |" in text


def test_commands_write_tickets(headstack: Headstack, tmp_path: Path) -> None:
    short = ("--requests", "300", "-q")
    commands = [
        ("curve", CHEETAH, "--depth", "1,4", *short, "--json", "r.json"),
        ("compare", "r.json", "atlas-10k-iii-73", "-q"),
        ("sweep", CHEETAH, "--depth", "1,4", "-q"),
        ("run", CHEETAH, "--depth", "2", *short, "--record", "t.parquet"),
        ("trace", "replay", "t.parquet", CHEETAH, "-q"),
        ("trace", "analyze", "t.parquet", "-q"),
        ("measure", "zones", CHEETAH, "--positions", "4", "--accesses", "5", "-q"),
    ]
    for number, command in enumerate(commands):
        done = headstack(*command, "--markdown", f"{number}.md")
        assert done.returncode == 0, done.stderr
        text = (tmp_path / f"{number}.md").read_text(encoding="utf-8")
        assert re.match(r"\*\*[^\n]{20,}\*\*\n", text), text
    done = headstack("run", CHEETAH, *short, "--markdown", "-")
    assert done.stdout.startswith(f"**{CHEETAH} serves ")

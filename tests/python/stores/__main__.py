"""`make crash-stores`: tries the cases of the table, and holds what is seen against what has to be.

Prints a line for each case, and a row as `make validate` collects them. Exits with 1 where a case is not as expected.
"""

from __future__ import annotations

import argparse
import json
import sys

import headstack as hs
from stores import outside
from stores.cases import Case, cases
from stores.exploring import Outcome, lacks_of, tried, tried_for

LEAST_MAX = 3
"""A forgotten flush is visible with one missing write, or a few."""


def line(outcome: Outcome) -> str:
    """Formats the result of a case."""
    possible = "more than can be counted" if outcome.possible is None else f"{outcome.possible:.2g}"
    least = "" if outcome.least is None else f" of {outcome.least} writes and more"
    recorded = f"{outcome.recording_s:.1f} s for {outcome.recordings} recordings"
    kinds = ", ".join(f"{kind} {count}" for kind, count in outcome.kinds.most_common())
    return (
        f"{outcome.case.name:12} {outcome.verdict:12} {outcome.states:6} states of {possible},"
        f" largest window {outcome.largest_window}, {len(outcome.findings)} findings{least},"
        f" {outcome.seconds:.0f} s ({recorded})  {outcome.case}  {kinds}"
    )


def rows(outcome: Outcome) -> list[str]:
    """Returns rows for `make validate`: unexpected kinds, and the minimum number of missing writes."""
    case, seen = outcome.case, set(outcome.kinds)
    wrong = len(seen - case.must - case.may) + len(case.must - seen)
    told = [("kinds that are not as expected", wrong, "kinds", 0)]
    if outcome.least is not None:
        told.append(("missing writes that it takes", outcome.least, "writes", LEAST_MAX))
    return [
        "row: "
        + json.dumps(
            {
                "name": f"crash test {case.name}, {case}: {what}",
                "value": value,
                "unit": unit,
                "bar": bar,
                "bar_is": "at most",
                "bar_met": value <= bar,
            }
        )
        for what, value, unit, bar in told
    ]


def lacking(case: Case) -> str | None:
    """Returns a requirement of a case that this machine lacks, after its store is built."""
    try:
        if case.program.run is None:
            outside.build(case.store)
    except hs.RunError as error:
        return str(error)
    return lacks_of(case)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make crash-stores", description=__doc__)
    parser.add_argument(
        "--budget", help="for the states of each case, a time or a number; its own, mostly 10s, by default"
    )
    parser.add_argument("--states", type=int, help="so many of each case, of as many recordings as that takes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--until-seen", action="store_true", help="end a case when all was seen that has to be")
    parser.add_argument("--list", action="store_true", help="print the cases")
    parser.add_argument("names", nargs="*", metavar="CASE", help="of tests/python/stores/cases.toml; all by default")
    asked = parser.parse_args()
    unknown = set(asked.names) - {case.name for case in cases()}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    if asked.list:
        print("\n".join(case.name for case in cases()))
        return 0
    unexpected = []
    for case in cases():
        if asked.names and case.name not in asked.names:
            continue
        if (lack := lacking(case)) is not None:
            print(f"{case.name:12} skipped: {lack}", flush=True)
            continue
        if asked.states is not None:
            outcome = tried_for(case, asked.states, asked.seed)
        else:
            outcome = tried(case, asked.budget or case.budget, asked.seed, asked.until_seen)
        print("\n".join([line(outcome), *rows(outcome)]), flush=True)
        if not outcome.is_as_expected:
            unexpected.append(case.name)
    if unexpected:
        print(f"not as expected: {', '.join(unexpected)}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())

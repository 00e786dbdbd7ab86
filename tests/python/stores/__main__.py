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
from stores.exploring import Outcome, lacks_of, tried


def line(outcome: Outcome) -> str:
    """What became of a case."""
    possible = "more than can be counted" if outcome.possible is None else f"{outcome.possible:.2g}"
    kinds = ", ".join(f"{kind} {count}" for kind, count in outcome.kinds.most_common())
    return (
        f"{outcome.case.name:12} {outcome.verdict:12} {outcome.states:6} states of {possible},"
        f" largest window {outcome.largest_window}, {outcome.findings} findings,"
        f" {outcome.seconds:.0f} s ({outcome.recording_s:.1f} s recording)  {outcome.case}  {kinds}"
    )


def row(outcome: Outcome) -> str:
    """As `make validate` reads it: kinds that were seen and should not be, or should be and were not."""
    case, seen = outcome.case, set(outcome.kinds)
    wrong = len(seen - case.must - case.may) + len(case.must - seen)
    name = f"crash test {case.name}, {case}: kinds that are not as expected"
    return "row: " + json.dumps(
        {"name": name, "value": wrong, "unit": "kinds", "bar": 0, "bar_is": "at most", "bar_met": wrong == 0}
    )


def lacking(case: Case) -> str | None:
    """What this machine lacks of what a case needs, once its store is built."""
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
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", metavar="CASE", help="of tests/python/stores/cases.toml; all by default")
    asked = parser.parse_args()
    unknown = set(asked.names) - {case.name for case in cases()}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    unexpected = []
    for case in cases():
        if asked.names and case.name not in asked.names:
            continue
        if (lack := lacking(case)) is not None:
            print(f"{case.name:12} skipped: {lack}", flush=True)
            continue
        outcome = tried(case, asked.budget or case.budget, asked.seed)
        print(f"{line(outcome)}\n{row(outcome)}", flush=True)
        if not outcome.is_as_expected:
            unexpected.append(case.name)
    if unexpected:
        print(f"not as expected: {', '.join(unexpected)}")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())

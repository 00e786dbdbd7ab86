"""Minimizes failing states: which missing, surviving and torn writes are needed, and the earliest crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headstack.crash.states import CrashState, TornWrite

    Fails = Callable[[CrashState], bool]


def minimize(
    state: CrashState, open_after: Callable[[int], list[int]], event_of: Callable[[int], int], fails: Fails
) -> CrashState:
    """Returns the state with the fewest missing and torn writes, at the earliest crash, that still fails."""
    least = state
    # A torn write is only reported if no missing write explains the failure.
    for torn in list(least["torn"]):
        whole = least | {"torn": [write for write in least["torn"] if write is not torn]}
        absent = whole | {"missing": sorted([*least["missing"], torn["change"]])}
        least = next((easier for easier in (whole, absent) if fails(easier)), least)
    if least["missing"]:
        least = least | {"missing": ddmin(least["missing"], lambda missing: fails(least | {"missing": missing}))}
    for torn in least["torn"]:
        fuller = least_torn(least, torn, fails)
        least = least | {"torn": [fuller if write is torn else write for write in least["torn"]]}
    return earliest(least, event_of, fails)


def needed(state: CrashState, open_after: Callable[[int], list[int]], fails: Fails) -> list[int]:
    """Returns the open writes that must be present for a minimal state to fail: the others may be missing as well."""
    gone = {*state["missing"], *(torn["change"] for torn in state["torn"])}
    surviving = [change for change in open_after(state["events"]) if change not in gone]

    def only(kept: Sequence[int]) -> CrashState:
        return state | {"missing": sorted({*state["missing"], *surviving} - set(kept))}

    return ddmin(surviving, lambda kept: fails(only(kept)))


def ddmin(changes: Sequence[int], fails: Callable[[list[int]], bool]) -> list[int]:
    """Returns a failing subset from which nothing can be left out (Zeller's delta debugging)."""
    left = list(changes)
    if not left or fails([]):
        return []
    parts = 2
    while len(left) >= 2:
        size = -(-len(left) // parts)
        chunks = [left[at : at + size] for at in range(0, len(left), size)]
        smaller = next((chunk for chunk in chunks if fails(chunk)), None)
        if smaller is not None:
            left, parts = smaller, 2
            continue
        rests = ([change for change in left if change not in set(chunk)] for chunk in chunks) if parts > 2 else ()
        smaller = next((rest for rest in rests if fails(rest)), None)
        if smaller is not None:
            left, parts = smaller, max(parts - 1, 2)
        elif parts >= len(left):
            break
        else:
            parts = min(2 * parts, len(left))
    return left


def least_torn(state: CrashState, torn: TornWrite, fails: Fails) -> TornWrite:
    """Returns a torn write with as much as possible present."""

    def with_kept(kept: list[list[int]]) -> CrashState:
        others = [torn | {"kept": kept} if write is torn else write for write in state["torn"]]
        return state | {"torn": others}

    best = torn["kept"]
    # Gaps between present parts are closed one by one.
    gaps = list(zip([0, *(end for _, end in best)], [begin for begin, _ in best], strict=False))
    for begin, end in gaps:
        if begin < end:
            closed = merge_runs([*best, [begin, end]])
            best = closed if fails(with_kept(closed)) else best
    return torn | {"kept": best}


def merge_runs(runs: list[list[int]]) -> list[list[int]]:
    """Merges adjacent sorted runs."""
    whole: list[list[int]] = []
    for begin, end in sorted(runs):
        if whole and begin <= whole[-1][1]:
            whole[-1][1] = max(end, whole[-1][1])
        else:
            whole.append([begin, end])
    return whole


def earliest(state: CrashState, event_of: Callable[[int], int], fails: Fails) -> CrashState:
    """Returns the state at the earliest crash at which the check fails, by bisection; assumes that all later crashes
    fail."""
    changes = [*state["missing"], *(torn["change"] for torn in state["torn"])]
    if not changes:
        return state
    # Each named write must have been sent.
    low, high = 1 + max(event_of(change) for change in changes), state["events"]
    while low < high:
        middle = (low + high) // 2
        if fails(state | {"events": middle}):
            high = middle
        else:
            low = middle + 1
    return state | {"events": high}

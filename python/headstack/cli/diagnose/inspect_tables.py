"""The tables of ``headstack inspect``."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from headstack._native import format_bytes
from headstack.cli.answers import answer_of_devices
from headstack.cli.output import print_notes_of, print_table, say
from headstack.diagnosis.inspection.catalogued import entry_of, recording_of
from headstack.diagnosis.inspection.diff import MEANINGS, Difference, Divider
from headstack.diagnosis.inspection.history import Change
from headstack.diagnosis.inspection.model import Inspection
from headstack.diagnosis.inspection.raw import decode
from headstack.diagnosis.inspection.trends import Trend, has_moved, trends
from headstack.diagnosis.inspection.verdict import PASS, SILENT_FAILURES, UNKNOWN, Judgement, judge
from headstack.io.columns import Figures, Names, Prose, Words
from headstack.results.words import number


def print_all(devices: list[list[Inspection]], everything: bool) -> None:
    """Prints the answer, each device, and then each note that several devices share once."""
    say(f"{answer_of_devices([snapshots[-1] for snapshots in devices])}\n")
    kinds = [note_kinds(snapshots[-1]) for snapshots in devices]
    counts = Counter(kind for own_kinds in kinds for kind in own_kinds)
    for index, (snapshots, own_kinds) in enumerate(zip(devices, kinds, strict=True)):
        print("\n" if index else "", end="")
        print_device(snapshots, everything, [note for kind, note in own_kinds.items() if counts[kind] == 1])
    common = [kind for kind, count in counts.items() if count > 1]
    if common:
        print()
    notes = []
    for kind in common:
        names = [snapshots[-1].name for snapshots, own_kinds in zip(devices, kinds, strict=True) if kind in own_kinds]
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        notes.append(f"{kind} ({', '.join(names[:NAMED])}{more})")
    print_notes_of(notes)


NAMED = 3
"""Maximum number of devices to name after a shared note."""


def note_kinds(device: Inspection) -> dict[str, str]:
    """Returns the notes of a device by kind, which is the text of a note without the name of the device."""
    notes = list(device.notes)
    if judge(device).verdict == PASS and not device.is_solid_state:
        notes.append(SILENT_FAILURES)
    own_names = {device.name, *(text.partition(": ")[2] for text in device.read_from)} - {""}
    kinds = {}
    for note in notes:
        kind = note
        for name in sorted(own_names, key=len, reverse=True):
            kind = kind.replace(f"{name}: ", "").replace(name, "the device")
        kinds[kind] = note
    return kinds


def print_device(snapshots: list[Inspection], everything: bool, notes: Iterable[str]) -> None:
    """Prints the latest snapshot of a device, its trends over earlier snapshots, and its own notes."""
    device = snapshots[-1]
    print(device.label)
    say(f"read from: {', '.join(device.read_from)}")
    print()
    _print_pairs(identity_lines(device))
    print_judgement(device)
    print_attributes(device)
    print_health(device)
    print_capabilities(device, everything)
    if len(snapshots) > 1:
        say(f"\n{len(snapshots)} snapshots:")
        print_trends(trends(snapshots))
    print_notes_of(list(notes))


def _print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    shown = list(pairs)
    width = max((len(name) for name, _ in shown), default=0)
    for name, text in shown:
        say(f"{name.ljust(width)}  {text}")


def identity_lines(device: Inspection) -> list[tuple[str, str]]:
    """Returns labels and values of the identity of a device."""
    identity = device.identity
    rotation = {None: None, 0: "none: solid state"}.get(identity.rpm, f"{identity.rpm:,} rpm" if identity.rpm else None)
    blocks = [
        f"{size:,} bytes {kind}"
        for size, kind in ((identity.logical_block_bytes, "logical"), (identity.physical_block_bytes, "physical"))
        if size
    ]
    speeds = [
        f"{speed:g} Gb/s {kind}"
        for speed, kind in ((identity.interface_max_gbps, "at most"), (identity.interface_now_gbps, "negotiated"))
        if speed
    ]
    capacity = identity.capacity_bytes
    lines = [
        ("model", identity.model),
        ("family", identity.family),
        ("serial number", identity.serial),
        ("firmware", identity.firmware),
        ("WWN", identity.wwn),
        ("capacity", None if capacity is None else f"{format_bytes(min(capacity, 2**63 - 1))} ({capacity:,} bytes)"),
        ("rotation", rotation),
        ("recording", recording_of(device)),
        (
            "catalogue",
            None if (entry := entry_of(identity)) is None else f"{entry.id} (headstack catalog drives show {entry.id})",
        ),
        ("form factor", identity.form_factor),
        ("protocol", identity.protocol),
        ("interface", ", ".join(([identity.interface] if identity.interface else []) + speeds) or None),
        ("blocks", ", ".join(blocks) or None),
        ("taken", _format_time(device.taken_unix_s)),
    ]
    return [(name, text) for name, text in lines if text]


def _format_time(unix_s: int | None) -> str | None:
    if unix_s is None:
        return None
    try:
        return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{unix_s} s"


def print_judgement(device: Inspection) -> None:
    """Prints the verdict with its reasons, then the summary that a warranty claim needs."""
    judgement = judge(device)
    say(f"\nverdict: {judgement.verdict}")
    for reason in judgement.reasons:
        say(f"  {'note' if reason.verdict == PASS else reason.verdict}: {reason.finding}")
    lines = summary_lines(judgement)
    if lines and judgement.verdict != UNKNOWN:
        print()
        _print_pairs(lines)


def summary_lines(judgement: Judgement) -> list[tuple[str, str]]:
    """Returns labels and values of the summary, without missing values."""
    summary = judgement.summary
    written, share = summary.written_bytes, summary.written_of_capacity
    test, hours = summary.last_self_test, summary.last_self_test_hours
    cycles = [
        f"{count:,} {kind}"
        for count, kind in (
            (summary.power_cycles, "power"),
            (summary.start_stop_cycles, "start-stop"),
            (summary.load_cycles, "load"),
        )
        if count is not None
    ]
    lines = [
        ("power-on hours", None if summary.power_on_hours is None else f"{summary.power_on_hours:,}"),
        ("cycles", ", ".join(cycles) or None),
        (
            "written",
            None
            if written is None
            else f"{written / 1e12:,.2f} TB" + ("" if share is None else f" ({share:,.2f} times the capacity)"),
        ),
        ("endurance used", None if summary.endurance_used_percent is None else f"{summary.endurance_used_percent} %"),
        ("temperature", None if summary.temperature_celsius is None else f"{summary.temperature_celsius} °C"),
        ("last self-test", None if test is None else test + ("" if hours is None else f", at {hours:,} h")),
    ]
    return [(name, text) for name, text in lines if text]


def print_attributes(device: Inspection) -> None:
    """Prints the SMART table with decoded raw values."""
    if not device.attributes:
        return
    rows = [
        [
            str(attribute.id),
            attribute.name,
            *(
                "" if figure is None else str(figure)
                for figure in (attribute.value, attribute.worst, attribute.threshold)
            ),
            "pre-failure" if attribute.prefailure else "old age",
            attribute.when_failed,
            decode(attribute, device.identity).text,
        ]
        for attribute in device.attributes
    ]
    print()
    columns = [
        Figures("id", 3),
        Names("attribute"),
        Figures("value", 0),
        Figures("worst", 1),
        Figures("threshold", 0),
        Words("kind", 2),
        Words("failed", 0),
        Prose("raw", 0),
    ]
    print_table(columns, rows)


def print_health(device: Inspection) -> None:
    """Prints the NVMe log, or the error counters of a SAS drive."""
    log, sas = device.nvme, device.sas
    if log is not None:
        print()
        named = ((name, getattr(log, name)) for name in log.__dataclass_fields__)
        _print_pairs((name.replace("_", " "), f"{value:,}") for name, value in named if value is not None)
    if sas is None:
        return
    rows = [
        [
            way,
            *("" if figure is None else f"{figure:,}" for figure in (counter.corrected, counter.uncorrected)),
            "" if counter.processed_bytes is None else f"{counter.processed_bytes / 1e12:,.2f}",
        ]
        for way in ("read", "write", "verify")
        if (counter := getattr(sas, way)) is not None
    ]
    print()
    if rows:
        columns = [Names("errors"), Figures("corrected"), Figures("uncorrected", 0), Figures("processed TB", 2)]
        print_table(columns, rows)
    if sas.grown_defects is not None:
        say(f"grown defects: {sas.grown_defects:,}")
    if sas.non_medium_errors is not None:
        say(f"non-medium errors: {sas.non_medium_errors:,}")


def print_capabilities(device: Inspection, everything: bool) -> None:
    """Prints features and settings; settings of the kernel's queue only if requested."""
    shown = {
        key: capability
        for key, capability in device.capabilities.items()
        if everything
        or not (capability.source == "sysfs" and capability.name.startswith("queue/"))
        or key in ("write_cache", "scheduler", "nr_requests", "rotational", "zoned", "kernel_discard")
    }
    if shown:
        print()
        rows = [[key, c.state, c.source, c.name] for key, c in shown.items()]
        print_table([Names("feature"), Prose("state", 0), Words("from", 3), Prose("name in source", 2)], rows)
    left_out = len(device.capabilities) - len(shown)
    if left_out:
        say(f"{left_out} more kernel queue settings: add --all")
    minutes, capacity = device.capabilities.get("erase_minutes"), device.identity.capacity_bytes
    if minutes is not None and isinstance(minutes.value, int) and minutes.value and capacity:
        rate = capacity / (minutes.value * 60) / 1e6
        say(f"an erase in {minutes.value:,} min is {rate:,.0f} MB/s on average over the whole surface")


def print_trends(trends: list[Trend]) -> None:
    """Prints changed figures with their rate of change and forecast."""
    rows = [
        [
            trend.key,
            f"{trend.first:,.6g}",
            f"{trend.last:,.6g}",
            str(trend.points),
            "" if trend.per_1000_hours is None else f"{trend.per_1000_hours:+,.3g}",
            "" if trend.plus_minus is None else f"±{number(trend.plus_minus)}",
            "" if trend.threshold is None else f"{trend.threshold:g}",
            trend.says,
        ]
        for trend in trends
        if has_moved(trend)
    ]
    if not rows:
        say("no monitored value has changed")
        return
    columns = [
        Names("figure"),
        Figures("first", 3),
        Figures("last", 0),
        Figures("points", 4),
        Figures("per 1,000 h", 0),
        Figures("95 %\ninterval", 2),
        Figures("threshold", 1),
        Prose("threshold reached", 0),
    ]
    print_table(columns, rows)


def print_devices(recorded: list[list[Inspection]]) -> None:
    """Prints one row per recorded device."""
    rows = [
        [
            snapshots[-1].identity.serial or "",
            snapshots[-1].identity.model or "",
            str(len(snapshots)),
            _format_time(snapshots[0].taken_unix_s) or "",
            _format_time(snapshots[-1].taken_unix_s) or "",
            judge(snapshots[-1]).verdict,
        ]
        for snapshots in recorded
    ]
    columns = [
        Names("serial number"),
        Words("model"),
        Figures("snapshots", 2),
        Words("first", 3),
        Words("last", 1),
        Words("verdict", 0),
    ]
    print_table(columns, rows)


def print_history(snapshots: list[Inspection], changes: list[Change], trends: list[Trend]) -> None:
    """Prints changes between the snapshots of a device, and its trends."""
    first, last = snapshots[0], snapshots[-1]
    print(last.label)
    say(f"{len(snapshots)} snapshots, {_format_time(first.taken_unix_s)} to {_format_time(last.taken_unix_s)}")
    print()
    rows = [
        [
            _format_time(change.taken_unix_s) or "",
            "" if change.power_on_hours is None else f"{change.power_on_hours:,}",
            change.property_name,
            change.before,
            change.after,
        ]
        for change in changes
    ]
    if rows:
        columns = [Names("taken"), Figures("power-on hours"), Names("what"), Prose("before", 0), Prose("after", 0)]
        print_table(columns, rows)
    else:
        say("nothing changed")
    print()
    print_trends(trends)
    print_judgement(last)
    if SILENT_FAILURES in note_kinds(last):
        say(SILENT_FAILURES)


def print_difference(difference: Difference, everything: bool) -> None:
    """Prints features side by side, then the features that separate the sides, and caveats."""
    devices = difference.devices
    sides = ["good"] * len(difference.good) + ["bad"] * len(difference.bad) + [""] * len(difference.others)
    columns = [
        Names("feature"),
        *(
            Prose(f"{side}\n{device.identity.model or device.name}")
            for side, device in zip(sides, devices, strict=True)
        ),
    ]
    rows = [row for row in difference.rows() if everything or row.differs]
    if rows:
        print_table(columns, [[row.key, *row.states] for row in rows])
    else:
        say("the devices agree in everything that all of them report")
    print_dividers(difference)
    print_one_sided(difference)
    caveats = difference.caveats()
    if caveats:
        print()
    for caveat in caveats:
        say(f"note: {caveat}")


def print_dividers(difference: Difference) -> None:
    """Prints the features that separate the sides, and the features that nearly do."""
    if not (difference.good and difference.bad):
        return
    exact, nearly = difference.dividers()
    say(
        f"\nfeatures that separate {len(difference.good)} good from {len(difference.bad)} bad devices: "
        f"{len(exact) or 'none'}"
    )
    for divider in exact:
        say(f"  {_format_divider(divider)}")
    if nearly:
        say(f"\nfeatures that nearly separate them: {len(nearly)}")
    for divider in nearly:
        say(f"  {_format_divider(divider)}; except {', '.join(divider.exceptions)}")


def _format_divider(divider: Divider) -> str:
    meaning = f" [{divider.meaning}]" if divider.meaning else ""
    return f"{divider.key} ({divider.name}): {divider.how}{meaning}"


def print_one_sided(difference: Difference) -> None:
    """Prints the findings from devices of only one side."""
    one_sided = difference.one_sided()
    if one_sided is None:
        return
    side, other = one_sided.side, "bad" if one_sided.side == "good" else "good"
    say(f"\nonly {side} devices are listed, so no feature can be shown to separate {side} from {other} devices")
    parts = (
        (f"ruled out, because the {side} devices differ", one_sided.ruled_out),
        (
            f"still possible: all {side} devices have it; check that no {other} device does",
            one_sided.if_missing_elsewhere,
        ),
        (f"of these, off in every {side} device when listed", one_sided.off),
        (f"still possible: no {side} device has it; check that all {other} devices do", one_sided.if_present_elsewhere),
    )
    for title, keys in parts:
        say(f"  {title}:")
        print(textwrap.fill(", ".join(keys) or "none", 116, initial_indent="    ", subsequent_indent="    "))
    for key in (*one_sided.if_missing_elsewhere, *one_sided.if_present_elsewhere):
        if key in MEANINGS:
            say(f"  {key}: {MEANINGS[key]}")
    say(f"  to decide: run hdparm -I on a {other} device, and add it with --{other}")

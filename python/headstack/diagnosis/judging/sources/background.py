"""Readers of work in the background: /proc/mdstat, ``zpool status``, ``ceph -s``."""

from __future__ import annotations

import re

from headstack.diagnosis.judging.suspects.statements import Statement

MDSTAT = re.compile(r"^md\w+ : (?:active|inactive)", re.MULTILINE)
MD_ARRAY = re.compile(r"^(md\w+) : (.*?)(?=^md\w+ : |^unused devices|\Z)", re.MULTILINE | re.DOTALL)
MD_WORK = re.compile(
    r"(check|resync|recovery|reshape|repair)\s*=\s*(\d+(?:\.\d+)?)%.*?(?:finish=(\d+(?:\.\d+)?)min)?\s*(?:speed=(\d+)K/sec)?\s*$",
    re.MULTILINE,
)
MD_FAILED = re.compile(r"\[[U_]*_[U_]*\]|\(F\)")
ZPOOL_STATUS = re.compile(r"^\s*pool:\s+\S+.*?^\s*state:", re.MULTILINE | re.DOTALL)
ZPOOL_WORK = re.compile(r"scan:\s+(scrub|resilver) in progress.*?(?=^\s*\w+:|\Z)", re.MULTILINE | re.DOTALL)
ZPOOL_DISK = re.compile(
    r"^\s+(\S+)\s+(ONLINE|DEGRADED|FAULTED|UNAVAIL|OFFLINE|REMOVED)\s+(\d+)\s+(\d+)\s+(\d+)(.*)$", re.MULTILINE
)
CEPH_STATUS = re.compile(r"^\s*(?:cluster:|health:? HEALTH_(?:OK|WARN|ERR)|HEALTH_(?:OK|WARN|ERR)\b)", re.MULTILINE)
CEPH_WORK = (
    ("scrub", re.compile(r"(\d+)\s+active\+clean\+scrubbing\S*")),
    ("recovery", re.compile(r"^\s*recovery:\s*(.+)$|recovery io (.+)$", re.MULTILINE)),
    ("backfill", re.compile(r"(\d+)\s+active\S*(?:backfilling|recovering)\S*")),
    ("snapshot trim", re.compile(r"(\d+)\s+active\S*snaptrim\S*")),
)
CEPH_SLOW = re.compile(r"\d+ slow ops[^\n]*|[^\n]*BLUESTORE_SLOW_OP_ALERT[^\n]*|\d+ OSD\(s\) experiencing slow[^\n]*")
RUNNING = 3.5
"""Log-likelihood ratio of other work that is reported as running: with equal chances before, 87 % of all suspects."""
DISKS = "iostat -x 5 of the same time, for rates and latencies of the disks"


def mdstat(text: str, name: str) -> list[Statement]:
    """Reads /proc/mdstat."""
    stated = []
    for array, of in MD_ARRAY.findall(text):
        members = re.findall(r"([\w/-]+)\[\d+\]", of)
        on = f" on {', '.join(members[:4])}{' and more' if len(members) > 4 else ''}" if members else ""
        if work := MD_WORK.search(of):
            speed = f" at {int(work[4]) / 1e3:,.0f} MB/s a member" if work[4] else ""
            evidence = f"{work[1]} of {array} is running{on}: {work[2]} % done{speed}"
            stated.append(Statement(array, evidence, {"neighbour": RUNNING}, True, "mdstat", DISKS))
        elif MD_FAILED.search(of):
            evidence = f"{array} runs without a member: reads reconstruct its data"
            stated.append(Statement(array, evidence, {"device": 0.7}, True, "mdstat", DISKS))
        else:
            stated.append(
                Statement(array, f"no check, resync or rebuild of {array} is running", {}, True, "mdstat", DISKS)
            )
    return stated or [Statement(name, "no array", source="mdstat", needed=DISKS)]


def zpool_status(text: str, name: str) -> list[Statement]:
    """Reads ``zpool status``: scrubs, resilvers, trims, and errors of disks."""
    pools = re.split(r"(?=^\s*pool:\s)", text, flags=re.MULTILINE)
    stated = []
    for of in pools:
        if (match := re.search(r"^\s*pool:\s+(\S+)", of, re.MULTILINE)) is None:
            continue
        pool, statements = match[1], []
        if (work := ZPOOL_WORK.search(of)) and "paused" not in work[0]:
            done = re.search(r"[\d.,]+% done", work[0])
            evidence = f"a {work[1]} of {pool} is running{': ' + done[0] if done else ''}"
            statements.append(Statement(pool, evidence, {"neighbour": RUNNING}, True, "zpool status", DISKS))
        if busy := re.search(
            r"\((?:trimming|initializing|\d+% (?:trimmed|initialized), started)|(?:currently )?\btrimming\b", of
        ):
            evidence = f"disks of {pool} are being trimmed or initialized ({busy[0].lstrip('(')})"
            statements.append(Statement(pool, evidence, {"neighbour": 2.5}, True, "zpool status", DISKS))
        for disk, state, *errors, rest in ZPOOL_DISK.findall(of):
            if disk != pool and (any(map(int, errors)) or state == "FAULTED"):
                evidence = (
                    f"{disk} is {state} with {errors[0]} read, {errors[1]} write and {errors[2]} checksum errors{rest}"
                )
                needed = f"headstack inspect /dev/{disk}"
                statements.append(Statement(disk, evidence.strip(), {"device": 2.5}, False, "zpool status", needed))
        idle = Statement(pool, f"no scrub, resilver or trim of {pool} is running", {}, True, "zpool status", DISKS)
        stated += statements or [idle]
    return stated or [Statement(name, "no pool", source="zpool status", needed=DISKS)]


def ceph_status(text: str, name: str) -> list[Statement]:
    """Reads ``ceph -s`` and ``ceph health detail``."""
    stated = []
    for title, pattern in CEPH_WORK:
        if match := pattern.search(text):
            evidence = f"{title} is running in the cluster ({' '.join(match[0].split())})"
            stated.append(
                Statement(name, evidence, {"neighbour": RUNNING if title != "scrub" else 2.5}, True, "ceph -s")
            )
    if slow := CEPH_SLOW.search(text):
        needed = "ceph osd perf every 10 s, to see which OSDs are slow"
        evidence = " ".join(slow[0].split())
        stated.append(Statement(name, evidence, {"none": -2.0}, True, "ceph -s", needed))
    if not stated:
        needed = "ceph osd perf every 10 s, and iostat -x 5 of the host of the OSD"
        stated.append(Statement(name, "no scrub or recovery is running in the cluster", {}, True, "ceph -s", needed))
    return stated

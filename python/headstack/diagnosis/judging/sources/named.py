"""Layouts that show no rates of disks over time: each is named, with the input to give instead."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from headstack.diagnosis.judging.suspects.statements import Statement

IOSTAT = "iostat -x 5 while the trouble lasts"
WHO = f"pidstat and iotop show who asks, not how long it takes; {IOSTAT}"


class Layout(NamedTuple):
    """The output of a program that decides nothing by itself."""

    name: str
    title: str
    pattern: re.Pattern[str]
    instead: str

    def statements(self, text: str, name: str) -> list[Statement]:
        """Names the layout."""
        evidence = f"{self.title} shows no rates of disks over time"
        return [Statement(name, evidence, source=self.title, needed=self.instead)]


def _line(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def heading(text: str) -> list[str] | None:
    """Returns the column names of a text that is a table of an unknown program; ``None`` for other texts."""
    lines = [line.split() for line in text.splitlines()[:20] if line.strip()]
    for names, values in pairwise(lines):
        is_heading = len(names) >= 3 and not any(map(FIGURE.fullmatch, names))
        if is_heading and len(values) == len(names) and sum(map(bool, map(FIGURE.fullmatch, values))) > len(names) / 2:
            return names
    return None


def columns(text: str, name: str) -> list[Statement]:
    """Names the columns of an unknown table."""
    shown = ", ".join(heading(text) or [])
    needed = (
        'the table as CSV, with the meanings of its columns in --columns, such as "disk=NAME,time=NAME:s,every=15s"'
    )
    return [Statement(name, f"a table of an unknown program with the columns {shown}", source="table", needed=needed)]


FIGURE = re.compile(r"-?\d+(?:[.,]\d+)?%?")
LAYOUTS = (
    Layout("fio-json", "fio JSON", _line(r'"fio version"\s*:'), "headstack compare FILE, or twin results FILE"),
    Layout("smartctl", "smartctl", _line(r'^smartctl \d|^\s*"smartctl"\s*:'), "headstack inspect FILE"),
    Layout("hdparm-I", "hdparm -I", _line(r"^ATA device, with"), "headstack inspect FILE"),
    Layout("iotop", "iotop", _line(r"^Total DISK READ\s*:"), WHO),
    Layout("pidstat", "pidstat -d", _line(r"\bkB_rd/s\s+kB_wr/s\s+kB_ccwr/s"), WHO),
    Layout(
        "bcc",
        "a histogram of bcc or bpftrace",
        _line(r"^\s*(?:usecs|msecs|nsecs)\s+: count\s+distribution|^@\w*(?:\[.*\])?:\s*$\n\[\d"),
        f"headstack trace analyze for biosnoop; {IOSTAT}",
    ),
    Layout(
        "perfmon",
        "Windows performance counters",
        _line(r'^"\(PDH-CSV 4\.0\)'),
        "the table with --columns; disk and time in columns of their own",
    ),
    Layout(
        "esxtop",
        "esxtop",
        _line(r"\bDAVG/cmd\s+KAVG/cmd\s+GAVG/cmd"),
        "DAVG is the device's and KAVG the hypervisor's latency: a table of them with --columns",
    ),
    Layout(
        "etcd",
        "etcd's log",
        _line(r"slow fdatasync|sync duration of|took too long.*expected-duration|apply request took too long"),
        f"etcd's metrics (etcd_disk_wal_fsync_duration_seconds), and {IOSTAT}",
    ),
    Layout(
        "osd-bench",
        "osd bench of Ceph",
        _line(r'"bytes_per_sec"\s*:|^\s*osd\.\d+: \{\s*$'),
        f"ceph osd perf every 10 s, and {IOSTAT}",
    ),
    Layout("ceph-osds", "ceph osd df or ceph osd tree", _line(r"^ID\s+CLASS\s+WEIGHT"), "ceph osd perf every 10 s"),
    Layout(
        "innodb", "InnoDB's status", _line(r"^INNODB MONITOR OUTPUT|^Pending normal aio reads|=====\s*INNODB"), IOSTAT
    ),
    Layout(
        "nodetool",
        "Cassandra's nodetool",
        _line(r"^Pool Name\s+Active\s+Pending|proxy histograms|^Percentile\s+(?:Read|SSTables)"),
        IOSTAT,
    ),
    Layout(
        "perf",
        "perf",
        _line(r"^# Overhead\s+Command|^Samples: \d|^\s+[\d.]+%\s+\[?k"),
        f"perf shows what processors do; {IOSTAT}, and vmstat 1",
    ),
    Layout(
        "stack",
        "stacks of the kernel",
        _line(r"^\[<[0-9a-f]+>\]|^\s*\[<0>\]|^Call Trace:|^\s*[-+]?0x[0-9a-f]+/0x[0-9a-f]+"),
        f"stacks show where a task waits, not for how long; {IOSTAT}",
    ),
    Layout(
        "strace",
        "strace",
        _line(
            r"^% time\s+seconds\s+usecs/call"
            r"|^(?:\[?pid\s+\d+\]?\s+)?(?:p?read(?:v|64)?|p?write(?:v|64)?|f(?:data)?sync)\(\d+.*= -?\d"
        ),
        f"headstack trace analyze FILE for a trace of requests; {IOSTAT}",
    ),
    Layout(
        "pveperf",
        "pveperf",
        _line(r"^(?:BUFFERED READS|FSYNCS/SECOND):"),
        f"pg_test_fsync or fio with fsync=1, and {IOSTAT}",
    ),
    Layout("bonnie", "bonnie++", _line(r"^Version\s+[\d.]+\s+-+Sequential Output"), IOSTAT),
    Layout("iozone", "iozone", _line(r"^\s*(?:Iozone: Performance Test|kB\s+reclen\s+write)"), IOSTAT),
    Layout("diskmark", "CrystalDiskMark", _line(r"CrystalDiskMark|^\s*SEQ(?:\s+\d|\d+M)"), IOSTAT),
    Layout("diskspd", "diskspd", _line(r"^Command Line: .*diskspd|^Total IO$"), IOSTAT),
    Layout(
        "vdbench-output", "vdbench", _line(r"^\s*interval\s+i/o\s+MB/sec"), f"its flatfile with --columns; {IOSTAT}"
    ),
    Layout(
        "arc",
        "arcstat or arc_summary",
        _line(r"^\s*time\s+read\s+(?:miss|ddread)|^ARC (?:size|status|summary)|^c\s+4\s+\d+$"),
        "zpool iostat -vly 5",
    ),
    Layout(
        "nvme-list",
        "nvme list or nvme id-ctrl",
        _line(r"^Node\s+(?:Generic\s+)?SN\s|^NVME Identify Controller"),
        "headstack inspect FILE",
    ),
    Layout(
        "raid-cli",
        "storcli, MegaCli or ssacli",
        _line(r"^(?:Adapter|Virtual Drive|Controller)\s*[#:=]?\s*\d|^CLI Version = |^Smart (?:Array|HBA)"),
        f"headstack inspect; a cache that is not WriteBack makes writes slow; {IOSTAT}",
    ),
    Layout("lsblk", "lsblk", _line(r"^NAME\s+(?:KNAME\s+)?MAJ:MIN\s"), IOSTAT),
    Layout("df", "df", _line(r"^Filesystem\s+\S+\s+Used\s+Avail"), IOSTAT),
    Layout("free", "free", _line(r"^\s+total\s+used\s+free\s+shared\s+buff/cache"), IOSTAT),
)

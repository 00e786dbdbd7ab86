"""Layouts that people paste: each is read or named, with a small made-up sample, and malformed lines are left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import Headstack
from headstack import InputError
from headstack.diagnosis.judging.sources.kinds import KINDS, STATED
from headstack.diagnosis.judging.verdict import Verdict
from test_judge_inputs import T, caveats, read

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return file


BANNER = "Linux 6.1.0 (db1) \t11/14/2023 \t_x86_64_\t(8 CPU)\n\n"
HEADER = "Device            r/s     rkB/s   r_await     w/s     wkB/s   w_await     f/s  f_await  aqu-sz  %util\n"


def block(reads: str = "12.00", writes: str = "3.00", disk: str = "sda") -> str:
    return f"{HEADER}{disk}  {reads}  96.00  4.00  {writes}  24.00  1.00  1.00  9.00  0.06  5.00\n\n"


# The first block


def test_a_first_block_under_a_banner_is_dropped_if_others_follow(write: Write) -> None:
    rows, how = read(write("a.txt", BANNER + block("11.61", "3.87") + block() * 2))
    assert [row["reads"] for row in rows] == [12, 12]
    assert "no whole counts per interval, but means since boot" in caveats(how)


def test_a_first_block_of_whole_counts_is_an_interval(write: Write) -> None:
    """iostat -y prints the banner too, and its first block is an interval."""
    rows, how = read(write("a.txt", BANNER + block("7.00", "2.00") + block() * 2))
    assert [row["reads"] for row in rows] == [7, 12, 12]
    assert "the first block of iostat is kept: its rates are whole counts" in caveats(how)


def test_a_first_block_without_a_banner_is_kept(write: Write) -> None:
    rows, how = read(write("a.txt", HEADER + "sda 1020.5 96.0 4.0 0.0 0.0 0.0 0.0 0.0 0.06 5.0\n\n" + block()))
    assert len(rows) == 2
    assert "no banner precedes it" in caveats(how)


def test_a_first_block_of_which_nothing_is_known_is_dropped_under_a_banner_only(write: Write) -> None:
    unsure = "Device  r/s  rkB/s r_await aqu-sz %util\nsda 2000.00 8000.00 0.50 1.00 99.00\n\n"
    rows, how = read(write("a.txt", BANNER + unsure * 3))
    assert len(rows) == 2
    assert "the first block of iostat is dropped: it may hold means since boot" in caveats(how)
    rows, _ = read(write("b.txt", unsure * 3))
    assert len(rows) == 3


def test_the_only_block_is_kept_with_a_remark(write: Write) -> None:
    rows, how = read(write("a.txt", BANNER + block("11.61", "3.87")))
    assert len(rows) == 1
    assert "the only block of iostat is kept, although it may hold means since boot" in caveats(how)


def test_intervals_without_times_are_a_second_or_as_stated(write: Write) -> None:
    path = write("a.txt", block() * 2)
    rows, how = read(path)
    assert [(row["length_s"], row["reads"]) for row in rows] == [(1, 12), (1, 12)]
    assert "intervals of 1 s are assumed" in caveats(how)
    rows, _ = read(path, every_s=5.0)
    assert [(row["length_s"], row["reads"]) for row in rows] == [(5, 60), (5, 60)]


def test_json_of_a_running_series_keeps_its_first_block(write: Write) -> None:
    disk = {"disk_device": "sda", "r/s": 3.4, "w/s": 0.6, "f/s": 0.2, "rrqm/s": 1.2, "r_await": 4.0, "w_await": 1.0}
    host = {"nodename": "n1", "date": "2023-11-14", "statistics": [{"disk": [disk]}] * 3}
    text = json.dumps({"sysstat": {"hosts": [host]}})
    rows, _ = read(write("a.json", text), every_s=5.0)
    assert [row["reads"] for row in rows] == [17, 17, 17]
    first = {**disk, "r/s": 3.37, "w/s": 0.71}
    host["statistics"] = [{"disk": [first]}, *[{"disk": [disk]}] * 2]
    rows, _ = read(write("b.json", json.dumps({"sysstat": {"hosts": [host]}})), every_s=5.0)
    assert len(rows) == 2


# Tables of devices


def test_iostat_has_the_processors_and_discards(write: Write) -> None:
    text = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n  40,00 0,00 20,00 10,00 25,00 5,00\n\n"
    text += "Device  r/s  rkB/s r_await  w/s  wkB/s w_await  d/s  aqu-sz %util\n"
    text += "vda 10,00 40,00 2,50 0,00 0,00 0,00 7,00 0,03 2,00\n"
    (row,), _ = read(write("a.txt", text))
    assert (row["cpu_idle"], row["cpu_steal"]) == (pytest.approx(0.15), pytest.approx(0.25))
    assert (row["discards"], row["read_latency_s"]) == (7, 0.0025)


def test_plain_iostat_has_rates_only(write: Write) -> None:
    text = (
        "Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd\n"
        "nvme0n1          20,00         0,00         0,00      4096,00          0          0       4096\n"
        "sda              50,00       400,00       800,00         0,00        400        800          0\n"
        "broken           50,00       400,00\n"
    )
    rows, how = read(write("a.txt", text))
    assert [(row["disk"], row["requests"], row.get("discards")) for row in rows] == [
        ("nvme0n1", 20, 20),
        ("sda", 50, None),
    ]
    assert rows[1]["bytes"] == 1200 * 1024
    assert "latency_s" not in rows[1]
    assert "lines left out: not as many figures as column names" in caveats(how)


def test_old_iostat_has_one_latency_and_sectors(write: Write) -> None:
    text = (
        "Device:         rrqm/s   wrqm/s     r/s     w/s   rsec/s   wsec/s avgrq-sz avgqu-sz   await  svctm  %util\n"
        "/dev/mapper/a-long-name-of-a-volume\n"
        "                  0.00     0.00    0.00    5.00     0.00    40.00     8.00     0.05   10.00   1.00   0.50\n"
        "sdb               0.00     0.00    5.00   15.00    40.00   120.00     8.00     0.20   10.00   1.00   2.00\n"
    )
    rows, _ = read(write("a.txt", text))
    row = next(row for row in rows if row["disk"] == "sdb")
    assert (row["reads"], row["writes"], row["latency_s"], row["read_bytes"]) == (5, 15, 0.01, 40 * 512)
    assert {row["disk"] for row in rows} == {"mapper/a-long-name-of-a-volume", "sdb"}


def test_illumos_and_freebsd_name_the_device_at_the_end_or_the_beginning(write: Write) -> None:
    illumos = (
        "                    extended device statistics\n"
        "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n"
        "  100.0   50.0  800.0  400.0  0.0  1.5    0.0   10.0   0  60 c0t1d0\n"
    )
    (row,), _ = read(write("illumos.txt", illumos))
    assert (row["disk"], row["reads"], row["latency_s"], row["in_flight"], row["busy"]) == (
        "c0t1d0",
        100,
        0.01,
        1.5,
        0.6,
    )
    assert row["write_bytes"] == 400 * 1024
    freebsd = (
        "                        extended device statistics\n"
        "device       r/s     w/s     kr/s     kw/s  ms/r  ms/w  ms/o  ms/t qlen  %b\n"
        "ada0          20      30    160.0    240.0     5     2     0     3    0   9\n"
    )
    (row,), _ = read(write("freebsd.txt", freebsd))
    assert (row["disk"], row["read_latency_s"], row["write_latency_s"]) == ("ada0", 0.005, 0.002)
    gstat = (
        "dT: 2.000s  w: 1.000s\n"
        " L(q)  ops/s    r/s   kBps   ms/r    w/s   kBps   ms/w   %busy Name\n"
        "    1     60     20    160    5.0     40    320    2.0   12.5| ada0\n"
    )
    (row,), _ = read(write("gstat.txt", gstat))
    assert (row["disk"], row["length_s"], row["reads"], row["write_bytes"]) == ("ada0", 2, 40, 2 * 320 * 1024)
    assert (row["read_latency_s"], row["busy"]) == (0.005, 0.125)


def test_sar_has_times_of_day_and_numbers_of_devices(write: Write) -> None:
    text = (
        "Linux 5.4.0 (db2) \t11/14/2023 \t_x86_64_\t(8 CPU)\n\n"
        "11:40:01 PM       CPU     %user     %nice   %system   %iowait    %steal     %idle\n"
        "11:50:01 PM       all      5.00      0.00      5.00      0.00     30.00     60.00\n"
        "Average:          all      5.00      0.00      5.00      0.00     30.00     60.00\n\n"
        "11:40:01 PM       DEV       tps     rkB/s     wkB/s   areq-sz    aqu-sz     await     svctm     %util\n"
        "11:50:01 PM   dev8-16     10.00     40.00      0.00      4.00      0.05      5.00      0.00      2.00\n"
        "11:50:01 PM   dev8-17     10.00     40.00      0.00      4.00      0.05      5.00      0.00      2.00\n"
        "12:00:01 AM   dev8-16     20.00     80.00      0.00      4.00      0.10      5.00      0.00      4.00\n"
        "Average:          DEV       tps     rkB/s     wkB/s   areq-sz    aqu-sz     await     svctm     %util\n"
        "Average:      dev8-16     15.00     60.00      0.00      4.00      0.08      5.00      0.00      3.00\n"
    )
    rows, how = read(write("sar.txt", text))
    assert [(row["host"], row["disk"], row["length_s"], row["requests"]) for row in rows] == [
        ("db2", "sdb", 600, 6000),
        ("db2", "sdb", 600, 12000),
    ]
    assert rows[0]["start_s"] % 86400 == 23 * 3600 + 40 * 60 + 1
    assert rows[0]["cpu_steal"] == pytest.approx(0.3)
    assert "means over 600 s" in caveats(how)
    assert "lines left out" not in caveats(how)


def test_mc_has_units_behind_its_figures(write: Write) -> None:
    text = (
        "       DISK         USED     TPS        READ           WRITE          DISCARD         AWAIT        UTIL\n"
        " /data/d1              36%     120     1.00 MiB/s      512.0 KiB/s    0.00 MiB/s      20.0 ms         90.0%\n"
        " /data/d2!             36%     100     0.00 MiB/s      1.00 MiB/s     0.00 MiB/s      500 us          10.0%\n"
    )
    rows, _ = read(write("mc.txt", text))
    assert [(row["disk"], row["requests"], row["latency_s"]) for row in rows] == [
        ("/data/d1", 120, 0.02),
        ("/data/d2", 100, pytest.approx(0.0005)),
    ]
    assert rows[0]["write_bytes"] == 512 * 1024


ZPOOL = """\
              capacity     operations     bandwidth    total_wait     disk_wait    syncq_wait    asyncq_wait  trim
pool        alloc   free   read  write   read  write   read  write   read  write   read  write   read  write   wait
----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
tank        1.00T  3.00T     10    400   512K  50.0M    5ms   80ms    5ms    8ms      -    1us      -   70ms      -
  mirror    1.00T  3.00T     10    400   512K  50.0M    5ms   80ms    5ms    8ms      -    1us      -   70ms      -
    sda         -      -      5  1.20K   256K  25.0M    5ms   80ms    5ms    8ms      -    1us      -   70ms      -
    sdb         -      -      5    200   256K  25.0M    5ms   80ms    5ms    8ms      -    1us      -   70ms      -
logs            -      -      -      -      -      -      -      -      -      -      -      -      -      -      -
  nvme0n1   1.00G  9.00G      0      0      0      0      -      -      -      -      -      -      -      -      -
----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
"""


def test_zpool_iostat_shows_waits_above_the_disk(write: Write) -> None:
    rows, how = read(write("z.txt", ZPOOL))
    assert [(row["disk"], row["writes"]) for row in rows] == [
        ("nvme0n1", 0),
        ("sda", pytest.approx(1228.8)),
        ("sdb", 200),
    ]
    assert rows[1]["write_latency_s"] == 0.008
    assert rows[1]["read_bytes"] == 256 * 1024
    (statement,) = [of for of in how.statements if of.disk == "sda"]
    assert "72 ms of 79.7 ms are spent in ZFS' own queue" in statement.evidence.replace("71.7", "72")
    verdict = next(of for of in hs.judge(str(write("z.txt", ZPOOL))).verdicts if of.disk == "sda")
    assert verdict.suspects[0].suspect == "queue"


def test_zpool_iostat_without_latencies_has_rates(write: Write) -> None:
    text = "\n".join(line[:56].rstrip() for line in ZPOOL.splitlines())
    rows, how = read(write("z.txt", text))
    assert {row["disk"] for row in rows} == {"sda", "sdb", "nvme0n1"}
    assert "no latencies" in caveats(how)


# Devices built from others


def stack(array_ms: float, disk_ms: float, busy: float) -> str:
    header = "Device  r/s  rkB/s r_await  w/s  wkB/s w_await  aqu-sz %util\n"
    lines = f"md9 0.00 0.00 0.00 30.00 120.00 {array_ms:.2f} 30.00 {busy:.2f}\n"
    lines += "".join(f"sd{n} 0.00 0.00 0.00 10.00 40.00 {disk_ms:.2f} 0.05 {busy:.2f}\n" for n in "abc")
    return header + lines + "\n"


def test_an_array_that_waits_above_idle_disks_is_the_host(write: Write) -> None:
    judged = hs.judge(str(write("a.txt", stack(1500, 5, 3) * 3)))
    assert {of.kind for of in judged.verdicts} == {"host"}
    assert "requests of md9 take 1.5 s, those of the slowest disk" in judged.verdicts[0].why.lower()
    assert any(caveat.startswith("md9 not judged, because built from others") for caveat in judged.caveats)
    # Three times the latency of its members is what RAID 6 takes.
    assert {of.kind for of in hs.judge(str(write("b.txt", stack(14, 5, 3) * 3))).verdicts} == {"undecided"}


def test_an_array_above_busy_disks_is_no_starved_host(write: Write) -> None:
    judged = hs.judge(str(write("a.txt", stack(1500, 5, 95) * 3)))
    assert "host" not in {of.kind for of in judged.verdicts}


# Layouts without rates of disks

PRESSURE = (
    "some avg10=35.00 avg60=12.00 avg300=4.00 total=123456\nfull avg10=30.00 avg60=10.00 avg300=3.00 total=99999\n"
)
VMSTAT = (
    "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n"
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
    " 1  0      0 100000  10000 100000    0    0    10    10  100  100 10 10 80  0  0\n"
    + " 9  1      0 100000  10000 100000    0    0     0   500  100  100 50 10  2  1 37\n"
    * 3
)
MDSTAT = (
    "Personalities : [raid1]\nmd0 : active raid1 sdb1[1] sda1[0]\n      976630464 blocks super 1.2 [2/2] [UU]\n"
    "      [==>..................]  check = 12.5% (122078808/976630464) finish=95.1min speed=149696K/sec\n\n"
    "unused devices: <none>\n"
)
STATUS = (
    "  pool: tank\n state: ONLINE\n  scan: scrub in progress since Tue Nov 14 22:00:00 2023\n"
    "\t1.20T scanned at 500M/s, 800G issued at 300M/s, 4.00T total\n\t0B repaired, 19.53% done, 03:10:00 to go\n"
    "config:\n\n\tNAME        STATE     READ WRITE CKSUM\n\ttank        ONLINE       0     0     0\n"
    "\t  sda       ONLINE       0     0     0\n\nerrors: No known data errors\n"
)
SMART = (
    "Smart Log for NVME device:nvme3 namespace-id:ffffffff\ncritical_warning\t: 0x2\n"
    "temperature\t: 83 C (356 Kelvin)\navailable_spare\t: 100%\nThermal Management T1 Trans Count\t: 12\n"
)
FIO = (
    "deep: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, ioengine=libaio, iodepth=64\nfio-3.33\n"
    "Starting 1 process\ndeep: (groupid=0, jobs=1): err= 0: pid=1: Tue Nov 14 22:00:00 2023\n"
    "  read: IOPS=3000, BW=11.7MiB/s (12.3MB/s)(703MiB/60001msec)\n"
    "    slat (usec): min=1, max=50, avg= 2.00, stdev= 1.00\n"
    "    clat (usec): min=300, max=90000, avg=21331.00, stdev=200.00\n"
    "     lat (usec): min=302, max=90002, avg=21333.00, stdev=200.00\n"
    "    clat percentiles (usec):\n     |  1.00th=[21000], 50.00th=[21300], 99.00th=[21600], 99.90th=[21700],\n"
    "   bw (  KiB/s): min=11900, max=12100, per=100.00%, avg=12000.00, stdev=40.00, samples=119\n"
)
RBD = (
    "bench  type write io_size 4096 io_threads 16 bytes 1073741824 pattern random\n"
    "  SEC       OPS   OPS/SEC   BYTES/SEC\n"
    + "".join(f"    {n}      {500 * n}    500.00  2048000.00\n" for n in range(1, 8))
)
CLOUDWATCH = {
    "MetricDataResults": [
        {
            "Id": metric.lower(),
            "Label": f"vol-0123456789 {metric}",
            "Timestamps": [f"2023-11-14T22:{13 + n}:00+00:00" for n in range(5)],
            "Values": [value] * 5,
        }
        for metric, value in (
            ("VolumeReadOps", 60000.0),
            ("VolumeWriteOps", 120000.0),
            ("VolumeTotalReadTime", 300.0),
            ("VolumeTotalWriteTime", 600.0),
            ("VolumeQueueLength", 15.0),
            ("VolumeIOPSExceededCheck", 1.0),
        )
    ]
}
AZURE = {
    "value": [
        {
            "name": {"value": f"Data Disk {name}"},
            "timeseries": [
                {
                    "metadatavalues": [{"name": {"value": "lun"}, "value": "2"}],
                    "data": [{"timeStamp": f"2023-11-14T22:1{n}:00Z", "average": value} for n in range(4)],
                }
            ],
        }
        for name, value in (
            ("Read Operations/Sec", 400.0),
            ("Write Operations/Sec", 95.0),
            ("Latency", 12.0),
            ("Queue Depth", 6.0),
            ("IOPS Consumed Percentage", 99.0),
        )
    ]
}
GOOGLE = {
    "timeSeries": [
        {
            "metric": {"type": f"compute.googleapis.com/instance/disk/{name}", "labels": {"device_name": "data-1"}},
            "points": [
                {
                    "interval": {"startTime": f"2023-11-14T22:{n}:00Z", "endTime": f"2023-11-14T22:{n + 1}:00Z"},
                    "value": {kind: value},
                }
                for n in range(13, 16)
            ],
        }
        for name, kind, value in (
            ("read_ops_count", "int64Value", "600"),
            ("write_ops_count", "int64Value", "600"),
            ("average_io_latency", "doubleValue", 800.0),
            ("throttled_write_ops_count", "int64Value", "9"),
        )
    ]
}
CGROUP = (
    f"{T}\n8:0 rbytes=0 wbytes=0 rios=0 wios=0 dbytes=0 dios=0\n"
    f"{T + 10}\n8:0 rbytes=0 wbytes=4915200 rios=0 wios=1195 dbytes=0 dios=0\n"
    "8:0 rbps=max wbps=max riops=max wiops=120\n"
)
AMAZON = {
    "total_read_ops": 10,
    "total_write_ops": 10,
    "total_read_time": 1e9,
    "total_write_time": 1e9,
    "volume_queue_length": 4,
    "ebs_volume_performance_exceeded_iops": 5e8,
    "ebs_volume_performance_exceeded_tp": 0,
}
LIMITS = "limit,mean_iops\n400,396\n400,395\n800,790\n"
DECIDED: dict[str, tuple[str, str, str]] = {
    "vmstat": (VMSTAT, "host", "3% idle"),
    "mdstat": (MDSTAT, "neighbour", "check of md0 is running on sdb1, sda1: 12.5 % done at 150 MB/s a member"),
    "zpool-status": (STATUS, "neighbour", "scrub of tank is running: 19.53% done"),
    "smart-log": (SMART, "limit", "83 C, critical warning: temperature, thermal throttling 12 times"),
    "fio": (FIO, "queue", "64 in flight"),
    "ceph-bench": (RBD, "limit", "500 IOPS within 0.0%, a round number"),
    "cloudwatch": (json.dumps(CLOUDWATCH), "limit", "VolumeIOPSExceededCheck"),
    "azure": (json.dumps(AZURE), "limit", "IOPS Consumed Percentage: at most 99 %"),
    "google": (json.dumps(GOOGLE), "limit", "throttled_write_ops_count"),
    "cgroup": (CGROUP, "limit", "120 of 120 (wiops of io.max): 100% of the limit"),
    "amazon": (json.dumps(AMAZON), "limit", "the volume's IOPS for 500.0 s"),
    "summary": (LIMITS, "limit", "98.9% of 400, 98.8% of 800"),
}
"""Layouts that state something decisive: text, verdict, a part of the reason."""


def only(path: Path) -> Verdict:
    (verdict,) = hs.judge(str(path)).verdicts
    return verdict


@pytest.mark.parametrize("name", DECIDED)
def test_layouts_that_state_a_cause_are_judged(write: Write, name: str) -> None:
    text, kind, reason = DECIDED[name]
    verdict = only(write("x.log", text))
    # Depth 64 at 3,000 IOPS is a queue, or a limit of 3,000: both are weighed.
    assert verdict.kind == kind or (name == "fio" and verdict.kind in ("queue", "limit", "undecided")), verdict
    assert reason in verdict.why or reason[:1].upper() + reason[1:] in verdict.why, verdict.why


NAMED: dict[str, tuple[str, str]] = {
    "pressure": (PRESSURE, "iostat -x 5"),
    "top": (
        "top - 22:13:20 up 1 day\n%Cpu(s):  5.7 us,  1.0 sy,  0.0 ni, 60.0 id, 33.0 wa,  0.0 hi,  0.0 si,  0.3 st\n",
        "iostat -x 5",
    ),
    "processors": (
        "10:00:01 PM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n"
        "10:00:02 PM  all    5.00    0.00    5.00   10.00    0.00    0.00    0.00    0.00    0.00   80.00\n",
        "iostat -x 5",
    ),
    "ceph-status": (
        "  cluster:\n    id:     x\n    health: HEALTH_OK\n\n  data:\n    pgs:     128 active+clean\n",
        "ceph osd perf",
    ),
    "dd": (
        "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 10.5 s, 102 MB/s\n",
        "iostat -x 5",
    ),
    "ioping": (
        "--- /dev/sdc (block device 1 TiB) ioping statistics ---\n9 requests completed in 8.1 s, 36 KiB read\n"
        "min/avg/max/mdev = 6.1 ms / 8.2 ms / 12.3 ms / 1.8 ms\n",
        "iostat -x 5",
    ),
    "hdparm": (
        "/dev/sdb:\n Timing cached reads:   20000 MB in  2.00 seconds = 10000.00 MB/sec\n"
        " Timing buffered disk reads: 540 MB in  3.00 seconds = 180.00 MB/sec\n",
        "iostat -x 5",
    ),
    "pg_test_fsync": (
        "Compare file sync methods using one 8kB write:\n"
        "        open_datasync                       118.20 ops/sec    8460 usecs/op\n"
        "        fdatasync                           119.90 ops/sec    8340 usecs/op\n",
        "iostat -x 5",
    ),
    "sysbench": (
        "sysbench 1.0.20\n\nFile operations:\n    reads/s:                      1000.00\n"
        "    writes/s:                     700.00\n"
        "Latency (ms):\n         min:                                    0.01\n         95th percentile:        1.20\n",
        "iostat -x 5",
    ),
    "dmesg": (
        "[ 100.0] nvme nvme0: I/O 12 QID 3 timeout, aborting\n[ 130.0] nvme nvme0: resetting controller\n",
        "headstack inspect",
    ),
    "histogram": (
        'x_fsync_seconds_bucket{le="0.001"} 5\nx_fsync_seconds_bucket{le="0.01"} 95\n'
        'x_fsync_seconds_bucket{le="+Inf"} 100\n',
        "iostat -x 5",
    ),
    "fio-json": ('{"fio version" : "fio-3.33", "jobs": []}', "headstack compare"),
    "smartctl": ("smartctl 7.3 2022-02-28 r5338\n=== START OF INFORMATION SECTION ===\n", "headstack inspect"),
    "iotop": ("Total DISK READ :       1.00 M/s | Total DISK WRITE :       2.00 M/s\n", "iostat -x 5"),
    "zpool-histogram": (
        "tank         total_wait     disk_wait    syncq_wait    asyncq_wait\nlatency      read  write   read  write\n",
        "zpool iostat -vly 5",
    ),
    "etcd": ("etcd: sync duration of 1.2s, expected less than 1s\n", "etcd_disk_wal_fsync_duration_seconds"),
    "columns": ("when who mb_s ms\n1 a 20 3\n2 b 30 4\n", "--columns"),
    "summary of loads": ("load,read_iops,avg_lat_ms\na,100,8.5\n", "--columns"),
}
"""Layouts that decide nothing alone: text, and what to give instead."""


@pytest.mark.parametrize("name", NAMED)
def test_other_layouts_are_named_with_what_to_give_instead(write: Write, name: str) -> None:
    text, instead = NAMED[name]
    verdict = only(write("x.log", text))
    assert verdict.kind == "undecided"
    assert instead in verdict.next_step, verdict.next_step
    assert "Likeliest: a slow device" not in verdict.why or name in ("dmesg", "histogram", "pg_test_fsync")


@pytest.mark.parametrize("name", [*DECIDED, *NAMED])
def test_a_text_that_is_cut_or_garbled_is_no_internal_error(write: Write, name: str) -> None:
    text = DECIDED[name][0] if name in DECIDED else NAMED[name][0]
    for part in (
        text[: len(text) // 2],
        text[: len(text) * 4 // 5],
        text.replace("0", "x"),
        text.replace(" ", "  - "),
        text.replace("1", "-"),
    ):
        try:
            verdicts = hs.judge(str(write("x.log", part))).verdicts
        except InputError:
            continue
        assert all(of.kind != "slow" for of in verdicts)


def test_kinds_have_different_names_and_rates_or_statements() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert all((kind.rows is None) != (kind.statements is None) for kind in KINDS)
    assert {kind.name for kind in STATED} >= {"vmstat", "fio text", "dmesg"}


# Several inputs


def test_facts_of_the_host_are_weighed_with_the_disks(write: Write) -> None:
    disks = write("iostat.txt", block("7.00") * 3)
    alone = only(disks)
    (verdict,) = hs.judge([str(disks), str(write("vmstat.txt", VMSTAT))]).verdicts
    assert alone.kind == "undecided"
    assert verdict.kind == "host"
    assert "3% idle" in verdict.why
    with pytest.raises(InputError, match=r"several kinds \(iostat-text, zpool\); pass one kind with rates of disks"):
        hs.judge([str(disks), str(write("z.txt", ZPOOL))])


def test_one_text_may_have_several_layouts(write: Write) -> None:
    (verdict,) = hs.judge(str(write("paste.txt", block("7.00") * 2 + "\n" + MDSTAT))).verdicts
    assert verdict.kind == "neighbour"
    assert "Check of md0 is running" in verdict.why


# What an undecided verdict says


def test_an_undecided_verdict_states_what_it_rests_on(write: Write) -> None:
    many = HEADER + "sda  4380.00  17520.00  4.00  0.00  0.00  0.00  0.00  0.00  17.50  99.00\n\n"
    verdict = only(write("a.txt", many))
    assert "rests on 1 interval of 1 s, 4,380 requests; a verdict on the disk itself needs" in verdict.why
    assert "30 completed requests" not in verdict.why
    assert verdict.rests_on == "1 interval of 1 s"
    assert verdict.why.startswith("Likeliest: the queue")


def test_the_command_names_a_layout_and_exits_as_undecided(write: Write, headstack: Headstack) -> None:
    path = write("dd.txt", NAMED["dd"][0])
    done = headstack("judge", str(path))
    assert done.returncode == 4
    assert "1,074 MB at 102 MB/s, 10.3 ms a record of dd" in done.stdout
    assert "For a verdict give iostat -x 5" in " ".join(done.stdout.split())


def test_thirty_intervals_of_a_slow_looking_disk_are_no_accusation(write: Write) -> None:
    slow = HEADER + "sda  3.00  12.00  900.00  1.00  4.00  800.00  0.00  0.00  3.50  99.00\n\n"
    assert only(write("a.txt", slow * 29)).kind != "slow"


def test_node_exporter_has_the_pressure_and_processors(write: Write) -> None:
    def scrape(n: int) -> str:
        values = {
            'node_disk_reads_completed_total{device="sda"}': 100 * n,
            'node_disk_read_time_seconds_total{device="sda"}': 0.5 * n,
            'node_disk_writes_completed_total{device="sda"}': 0,
            'node_disk_discards_completed_total{device="sda"}': 30 * n,
            "node_pressure_io_waiting_seconds_total": 4.0 * n,
            'node_cpu_seconds_total{cpu="0",mode="idle"}': 2.0 * n,
            'node_cpu_seconds_total{cpu="0",mode="iowait"}': 4.0 * n,
            'node_cpu_seconds_total{cpu="1",mode="idle"}': 6.0 * n,
            'node_cpu_seconds_total{cpu="1",mode="steal"}': 2.0 * n,
            "node_time_seconds": T + 10 * n,
        }
        return "# HELP node_disk_io_now x\n" + "".join(f"{name} {value}\n" for name, value in values.items())

    (row,), _ = read(write("n.prom", scrape(1) + scrape(2)))
    assert (row["discards"], row["io_pressure"]) == (30, pytest.approx(0.4))
    assert (row["cpu_idle"], row["cpu_steal"]) == (pytest.approx(0.6), pytest.approx(0.1))


def test_azure_as_a_table_with_its_limit(write: Write) -> None:
    text = (
        "metric,unit,value\nData Disk Write Operations/Sec,CountPerSecond,{}\nData Disk IOPS limit,CountPerSecond,500\n"
    )
    at = only(write("a.csv", text.format(498)))
    below = only(write("b.csv", text.format(250)))
    assert (at.kind, below.kind) == ("limit", "undecided")
    weights: dict[str, Any] = {of.suspect: of.likelihood for of in below.suspects}
    assert weights["limit"] < 0.01


def test_illumos_shows_waits_in_the_queue_of_the_host(write: Write) -> None:
    text = (
        "    r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n"
        "    5.0  900.0   40.0 9000.0 {} 9.9  {}   10.9  99 100 sd1\n"
    )
    above = only(write("a.txt", text.format("120.5", "133.0")))
    inside = only(write("b.txt", text.format("0.0", "0.0")))
    assert "requests wait 133 ms in the host's queue and take 10.9 ms" in above.why.lower()
    assert above.suspects[0].likelihood > inside.suspects[0].likelihood


def test_pressure_of_several_resources_in_one_text(write: Write) -> None:
    cpu = "$ cat /proc/pressure/cpu\nsome avg10=80.00 avg60=9.00 avg300=4.00 total=1\n"
    verdict = only(write("x.txt", f"$ cat /proc/pressure/io\n{PRESSURE}{cpu}"))
    assert "Tasks wait for io (some: 35 %" in verdict.why
    assert "Tasks wait for cpu (some: 80 %" in verdict.why
    assert verdict.suspects[0].suspect == "host"


def test_metrics_without_a_volume_belong_to_the_only_one(write: Write) -> None:
    text = (
        "Label,vol-0123456789 VolumeReadOps,vol-0123456789 VolumeWriteOps,BurstBalance\n"
        "2023/11/14 22:13:00,900,29000,12\n2023/11/14 22:18:00,900,29000,0\n"
    )
    verdict = only(write("x.csv", text))
    assert (verdict.disk, verdict.kind) == ("vol-0123456789", "limit")
    assert "burst credits of the volume fell to 0 %" in verdict.why
    assert verdict.rests_on == "2 intervals in 10 min"


def test_an_osd_unlike_the_others_is_likely_slow_and_not_accused(write: Write) -> None:
    text = "osd  commit_latency(ms)  apply_latency(ms)\n" + "".join(
        f"{n} {ms} {ms}\n" for n, ms in enumerate((2, 812, 3, 2))
    )
    verdicts = {of.disk: of for of in hs.judge(str(write("x.txt", text))).verdicts}
    assert {of.kind for of in verdicts.values()} == {"undecided"}
    assert verdicts["osd.1"].suspects[0].suspect == "device"
    assert verdicts["osd.0"].suspects[0].suspect != "device"

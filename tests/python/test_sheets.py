"""Drive files from data sheets, in the words of several makers."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import Headstack
from headstack.catalogue.sheets import Sheet, lines_of

SEAGATE = """Exos X18
Standard Model    ST18000NM000J
Manufacturer: Seagate
Launched: September 2020
Capacity: 18TB
Interface: SATA 6Gb/s
Bytes per Sector (logical/physical): 512/4096
Max. Sustained Transfer Rate OD (MB/s)\t270MB/s
Random Read/Write 4K QD16 WCD (IOPS): 170/550
Average Latency (ms): 4.16
Spindle Speed (RPM) 7200 RPM
Cache, Multisegmented (MB): 256
Idle A (W) Average: 5.3 W
Max Operating, Random Read 4K/16Q (W): 9.4
Mean Time Between Failures (MTBF, hours): 2,500,000
Reliability Rating @ Full 24×7 Operation (AFR): 0.35%
Nonrecoverable Read Errors per Bits Read, Max: 1 sector per 10E15
Power-On Hours per Year (24×7): 8,760
Limited Warranty (years): 5
geometry.platters = 9
geometry.heads = 18
"""

HGST = """Model: HUH721010ALE604
Vendor: HGST
Year: 2016
Formatted capacity: 10TB
Interface: SATA 6Gb/s
Data buffer (MB): 256
Rotational speed (RPM): 7200
Latency average (ms): 4.16
Interface transfer rate (MB/s, max): 600
Sustained transfer rate (MB/s, typical): 249
Seek time (read/write, ms, typical): 8.0/8.6
Platters: 7
Error rate (non-recoverable, bits read): 1 in 10^15
MTBF (M hours): 2.5
Idle (W): 5.0
Operating power (W): 6.8
"""

TOSHIBA = """Model Number | MG10ACA20TE
Manufacturer | Toshiba
Release year | 2022
Formatted Capacity | 20 TB
Interface | SATA 6.0 Gbit/s
Interface Speed | 6.0 Gbit/s
Maximum Data Transfer Speed (Sustained) | 268 MiB/s
Buffer Size | 512 MiB
Rotation Speed | 7200 rpm
Average Latency Time | 4.17 ms
Logical Data Block Length | 512e
Number of Discs | 10
Number of Heads | 20
Average Seek Time Read | 8.5 ms
MTTF/MTBF | 2 500 000 h
"""

SAMSUNG = """Product: Samsung SSD 870 EVO
Manufacturer: Samsung
Year: 2021
Capacity: 1TB
Interface: SATA 6Gb/s (compatible with SATA 3Gb/s & SATA 1.5Gb/s)
Storage Memory: Samsung V-NAND 3bit MLC, 128-layer
Controller: Samsung MKX Controller
Cache Memory: Samsung 1GB Low Power DDR4 SDRAM
Sequential Read: Up to 560 MB/s
Sequential Write: Up to 530 MB/s
Random Read (4KB, QD32): Up to 98,000 IOPS
Random Write (4KB, QD32): Up to 88,000 IOPS
Random Read (4KB, QD1): Up to 13,000 IOPS
Random Write (4KB, QD1): Up to 36,000 IOPS
TBW: 600 TB
MTBF: 1.5 Million Hours
"""

MICRON = """Part number = MTFDKCC7T6TFR
Vendor = Micron
Year = 2022
Capacity = 7.68TB
Interface = PCIe Gen4 x4, NVMe v1.4
NAND = 176-layer Micron 3D TLC NAND
Sequential 128KB read = 6,800 MB/s
Sequential 128KB write = 5,600 MB/s
Random 4KB read (IOPS) = 1,000K
Random 4KB write (IOPS) = 215K
70/30 random 4KB read/write (IOPS) = 520K
Latency read (typical) = 80 µs
Latency write (typical) = 15 µs
Endurance (DWPD) = 1
Power loss protection = Yes
MTTF = 2 million device hours
"""

SOLIDIGM = """Name,Solidigm D7-P5520
Manufacturer,Solidigm
Launch Date,Q1'22 2022
Capacity,7.68 TB
Interface,"PCIe 4.0 x4, NVMe"
Lithography Type,144-Layer TLC 3D NAND
"Sequential Bandwidth - 100% Read (up to)","7100 MB/s"
"Sequential Bandwidth - 100% Write (up to)","4200 MB/s"
"Random Read (100% Span)","1100000 IOPS (4K Blocks)"
"Random Write (100% Span)","220000 IOPS (4K Blocks)"
"Latency - Read","75 µs"
"Latency - Write","15 µs"
"Power - Active","18 W"
"Power - Idle","5 W"
"Endurance Rating","1 DWPD"
"""

KIOXIA = """Model\tKCM71RUG1T92\tKCM71RUG7T68
Manufacturer\tKIOXIA
Year\t2022
Capacity\t1.92 TB\t7.68 TB
Interface\tPCIe 5.0, NVMe 2.0, x4 lanes
Flash Memory Type\tBiCS FLASH TLC, 112 layers
Sustained 128 KiB Sequential Read\t14,000 MB/s\t14,000 MB/s
Sustained 128 KiB Sequential Write\t3,500 MB/s\t6,750 MB/s
Sustained 4 KiB Random Read\t1,600K IOPS\t2,450K IOPS
Sustained 4 KiB Random Write\t180K IOPS\t300K IOPS
DWPD\t1
"""

WD = """Model number: WDS100T3X0E
Vendor: Western Digital
Year: 2022
Formatted capacity: 1TB
Interface: PCIe Gen4 x4 NVMe
NAND: 112L TLC
DRAM: DRAM-less, HMB
Sequential read (MB/s, up to): 5150
Sequential write (MB/s, up to): 4900
Random read (IOPS, up to): 740K
Random write (IOPS, up to): 800K
Endurance (TBW): 600
"""

CASES: tuple[tuple[str, str, list[str], dict[str, Any]], ...] = (
    (
        SEAGATE,
        "txt",
        [],
        {
            "kind": "disk",
            "name": "Seagate ST18000NM000J",
            "year": 2020,
            "capacity": {"size": "18TB", "logical_block": "512B", "physical_sector": "4096B"},
            "geometry": {"platters": 9, "heads": 18},
            "media": {"sustained_outer_rate": "270MB/s"},
            "spindle": {"speed": "7200rpm"},
            "buffer": {"size": "256MiB"},
            "interface": {"kind": "sata", "rate": "600MB/s"},
            "stated": {
                "random_read": {"iops": 170, "depth": 16, "size": "4KiB"},
                "random_write": {"iops": 550, "depth": 16, "size": "4KiB", "cache": "off"},
            },
            "power": {"idle_w": 5.3, "active_w": 9.4},
            "reliability": {"mtbf_h": 2_500_000, "afr_percent": 0.35, "bits_per_error": 1e15},
        },
    ),
    (
        HGST,
        "txt",
        [],
        {
            "kind": "disk",
            "capacity": {"size": "10TB"},
            "geometry": {"platters": 7},
            "media": {"sustained_outer_rate": "249MB/s"},
            "seek": {"read_average": "8ms", "write_average": "8.6ms"},
            "buffer": {"size": "256MiB"},
            "interface": {"kind": "sata", "rate": "600MB/s"},
            "power": {"idle_w": 5.0, "active_w": 6.8},
            "reliability": {"mtbf_h": 2_500_000, "bits_per_error": 1e15},
        },
    ),
    (
        TOSHIBA,
        "txt",
        [],
        {
            "kind": "disk",
            "model": "MG10ACA20TE",
            "year": 2022,
            "capacity": {"size": "20TB", "logical_block": "512B", "physical_sector": "4096B"},
            "geometry": {"platters": 10, "heads": 20},
            "media": {"sustained_outer_rate": "281.018MB/s"},
            "seek": {"read_average": "8.5ms"},
            "buffer": {"size": "512MiB"},
            "reliability": {"mtbf_h": 2_500_000},
        },
    ),
    (
        SAMSUNG,
        "txt",
        [],
        {
            "kind": "ssd",
            "name": "Samsung SSD 870 EVO",
            "capacity": {"size": "1TB"},
            "flash": {"cells": "tlc", "generation": "tlc-128"},
            "interface": {"kind": "sata", "rate": "600MB/s"},
            "stated": {
                "sequential_read": "560MB/s",
                "sequential_write": "530MB/s",
                "random_read": {"iops": 98_000, "depth": 32, "size": "4KiB"},
                "random_write": {"iops": 88_000, "depth": 32, "size": "4KiB", "state": "burst"},
                "read_latency": "76.92us",
                "write_latency": "27.78us",
            },
            "endurance": {"tbw": 600.0},
        },
    ),
    (
        MICRON,
        "txt",
        [],
        {
            "kind": "ssd",
            "capacity": {"size": "7.68TB"},
            "flash": {"cells": "tlc", "generation": "tlc-176"},
            "interface": {"kind": "nvme", "generation": 4, "lanes": 4},
            "buffer": {"power_loss_protected": True},
            "endurance": {"dwpd": 1.0},
            "stated": {
                "sequential_read": "6.8GB/s",
                "sequential_write": "5.6GB/s",
                "random_read": {"iops": 1_000_000, "size": "4KiB"},
                "random_write": {"iops": 215_000, "size": "4KiB", "state": "steady"},
                "read_latency": "80us",
                "write_latency": "15us",
            },
        },
    ),
    (
        SOLIDIGM,
        "csv",
        [],
        {
            "kind": "ssd",
            "year": 2022,
            "flash": {"cells": "tlc", "generation": "tlc-128"},
            "interface": {"kind": "nvme", "generation": 4, "lanes": 4},
            "power": {"idle_w": 5.0, "active_w": 18.0},
            "endurance": {"dwpd": 1.0},
            "stated": {
                "sequential_read": "7.1GB/s",
                "sequential_write": "4.2GB/s",
                "random_read": {"iops": 1_100_000, "size": "4KiB"},
                "random_write": {"iops": 220_000, "size": "4KiB", "state": "steady"},
                "read_latency": "75us",
                "write_latency": "15us",
            },
        },
    ),
    (
        KIOXIA,
        "txt",
        ["--column", "2"],
        {
            "kind": "ssd",
            "model": "KCM71RUG7T68",
            "capacity": {"size": "7.68TB"},
            "flash": {"cells": "tlc", "generation": "tlc-128"},
            "interface": {"kind": "nvme", "generation": 5, "lanes": 4},
            "stated": {
                "sequential_read": "14GB/s",
                "sequential_write": "6.75GB/s",
                "random_read": {"iops": 2_450_000, "size": "4KiB"},
                "random_write": {"iops": 300_000, "size": "4KiB", "state": "steady"},
            },
        },
    ),
    (
        WD,
        "txt",
        [],
        {
            "kind": "ssd",
            "name": "Western Digital WDS100T3X0E",
            "controller": {"map_cache": "64MiB"},
            "endurance": {"tbw": 600.0},
            "interface": {"kind": "nvme", "generation": 4, "lanes": 4},
            "stated": {
                "sequential_read": "5.15GB/s",
                "sequential_write": "4.9GB/s",
                "random_read": {"iops": 740_000, "size": "4KiB"},
                "random_write": {"iops": 800_000, "size": "4KiB", "state": "burst"},
            },
        },
    ),
)


@pytest.mark.parametrize(("sheet", "form", "options", "stated"), CASES, ids=[case[0].split("\n")[1] for case in CASES])
def test_sheets_of_makers_become_drives_that_run(
    headstack: Headstack, tmp_path: Path, sheet: str, form: str, options: list[str], stated: dict[str, Any]
) -> None:
    (tmp_path / f"sheet.{form}").write_text(sheet)
    done = headstack("catalog", "drives", "new", "--from", f"sheet.{form}", "-o", "new.toml", *options)
    assert done.returncode == 0, done.stderr
    assert "contradiction" not in done.stderr
    text = (tmp_path / "new.toml").read_text()
    read = tomllib.loads(text)
    assert {key: read[key] for key in stated if key != "kind"} == {k: v for k, v in stated.items() if k != "kind"}
    drive = hs.Drive.load(tmp_path / "new.toml")
    assert drive.kind == stated["kind"]
    # Every value has the line that states it.
    sources = {value["key"]: value["source"] for value in drive.stated}
    assert sources["capacity.size"] == f"A data sheet, sheet.{form}"
    assert f"# line {next(n for n, line in enumerate(sheet.splitlines(), 1) if 'apacity' in line)}: " in text
    result = hs.run(tmp_path / "new.toml", workload="random-read-4k", depth=4, requests=500)[0]
    assert result["iops"] > 40


def test_what_is_missing_is_said_at_once_and_estimated_where_the_class_allows_it(
    headstack: Headstack, tmp_path: Path
) -> None:
    lines = SEAGATE.splitlines()
    (tmp_path / "x18.txt").write_text("\n".join(line for line in lines if "geometry" not in line))
    done = headstack(
        "catalog", "drives", "new", "--from", "x18.txt", "--source", "B Seagate DS2045.1", "-o", "x18.toml"
    )
    assert done.returncode == 0
    assert "missing, and estimated from the class of the drive:\n" in done.stderr
    assert "geometry.platters = 9 (platter density of its year); or add: platters: 9\n" in done.stderr
    assert "seek.read_average = 8.5ms (" in done.stderr
    assert "not used in a drive file: Power-On Hours per Year (24×7), Limited Warranty (years)\n" in done.stderr
    drive = hs.Drive.load(tmp_path / "x18.toml")
    sources = {value["key"]: value["source"] for value in drive.stated}
    assert sources["geometry.platters"].startswith("D ")
    assert sources["seek.read_average"].startswith("D ")
    assert sources["spindle.speed"] == "B Seagate DS2045.1"
    text = (tmp_path / "x18.toml").read_text()
    assert "platters = 9  # estimate, not on the sheet\n" in text
    assert '# sustained_inner_rate = "135MB/s"  # derived, not on the sheet' in text


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        (
            "Spindle speed: 7200\n",
            "missing: year, capacity, geometry, buffer.size, interface.kind, interface.rate; add",
        ),
        ("NAND: 96L TLC\n", "missing: capacity, interface.kind; add lines such as these: capacity: 16TB; interface"),
        ("Capacity: 4TB\n", "cannot distinguish a disk from an SSD; add one of these lines: spindle speed"),
        ("hello\n", "sheet.txt: no line has a label and a value, for example 'Capacity: 18TB'"),
        (KIOXIA, "line 1: the sheet has 2 models (KCM71RUG1T92, KCM71RUG7T68); choose one with --column 1 to 2"),
        (SEAGATE.replace("platters = 9", "platters = 0"), "the sheet does not describe a valid drive: line "),
    ],
)
def test_sheets_that_make_no_drive(headstack: Headstack, tmp_path: Path, sheet: str, message: str) -> None:
    (tmp_path / "sheet.txt").write_text(sheet)
    done = headstack("catalog", "drives", "new", "--from", "sheet.txt", "-o", "new.toml")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "new.toml").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("(ms): 4.16", "(ms): 2.0"), "spindle.speed: half a revolution at 7200rpm takes 4.17 ms, not 2 ms"),
        (
            ("heads = 18", "heads = 20"),
            "geometry.heads: 20 heads on 9 platters; must be two per platter, or up to two fewer",
        ),
        (("270MB/s", "700MB/s"), "media.sustained_outer_rate: 700MB/s exceeds the interface rate, 600MB/s"),
        (("Limited", "Capacity: 16TB\nLimited"), "capacity.size: line 19: Capacity: 16TB differs from line 5"),
        (("Limited", "LBAs: 39,063,650,304\nLimited"), "39,063,650,304 blocks of 512 bytes are not 18TB; the blocks"),
        (
            ("Limited", "Track-to-track seek: 9 ms\nAverage seek: 8 ms\nLimited"),
            "9ms is not less than seek.read_average",
        ),
    ],
)
def test_contradictions_are_told(change: tuple[str, str], told: str) -> None:
    sheet = Sheet.of(lines_of(SEAGATE.replace(*change)))
    assert [one for one in sheet.contradictions if told in one], sheet.contradictions
    assert not Sheet.of(lines_of(SEAGATE)).contradictions


def test_reads_that_the_latency_does_not_allow_are_a_contradiction() -> None:
    sheet = Sheet.of(lines_of(SAMSUNG.replace("QD1): Up to 13,000", "QD1): Up to 1,300")))
    assert "stated.random_read: 98,000 IOPS at queue depth 32 exceed" in sheet.contradictions[0]
    assert Sheet.of(lines_of(SAMSUNG)).contradictions == []


def test_toml_and_keys_of_drive_files_are_labels_too(headstack: Headstack, tmp_path: Path) -> None:
    (tmp_path / "sheet.toml").write_text(
        '"Spindle Speed" = 7200\nCapacity = "4TB"\nYear = 2016\nCache = "128MB"\nInterface = "SATA 6Gb/s"\n'
        "[geometry]\nplatters = 4\n"
    )
    done = headstack("catalog", "drives", "new", "--from", "sheet.toml")
    assert done.returncode == 0, done.stderr
    read = tomllib.loads(done.stdout)
    assert (read["spindle"]["speed"], read["geometry"]["platters"], read["buffer"]["size"]) == ("7200rpm", 4, "128MiB")


def test_a_terminal_is_asked() -> None:
    answers = [
        "disk",
        "Ours",
        "Acme",
        "2020",
        "plenty",
        "4TB",
        "SATA 6Gb/s",
        "7200",
        "4",
        "8.5",
        "200",
        "256",
        "",
        "",
        "",
    ]
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from headstack.cli.main import main; main()", "catalog", "drives", "new"],
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(follower)
    os.write(leader, "".join(f"{answer}\n" for answer in answers).encode())
    out, err = process.communicate(timeout=60)
    os.close(leader)
    assert process.returncode == 0, err
    assert "'plenty' is not understood; enter a number with its unit, or nothing" in err
    read = tomllib.loads(out)
    assert (read["name"], read["capacity"]["size"], read["seek"]["read_average"]) == ("Ours", "4TB", "8.5ms")
    assert read["sources"]["default"] == "A data sheet, as entered by the user"


def test_without_a_terminal_nobody_is_asked(headstack: Headstack) -> None:
    done = headstack("catalog", "drives", "new")
    assert done.returncode == 2
    assert "--from: name a data sheet" in done.stderr

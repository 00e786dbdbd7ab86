"""``headstack doctor``: what it reads from a machine, its checks one by one, and that it writes nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import headstack as hs
from conftest import Headstack, lacks
from headstack import InputError
from headstack.diagnosis.doctor import checks_now, checks_settings
from headstack.diagnosis.doctor.blocks import Kind, drives_below
from headstack.diagnosis.doctor.diagnosis import CHECKS, FINDINGS_MAX, Diagnosis, diagnose, measured_target
from headstack.diagnosis.doctor.findings import Check, Finding, Host, Urgency
from headstack.diagnosis.doctor.load import DeviceLoad, Load, Reading, exceeds_free_run, load_between
from headstack.diagnosis.doctor.machine import Machine
from headstack.diagnosis.doctor.reading import read_host
from headstack.diagnosis.doctor.report import device_row, limit_lines
from headstack.diagnosis.inspection.model import Inspection
from headstack.diagnosis.judging.verdict import Kind as VerdictKind
from headstack.diagnosis.judging.verdict import Verdict

SECTORS = 2_000_000_000
HDD = {
    "size": str(SECTORS),
    "dev": "8:0",
    "device/vendor": "ATA",
    "device/model": "ST18000NM000J",
    "device/queue_depth": "32",
    "queue/rotational": "1",
    "queue/scheduler": "none [mq-deadline] kyber bfq",
    "queue/write_cache": "write back",
    "queue/read_ahead_kb": "128",
    "queue/logical_block_size": "512",
    "queue/physical_block_size": "4096",
    "queue/nr_requests": "64",
}
NVME = {
    "size": str(SECTORS),
    "dev": "259:0",
    "device/model": "Samsung SSD 990 PRO 2TB",
    "queue/rotational": "0",
    "queue/scheduler": "[none] mq-deadline kyber bfq",
    "queue/write_cache": "write back",
    "queue/read_ahead_kb": "128",
    "queue/logical_block_size": "512",
    "queue/physical_block_size": "512",
    "queue/nr_requests": "1023",
    "mq/0/cpu_list": "0",
    "mq/1/cpu_list": "1",
}
MOUNTED = "30 1 8:1 / /data rw,relatime - ext4 /dev/sda1 rw"
VMSTAT = "nr_dirty 10\nnr_writeback 0\nnr_dirty_threshold 400000\nnr_dirty_background_threshold 200000\npgmajfault 0"
CPUS = "cpu  0 0 0 0 0 0 0 0 0 0\n" + "\n".join(f"cpu{n} 0 0 0 0 0 0 0 0 0 0" for n in range(8))


def machine(folder: Path, files: Mapping[str, str]) -> Machine:
    """A machine with these files, and those that every kernel has."""
    usual = {
        "proc/self/mountinfo": "",
        "proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0",
        "proc/self/cgroup": "0::/user.slice",
        "proc/swaps": "Filename\tType\tSize\tUsed\tPriority",
        "proc/vmstat": VMSTAT,
        "proc/stat": CPUS,
        "proc/sys/vm/dirty_expire_centisecs": "3000",
    }
    for name, text in {**usual, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return Machine(folder)


def disk(name: str = "sda", files: Mapping[str, str] = HDD, start: int = 2048, **changed: str) -> dict[str, str]:
    """The files of a disk with one partition. ``changed`` has changed settings of its queue."""
    part = f"{name}p1" if name[-1].isdigit() else f"{name}1"
    major, _, minor = files["dev"].partition(":")
    number = f"{major}:{int(minor) + 1}"
    queue = {f"queue/{key}": value for key, value in changed.items()}
    own = {f"sys/block/{name}/{key}": text for key, text in {**files, **queue}.items()}
    partition = {"partition": "1", "start": str(start), "dev": number}
    return (
        own
        | {f"sys/block/{name}/{part}/{key}": text for key, text in partition.items()}
        | {f"sys/class/block/{part}/dev": number, f"sys/class/block/{name}/dev": files["dev"]}
    )


def host(folder: Path, files: Mapping[str, str], load: Load | None = None, mount: str = MOUNTED) -> Host:
    read = read_host(machine(folder, {"proc/self/mountinfo": mount, **files}))
    return replace(read, load=load)


def loaded(name: str = "sda", **figures: float) -> Load:
    """An observation with one device."""
    usual = {"reads_per_s": 100.0, "writes_per_s": 50.0, "in_flight": 0.5}
    return Load(20.0, {name: DeviceLoad(**{**usual, **figures})}, {"cpu": 0.0, "io": 0.0, "memory": 0.0}, 0.9, 0.0)


def check_names(seen: Host) -> set[Check]:
    return {finding.check for check in CHECKS.values() for finding in check(seen)}


def test_devices_and_stack_are_read(tmp_path: Path) -> None:
    mapped = {
        "sys/block/dm-0/size": "1000",
        "sys/block/dm-0/dev": "252:0",
        "sys/class/block/dm-0/dev": "252:0",
        "sys/block/dm-0/dm/name": "vg-root",
        "sys/block/dm-0/dm/uuid": "LVM-abc",
        "sys/block/dm-0/slaves/md0/x": "",
        "sys/block/md0/size": "1000",
        "sys/block/md0/dev": "9:0",
        "sys/class/block/md0/dev": "9:0",
        "sys/block/md0/md/level": "raid1",
        "sys/block/md0/md/array_state": "active",
        "sys/block/md0/md/sync_action": "check",
        "sys/block/md0/md/sync_completed": "10 / 1000",
        "sys/block/md0/slaves/sda1/x": "",
        "sys/block/md0/slaves/sdb1/x": "",
        "sys/block/loop0/size": "1000",
        "sys/block/sdz/size": "0",
        "proc/swaps": "Filename Type Size Used Priority\n/dev/sda1 partition 1000 10 -2",
    }
    mount = "30 1 252:0 / /a\\040b rw,relatime - xfs /dev/mapper/vg-root rw,discard,logbsize=32k"
    # A bind mount of the same file system.
    mount += "\n31 1 252:0 /sub /c rw,relatime - xfs /dev/mapper/vg-root rw"
    other = {**HDD, "dev": "8:16"}
    seen = host(tmp_path, disk() | disk("sdb", other) | mapped, mount=mount)
    assert [(device.name, device.kind) for device in seen.devices] == [
        ("dm-0", Kind.DM),
        ("md0", Kind.MD),
        ("sda", Kind.DISK),
        ("sdb", Kind.DISK),
    ]
    assert drives_below("dm-0", seen.devices) == ("sda", "sdb")
    [data] = seen.stack.mounts
    assert (data.source, data.folder, data.kind, data.options_text) == (
        "dm-0",
        "/a b",
        "xfs",
        "relatime,discard,logbsize=32k",
    )
    assert [device.name for device in seen.drives] == ["sda", "sdb"]
    assert seen.stack.swaps == {"sda1": 10240}
    assert seen.stack.arrays[0].done == "10 / 1000"
    row = device_row(seen.devices[2], seen)
    assert row[:3] == ["sda", "HDD", "ST18000NM000J"]
    assert row[4] == "/a b (xfs), swap, in dm-0, in md0"
    assert "md0: raid1, active, check (10 / 1000)" in limit_lines(seen)


def test_clouds_and_virtual_disks_are_recognized_by_their_models(tmp_path: Path) -> None:
    cases = {
        "nvme0n1": ("Amazon Elastic Block Store", "", Kind.CLOUD),
        "sda": ("PersistentDisk", "Google", Kind.CLOUD),
        "sdb": ("Virtual Disk", "Msft", Kind.CLOUD),
        "sdc": ("QEMU HARDDISK", "QEMU", Kind.VIRTUAL),
        "vda": ("", "0x1af4", Kind.VIRTUAL),
        "sdd": ("ST18000NM000J", "ATA", Kind.DISK),
    }
    files: dict[str, str] = {}
    for name, (model, vendor, _) in cases.items():
        files |= {f"sys/block/{name}/{key}": text for key, text in HDD.items()}
        files |= {f"sys/block/{name}/device/model": model, f"sys/block/{name}/device/vendor": vendor}
    seen = read_host(machine(tmp_path, files))
    assert {device.name: device.kind for device in seen.devices} == {name: kind for name, (_, _, kind) in cases.items()}
    # A virtual disk calls itself rotational: no check of disks applies.
    virtual = host(tmp_path / "v", disk("vda", {**HDD, "device/vendor": "0x1af4"}, scheduler="[none]"), loaded("vda"))
    assert check_names(virtual) == set()


def test_a_healthy_machine_has_no_finding(tmp_path: Path) -> None:
    seen = host(tmp_path, disk() | disk("nvme0n1", NVME), loaded())
    diagnosis = diagnose(seen, Machine(tmp_path))
    assert diagnosis.findings == ()
    assert diagnosis.answer == f"nothing worth changing found: {len(CHECKS)} checks on 2 devices, observed for 20 s"
    assert diagnosis.exit_code == 0


def test_every_check_has_a_function_with_a_source_and_its_limits() -> None:
    assert set(CHECKS) == set(Check)
    for check in CHECKS.values():
        assert "oes not\n    apply" in str(check.__doc__) or "oes not apply" in str(check.__doc__), check
        assert re.search(r"\(|``judge``|``inspect``", str(check.__doc__)), check


SETTINGS = {
    # Each with the disk that has it, and the same without it.
    Check.WRITE_CACHE: (disk(write_cache="write through"), disk()),
    Check.QUEUE_DEPTH: (disk(files={**HDD, "device/queue_depth": "1"}), disk()),
    Check.SCHEDULER: (disk(scheduler="[none] mq-deadline"), disk()),
    Check.ALIGNMENT: (disk(start=63), disk(start=64)),
    Check.READ_AHEAD: (disk(read_ahead_kb="0"), disk(read_ahead_kb="64")),
}


@pytest.mark.parametrize("check", SETTINGS, ids=lambda check: check.name)
def test_a_setting_is_found_where_it_is(check: Check, tmp_path: Path) -> None:
    bad, good = SETTINGS[check]
    [finding] = CHECKS[check](host(tmp_path / "bad", bad))
    assert finding.urgency == Urgency.SETTING
    assert "/sys/block/sda" in finding.seen
    assert finding.kind is None
    assert list(CHECKS[check](host(tmp_path / "good", good))) == []
    # A disk that is not in use is not worth a change.
    assert list(CHECKS[check](host(tmp_path / "idle", bad, mount=""))) == []


def test_effects_are_simulated_where_a_model_covers_them(tmp_path: Path) -> None:
    [cache] = checks_settings.write_cache(host(tmp_path / "c", SETTINGS[Check.WRITE_CACHE][0]))
    assert cache.effect.origin == "simulated"
    assert cache.effect.speedup is not None
    assert 2.0 < cache.effect.speedup < 20.0
    [depth] = checks_settings.queue_depth(host(tmp_path / "q", SETTINGS[Check.QUEUE_DEPTH][0]))
    direct = hs.run("exos-x18-18tb", size="4KiB", read=100, random=100, depth=32, host_tags=[1, 32], requests=4000)
    assert depth.effect.speedup == pytest.approx(direct[1]["iops"] / direct[0]["iops"])
    assert "exos-x18-18tb" in depth.effect.text
    bfq = disk("nvme0n1", NVME, scheduler="none [bfq]")
    [finding] = checks_settings.scheduler(host(tmp_path / "b", bfq, mount="30 1 259:1 / /d rw - ext4 /dev/x rw"))
    assert finding.effect.text == "not known"


def test_caches_of_sas_and_usb_disks_are_left_alone(tmp_path: Path) -> None:
    sas = {**HDD, "device/vendor": "SEAGATE"}
    assert list(checks_settings.write_cache(host(tmp_path, disk(files=sas, write_cache="write through")))) == []
    assert list(checks_settings.queue_depth(host(tmp_path, disk(files={**sas, "device/queue_depth": "1"})))) == []


def test_the_queues_and_the_link_of_an_nvme_ssd(tmp_path: Path) -> None:
    mount = "30 1 259:1 / /d rw,relatime - ext4 /dev/nvme0n1p1 rw"
    one = {key: text for key, text in NVME.items() if not key.startswith("mq/1")}
    pci = {"device/device/current_link_speed": "8.0 GT/s PCIe", "device/device/current_link_width": "2"} | {
        "device/device/max_link_speed": "16.0 GT/s PCIe",
        "device/device/max_link_width": "4",
    }
    seen = host(tmp_path, disk("nvme0n1", {**one, **pci}), mount=mount)
    [queues] = checks_settings.hardware_queues(seen)
    assert queues.seen.endswith("1 queue for 8 processors")
    assert list(checks_settings.hardware_queues(replace(seen, processors=2))) == []
    [link] = checks_settings.link(seen)
    assert (link.seen, link.effect.speedup) == ("link 8.0 GT/s PCIe x2, supported 16.0 GT/s PCIe x4", 4.0)
    full = pci | {"device/device/current_link_speed": "16.0 GT/s PCIe", "device/device/current_link_width": "4"}
    assert list(checks_settings.link(host(tmp_path, disk("nvme0n1", {**NVME, **full}), mount=mount))) == []


def test_large_read_ahead_is_found_only_if_faults_read_that_much(tmp_path: Path) -> None:
    files = disk(read_ahead_kb="8192", max_sectors_kb="512")
    quiet = host(tmp_path, files, loaded(read_bytes_per_s=50e6))
    assert list(checks_settings.read_ahead(quiet)) == []
    assert quiet.load is not None
    faults = replace(quiet, load=replace(quiet.load, major_faults_per_s=10.0))
    [finding] = checks_settings.read_ahead(faults)
    assert "4,883 KiB are read for each page fault" in finding.seen
    small = replace(quiet, load=replace(loaded(read_bytes_per_s=1e6), major_faults_per_s=10.0))
    assert list(checks_settings.read_ahead(small)) == []
    # Another program reads small blocks at random.
    other = replace(quiet, load=replace(loaded(reads_per_s=12000.0, read_bytes_per_s=50e6), major_faults_per_s=10.0))
    assert list(checks_settings.read_ahead(other)) == []


def test_dirty_limits_are_compared_with_the_rate_of_the_device(tmp_path: Path) -> None:
    large = VMSTAT.replace("400000", "10000000")
    [finding] = checks_settings.dirty_limits(host(tmp_path, disk() | {"proc/vmstat": large}))
    # 41 GB at the 268 MB/s of the simulated disk.
    assert "41 GB: 153 s of writing at 268 MB/s" in finding.seen
    assert re.fullmatch(r"sysctl vm.dirty_background_bytes=\d+ vm.dirty_bytes=\d+", finding.command)
    assert list(checks_settings.dirty_limits(host(tmp_path, disk() | {"proc/vmstat": VMSTAT}))) == []
    # A read-only mount cannot become dirty.
    ro = MOUNTED.replace("rw,relatime", "ro,relatime")
    assert list(checks_settings.dirty_limits(host(tmp_path, disk() | {"proc/vmstat": large}, mount=ro))) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("rw,sync,relatime - ext4 /dev/sda1 rw", "sync"),
        ("rw - ext4 /dev/sda1 rw", "neither relatime nor noatime"),
        ("rw,noatime - ext4 /dev/sda1 rw,data=journal", "data=journal"),
        ("rw,noatime - ext4 /dev/sda1 rw", None),
        ("ro - ext4 /dev/sda1 ro", None),
    ],
)
def test_mount_options_that_write_more(options: str, text: str | None, tmp_path: Path) -> None:
    seen = host(tmp_path, disk(), mount=f"30 1 8:1 / /data {options}")
    assert [finding.seen for finding in checks_settings.mount_options(seen)] == (
        [f"/proc/mounts has {text}"] if text else []
    )


def test_missing_barriers_are_a_danger_only_with_a_volatile_cache(tmp_path: Path) -> None:
    mount = "30 1 8:1 / /data rw,relatime - ext4 /dev/sda1 rw,nobarrier"
    seen = host(tmp_path / "a", disk(), mount=mount)
    [finding] = checks_now.barrier(seen)
    assert (finding.urgency, finding.subject) == (Urgency.DANGER, "/data")
    assert diagnose(seen, Machine(tmp_path)).exit_code == 1
    assert list(checks_now.barrier(host(tmp_path / "b", disk(write_cache="write through"), mount=mount))) == []


def test_health_and_temperature_of_drives(tmp_path: Path) -> None:
    hot = {"device/hwmon/hwmon2/temp1_input": "61000", "device/hwmon/hwmon2/temp1_max": "60000"}
    seen = host(tmp_path, disk(files={**HDD, **hot}))
    [finding] = checks_now.temperature(seen)
    assert finding.seen == "temp1_input is 61 °C, temp1_max 60 °C"
    cool = hot | {"device/hwmon/hwmon2/temp1_input": "40000"}
    assert list(checks_now.temperature(host(tmp_path, disk(files={**HDD, **cool})))) == []
    failing = replace(seen, inspections={"sda": Inspection(name="sda", passed=False)})
    [finding] = checks_now.health(failing)
    assert finding.seen == "the drive's health self-assessment: FAILED"
    assert diagnose(failing, Machine(tmp_path)).exit_code == 1
    assert list(checks_now.health(replace(seen, inspections={"sda": Inspection(name="sda", passed=True)}))) == []


MD = {
    "size": "1000",
    "dev": "9:0",
    "md/level": "raid5",
    "md/array_state": "active",
    "md/degraded": "0",
    "md/sync_action": "check",
    "slaves/sda1/x": "",
}


def test_arrays_that_are_degraded_or_busy(tmp_path: Path) -> None:
    def array(**changed: str) -> dict[str, str]:
        own = MD | {f"md/{key}": value for key, value in changed.items()}
        return disk() | {f"sys/block/md0/{key}": text for key, text in own.items()}

    busy = host(tmp_path, array(), loaded("md0"))
    [finding] = checks_now.sync_action(busy)
    assert finding.command.startswith("echo idle > /sys/block/md0/md/sync_action")
    assert finding.kind == "neighbour"
    # Nobody waits for an array without requests.
    assert list(checks_now.sync_action(replace(busy, load=loaded("sda")))) == []
    assert list(checks_now.degraded(busy)) == []
    missing = host(tmp_path, array(degraded="1", sync_action="recover"), loaded("md0"))
    [finding] = checks_now.degraded(missing)
    assert finding.urgency == Urgency.DANGER
    # A recovery is not slowed down.
    assert list(checks_now.sync_action(missing)) == []


GROUP = "sys/fs/cgroup/db.slice/db.service"


def test_limits_of_control_groups_are_found_and_compared(tmp_path: Path) -> None:
    files = disk() | {
        f"{GROUP}/io.max": "8:0 rbps=max wbps=max riops=max wiops=100",
        f"{GROUP}/io.stat": "8:0 rbytes=0 wbytes=0 rios=0 wios=1000 dbytes=0 dios=0",
        "sys/fs/cgroup/user.slice/io.latency": "8:0 target=75000",
        "proc/diskstats": "8 0 sda 0 0 0 0 0 0 0 0 0 0 0",
    }
    at = machine(tmp_path, {"proc/self/mountinfo": MOUNTED, **files})
    seen = read_host(at)
    assert [(limit.group, limit.key, limit.is_own) for limit in seen.limits] == [
        ("/db.slice/db.service", "wiops", False),
        ("/user.slice", "io.latency", True),
    ]
    before = replace(Reading.now(at, seen.limits), at_s=0.0)
    (tmp_path / GROUP / "io.stat").write_text("8:0 rbytes=0 wbytes=0 rios=0 wios=1990 dbytes=0 dios=0\n")
    after = replace(Reading.now(at, seen.limits), at_s=10.0)
    limited = replace(seen, load=load_between(before, after))
    [finding] = checks_now.group_limit(limited)
    assert finding.subject == "sda, group /db.slice/db.service"
    assert "observed 99 IOPS" in finding.seen
    assert finding.command == "echo '8:0 wiops=RATE' > /sys/fs/cgroup/db.slice/db.service/io.max"
    assert diagnose(limited, at).exit_code == 5
    slower = replace(seen, load=load_between(before, replace(after, at_s=11.0)))
    assert list(checks_now.group_limit(slower)) == []
    assert any("observed 90% of it" in line for line in limit_lines(slower))


def test_limits_of_the_first_version_of_control_groups(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/blkio/job"
    files = disk() | {
        "proc/self/mounts": "cgroup /sys/fs/cgroup/blkio cgroup rw,relatime,blkio 0 0",
        "proc/self/cgroup": "7:blkio:/job/deeper",
        f"{group}/blkio.throttle.read_bps_device": "8:0 1048576",
        f"{group}/blkio.throttle.io_service_bytes": "8:0 Read 5000000\n8:0 Write 7\nTotal 5000007",
    }
    at = machine(tmp_path, files)
    [limit] = read_host(at).limits
    assert (limit.group, limit.key, limit.is_own, limit.rate_text) == ("/job", "rbps", True, "1.0 MB/s")
    assert Reading.now(at, (limit,)).groups == {limit: 5e6}


def verdict(kind: VerdictKind) -> Verdict:
    return Verdict("h", "sda", kind, "3,000 IOPS are 100% of the limit.", "Raise it.", confidence=0.97)


def test_verdicts_of_judge_are_findings_if_requests_wait(tmp_path: Path) -> None:
    load = replace(loaded(in_flight=12.0), verdicts={"sda": verdict("limit")})
    seen = host(tmp_path, disk(), load)
    [finding] = checks_now.verdict(seen)
    assert finding.why == "3,000 IOPS are 100% of the limit (97% sure)"
    assert diagnose(seen, Machine(tmp_path)).exit_code == 5
    others: tuple[VerdictKind, ...] = ("fine", "undecided", "host", "neighbour")
    for kind in others:
        assert list(checks_now.verdict(replace(seen, load=replace(load, verdicts={"sda": verdict(kind)})))) == []
    assert list(checks_now.verdict(replace(seen, load=replace(loaded(), verdicts={"sda": verdict("limit")})))) == []


def test_a_host_without_processors_left_is_named_if_no_device_is_busy(tmp_path: Path) -> None:
    def starved(in_flight: float, **changed: object) -> list[Finding]:
        seen = host(tmp_path, disk(), replace(loaded(in_flight=in_flight), **changed))  # type: ignore[arg-type]
        return list(checks_now.starved_host(seen))

    busy = {"cpu_idle": 0.01, "stalled": {"cpu": 0.9}}
    [finding] = starved(0.2, **busy)
    assert (finding.subject, finding.kind) == ("host", "host")
    assert starved(3.0, **busy) == []
    # A device is busy, and tasks wait for it hardly, or as long.
    [finding] = starved(3.0, cpu_idle=0.01, stalled={"cpu": 0.9, "io": 0.2})
    assert "more than for storage (20% of the time), which has 3 requests in flight" in finding.why
    assert starved(3.0, cpu_idle=0.01, stalled={"cpu": 0.9, "io": 0.6}) == []
    assert starved(3.0, cpu_idle=0.01, cpu_steal=0.3, stalled={"cpu": 0.3, "io": 0.0}) == []
    assert starved(0.2) == []
    [finding] = starved(0.2, cpu_steal=0.3)
    assert "30% of processor time stolen" in finding.seen
    [finding] = starved(0.2, stalled={"memory": 0.4})
    assert finding.seen == "/proc/pressure/memory: tasks waited 40% of the time"


def test_writers_that_wait_for_dirty_pages(tmp_path: Path) -> None:
    pages = {"nr_dirty_threshold": 100, "nr_dirty_background_threshold": 50, "nr_dirty": 70, "nr_writeback": 5}
    assert not exceeds_free_run(pages)
    assert exceeds_free_run(pages | {"nr_writeback": 6})
    assert not exceeds_free_run({})
    seen = host(tmp_path, disk(), replace(loaded(write_bytes_per_s=80e6), throttled=0.9))
    assert seen.load is not None
    [finding] = checks_now.dirty_throttle(seen)
    assert finding.subject == "sda"
    assert "now 80 MB/s" in finding.command
    assert list(checks_now.dirty_throttle(replace(seen, load=replace(seen.load, throttled=0.1)))) == []


def test_swapping_next_to_a_file_system(tmp_path: Path) -> None:
    files = disk() | {"proc/swaps": "Filename Type Size Used Priority\n/data/swap file 1000 10 -2"}
    files["proc/self/mounts"] = "/dev/sda1 /data ext4 rw 0 0"
    seen = host(tmp_path, files, replace(loaded(), swapped_per_s=500.0))
    [finding] = checks_now.swap(seen)
    assert "500 pages/s swapped" in finding.seen
    assert list(checks_now.swap(replace(seen, load=loaded()))) == []


def test_flushes_and_discards_that_take_the_time(tmp_path: Path) -> None:
    mount = "30 1 259:1 / /d rw,relatime - ext4 /dev/nvme0n1p1 rw,discard"
    files = disk("nvme0n1", NVME)
    slow = host(tmp_path, files, loaded("nvme0n1", flushes_per_s=200.0, flush_latency_s=0.004), mount)
    [finding] = checks_now.flushes(slow)
    assert "200 flushes/s of 4 ms each: 80% of the time" in finding.seen
    assert finding.effect.origin == "simulated"
    assert finding.effect.speedup is not None
    assert finding.effect.speedup > 10
    quick = loaded("nvme0n1", flushes_per_s=2000.0, flush_latency_s=0.0004)
    assert list(checks_now.flushes(replace(slow, load=quick))) == []
    [finding] = checks_now.discards(replace(slow, load=loaded("nvme0n1", discard_share=0.4, discards=1000)))
    assert finding.subject == "/d"
    assert list(checks_now.discards(replace(slow, load=loaded("nvme0n1", discard_share=0.01)))) == []


def test_counters_become_rates(tmp_path: Path) -> None:
    line = "8 0 sda 1000 0 80000 4000 500 0 4000 1000 0 100 5000 10 0 80 1500 20 40"
    at = machine(tmp_path, {"proc/diskstats": line, "proc/pressure/io": "some avg10=0 total=1000000"})
    before = replace(Reading.now(at, ()), at_s=0.0)
    later = "8 0 sda 2000 0 160000 8000 500 0 4000 1000 0 100 9000 10 0 80 1500 20 40"
    machine(tmp_path, {"proc/diskstats": later, "proc/pressure/io": "some avg10=0 total=6000000"})
    load = load_between(before, replace(Reading.now(at, ()), at_s=10.0))
    read = load.devices["sda"]
    assert (read.reads_per_s, read.writes_per_s, read.read_latency_s) == (100.0, 0.0, 0.004)
    assert read.read_bytes_per_s == 80000 * 512 / 10
    assert read.in_flight == pytest.approx(0.4)
    assert read.discard_share == pytest.approx(1.5 / (8 + 1 + 1.5 + 0.04))
    assert load.stalled == {"io": 0.5}


def test_at_most_three_findings_the_most_urgent_first(tmp_path: Path) -> None:
    bad = disk(
        files={**HDD, "device/queue_depth": "1"}, start=63, write_cache="write through", scheduler="[none] mq-deadline"
    )
    seen = replace(host(tmp_path, bad, loaded()), inspections={"sda": Inspection(name="sda", passed=False)})
    diagnosis = diagnose(seen, Machine(tmp_path))
    assert len(diagnosis.findings) == FINDINGS_MAX
    assert [finding.check for finding in diagnosis.findings] == [Check.HEALTH, Check.WRITE_CACHE, Check.QUEUE_DEPTH]
    assert diagnosis.further == 2
    assert diagnosis.answer.startswith("sda: data at risk: the drive's health self-assessment: FAILED (3 findings; ")


def test_files_that_may_not_be_read_are_reported(tmp_path: Path) -> None:
    at = machine(tmp_path, disk("nvme0n1", NVME))
    at.refused.update({"/sys/a", "/sys/b", "/sys/c"})
    denied = Inspection(name="/dev/nvme0n1", notes=("smartctl: Permission denied", "nvme: Permission denied"))
    seen = replace(read_host(at), inspections={"nvme0n1": denied})
    assert diagnose(seen, at).unseen == (
        "nvme0n1: smartctl: Permission denied; nvme: Permission denied",
        "not permitted to read /sys/a, /sys/b and 1 more file: run it as root",
    )


def test_a_folder_is_measured_by_its_largest_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file of 64 MiB or more"):
        measured_target(str(tmp_path))
    for name, size in (("a", 1), ("b", 65 << 20)):
        with open(tmp_path / name, "wb") as file:
            file.truncate(size)
    assert measured_target(str(tmp_path)) == str(tmp_path / "b")
    assert measured_target(str(tmp_path / "a")) == str(tmp_path / "a")


def test_the_command_reports_this_machine(headstack: Headstack, tmp_path: Path) -> None:
    done = headstack("doctor", "--time", "1s", "--json", "d.json", "--markdown", "d.md", "--html", "d.html")
    stored = json.loads((tmp_path / "d.json").read_text())
    assert done.returncode in (0, 1, 5, 6, 7, 8), done.stderr
    assert done.stdout.startswith(stored["answer"])
    assert len(stored["findings"]) <= FINDINGS_MAX
    ticket = (tmp_path / "d.md").read_text()
    assert ticket.startswith(f"**{stored['answer'][:1].upper()}")
    # The ticket has the first table.
    assert ("| subject | seen |" if stored["findings"] else "| device | kind |") in ticket
    assert "Diagnosis of this machine" in (tmp_path / "d.html").read_text()
    wrong = headstack("doctor", "--time", "2h")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert isinstance(hs.doctor(time="0s"), Diagnosis)


def test_nothing_is_written(tmp_path: Path) -> None:
    """No file is opened for writing, created, renamed or removed, by the command or a program that it starts."""
    if shutil.which("strace") is None:
        lacks("programs", "strace is not installed")
    calls = "open,openat,creat,truncate,ftruncate,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,link,symlink"
    command = [sys.executable, "-m", "headstack", "doctor", "--time", "1s"]
    # Without the cached modules that Python itself would write.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["strace", "-f", "-qq", "-e", f"trace={calls}", "-o", str(tmp_path / "calls"), *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    made = (tmp_path / "calls").read_text().splitlines()
    if not any("/proc/diskstats" in line for line in made):
        lacks("programs", f"strace cannot trace here: {done.stderr}")
    started = [line for line in made if re.match(r"\d+ +\w+\(", line)]
    writes = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|^\d+ +(?!open)\w")
    # Programs may open the null device to discard output.
    assert [line for line in started if writes.search(line) and "/dev/null" not in line] == []


def test_doctor_loads_without_the_packages_of_judging() -> None:
    """They are extras of the wheel; without them a note replaces the verdicts."""
    blocked = "import sys; sys.modules['numpy'] = sys.modules['polars'] = None; "
    code = f"{blocked}import headstack.diagnosis.doctor.diagnosis"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

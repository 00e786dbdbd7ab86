"""Zones: files divided into zones as fio does it, and zoned devices in the virtual machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import headstack as hs
from conftest import lacks, nvme

MIB = 1 << 20
UNIT = 65536
ZONES = 8
NULL_BLK = Path("/sys/kernel/config/nullb")
ZNS = Path(f"/dev/{nvme('headstack-zns')}n1")


@pytest.fixture
def inside() -> None:
    if "HEADSTACK_VM" not in os.environ:
        lacks("kernel", "this is not the virtual machine of tests/vm/run.sh")


in_vm = pytest.mark.usefixtures("inside")


def written(path: Path) -> list[list[bool]]:
    """Of each zone of 1 MiB, which units hold anything."""
    data = path.read_bytes()
    zones = [data[start : start + MIB] for start in range(0, len(data), MIB)]
    return [[any(zone[at : at + UNIT]) for at in range(0, MIB, UNIT)] for zone in zones]


def assert_intact(results: hs.Results) -> None:
    found = results.integrity(0)
    assert found is not None
    assert (found["damaged"], found["lost"], results[0]["errors"]) == (0, 0, 0), results.notes


def counters(results: hs.Results) -> dict[str, int]:
    [whole] = json.loads(results.to_json())
    return {counter["name"]: counter["value"] for counter in whole["counters"]}


SEQUENTIAL = {
    "all": "--rw=write --size=8m",
    "capacity": "--rw=write --size=8m --zonecapacity=512k",
    "part": "--rw=write --size=4m --offset=2m",
    "zones": "--rw=write --size=3z --offset=1z",
    "skip": "--rw=write --size=8m --zoneskip=1m",
    "twice": "--rw=write --size=8m --io_size=16m",
}


@pytest.mark.parametrize("options", SEQUENTIAL.values(), ids=SEQUENTIAL)
def test_the_zones_that_fio_writes_are_written_to_the_same_pointers(tmp_path: Path, options: str) -> None:
    if shutil.which("fio") is None:
        lacks("programs", "fio is not on this machine")
    found = {}
    for name in ("fio", "headstack"):
        target = tmp_path / name
        with target.open("wb") as file:
            file.truncate(ZONES * MIB)
        asked = [
            "--name=j",
            f"--filename={target}",
            f"--bs={UNIT}",
            "--zonemode=zbd",
            "--zonesize=1m",
            "--direct=1",
            *options.split(),
        ]
        if name == "fio":
            shown = subprocess.run(["fio", "--output-format=json", *asked], capture_output=True, text=True, check=True)
            job = json.loads(shown.stdout[shown.stdout.index("{") :])["jobs"][0]
            total_bytes = job["write"]["io_bytes"]
        else:
            results = hs.measure_jobs(hs.JobFile.fio_arguments(asked), overwrite=True)
            total_bytes = results.fio_json()["jobs"][0]["write"]["io_bytes"]
        found[name] = (total_bytes, written(target))
    assert found["headstack"] == found["fio"]
    assert found["fio"][0] > 0


def test_zones_of_a_file_are_reset_and_verified(tmp_path: Path) -> None:
    results = hs.measure(
        tmp_path / "data.bin",
        create="8MiB",
        zoned="1MiB",
        open_zones=2,
        size="64KiB",
        read="20",
        random="100",
        depth=8,
        requests=1500,
        verify="stamp_and_read",
    )
    assert_intact(results)
    assert counters(results)["zone_resets"] > 10


def test_options_of_zones_that_make_no_sense_are_refused() -> None:
    with pytest.raises(hs.InputError, match="open_zones: applies only to zoned writes"):
        hs.measure("null", size="4KiB", open_zones=2, requests=10)
    with pytest.raises(hs.InputError, match="zone size"):
        hs.measure("null", size="4KiB", read="0", zoned="device", requests=10)


def zoned_null_block(name: str, **attributes: int) -> Path:
    """A zoned device in memory, of the kernel's module null_blk."""
    subprocess.run(["modprobe", "null_blk", "nr_devices=0"], check=True)
    if not NULL_BLK.exists():
        subprocess.run(["mount", "-t", "configfs", "none", "/sys/kernel/config"], check=True)
    folder = NULL_BLK / name
    folder.mkdir()
    for key, value in {"zoned": 1, "memory_backed": 1, "size": 64, "zone_size": 4, **attributes}.items():
        (folder / key).write_text(str(value))
    (folder / "power").write_text("1")
    return Path("/dev") / name


def conditions(device: Path) -> list[tuple[str, int]]:
    """Type and pointer of each zone in sectors from its start, as blkzone prints them."""
    shown = subprocess.run(["blkzone", "report", device], capture_output=True, text=True, check=True)
    return [
        (line[line.index("[type:") :].split("(")[1].split(")")[0], int(line.split("wptr")[1].split()[0], 16))
        for line in shown.stdout.splitlines()
    ]


@in_vm
def test_a_zoned_device_refuses_loads_that_tend_no_zones() -> None:
    device = zoned_null_block("nullb7")
    with pytest.raises(hs.InputError, match="use --zoned"):
        hs.measure(device, destroy=[device.name], size="64KiB", read="0", requests=10)


@in_vm
def test_a_zoned_namespace_is_tended_past_the_block_layer() -> None:
    generic = Path(str(ZNS).replace("nvme", "ng"))
    with pytest.raises(hs.InputError, match="use --zoned"):
        hs.measure(generic, destroy=[generic.name], size="64KiB", read="0", requests=10)
    results = hs.measure(
        generic,
        destroy=[generic.name],
        zoned="device",
        size="64KiB",
        read="0",
        random="100",
        depth=4,
        requests=100,
    )
    assert results[0]["errors"] == 0, results.notes


@in_vm
@pytest.mark.parametrize("engine", ["ring", "psync"])
def test_a_zoned_null_block_device_takes_every_write(engine: str) -> None:
    name = f"nullb8{engine}"
    device = zoned_null_block(name, zone_capacity=3, zone_nr_conv=2, zone_max_open=4)
    results = hs.measure(
        device,
        destroy=[name],
        zoned="device",
        engine=engine,
        size="64KiB",
        read="30",
        random="100",
        depth=8,
        requests=3000,
        verify="stamp_and_read",
    )
    assert_intact(results)
    assert counters(results)["zone_resets"] > 0


@in_vm
def test_fio_writes_the_same_zones_of_a_null_block_device() -> None:
    found = {}
    for name, options in (("fio", "fio"), ("headstack", "hs")):
        device = zoned_null_block(f"nullb9{options}", zone_capacity=3)
        asked = ["--name=j", f"--filename={device}", "--bs=64k", "--zonemode=zbd", "--direct=1", "--rw=write"]
        asked += ["--size=20m", "--offset=8m"]
        if name == "fio":
            subprocess.run(["fio", *asked], check=True, capture_output=True)
        else:
            hs.measure_jobs(hs.JobFile.fio_arguments(asked), destroy=[device.name])
        found[name] = conditions(device)
    assert found["headstack"] == found["fio"]
    assert sum(pointer > 0 for _, pointer in found["fio"]) == 5


@in_vm
def test_zns_is_written_and_its_limits_of_open_zones_are_kept() -> None:
    results = hs.measure(
        ZNS,
        destroy=[ZNS.name],
        zoned="device",
        size="128KiB",
        read="0",
        random="100",
        depth=16,
        requests=4000,
        verify="stamp_and_read",
    )
    assert_intact(results)

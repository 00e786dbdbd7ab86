"""What devices say of themselves: every format read, joined, and refused in one line where it is none."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import headstack as hs
from conftest import SHARED, Attach, Headstack, lacks
from headstack.diagnosis.inspection import collect, sysfs
from headstack.diagnosis.inspection.inspect import judge
from headstack.diagnosis.inspection.model import Inspection

SAMPLES = Path(__file__).parent / "samples" / "inspect"
FILES = sorted(path for path in SAMPLES.rglob("*.*") if path.is_file())


def one(*targets: Path) -> Inspection:
    """The only inspection of targets."""
    (found,) = hs.inspect(*targets)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_every_sample_is_recognised_and_survives_json(file: Path, tmp_path: Path, headstack: Headstack) -> None:
    found = one(file)
    assert found.identity.protocol
    assert headstack("inspect", str(file), "--json", "out.json").returncode == 0
    again = one(tmp_path / "out.json")
    assert again == found


def test_text_and_json_of_one_moment_say_the_same() -> None:
    for kind in ("disk", "sas"):
        from_json, from_text = one(SAMPLES / f"{kind}.smartctl.json"), one(SAMPLES / f"{kind}.smartctl.txt")
        assert from_text.identity == from_json.identity
        for what in ("attributes", "self_tests", "passed", "power_on_hours", "start_stop_cycles", "load_cycles"):
            assert getattr(from_text, what) == getattr(from_json, what), what
        for what in ("temperature_celsius", "written_bytes", "taken_unix_s"):
            assert getattr(from_text, what) == getattr(from_json, what), what
        common = from_text.capabilities.keys() & from_json.capabilities.keys()
        assert {k: from_text.capabilities[k].state for k in common} == {
            k: from_json.capabilities[k].state for k in common
        }
        assert "smart" in common


def test_a_disk_in_full() -> None:
    disk = one(SAMPLES / "disk.smartctl.txt")
    assert disk.identity.model == "WDC WD40EFRX-68N32N0"
    assert disk.identity.wwn == "50014ee1fbf43383"
    assert (disk.identity.capacity_bytes, disk.identity.rpm) == (4_000_787_030_016, 5400)
    assert (disk.identity.logical_block_bytes, disk.identity.physical_block_bytes) == (512, 4096)
    assert (disk.identity.interface_max_gbps, disk.identity.interface_now_gbps) == (6.0, 6.0)
    assert disk.capabilities["sct_erc_read_seconds"].value == 7.0
    assert disk.capabilities["apm"].state == "absent"
    assert disk.capabilities["write_cache"].enabled is True
    assert disk.written_bytes == 15_614_407_059 * 512
    assert [test.hours for test in disk.self_tests or ()] == [43107, 42760]
    assert judge(disk).verdict == "pass"


def changed(tmp_path: Path, sample: str, **fields: object) -> Inspection:
    """A sample with other fields; ``None`` takes a field out."""
    data = json.loads((SAMPLES / sample).read_text()) | fields
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({name: value for name, value in data.items() if value is not None}))
    return one(path)


def test_sas_drives_of_smartctl_7_3_and_7_4(tmp_path: Path) -> None:
    reports = {
        "temperature_1": {"parameter_code": 0, "current": 42, "lifetime_maximum": 47},
        "relative_humidity_1": {"parameter_code": 1, "current": 12},
    }
    for version in ([7, 3], [7, 4]):
        drive = changed(
            tmp_path,
            "sas.smartctl.json",
            smartctl={"version": version},
            model_name=None,
            temperature=None,
            scsi_environmental_reports=reports,
        )
        assert drive.identity.model == "SEAGATE ST900MP0146"
        assert drive.temperature_celsius == 42
        assert drive.sas is not None
        assert drive.sas.grown_defects == 12
    without = changed(tmp_path, "sas.smartctl.json", model_name=None, scsi_model_name=None, serial_number=None)
    assert without.identity.model == "SEAGATE ST900MP0146", "vendor and product"


def test_grown_defects_of_smartctl_7_0_are_bytes(tmp_path: Path) -> None:
    def found(bytes_listed: int, version: list[int]) -> tuple[int | None, tuple[str, ...]]:
        fields = {"smartctl": {"version": version}, "scsi_grown_defect_list": bytes_listed}
        drive = changed(tmp_path, "sas.smartctl.json", **fields)
        assert drive.sas is not None
        return drive.sas.grown_defects, drive.notes

    assert found(240, [7, 2]) == (240, ())
    blocks, notes = found(240, [7, 0])
    assert (blocks, notes) == (30, ("smartctl 7.0 reports the grown defect list in bytes: 240 bytes are 30 blocks",))
    assert found(0, [7, 0]) == (0, ())
    assert found(13, [7, 0])[0] is None


def test_hours_of_self_tests_that_begin_again(tmp_path: Path) -> None:
    rows = [
        {
            "type": {"string": "Short offline"},
            "status": {"string": "Completed", "passed": True},
            "lifetime_hours": hours,
        }
        for hours in (4_400, 4_000, 65_000, None)
    ]
    log = {"standard": {"table": rows}}
    disk = changed(tmp_path, "disk.smartctl.json", power_on_time={"hours": 70_000}, ata_smart_self_test_log=log)
    assert [test.hours for test in disk.self_tests or ()] == [69_936, 69_536, 65_000, None]
    assert "hours of self-tests wrap at 65,536: the latest possible time is shown" in disk.notes
    young = changed(tmp_path, "disk.smartctl.json", power_on_time={"hours": 60_000}, ata_smart_self_test_log=log)
    assert [test.hours for test in young.self_tests or ()] == [4_400, 4_000, 65_000, None]
    assert not any("self-tests" in note for note in young.notes)
    test = {"code": {"string": "Background long"}, "result": {"value": 0, "string": "Completed"}}
    ended = test | {"power_on_time": {"hours": 65_535}}
    sas = changed(tmp_path, "sas.smartctl.json", power_on_time={"hours": 80_000}, scsi_self_test_0=ended)
    assert [test.hours for test in sas.self_tests or ()] == [None]


@pytest.mark.parametrize("devices", [5, "smartctl", {"smartctl": 1}, [5]])
def test_devices_that_are_no_list_of_reports_are_refused(tmp_path: Path, devices: object) -> None:
    (tmp_path / "other.json").write_text(json.dumps({"devices": devices}))
    with pytest.raises(hs.InputError, match="not a saved output"):
        hs.inspect(tmp_path / "other.json")


def test_shingled_tracks_and_the_entry_of_the_catalogue(tmp_path: Path, headstack: Headstack) -> None:
    shingled = changed(
        tmp_path, "disk.smartctl.json", model_name="WDC WD40EFAX-68JH4N0", model_family="Western Digital Red (SMR)"
    )
    known = judge(shingled).summary
    assert known.catalogue_entry == "wd-red-4tb-smr"
    assert known.shingled == "smartctl's database calls the family Western Digital Red (SMR)"
    said = headstack("inspect", str(tmp_path / "changed.json")).stdout
    assert "shingled (SMR): smartctl's database calls the family Western Digital Red (SMR)" in said
    assert "wd-red-4tb-smr (headstack catalog drives show wd-red-4tb-smr)" in said
    assert headstack("catalog", "drives", "show", "wd-red-4tb-smr").returncode == 0
    by_entry = changed(tmp_path, "disk.smartctl.json", model_name="WDC WD40EFAX-68JH4N0", model_family=None)
    assert judge(by_entry).summary.shingled == "the catalogue describes it as shingled (wd-red-4tb-smr)"
    for model, entry in (
        ("ST16000NM001G-2KK103", "exos-x16-16tb"),
        ("Samsung SSD 980 1TB", "980-1tb"),
        ("Samsung SSD 980 500GB", None),
        ("WDC WD40EFRX-68N32N0", "wd-red-plus-4tb"),
        ("WDC WD30EFRX-68N32N0", None),
        ("A disk", None),
    ):
        assert judge(changed(tmp_path, "disk.smartctl.json", model_name=model)).summary.catalogue_entry == entry, model
    plain = judge(changed(tmp_path, "disk.smartctl.json", model_name="WDC WD40EFRX-68N32N0")).summary
    assert plain.shingled is None


def test_a_note_of_many_devices_is_printed_once(tmp_path: Path, headstack: Headstack) -> None:
    data = json.loads((SAMPLES / "disk.smartctl.json").read_text())
    for number in range(5):
        own = data | {"serial_number": f"WD-WX00SAMPLE{number}7"}
        own["device"] = data["device"] | {"name": f"/dev/sd{number}"}
        own["smartctl"] = data["smartctl"] | {"messages": [{"string": f"/dev/sd{number}: Warning: this is odd"}]}
        (tmp_path / f"{number}.json").write_text(json.dumps(own))
    said = headstack("inspect", str(tmp_path)).stdout
    assert said.count("drives also fail without signs") == 1
    assert said.count("this is odd") == 1
    assert "(/dev/sd0, /dev/sd1, /dev/sd2 and 2 more)" in said.replace("\n", " ").replace("  ", " ")
    alone = headstack("inspect", str(tmp_path / "0.json")).stdout
    assert "note: smartctl: /dev/sd0: Warning: this is odd" in alone


def test_hdparm_keeps_every_feature_and_its_state() -> None:
    listing = one(SAMPLES / "memo" / "bad-2.hdparm.txt")
    states = {key: capability.state for key, capability in listing.capabilities.items()}
    assert states["ncq"] == "enabled"
    assert states["dipm"] == "supported", "no star: it is there, and off"
    assert states["write_cache_reordering_by_moonlight"] == "enabled", "a feature that nobody knows is kept"
    assert states["queue_depth"] == "32"
    assert (states["udma"], states["udma_fastest"]) == ("udma6", "udma6")
    assert (states["aam_level"], states["aam_recommended"]) == ("0", "254")
    assert (states["erase_minutes"], states["enhanced_erase_minutes"]) == ("508", "324")
    assert (states["security_locked"], states["security_frozen"]) == ("off", "enabled")
    assert listing.listings == ("hdparm",)
    assert listing.identity.capacity_bytes == 3_907_029_168 * 512
    assert not listing.notes


def test_hdparm_checks_its_own_arithmetic(tmp_path: Path) -> None:
    text = (SAMPLES / "memo" / "good.hdparm.txt").read_text()
    (tmp_path / "a.txt").write_text(
        text.replace("2000398 MBytes", "2100398 MBytes").replace("Checksum: c", "Checksum: inc")
    )
    notes = one(tmp_path / "a.txt").notes
    assert any("2,000,398 MB, not 2,100,398 MB" in note for note in notes)
    assert any("checksum: incorrect" in note for note in notes)


def test_a_listing_that_is_cut_claims_no_absence(tmp_path: Path) -> None:
    text = (SAMPLES / "memo" / "good.hdparm.txt").read_text()
    (tmp_path / "a.txt").write_text(text[: text.index("\n\t   *\tNative Command")])
    cut = one(tmp_path / "a.txt")
    assert cut.listings == ()
    assert any("missing features are unknown" in note for note in cut.notes)


def test_the_listings_within_the_memo(tmp_path: Path) -> None:
    memo = SHARED / "seeds" / "3-mark5c-drives.txt"
    if not memo.is_file():
        lacks("data", f"no memo in {memo}")
    hitachi, seagate = hs.inspect(memo)
    assert (hitachi.identity.model, seagate.identity.model) == ("Hitachi HDS723030ALA640", "ST32000641AS")
    assert hitachi.identity.capacity_bytes == 5_860_533_168 * 512
    assert seagate.identity.capacity_bytes == 3_907_029_168 * 512
    assert seagate.capabilities["erase_minutes"].value == 324
    assert (hitachi.capabilities["udma"].value, seagate.capabilities["udma"].value) == ("udma6", "udma5")
    for drive in (hitachi, seagate):
        assert drive.capabilities["dipm"].state == "supported"
        assert drive.capabilities["ncq"].state == "enabled"
        assert drive.capabilities["sata_gen3"].state == "enabled"
        assert drive.capabilities["fua"].state == "enabled"
        assert drive.capabilities["queue_depth"].value == 32
        assert "tcq" not in drive.capabilities


def test_nvme_parts_are_joined() -> None:
    drive = one(SAMPLES / "nvme")
    assert drive.identity.serial == "S4EWNSAMPLE7"
    assert drive.identity.interface == "NVMe 1.3"
    assert drive.identity.capacity_bytes == 1_953_525_168 * 512
    assert drive.nvme is not None
    assert drive.nvme.data_units_written == 84_028_396, "a number of 128 bits as text"
    assert drive.written_bytes == 84_028_396 * 512_000
    assert drive.temperature_celsius == 38, "the JSON is in kelvins"
    assert drive.capabilities["trim"].supported is True
    assert drive.capabilities["reservations"].state == "absent"
    assert drive.capabilities["max_transfer_pages"].value == 512


def test_two_programs_on_one_drive_contradict_each_other_aloud(tmp_path: Path) -> None:
    data = json.loads((SAMPLES / "disk.smartctl.json").read_text())
    data |= {"serial_number": "WD-WMAY0SAMPLE1", "model_name": "WDC WD2003FYYS-02W0B0", "wwn": None}
    data["write_cache"]["enabled"] = False
    (tmp_path / "a.json").write_text(json.dumps(data))
    shutil.copy(SAMPLES / "memo" / "good.hdparm.txt", tmp_path / "b.txt")
    (tmp_path / "README.md").write_text("two outputs of one drive")
    drive = one(tmp_path)
    assert "write_cache: smartctl reports supported, hdparm reports enabled" in drive.notes
    assert any("skipped files that are not saved outputs: README.md" in note for note in drive.notes)
    assert {"tcq", "sct_erc_read_seconds"} <= drive.capabilities.keys()


def test_utf_16_and_windows_line_ends(tmp_path: Path) -> None:
    text = (SAMPLES / "sas.smartctl.txt").read_text()
    (tmp_path / "a.txt").write_bytes(text.replace("\n", "\r\n").encode("utf-16"))
    made, expected = one(tmp_path / "a.txt"), one(SAMPLES / "sas.smartctl.txt")
    assert made.content() == expected.content()


def test_several_outputs_in_one_text(tmp_path: Path) -> None:
    texts = [(SAMPLES / name).read_text() for name in ("disk.smartctl.txt", "ssd.smartctl.txt", "sas.smartctl.txt")]
    (tmp_path / "all.txt").write_text("\n# smartctl --xall /dev/sdg\n".join(texts))
    serials = {found.identity.serial for found in hs.inspect(tmp_path / "all.txt")}
    assert serials == {"WD-WX00SAMPLE01", "S250SAMPLE01", "WFK0SAMPLE"}


BAD = [
    ("empty.txt", "", "empty.txt: not a saved output; allowed: smartctl"),
    ("prose.txt", "once upon a time\n", "prose.txt: not a saved output; allowed: smartctl"),
    ("other.json", '{"a": 1}', "other.json: not a saved output; allowed: smartctl"),
    ("list.json", "[1, 2]", "list.json: not a saved output"),
    ("cut.json", '{"smartctl": {"exit_status":', "cut.json: line 1: not valid JSON"),
    ("deep.json", '{"a":' * 100_000, "deep.json: not valid JSON"),
    ("type.json", '{"smartctl": {}, "model_name": 7}', "type.json: model_name: 7 is not a text"),
    (
        "minus.json",
        '{"smartctl": {}, "model_name": "a", "rotation_rate": -1}',
        "rotation_rate: -1 is not a whole number",
    ),
    (
        "row.json",
        '{"smartctl": {}, "model_name": "a", "ata_smart_attributes": {"table": [{"id": 300}]}}',
        "row.json: ata_smart_attributes.table[0].id: 300 is not an attribute number, 1 to 255",
    ),
    (
        "said.json",
        '{"smartctl": {"messages": [{"string": "Open failed"}]}}',
        "said.json: smartctl read nothing: Open failed",
    ),
    (
        "row.txt",
        "smartctl 7.3 2022\nDevice Model: X\nID# ATTRIBUTE_NAME FLAG\n  5 Reallocated_Sec",
        "row.txt: line 4: '5 Reallocated_Sec' is not an attribute; allowed: ID NAME",
    ),
    ("model.txt", "ATA device, with non-removable media\n\tSerial Number: 1\n", "model.txt: line 1: no Model Number"),
    (
        "size.txt",
        "ATA device, with non-removable media\nModel Number: a\nConfiguration:\nLBA48 user addressable sectors: many\n",
        "size.txt: line 4: LBA48 user addressable sectors: 'many' is not a whole number; allowed: 0 or more",
    ),
    ("log.txt", "Smart Log for NVME device:nvme0\navailable_spare : much\n", "log.txt: available_spare: 'much' is not"),
    (
        "ours.json",
        '{"headstack_inspections": 2, "devices": []}',
        "unknown schema 2 of an inspection; this build reads 1",
    ),
    (
        "ours.json",
        '{"headstack_inspections": 1, "devices": [{"name": 3}]}',
        "ours.json: devices[0].name: 3 is not of type str",
    ),
    ("ours.json", '{"headstack_inspections": 1, "devices": [{}]}', "ours.json: devices[0]: Inspection"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD, ids=[f"{n}-{row[0]}" for n, row in enumerate(BAD)])
def test_bad_input_is_one_line(name: str, text: str, message: str, tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / name).write_text(text)
    refused = headstack("inspect", name)
    assert refused.returncode == 2
    assert message in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert refused.stdout == ""


@pytest.mark.parametrize("target", ["nosuch", "/dev/nosuch", "/dev/null", "folder", "/proc"])
def test_targets_that_are_none(target: str, tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "folder").mkdir()
    refused = headstack("inspect", target)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"headstack: {target}")
    assert refused.stderr.count("\n") == 1


def refusal(file: Path) -> str | None:
    """Why a file is refused; ``None`` where it is read."""
    try:
        for found in hs.inspect(file):
            judge(found)
    except hs.InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_no_damage_does_more_than_an_error(file: Path, tmp_path: Path) -> None:
    """Cut anywhere, or with a byte changed anywhere: read, or refused in one line."""
    data = file.read_bytes()
    damaged = tmp_path / file.name
    refused = 0
    for step in range(120):
        at = len(data) * step // 120
        flipped = data[:at] + bytes([data[at] ^ (1 << step % 8)]) + data[at + 1 :]
        swapped = data[:at] + re.sub(rb"\d+", b"99999999999999999999999999999999999999999999", data[at:], count=1)
        for text in (data[:at], flipped, swapped):
            damaged.write_bytes(text)
            line = refusal(damaged)
            if line is not None:
                refused += 1
                assert line.startswith(str(damaged))
                assert "\n" not in line
    assert refused > 0


@pytest.fixture
def fake_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """sysfs of a SATA disk, and programs that answer with samples."""
    device = tmp_path / "sys" / "class" / "block" / "sda"
    for name, text in {
        "size": "7814037168",
        "queue/rotational": "1",
        "queue/write_cache": "write through",
        "queue/scheduler": "none [mq-deadline] bfq",
        "queue/logical_block_size": "512",
        "queue/discard_max_bytes": "0",
        "queue/wbt_lat_usec": "75000",
        "device/vendor": "ATA     ",
        "device/model": "WDC WD40EFRX-68N",
        "device/queue_depth": "31",
        "sda1/partition": "1",
    }.items():
        (device / name).parent.mkdir(parents=True, exist_ok=True)
        (device / name).write_text(text + "\n")
    (device / "device" / "vpd_pg80").write_bytes(b"\x00\x80\x00\x10 WD-WX00SAMPLE01")
    (device / "holders" / "md0").mkdir(parents=True)
    monkeypatch.setattr(sysfs, "SYS", tmp_path / "sys")
    monkeypatch.setattr(collect, "PROGRAM_FOLDERS", "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path


def program(folder: Path, name: str, script: str) -> None:
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_device_is_asked_by_what_is_installed(fake_device: Path) -> None:
    program(fake_device, "smartctl", f'echo "$@" > {fake_device}/asked; /bin/cat {SAMPLES}/disk.smartctl.json; exit 4')
    found = collect._read_device("sda", "/dev/sda", str(fake_device / "out"), "sat")
    assert (fake_device / "asked").read_text() == "-j -x -d sat /dev/sda\n"
    assert found.name == "/dev/sda"
    assert found.identity.model == "WDC WD40EFRX-68N32N0", "sysfs cuts it"
    assert found.identity.serial == "WD-WX00SAMPLE01"
    assert found.capabilities["scheduler"].value == "mq-deadline"
    assert found.capabilities["holders"].value == "md0"
    assert found.capabilities["partitions"].value == "sda1"
    assert found.capabilities["kernel_queue_depth"].value == 31
    assert found.capabilities["wbt_lat_usec"].value == 75000
    assert "hdparm is not installed: the identify data of the drive are missing" in found.notes
    assert "write_cache: smartctl reports enabled, sysfs reports off" in found.notes
    saved = sorted(path.name for path in (fake_device / "out").iterdir())
    assert saved == ["sda.smartctl.json", "sda.sysfs.json"]
    (again,) = hs.inspect(fake_device / "out")
    assert again.identity == found.identity
    assert again.capabilities == found.capabilities


def test_programs_that_fail_are_named(fake_device: Path) -> None:
    program(
        fake_device,
        "smartctl",
        """echo '{"smartctl": {"messages": [{"string": "open: Permission denied"}]}}'; exit 2""",
    )
    program(fake_device, "hdparm", "echo '/dev/sda: Permission denied' >&2; exit 13")
    found = collect._read_device("sda", "/dev/sda", None, None)
    assert "smartctl: /dev/sda: smartctl read nothing: open: Permission denied" in found.notes
    assert "hdparm: /dev/sda: Permission denied" in found.notes
    assert judge(found).verdict == "unknown"


def test_a_usb_bridge_suggests_the_type(fake_device: Path) -> None:
    message = "/dev/sda: Unknown USB bridge [0x152d:0x0578 (0x100)]"
    program(fake_device, "smartctl", f"""echo '{{"smartctl": {{"messages": [{{"string": "{message}"}}]}}}}'; exit 1""")
    found = collect._read_device("sda", "/dev/sda", None, None)
    assert any("Unknown USB bridge" in note and "try --smartctl-type: sat for" in note for note in found.notes)
    # A bridge that answers as a SCSI disk, and says nothing of the drive behind it.
    folder = fake_device / "sys" / "class" / "block" / "sda"
    behind = fake_device / "sys" / "devices" / "pci0000:00" / "usb2" / "2-1" / "block" / "sda"
    behind.parent.mkdir(parents=True)
    folder.rename(behind)
    folder.symlink_to(behind)
    answer = '{"device": {"protocol": "SCSI"}, "scsi_model_name": "JMicron Generic", "serial_number": "DD56419883891"}'
    program(fake_device, "smartctl", f"echo '{answer}'")
    hint = "sda: the drive behind this USB bridge did not answer; try --smartctl-type: sat for a SATA drive"
    assert any(note.startswith(hint) for note in collect._read_device("sda", "/dev/sda", None, None).notes)
    assert not any("USB" in note for note in collect._read_device("sda", "/dev/sda", None, "sat").notes)
    program(fake_device, "smartctl", f"/bin/cat {SAMPLES}/disk.smartctl.json")
    assert not any("USB" in note for note in collect._read_device("sda", "/dev/sda", None, None).notes)


@pytest.fixture
def large_device(attach: Attach, tmp_path: Path) -> str:
    """A block device of 64 MiB."""
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    return attach(image)


def test_a_loop_device(large_device: str, tmp_path: Path, headstack: Headstack) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(large_device)
    (found,) = hs.inspect(link)
    assert found.name == large_device
    assert found.identity.capacity_bytes == 64 << 20
    assert found.identity.protocol == "loop"
    assert any(f"below it: {tmp_path / 'image'}" in note for note in found.notes)
    said = headstack("inspect", large_device, "--check", "--all")
    assert said.returncode == 0
    assert "verdict: unknown" in said.stdout
    assert "max_sectors_kb" in said.stdout
    refused = headstack("inspect", large_device, "--record", "db.sqlite")
    assert refused.returncode == 2
    assert "no serial number, which snapshots require" in refused.stderr


def test_a_data_file_stands_for_its_device(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with open(data, "wb") as file:
        file.truncate(5 << 20)
    try:
        (found,) = hs.inspect(data)
    except hs.InputError as error:
        lacks("kernel", f"no block device below {tmp_path}: {error}")
    assert found.name.startswith("/dev/")
    assert any(note.startswith(f"{data}: a file on {found.name}") for note in found.notes)

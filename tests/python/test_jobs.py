"""Job files of fio, Iometer and vdbench: measured, simulated, and told as fio tells them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import Attach, Headstack, interrupt, needs_program
from headstack.measurement.jobfiles.fio_json import bin_index, bin_middle_ns


def job_file(tmp_path: Path, text: str, name: str = "job.fio") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


NULL = "[global]\nioengine=null\nsize=1g\nbs=4k\n"


def test_phases_follow_each_other_and_jobs_of_one_run_at_once(tmp_path: Path) -> None:
    text = NULL + "[a]\nrw=randread\nnumber_ios=1000\nnumjobs=2\n[b]\nrw=randwrite\nnumber_ios=500\n"
    text += "[c]\nstonewall\nrw=read\nio_size=1m\n"
    results = hs.measure_jobs(job_file(tmp_path, text))
    assert [(row["workload"], row["requests"]) for row in results] == [("a", 2500), ("c", 256)]
    streams = {stream["stream"]: stream["requests"] for stream in results.streams_of(0)}
    assert streams == {"a.0": 1000, "a.1": 1000, "b": 500}


def test_a_group_is_one_stream(tmp_path: Path) -> None:
    text = NULL + "group_reporting\n[a]\nrw=randread\nnumber_ios=100\nnumjobs=3\n[b]\nrw=randread\nnumber_ios=50\n"
    [stream] = hs.measure_jobs(job_file(tmp_path, text)).streams_of(0)
    assert (stream["stream"], stream["requests"], stream["facts"]["threads"]) == ("a", 350, 4)


def test_all_jobs_end_with_the_first_where_the_file_says_so(tmp_path: Path) -> None:
    text = NULL + "[short]\nexitall\nrw=read\nruntime=300ms\ntime_based\n[long]\nrw=read\nruntime=1h\ntime_based\n"
    [row] = hs.measure_jobs(job_file(tmp_path, text))
    assert row["ended_early"] is None


def test_files_are_created_as_the_file_says_and_not_overwritten_by_the_next_run(tmp_path: Path) -> None:
    text = f"[global]\ndirectory={tmp_path}\nbs=4k\nsize=256k\n[w]\nrw=write\nnumjobs=2\n[r]\nstonewall\nrw=read\n"
    file = job_file(tmp_path, text)
    results = hs.measure_jobs(file)
    assert [row["requests"] for row in results] == [128, 64]
    names = ["r.0.0", "w.0.0", "w.1.0"]
    assert [(path.name, path.stat().st_size) for path in sorted(tmp_path.glob("*.0"))] == [(n, 1 << 18) for n in names]
    with pytest.raises(hs.InputError, match=r"w\.0\.0: exists and .* to allow it, add --overwrite"):
        hs.measure_jobs(file)
    assert len(hs.measure_jobs(file, overwrite=True)) == 2


def test_what_only_reads_does_not_grow_a_file(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(bytes(8192))
    file = job_file(tmp_path, f"[r]\nfilename={small}\nrw=read\nsize=1m\n")
    with pytest.raises(hs.InputError, match="has 8KiB, and 1MiB are requested"):
        hs.measure_jobs(file)
    assert small.stat().st_size == 8192


def test_files_that_were_created_are_removed_where_that_is_asked(tmp_path: Path) -> None:
    text = f"[w]\ndirectory={tmp_path}\nrw=write\nsize=64k\nunlink=1\n"
    assert hs.measure_jobs(job_file(tmp_path, text))[0]["requests"] == 16
    assert list(tmp_path.glob("w.*")) == []


def test_direct_and_buffered_jobs_share_a_new_file(tmp_path: Path) -> None:
    text = f"[global]\nfilename={tmp_path}/f\nsize=1m\nbs=4k\n[w]\nrw=write\ndirect=1\n[r]\nstonewall\nrw=randread\n"
    results = hs.measure_jobs(job_file(tmp_path, text))
    assert [row["requests"] for row in results] == [256, 256]


def test_a_target_takes_the_place_of_the_files_own(tmp_path: Path) -> None:
    text = "[global]\nbs=4k\nsize=64k\n[a]\nfilename=/dev/nothing\nrw=read\n[b]\nfilename=/dev/other\nrw=read\n"
    file = job_file(tmp_path, text)
    for name in ("x", "y"):
        (tmp_path / name).write_bytes(os.urandom(1 << 16))
    [row] = hs.measure_jobs(file, [tmp_path / "x", tmp_path / "y"])
    assert (row["system"], row["requests"]) == (f"{tmp_path}/x, {tmp_path}/y", 32)
    [row] = hs.measure_jobs(file, "null:1ms")
    assert row["p50_ms"] >= 1
    with pytest.raises(hs.InputError, match="3 targets given, but its jobs use 2"):
        hs.measure_jobs(file, ["a", "b", "c"])


def test_copies_make_different_requests_and_the_same_seed_the_same(tmp_path: Path) -> None:
    path = tmp_path / "data"
    text = f"[w]\nfilename={path}\nrw=randwrite\nbs=4k\nsize=4m\nnumber_ios=16\nnumjobs=2\nnorandommap\n"
    file = job_file(tmp_path, text)

    def touched(seed: int) -> set[int]:
        path.write_bytes(bytes(1 << 22))
        hs.measure_jobs(file, seed=seed, overwrite=True)
        data = path.read_bytes()
        return {at for at in range(0, len(data), 4096) if any(data[at : at + 4096])}

    first = touched(7)
    # Two copies of 16 writes each among 1024 blocks: 16 if they were the same, 32 if none met.
    assert 24 < len(first) <= 32
    assert touched(7) == first
    assert touched(8) != first


def test_an_impossible_phase_is_refused_before_the_first_is_run(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1 << 16))
    text = (
        f"[global]\nfilename={data}\nbs=4k\n[a]\nrw=read\nruntime=1h\ntime_based\n[b]\nstonewall\nrw=read\noffset=1g\n"
    )
    with pytest.raises(hs.InputError, match=r"b: invalid part of the targets: the part has .* from 1GiB"):
        hs.measure_jobs(job_file(tmp_path, text))


def test_sections_choose_jobs(tmp_path: Path, headstack: Headstack) -> None:
    file = str(job_file(tmp_path, NULL + "[a]\nrw=read\nnumber_ios=10\n[b]\nrw=read\nnumber_ios=20\n"))
    code, out, _ = headstack("measure", "--fio", file, "--section", "b", "-q", "--json", "-")
    assert code == 0
    [result] = json.loads(out)
    assert result["workload"]["name"] == "b"
    code, _, err = headstack("measure", "--fio", file, "--section", "c")
    assert (code, err.strip()) == (2, f"headstack: {file}: section: there is no [c]; allowed: global, a, b")


def test_remarks_and_errors_name_line_and_option(tmp_path: Path, headstack: Headstack) -> None:
    file = str(job_file(tmp_path, NULL + "[a]\nrw=read\nnumber_ios=10\nmem=shm\n"))
    code, out, err = headstack("measure", "--fio", file, "-q")
    assert (code, err) == (0, f"headstack: {file}:8: mem: buffers are anonymous memory\n")
    assert "a" in out
    wrong = str(job_file(tmp_path, "[a]\nrw=read\niodepht=4\n", "wrong.fio"))
    code, _, err = headstack("measure", "--fio", wrong)
    assert (code, err) == (2, f"headstack: {wrong}:3: iodepht: unknown option; did you mean iodepth?\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-w", "file-server"], "--workload: set by the job file of --fio; remove one of them"),
        (["--size", "4KiB"], "--size: set by JOB; remove the option"),
        (["--threads", "2"], "--threads: set by JOB; remove the option"),
        (["--buffered"], "--buffered: set by JOB; remove the option"),
        (["--icf", "x.icf"], "--fio, --icf: give only one of them"),
        (["--output-format", "normal"], "--output-format: 'normal' is unknown; allowed: json, json+, terse"),
        (["--output", "x"], "--output: needs --output-format"),
    ],
)
def test_options_that_contradict_a_job_file_are_refused(
    tmp_path: Path, headstack: Headstack, arguments: list[str], message: str
) -> None:
    file = str(job_file(tmp_path, NULL + "[a]\nrw=read\n"))
    code, _, err = headstack("measure", "--fio", file, *arguments)
    assert (code, err) == (2, f"headstack: {message.replace('JOB', file)}\n")


def test_options_of_job_files_need_one(headstack: Headstack) -> None:
    code, _, err = headstack("measure", "null", "--section", "a")
    assert (code, err) == (2, "headstack: --section: needs a job file; add --fio, --icf or --vdbench FILE\n")


def test_fios_own_command_line(headstack: Headstack) -> None:
    arguments = ["--name=x", "--ioengine=null", "--rw=randread", "--bs=4k", "--size=1m"]
    arguments += ["--output-format=json", "--thread"]
    code, out, err = headstack("measure", "-q", "--fio", "--", *arguments)
    assert (code, err) == (0, "")
    [job] = json.loads(out)["jobs"]
    assert (job["jobname"], job["read"]["total_ios"]) == ("x", 256)
    options = {"name": "x", "ioengine": "null", "rw": "randread", "bs": "4k", "size": "1m"}
    assert job["job options"] == options
    code, out, _ = headstack("measure", "null:1ms", "-q", "--fio", "--", *arguments[:-2], "--number_ios=5")
    assert code == 0
    assert "null:1ms" in out


def test_an_interruption_keeps_what_was_measured(tmp_path: Path) -> None:
    text = NULL + "[a]\nrw=read\nnumber_ios=10\n[b]\nstonewall\nrw=read\nruntime=60\ntime_based\n"
    output = tmp_path / "out.json"
    command = [sys.executable, "-c", "from headstack.cli.main import main; main()", "measure", "--fio"]
    command += [str(job_file(tmp_path, text)), "--json", str(output)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    interrupt(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert [run["ended_early"] for run in json.loads(output.read_text())] == [None, "stopped by hand"]


def test_jobs_that_verify_read_what_they_wrote(tmp_path: Path) -> None:
    text = f"[global]\nfilename={tmp_path}/f\nsize=1m\nbs=4k\nverify=crc32c\n[w]\nrw=randwrite\n"
    text += "[check]\nstonewall\nrw=randread\n"
    results = hs.measure_jobs(job_file(tmp_path, text))
    assert any("headstack's own stamp" in remark for remark in results.remarks)
    written, checked = (run["integrity"] for run in json.loads(results.to_json()))
    assert (written["checked"], written["intact"]) == (256, 256)
    assert (checked["checked"], checked["intact"]) == (256, 256)


# Iometer and vdbench.

ICF = """Version 2006.07.27
'TEST SETUP ====================================================================
'Run Time
'	hours      minutes    seconds
	0          0          1
'Ramp Up Time (s)
	0
'END test setup
'ACCESS SPECIFICATIONS =========================================================
'Access specification name,default assignment
	File,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
	512,10,80,100,0,1,0,0
	4096,90,80,100,0,1,0,0
'END access specifications
'MANAGER LIST ==================================================================
'Manager ID, manager name
	1,HOST
'Manager network address
	127.0.0.1
'Worker
	Worker 1
'Worker type
	DISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection
	4,DISABLED,1
'Disk maximum size,starting sector
	0,0
'End default target settings for worker
'Assigned access specs
	File
'End assigned access specs
'Target assignments
'Target
	PHYSICALDRIVE:1
'Target type
	DISK
'End target
'Target
	PHYSICALDRIVE:2
'Target type
	DISK
'End target
'End target assignments
'End worker
'End manager
'END manager list
Version 2006.07.27
"""


def test_a_configuration_of_iometer(tmp_path: Path, headstack: Headstack) -> None:
    file = str(job_file(tmp_path, ICF, "test.icf"))
    code, _, err = headstack("measure", "--icf", file)
    assert (code, err) == (
        2,
        f"headstack: {file}: PHYSICALDRIVE:1 is a target of another machine; name a TARGET\n",
    )
    results = hs.measure_jobs(file, "null")
    [stream] = results.streams_of(0)
    assert (stream["stream"], stream["facts"]["threads"]) == ("Worker 1", 2)
    assert results[0]["duration_s"] > 0.99


VDBENCH = """sd=sd1,lun=/dev/nothing,size=$size,threads=8
wd=wd1,sd=sd1,xfersize=4k,rdpct=100,seekpct=100,skew=75
wd=wd2,sd=sd1,xfersize=64k,rdpct=100,seekpct=0
rd=run1,wd=wd*,iorate=RATE,elapsed=2,interval=1,distribution=deterministic
"""


def test_workloads_of_vdbench_share_a_pool_by_their_skew(tmp_path: Path) -> None:
    file = hs.JobFile.vdbench(job_file(tmp_path, VDBENCH.replace("RATE", "max"), "skew"), size="1g")
    results = hs.measure_jobs(file, "null:1ms")
    streams = {stream["stream"]: stream["iops"] for stream in results.streams_of(0)}
    assert streams["wd1 sd1"] / sum(streams.values()) == pytest.approx(0.75, abs=0.05)
    # Eight requests at a time, a millisecond each.
    assert results[0]["iops"] <= 8001


def test_points_of_a_curve_are_percentages_of_what_was_reached(tmp_path: Path, headstack: Headstack) -> None:
    text = VDBENCH.replace("RATE", "curve,curve=(10,50)").replace("skew=75", "skew=0")
    file = str(job_file(tmp_path, text, "curve.vdbench"))
    code, out, err = headstack("measure", "-q", "--vdbench", file, "size=1g", "null:1ms", "--json", "-")
    assert code == 0, err
    top, tenth, half = json.loads(out)
    rates = [
        sum(kind["count"] for kind in run["kinds"].values()) * 1e9 / run["duration_ns"] for run in (top, tenth, half)
    ]
    for run, rate, percent in ((tenth, rates[1], 10), (half, rates[2], 50)):
        assert run["offered_per_s"] == pytest.approx(rates[0] * percent / 100, abs=101)
        # A machine that stood still before the second that is measured hands over then what had come due.
        assert 0 < rate <= 1.1 * run["offered_per_s"]


# Simulated.


def test_a_job_file_is_simulated_as_it_is_measured(tmp_path: Path, headstack: Headstack) -> None:
    text = "[global]\nbs=4k\nrw=randread\nsize=1g\nnumber_ios=200\ngroup_reporting\n[a]\nnumjobs=2\niodepth=4\n"
    text += "ioengine=libaio\n[b]\nstonewall\n"
    file = str(job_file(tmp_path, text))
    results = hs.run_jobs(file, "cheetah-x15-36lp")
    assert [(row["workload"], row["requests"]) for row in results] == [("a", 400), ("b", 200)]
    again = hs.run_jobs(file, "cheetah-x15-36lp")
    assert again.to_json() == results.to_json()
    code, out, err = headstack("run", "--fio", file, "cheetah-x15-36lp", "-q", "--output-format", "json")
    assert code == 0, err
    assert [job["jobname"] for job in json.loads(out)["jobs"]] == ["a", "b"]
    assert f"headstack: {file}: direct: the page cache of the host is not simulated (a" in err
    code, _, err = headstack("run", "--fio", file, "cheetah-x15-36lp", "--depth", "4")
    assert (code, err) == (2, f"headstack: --depth: set by {file}; remove the option\n")


def test_a_curve_is_simulated(tmp_path: Path) -> None:
    text = VDBENCH.replace("RATE", "curve,curve=(50)").replace("elapsed=2", "elapsed=10").replace("skew=75", "skew=0")
    file = hs.JobFile.vdbench(job_file(tmp_path, text, "curve"), size="1g")
    top, half = hs.run_jobs(file, "cheetah-x15-36lp")
    assert half["rate_per_s"] is None or half["rate_per_s"] > 0
    assert half["iops"] == pytest.approx(top["iops"] / 2, rel=0.2)


# fio's JSON.


@pytest.mark.parametrize("ns", [0, 1, 127, 128, 129, 255, 256, 1000, 123_456, 10**9, 17 * 10**9, 10**13])
def test_a_bin_is_named_by_its_middle(ns: int) -> None:
    index = bin_index(ns)
    assert 0 <= index < 1856
    if index < 1855:
        assert abs(bin_middle_ns(index) - ns) <= ns / 128
        assert bin_index(bin_middle_ns(index)) == index


def keys(value: Any, path: str = "") -> dict[str, type]:
    """Every key of a document with the type of its value; of a list its first member counts, and bins are alike."""
    if isinstance(value, list):
        return keys(value[0], f"{path}[]") if value else {}
    if not isinstance(value, dict):
        return {}
    found: dict[str, type] = {}
    for key, member in value.items():
        name = f"{path}.{'*' if path.endswith('.bins') else key}"
        found[name] = type(member)
        found |= keys(member, name)
    return found


@pytest.mark.parametrize("form", ["json", "json+"])
def test_the_same_job_has_the_keys_and_types_of_fio(tmp_path: Path, headstack: Headstack, form: str) -> None:
    needs_program("fio")
    text = f"[global]\nioengine=psync\nfilename={tmp_path}/f\nsize=1m\nbs=4k\ninvalidate=0\nlat_percentiles=1\n"
    text += "group_reporting\n[mixed]\ndescription=a test\nrw=randrw\nruntime=1\ntime_based\nfsync=16\n"
    text += "[read]\nstonewall\nrw=randread\nnumber_ios=10\n"
    file = str(job_file(tmp_path, text))
    told = subprocess.run(["fio", f"--output-format={form}", file], capture_output=True, text=True, check=True).stdout
    theirs = json.loads(told[told.index("{") :])
    code, out, err = headstack("measure", "-q", "--overwrite", "--fio", file, "--output-format", form)
    assert code == 0, err
    ours = json.loads(out)
    assert [job["jobname"] for job in ours["jobs"]] == [job["jobname"] for job in theirs["jobs"]]
    assert ours["global options"] == theirs["global options"]
    assert [job["job options"] for job in ours["jobs"]] == [job["job options"] for job in theirs["jobs"]]
    for own, other in zip(ours["jobs"], theirs["jobs"], strict=True):
        # Where nothing was counted, there are no percentiles; and not every disk is below another.
        assert keys(own) == keys(other)
    theirs.pop("disk_util", None)
    assert {key: type(value) for key, value in ours.items() if key != "disk_util"} == {
        key: type(value) for key, value in theirs.items()
    }


def test_figures_of_fios_json_are_those_of_the_result(tmp_path: Path) -> None:
    text = NULL + "[a]\nrw=randrw\nruntime=1100ms\ntime_based\niodepth=4\nfsync=8\n"
    results = hs.measure_jobs(job_file(tmp_path, text), "null:100us")
    [run] = json.loads(results.to_json())
    [job] = json.loads(results.to_fio_json(plus=True))["jobs"]
    for kind in ("read", "write"):
        assert job[kind]["total_ios"] == run["kinds"][kind]["count"] == sum(job[kind]["clat_ns"]["bins"].values())
        assert job[kind]["io_bytes"] == run["kinds"][kind]["bytes"]
        assert job[kind]["clat_ns"]["percentile"]["50.000000"] >= 100_000
        assert 1 <= job[kind]["iops_samples"] <= 2
        assert job[kind]["iops_min"] <= job[kind]["iops_mean"] <= job[kind]["iops_max"]
        assert job[kind]["bw_mean"] == pytest.approx(4 * job[kind]["iops_mean"], rel=0.01)
    assert job["sync"]["total_ios"] == run["kinds"]["flush"]["count"] > 0
    shares = [share for unit in ("ns", "us", "ms") for share in job[f"latency_{unit}"].values()]
    assert sum(shares) == pytest.approx(100, abs=0.2)
    assert sum(job["iodepth_level"].values()) == pytest.approx(100, abs=0.1)
    assert job["iodepth_level"]["4"] > 90


def test_a_device_of_a_job_file_is_written_where_it_may_be(
    tmp_path: Path, headstack: Headstack, attach: Attach
) -> None:
    backing = tmp_path / "backing"
    backing.write_bytes(bytes(1 << 22))
    device = attach(backing)
    file = str(
        job_file(tmp_path, f"[w]\nfilename={device}\nrw=write\nbs=64k\ndirect=1\n[r]\nfilename={device}\nrw=read\n")
    )
    code, _, err = headstack("measure", "--fio", file, "-q")
    assert code == 2
    assert "--destroy" in err
    assert backing.read_bytes() == bytes(1 << 22)
    code, out, err = headstack("measure", "--fio", file, "-q", "--destroy", device, "--output-format", "json")
    assert code == 0, err
    document = json.loads(out)
    assert document["jobs"][0]["write"]["io_bytes"] == 1 << 22
    [disk] = document["disk_util"]
    assert disk["name"] == os.path.basename(device)
    assert disk["write_ios"] >= 64

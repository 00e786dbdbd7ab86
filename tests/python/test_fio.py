"""fio's words mean what fio's mean: its outputs, its logs, its errors, and the same requests."""

import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fio_conformance
import headstack as hs
from conftest import Attach, Headstack, lacks, needs_program

Capture = pytest.CaptureFixture[str]


def job_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "job.fio"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", fio_conformance.SHORT)
def test_the_same_requests_as_fio(name: str) -> None:
    case = fio_conformance.CASES[name]
    if (lacking := fio_conformance.missing(case)) is not None:
        lacks(*lacking)
    found = fio_conformance.outcome(case)
    # fio draws skewed laws anew in each run, and its hash may put popular blocks on one. Another law differs each time.
    for _ in range(4 if case.ranks else 0):
        if found.word == "differs":
            found = fio_conformance.outcome(case)
    expected = "refused" if name == "dedupe_percentage" else "same"
    assert found.word == expected, found.detail


def test_what_is_compared_tells_apart() -> None:
    """The comparison itself: requests that differ in one thing alone are called different."""
    case = fio_conformance.CASES["randwrite"]
    even = [("write", "file", 4096 * ((at * 37) % 256), 4096) for at in range(256)]
    asked = fio_conformance.Asked(requests=even, flushes=Counter(fsync=3), drops=1)
    assert fio_conformance.compare(case, asked, asked) == []
    low = [(kind, file, offset // 2 // 4096 * 4096, length) for kind, file, offset, length in even]
    longer = [(kind, file, offset, 2 * length) for kind, file, offset, length in even]
    reads = [("read", file, offset, length) for _, file, offset, length in even]
    for other in (
        replace(asked, requests=even[:-1]),
        replace(asked, requests=sorted(even)),
        replace(asked, requests=low),
        replace(asked, requests=longer),
        replace(asked, requests=reads),
        replace(asked, flushes=Counter(fdatasync=3)),
        replace(asked, drops=2),
    ):
        assert fio_conformance.compare(case, asked, other), other


def test_readonly_refuses_whatever_writes(tmp_path: Path, headstack: Headstack) -> None:
    path = tmp_path / "data"
    for rw in ("write", "randrw", "randtrim", "trimwrite"):
        file = job_file(tmp_path, f"[w]\nfilename={path}\nsize=64k\nrw={rw}\n")
        code, _, err = headstack("measure", "-q", "--fio", str(file), "--readonly")
        assert (code, "readonly: job w writes or trims" in err, path.exists()) == (2, True, False)
    arguments = ["--name=w", "--rw=write", "--size=64k", f"--filename={path}", "--readonly"]
    code, _, err = headstack("measure", "-q", "--fio", "--", *arguments)
    assert (code, "readonly" in err, path.exists()) == (2, True, False)
    with pytest.raises(hs.InputError, match="readonly"):
        hs.JobFile.fio_arguments(arguments)
    path.write_bytes(bytes(1 << 16))
    file = job_file(tmp_path, f"[r]\nfilename={path}\nsize=64k\nrw=read\n")
    assert headstack("measure", "-q", "--fio", str(file), "--readonly")[0] == 0


def test_parsing_alone_touches_nothing(tmp_path: Path, headstack: Headstack) -> None:
    path = tmp_path / "data"
    file = job_file(tmp_path, f"[w]\nfilename={path}\nsize=64k\nrw=write\nverify_fatal=1\n")
    code, out, err = headstack("measure", "-q", "--fio", str(file), "--parse-only")
    assert (code, out, path.exists()) == (0, "", False)
    assert "verify_fatal" in err
    file.write_text("[w]\nbs=4q\n")
    assert headstack("measure", "-q", "--fio", str(file), "--parse-only")[0] == 2


def test_what_would_change_what_is_written_is_refused(tmp_path: Path, headstack: Headstack) -> None:
    path = tmp_path / "data"
    for option in ("dedupe_percentage=20", "verify_pattern=0xff", "end_syncfs=1", "file_append=1", "atomic=1"):
        file = job_file(tmp_path, f"[w]\nfilename={path}\nsize=64k\nrw=write\n{option}\n")
        code, _, err = headstack("measure", "-q", "--fio", str(file))
        assert (code, path.exists()) == (2, False), err
        assert f"job.fio:5: {option.split('=')[0]}: not supported" in err


def test_phases_on_files_of_their_own_are_one_document(tmp_path: Path) -> None:
    text = (
        f"[a]\nfilename={tmp_path}/a\nsize=64k\nrw=write\n[b]\nstonewall\nfilename={tmp_path}/b\nsize=32k\nrw=write\n"
    )
    document = json.loads(hs.measure_jobs(job_file(tmp_path, text)).to_fio_json())
    assert [(job["jobname"], job["write"]["total_ios"]) for job in document["jobs"]] == [("a", 16), ("b", 8)]


def test_verifying_reads_are_reads_of_the_job(tmp_path: Path) -> None:
    text = f"[w]\nfilename={tmp_path}/w\nsize=1m\nbs=16k\nrw=randwrite\nverify=crc32c\n"
    results = hs.measure_jobs(job_file(tmp_path, text))
    [job] = json.loads(results.to_fio_json())["jobs"]
    assert (job["write"]["total_ios"], job["read"]["total_ios"], job["read"]["io_bytes"]) == (64, 64, 1 << 20)
    assert job["read"]["clat_ns"]["N"] == 64
    assert results[0]["requests"] == 64


@pytest.fixture
def short_device(tmp_path: Path, attach: Attach) -> str:
    """A loop device of 1 MiB whose second half cannot be read."""
    backing = tmp_path / "backing"
    backing.write_bytes(bytes(1 << 20))
    device = attach(backing)
    os.truncate(backing, 1 << 19)
    return device


def test_failed_requests_end_in_1_unless_they_may(short_device: str, tmp_path: Path, headstack: Headstack) -> None:
    arguments = ["measure", "-q", short_device, "--size", "4KiB", "--random", "0", "--requests", "256", "--depth", "1"]
    code, out, err = headstack(*arguments, "--csv", str(tmp_path / "table.csv"))
    assert (code, "128 requests failed" in err) == (1, True), err
    assert "errors" in out
    with open(tmp_path / "table.csv", newline="") as table:
        [values] = csv.DictReader(table)
    assert (values["errors"], values["checks_passed"].lower()) == ("128", "false")
    assert headstack(*arguments, "--continue-on-error")[0] == 0


def test_a_job_ends_at_its_first_error_as_in_fio(short_device: str, tmp_path: Path, headstack: Headstack) -> None:
    def run(options: str, *more: str) -> tuple[int | str, dict[str, Any]]:
        text = f"[r]\nfilename={short_device}\nrw=read\nbs=4k\nsize=1m\ndirect=1\n{options}"
        file = job_file(tmp_path, text)
        code, out, _ = headstack("measure", "-q", "--fio", str(file), "--output-format", "json", *more)
        [job] = json.loads(out)["jobs"]
        return code, job

    code, job = run("")
    assert (code, job["error"], job["read"]["total_ios"]) == (1, 5, 128)
    code, job = run("continue_on_error=io\n")
    assert (code, job["error"], job["total_err"], job["first_error"]) == (0, 0, 128, 5)
    assert run("continue_on_error=write\n")[0] == 1
    code, job = run("", "--continue-on-error")
    assert (code, job["read"]["total_ios"]) == (0, 128)


LOGGED = "size=256k\nbs=4k\nrw=randrw\nwrite_lat_log=log\nwrite_bw_log=log\nwrite_iops_log=log\n"


@pytest.mark.parametrize(
    "options",
    ["", "log_offset=1\n", "ioengine=io_uring\niodepth=4\n", "numjobs=2\n", "numjobs=2\nper_job_logs=0\n"],
    ids=["sync", "offsets", "uring", "jobs", "together"],
)
def test_logs_are_those_of_fio(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headstack: Headstack
) -> None:
    """The same names, columns, and number of lines in each."""
    needs_program("fio")
    logs = []
    for program in ("fio", "headstack"):
        folder = tmp_path / program
        folder.mkdir()
        (folder / "data").write_bytes(bytes(1 << 18))
        file = job_file(folder, f"[first]\nfilename={folder}/data\n{LOGGED}{options}")
        monkeypatch.chdir(folder)
        if program == "fio":
            subprocess.run(["fio", "--output=/dev/null", str(file)], check=True)
        else:
            assert headstack("measure", "-q", "--fio", str(file), "--overwrite")[0] == 0
        logs.append({path.name: path.read_text().splitlines() for path in folder.glob("*.log")})
    theirs, own = logs
    assert sorted(theirs) == sorted(own)
    for name, lines in theirs.items():
        assert len(lines) == len(own[name]), name
        assert {len(line.split(", ")) for line in lines} == {len(line.split(", ")) for line in own[name]}, name
        columns = [sorted(line.split(", ")[3] for line in log) for log in (lines, own[name])]
        assert columns[0] == columns[1], name
        assert all(field.isdigit() for line in own[name] for field in line.split(", ")), name


def test_logs_of_windows_hold_their_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "[n]\nioengine=null\nrw=read\nbs=4k\nsize=1m\nrate_iops=1000\nnumber_ios=200\nlog_avg_msec=50\n"
    hs.measure_jobs(job_file(tmp_path, text + "write_iops_log=w\nwrite_bw_log=w\nwrite_lat_log\n"), "null")
    rows = [[int(cell) for cell in line.split(", ")] for line in Path("w_iops.1.log").read_text().splitlines()]
    # However long it takes: every request is in one window, and rates are rounded down.
    ends = [0, *(row[0] for row in rows)]
    counts = [value * (end - start) / 1000 for (end, value, *_), start in zip(rows, ends, strict=False)]
    assert abs(sum(counts) - 200) < len(rows)
    assert len(Path("n_lat.1.log").read_text().splitlines()) == len(rows)


def test_terse_output_has_the_fields_of_fio(tmp_path: Path, headstack: Headstack) -> None:
    needs_program("fio")
    data = tmp_path / "data"
    data.write_bytes(bytes(1 << 18))
    options = [
        "--name=first",
        f"--filename={data}",
        "--rw=randread",
        "--size=256k",
        "--number_ios=16",
        "--description=x",
    ]
    theirs = subprocess.run(["fio", "--minimal", *options], check=True, capture_output=True, text=True).stdout
    code, own, _ = headstack("measure", "-q", "--fio", "--", *options, "--minimal")
    assert code == 0
    fields = [text.strip().split(";") for text in (theirs.splitlines()[-1], own)]
    for at in (0, 1, 2, 3, 4, 5):
        assert fields[0][at] == fields[1][at]
    for at, (their, ours) in enumerate(zip(fields[0][:120], fields[1][:120], strict=True)):
        assert their.endswith("%") == ours.endswith("%"), at
        assert [sign in their for sign in "=."] == [sign in ours for sign in "=."], (at, their, ours)
        if "=" in their:
            assert their.split("=")[0] == ours.split("=")[0], at


def test_the_state_is_told_in_the_course(tmp_path: Path, headstack: Headstack) -> None:
    options = [
        "--name=n",
        "--ioengine=null",
        "--size=1m",
        "--rw=read",
        "--time_based",
        "--runtime=1",
        "--rate_iops=200",
    ]
    code, out, _ = headstack(
        "measure", "-q", "--fio", "--", *options, "--status-interval=200ms", "--output-format=json"
    )
    assert code == 0
    documents, rest = [], out
    while rest.strip():
        document, end = json.JSONDecoder().raw_decode(rest.strip())
        documents.append(document)
        rest = rest.strip()[end:]
    counts = [document["jobs"][0]["read"]["total_ios"] for document in documents]
    assert len(documents) >= 3
    assert counts == sorted(counts), "from the start, not since the last"
    assert counts[-1] > counts[0]


def test_submission_is_timed_apart(tmp_path: Path) -> None:
    text = (
        f"[w]\nfilename={tmp_path}/w\nsize=1m\nbs=4k\nrw=randwrite\nioengine=io_uring\niodepth=8\nslat_percentiles=1\n"
    )
    [job] = json.loads(hs.measure_jobs(job_file(tmp_path, text)).to_fio_json(plus=True))["jobs"]
    slat, clat, lat = (job["write"][f"{name}_ns"] for name in ("slat", "clat", "lat"))
    assert slat["N"] == clat["N"] == lat["N"] == 256
    assert slat["min"] > 0
    assert slat["percentile"]["50.000000"] > 0
    assert sum(slat["bins"].values()) == 256
    assert abs(slat["mean"] + clat["mean"] - lat["mean"]) < 1


def test_the_program_names_what_it_lacks(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("PATH", "")
    assert fio_conformance.missing() == ("programs", "fio and strace not installed")
    assert fio_conformance.main(["read"]) == 0
    assert "skipped" in capsys.readouterr().out
    assert sys.executable in fio_conformance.headstack()


def test_jobs_with_an_unsupported_option_are_listed_without_a_row() -> None:
    refused = fio_conformance.Outcome("refused", "trim_percentage: not supported: verified blocks are not trimmed")
    other = fio_conformance.Outcome("refused", "a.0.0: not found")
    cases = {"trims": fio_conformance.Case(""), "no size": fio_conformance.Case("")}
    _, _, listed, _, _, _, *rows = fio_conformance.table({"trims": refused, "no size": other}, cases).splitlines()
    assert listed == "Refused because an option or value is not supported: `trims`."
    assert rows == ["| no size | refused | a.0.0: not found |"]


def test_the_table_has_rows_only_for_jobs_that_are_not_the_same() -> None:
    cases = {"read": fio_conformance.Case(""), "normal": fio_conformance.Case("", differs="the mean of twelve")}
    outcomes = {"read": fio_conformance.Outcome("same", ""), "normal": fio_conformance.Outcome("differs", "5, 6 | 7")}
    same, _, _, _, row = fio_conformance.table(outcomes, cases).splitlines()
    assert same == "Same in both programs: 1 of 2 jobs, for example `read`."
    assert row == "| normal | differs | 5, 6 / 7 (the mean of twelve) |"


def shapes(line: str) -> list[str]:
    """The fields of a terse line without their figures, up to those of disks."""
    return [re.sub(r"[0-9]+", "0", field) for field in line.strip().split(";")]


@pytest.mark.parametrize("unified", ["none", "mixed", "both"])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_each_version_of_terse_output_is_that_of_fio(
    version: int, unified: str, tmp_path: Path, headstack: Headstack
) -> None:
    needs_program("fio")
    data = tmp_path / "data"
    data.write_bytes(bytes(1 << 18))
    options = ["--name=first", f"--filename={data}", "--rw=randrw", "--size=256k", "--ioengine=psync"]
    options += [f"--unified_rw_reporting={unified}", f"--terse-version={version}", "--output-format=terse"]
    theirs = subprocess.run(["fio", *options], check=True, capture_output=True, text=True).stdout
    code, own, err = headstack("measure", "-q", "--overwrite", "--fio", "--", *options)
    assert code == 0, err
    fields = [shapes(text.splitlines()[-1]) for text in (theirs, own)]
    # What follows the shares of latencies is of disks, one after another, where there are any.
    count = min(len(one) for one in fields)
    assert count > 60
    assert fields[0][:count] == fields[1][:count]
    assert all((len(one) - count) % 9 == 0 for one in fields)


def test_several_formats_are_printed_in_the_order_of_fio(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 16))
    options = ["--name=first", f"--filename={tmp_path}/data", "--rw=read", "--size=64k"]
    for formats in ("json,terse", "terse,json"):
        code, out, _ = headstack("measure", "-q", "--fio", "--", *options, f"--output-format={formats}")
        first, rest = out.split("\n", 1)
        assert (code, first.split(";")[:3]) == (0, ["3", "fio-3.33", "first"])
        assert json.loads(rest)["jobs"][0]["jobname"] == "first"
    for words, message in (
        (["--output-format=json,normal"], "--output-format: 'normal' is unknown; allowed: json, json+, terse"),
        (["--output-format=json", "--terse-version=5"], "--terse-version: needs terse in --output-format json"),
        (["--terse-version=5"], "--terse-version: needs --output-format terse"),
        (["--minimal", "--terse-version=6"], "--terse-version: '6' is unknown; allowed: 2, 3, 4, 5"),
    ):
        code, _, err = headstack("measure", "-q", "--fio", "--", *options, *words)
        assert (code, message in err) == (2, True), err


def test_a_limit_of_the_job_that_is_not_kept_ends_in_1(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 16))
    file = job_file(
        tmp_path,
        f"[slow]\nfilename={tmp_path}/data\nrw=read\nsize=64k\ndirect=1\nmax_latency=1\ncontinue_on_error=all\n",
    )
    code, out, err = headstack("measure", "-q", "--fio", str(file), "--output-format", "json", "--continue-on-error")
    [job] = json.loads(out)["jobs"]
    assert (code, job["error"], job["read"]["total_ios"]) == (1, 110, 1)
    assert "headstack: slow ended: a read took" in err
    assert "; max_latency is 1000 ns" in err


def test_loops_that_verify_are_one_job_in_json(tmp_path: Path) -> None:
    text = f"[w]\nfilename={tmp_path}/w\nsize=64k\nbs=4k\nrw=randwrite\nverify=crc32c\nloops=3\n"
    results = hs.measure_jobs(job_file(tmp_path, text))
    assert [row["requests"] for row in results] == [16, 16, 16]
    judged = [results.integrity(run) for run in range(3)]
    assert [one and one["checked"] for one in judged] == [16, 16, 16]
    [job] = json.loads(results.to_fio_json())["jobs"]
    assert (job["write"]["total_ios"], job["read"]["total_ios"], job["groupid"]) == (48, 48, 0)
    once = hs.measure_jobs(job_file(tmp_path, text + "runtime=60\n"), overwrite=True)
    assert [row["requests"] for row in once] == [48]
    assert any("loops: verifies only the last loop" in remark for remark in once.remarks)

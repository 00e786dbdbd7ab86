"""Compares job files here with fio: both programs run the same jobs under strace on equal files, and their system
calls, the files that they leave, their JSON and their exit codes are compared.

    python tests/python/fio_conformance.py             updates the table of docs/fio.md
    python tests/python/fio_conformance.py NAME...     prints the comparison of these cases
    python tests/python/fio_conformance.py --smoke     compares the first case, to see that the comparison runs

For each kind of request it compares number, lengths, order, covered blocks, distribution, flushes, and how often the
page cache is dropped. Both use the engine psync, whose requests strace sees. In JSON it compares names and groups of
jobs, options, error numbers, all keys, and the requests of each kind.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
EXAMPLES = Path(os.environ.get("HEADSTACK_FIO_EXAMPLES", "/usr/share/doc/fio/examples"))
BLOCK = 4096
FILE_BYTES = 4 << 20
STEPS_MIN = 8
"""Minimum requests of a kind whose order is compared."""
ALPHA = 0.001
"""Significance level of each statistical comparison."""
CALLS = "pread64,pwrite64,preadv,pwritev,preadv2,pwritev2,fsync,fdatasync,fallocate,ioctl,fadvise64,sync_file_range"
TIME_LIMIT_S = 60


@dataclass(frozen=True)
class Case:
    """A job file, with ``FILE`` for the first file or device and ``OTHER`` for the second."""

    text: str
    on_device: bool = False
    """Whether it runs on a loop device: fio trims nothing else."""
    same_bytes: bool = False
    """Whether both must leave the same contents."""
    ranks: bool = False
    """Whether its distribution is skewed, with popular blocks anywhere: the frequencies of the most popular are
    compared.
    """
    by_time: bool = False
    """Whether it ends when a limit was exceeded for some time: the number of requests until then is not compared."""
    unseen: bool = False
    """Whether its requests use system calls that strace does not show."""
    differs: str = ""
    """The reason of an intended difference."""


def one(options: str, **how: object) -> Case:
    """Returns one job of 1 MiB on one file."""
    return Case(f"[job]\nfilename=FILE\nsize=1m\nbs=4k\n{options.replace(' ', chr(10))}\n", **how)  # type: ignore[arg-type]


def two(first: str, second: str, **how: object) -> Case:
    """Returns two concurrent jobs, each on a file of its own."""
    lines = [options.replace(" ", "\n") for options in (first, second)]
    text = "[global]\nsize=1m\nbs=4k\n[a]\nfilename=FILE\n{}\n[b]\nfilename=OTHER\n{}\n".format(*lines)
    return Case(text, **how)  # type: ignore[arg-type]


VERIFIED = "verified in order of addresses, not of writes"
BATES = "fio takes the mean of twelve uniform numbers and adds a thirteenth: its deviation is always about 9 %"
AFTER_READS = "fio 3.33 flushes again after each read until the next write; its development version does not"
BEYOND = "the last request of fio goes beyond the part where the file is longer; here none does"
ONE_MAP = "fio's one map counts in the units of each kind, and ends the job early"

CASES: dict[str, Case] = {
    "read": one("rw=read"),
    "write": one("rw=write"),
    "randread": one("rw=randread"),
    "randwrite": one("rw=randwrite"),
    "rw": one("rw=rw"),
    "rwmixread=80": one("rw=rw rwmixread=80"),
    "randrw": one("rw=randrw"),
    "rwmixwrite=90": one("rw=randrw rwmixwrite=90"),
    "trim": one("rw=trim", on_device=True),
    "randtrim": one("rw=randtrim", on_device=True),
    "trimwrite": one("rw=trimwrite", on_device=True),
    "randtrimwrite": one("rw=randtrimwrite", on_device=True),
    "randtrimwrite, number_ios": one("rw=randtrimwrite number_ios=20", on_device=True),
    "randread:8": one("rw=randread:8 size=4m"),
    "randread:8, part of a file": one("rw=randread:8", differs="fio ends where a run meets the end of its part"),
    "randwrite:4, identical": one("rw=randwrite:4 rw_sequencer=identical norandommap"),
    "read:8k": one("rw=read:8k"),
    "read:-8k": one("rw=read:-8k"),
    "write:4k": one("rw=write:4k"),
    "bs=16k": one("rw=randread bs=16k"),
    "bs=4k,8k": one("rw=randrw bs=4k,8k norandommap size=4m"),
    "bs=4k,8k, random map": one("rw=randrw bs=4k,8k", differs=ONE_MAP),
    "bs_is_seq_rand": one("rw=randread bs=8k,4k bs_is_seq_rand=1 percentage_random=50 norandommap size=4m"),
    "bsrange": one("rw=randread bsrange=4k-16k size=4m norandommap"),
    "bsrange, sequential": one("rw=read bsrange=4k-16k size=4m"),
    "bssplit": one("rw=randread bssplit=4k/50:8k/30:16k/20 norandommap size=4m"),
    "bssplit, random map": one("rw=randwrite bssplit=4k/50:8k/30:16k/20 size=4m"),
    "bssplit, sequential": one("rw=write bssplit=4k/60:16k/40 size=4m"),
    "blockalign": one("rw=randread bs=4k blockalign=16k norandommap"),
    "norandommap": one("rw=randread norandommap size=4m"),
    "percentage_random": one("rw=randread percentage_random=30 norandommap size=4m"),
    "zipf": one("rw=randread random_distribution=zipf:1.2 size=4m norandommap", ranks=True),
    "pareto": one("rw=randread random_distribution=pareto:0.3 size=4m norandommap", ranks=True),
    "normal": one("rw=randread random_distribution=normal:15 size=4m norandommap", differs=BATES),
    "zoned": one("rw=randread random_distribution=zoned:60/10:30/20:10/70 size=4m norandommap"),
    "zoned_abs": one("rw=randread random_distribution=zoned_abs:60/1m:40/3m size=4m norandommap"),
    "lfsr": one("rw=randread random_generator=lfsr"),
    "number_ios": one("rw=randread number_ios=37"),
    "io_size less": one("rw=read io_size=300k"),
    "io_size more": one("rw=read io_size=2500k"),
    "io_size more, random": one("rw=randwrite io_size=2m"),
    "loops": one("rw=read loops=3"),
    "loops, random": one("rw=randread loops=2"),
    "loops, direct": one("rw=read loops=3 direct=1"),
    "loops, invalidate=0": one("rw=read loops=2 invalidate=0"),
    "offset": one("rw=read offset=256k size=512k"),
    "offset, percent": one("rw=randread offset=50% size=50%"),
    "offset_increment": one("rw=read offset_increment=512k size=512k numjobs=2"),
    "numjobs": one("rw=randread numjobs=3 size=512k"),
    "nrfiles": Case("[job]\nfilename=FILE:OTHER\nsize=1m\nbs=4k\nrw=read\n"),
    "nrfiles, random": Case("[job]\nfilename=FILE:OTHER\nsize=1m\nbs=4k\nrw=randread\n"),
    "nrfiles, fsync": Case(
        "[job]\nfilename=FILE:OTHER\nsize=1m\nbs=4k\nrw=write\nfsync=8\n",
        differs="a flush reaches all files of a job; in fio only the next one",
    ),
    "file_service_type=sequential": Case(
        "[job]\nfilename=FILE:OTHER\nsize=1m\nbs=4k\nrw=read\nfile_service_type=sequential\n"
    ),
    "fsync=8": one("rw=write fsync=8"),
    "fdatasync=8": one("rw=write fdatasync=8"),
    "fsync=8, fdatasync=4": one("rw=randwrite fsync=8 fdatasync=4"),
    "fsync=1, mixed": one("rw=randrw fsync=1", differs=AFTER_READS),
    "fsync=8, number_ios": one("rw=write fsync=8 number_ios=24"),
    "end_fsync": one("rw=write end_fsync=1"),
    "fsync_on_close": one("rw=write fsync_on_close=1"),
    "sync=1": one("rw=write sync=1 size=256k"),
    "direct": one("rw=randread direct=1"),
    "zonemode=strided": one("rw=read zonemode=strided zonesize=64k zonerange=128k zoneskip=64k size=512k"),
    "rate_iops": one("rw=randread rate_iops=2000 size=512k"),
    "rate_iops=r,w": one("rw=randrw rate_iops=600,200 number_ios=240 norandommap"),
    "rate": one("rw=write rate=8m size=512k"),
    "thinktime": one("rw=randread thinktime=200 size=256k"),
    "flow": two("rw=randread flow=3 loops=4", "rw=randread flow=1 loops=4"),
    "stonewall": Case(
        "[a]\nfilename=FILE\nsize=1m\nbs=4k\nrw=write\n[b]\nstonewall\nfilename=FILE\nsize=1m\nbs=4k\nrw=read\n"
    ),
    "zero_buffers": one("rw=write zero_buffers", same_bytes=True),
    "buffer_pattern": one("rw=write buffer_pattern=0xdeadbeef", same_bytes=True),
    "buffer_pattern, text": one('rw=randwrite buffer_pattern="abc"', same_bytes=True),
    "verify, sequential": one("rw=write verify=crc32c"),
    "verify, random": one("rw=randwrite verify=crc32c", differs=VERIFIED),
    "verify, do_verify=0": one("rw=randwrite verify=crc32c do_verify=0"),
    "dedupe_percentage": one("rw=write dedupe_percentage=50"),
    "buffer_compress_percentage": one("rw=write buffer_compress_percentage=50"),
    "verify_pattern": one("rw=write verify=pattern verify_pattern=0xaa"),
    "sync_file_range": one("rw=write sync_file_range=wait_before:8"),
    "write_barrier": one("rw=write write_barrier=8"),
    "end_syncfs": one("rw=write end_syncfs=1"),
    "trim_percentage": one("rw=randwrite trim_percentage=20", on_device=True),
    "name in [global]": Case("[global]\nname=shared\nsize=64k\nrw=write\n[a]\n[b]\nname=bb\n[c]\nwait_for=bb\n"),
    "filename_format": Case("[a]\nname=x\nsize=64k\nrw=write\nfilename_format=$jobname-$filenum\n"),
    "name, numjobs": Case(
        "[a]\nname=x\nsize=64k\nrw=write\nnumjobs=2\n",
        differs="fio 3.33 reports all copies but the first by the section",
    ),
    "groups": Case(
        "[global]\nsize=64k\nrw=write\n[a]\n[b]\nnew_group\n[c]\nstonewall\n[d]\nwait_for=c\n[e]\nstonewall\nnumjobs=2\n"
    ),
    "unlink=1": Case("[a]\nsize=64k\nrw=write\nunlink=1\n[b]\nsize=64k\nrw=write\n"),
    "no size": Case("[a]\nrw=read\nsize=0\n"),
    "bs=2300, fdatasync (etcd)": Case("[job]\nrw=write\nbs=2300\nfdatasync=1\nsize=230k\n"),
    "bs=2300, part of a file": one("rw=write bs=2300 size=230k", differs=BEYOND),
    "bs=2300, random": one("rw=randread bs=2300"),
    "bs=2300, norandommap": one("rw=randwrite bs=2300 norandommap"),
    "bs=100": Case("[job]\nrw=write\nbs=100\nsize=64k\n"),
    "bs=2300, direct": one("rw=read bs=2300 direct=1", differs="fio makes the request, which the kernel refuses"),
    "bs=12k of 1 MiB": Case("[job]\nrw=write\nbs=12k\nsize=1m\n"),
    "bs=12k, part of a file": one("rw=read bs=12k loops=2", differs=BEYOND),
    "bs=12k of 1 MiB, random": one("rw=randwrite bs=12k"),
    "verify, loops": one("rw=write verify=crc32c loops=3 size=256k"),
    "verify, random, loops": one("rw=randwrite verify=crc32c loops=2 size=256k", differs=VERIFIED),
    "unified_rw_reporting=1": one("rw=randrw unified_rw_reporting=1"),
    "unified_rw_reporting=both": one("rw=randrw unified_rw_reporting=both"),
    "unified_rw_reporting=1, read": one("rw=read unified_rw_reporting=1"),
    "group_reporting": one("rw=randread numjobs=3 group_reporting size=256k"),
    "gtod_reduce": one("rw=randrw gtod_reduce=1 fsync=8"),
    "disable_clat": one("rw=read disable_clat=1 clat_percentiles=1 lat_percentiles=1"),
    "flags with values": one("rw=randread norandommap=1 group_reporting=1 exitall=0"),
    "percentile_list": one("rw=read percentile_list=50:90 lat_percentiles=1 slat_percentiles=1"),
    "description": one("rw=read description=words"),
    "continue_on_error": one("rw=read continue_on_error=all"),
    "buffer_pattern, mixed": one('rw=write buffer_pattern="abcd"-120xdead', same_bytes=True),
    "buffer_pattern, number": one("rw=write buffer_pattern=-12", same_bytes=True),
    "max_latency": one("rw=randread direct=1 max_latency=1", by_time=True),
    "max_latency, writes": one("rw=randrw direct=1 max_latency=0,1", by_time=True),
    "max_latency, kept": one("rw=randread max_latency=60s"),
    "rate_iops_min": one("rw=randread thinktime=50ms rate_iops_min=200 time_based runtime=10", by_time=True),
    "rate_min": one("rw=randwrite thinktime=20ms rate_min=2m rate_cycle=200 time_based runtime=10", by_time=True),
    "rate_min above rate": one("rw=read rate=1m rate_min=2m"),
    "libaio, direct": one("rw=randread ioengine=libaio iodepth=4 direct=1", unseen=True),
    "libaio, buffered": one("rw=randread ioengine=libaio iodepth=4", unseen=True),
    "read_iolog": one("rw=read read_iolog=missing.log"),
}

SHORT = (
    "randrw", "rw", "randtrimwrite", "randread:8", "bssplit, random map", "zipf", "loops", "fsync=8, fdatasync=4",
    "rate_iops=r,w", "flow", "buffer_pattern", "verify, sequential", "dedupe_percentage", "name in [global]",
    "unlink=1", "bs=2300, fdatasync (etcd)", "bs=2300, random", "bs=12k of 1 MiB", "verify, loops",
    "unified_rw_reporting=1", "group_reporting", "buffer_pattern, mixed", "max_latency",
    "gtod_reduce", "disable_clat", "flags with values",
)  # fmt: skip
"""The cases that every run of the tests compares."""


@dataclass
class Asked:
    """The requests of a program to the kernel."""

    requests: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Kind, file, offset and length, in order."""
    threads: list[str] = field(default_factory=list)
    """The thread of each of them: the order of requests is compared per thread."""
    flushes: Counter[str] = field(default_factory=Counter)
    drops: int = 0
    contents: list[bytes] = field(default_factory=list)
    created: dict[str, int] = field(default_factory=dict)
    """Files that it left, with their lengths."""
    document: dict[str, Any] | None = None
    """Its JSON."""
    code: int = 0

    def of(self, kind: str) -> list[tuple[str, int, int]]:
        """Returns file, offset and length of one kind's requests."""
        return [request[1:] for request in self.requests if request[0] == kind]

    def threads_of(self, kind: str) -> list[str]:
        """Returns the threads of one kind's requests."""
        known = self.threads or [""] * len(self.requests)
        return [thread for request, thread in zip(self.requests, known, strict=True) if request[0] == kind]


# strace's output.

LINE = re.compile(r"^(\d+)\s+(.*)$")
CALL = re.compile(r"^(\w+)\((\d+)<([^>]*)>(.*)\) += (-?\d+)")
LAST_TWO = re.compile(r", (\d+), (\d+)$")
VECTOR = re.compile(r"\], \d+, (\d+)")
RANGE = re.compile(r", (\d+), (\d+)$")


def read_trace(text: str, names: dict[str, str]) -> Asked:
    """Returns requests for the files of ``names``, in order of their calls."""
    asked = Asked()
    begun: dict[str, str] = {}
    for line in text.splitlines():
        found = LINE.match(line)
        if found is None:
            continue
        pid, call = found.groups()
        if call.endswith("<unfinished ...>"):
            begun[pid] = call.removesuffix("<unfinished ...>")
            continue
        resumed = re.match(r"^<\.\.\. \w+ resumed>(.*)$", call)
        if resumed is not None:
            call = begun.pop(pid, "") + resumed[1]
        parsed = CALL.match(call)
        if parsed is None or parsed[3] not in names:
            continue
        before = len(asked.requests)
        name, path, arguments, result = parsed[1], names[parsed[3]], parsed[4].strip(), int(parsed[5])
        if name in ("pread64", "pwrite64"):
            place = LAST_TWO.search(arguments)
            assert place is not None, call
            asked.requests.append(("read" if name == "pread64" else "write", path, int(place[2]), result))
        elif name.startswith(("preadv", "pwritev")):
            vector = VECTOR.search(arguments)
            assert vector is not None, call
            asked.requests.append(("read" if name.startswith("pread") else "write", path, int(vector[1]), result))
        elif name in ("fsync", "fdatasync", "sync_file_range"):
            asked.flushes[name] += 1
        elif (name == "fallocate" and "PUNCH_HOLE" in arguments) or (name == "ioctl" and "BLKDISCARD" in arguments):
            numbers = [int(number, 0) for number in re.findall(r"0x[0-9a-f]+|\d+", arguments.split("BLKDISCARD")[-1])]
            asked.requests.append(("trim", path, numbers[-2], numbers[-1]))
        elif name == "ioctl" and "BLKFLSBUF" in arguments:
            if asked.drops == 0:
                # Earlier reads of a device are the safety check of its contents.
                asked.requests.clear()
                asked.threads.clear()
            asked.drops += 1
        elif name == "fadvise64" and "DONTNEED" in arguments and not parsed[3].startswith("/dev/"):
            # For a device the safety check does the same, before it looks for signatures.
            asked.drops += 1
        if len(asked.requests) > before:
            asked.threads.append(pid)
    assert len(asked.threads) == len(asked.requests)
    return asked


# Both programs.


def headstack() -> list[str]:
    """Returns the command of this environment."""
    return [sys.executable, "-c", "from headstack.cli.main import main; main()"]


@contextmanager
def places(case: Case, folder: Path) -> Iterator[list[str]]:
    """Yields two files, or a loop device in place of the first, with the same contents for each program."""
    files = [folder / "file", folder / "other"]
    for number, file in enumerate(files):
        contents = bytes((number * 7 + at // BLOCK) % 251 for at in range(0, FILE_BYTES, BLOCK)).ljust(FILE_BYTES, b"x")
        # A device with data needs another permission, which is not compared.
        file.write_bytes(bytes(FILE_BYTES) if case.on_device else contents)
    if not case.on_device:
        yield [str(file) for file in files]
        return
    device = subprocess.check_output(["losetup", "--find", "--show", str(files[0])], text=True).strip()
    try:
        yield [device, str(files[1])]
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def run(command: Sequence[str], folder: Path, names: dict[str, str]) -> tuple[Asked, int, str]:
    """Returns the requests of a command, its exit code, and its stderr."""
    out = folder / "strace"
    traced = ["strace", "-f", "--seccomp-bpf", "-y", "-s", "0", "-e", f"trace={CALLS}", "-o", str(out), *command]
    done = subprocess.run(traced, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False)
    return read_trace(out.read_text(), names), done.returncode, done.stderr


def carry_out(case: Case, program: str) -> tuple[Asked, int, str]:
    """Runs one program on files of its own."""
    with tempfile.TemporaryDirectory(prefix="headstack-conformance-") as name, places(case, Path(name)) as paths:
        folder = Path(name)
        text = case.text.replace("FILE", paths[0]).replace("OTHER", paths[1])
        sections = re.sub(r"^(\[(?!global\]).*\])$", r"\1\nioengine=psync", text, flags=re.M)
        job, output = folder / "job.fio", folder / "output.json"
        job.write_text(sections)
        names = dict(zip(paths, ("file", "other"), strict=True))
        reported = ["--output-format", "json", "--output", str(output)]
        if program == "fio":
            command = ["fio", *reported, str(job)]
        else:
            destroy = ["--destroy", os.path.basename(paths[0])] if case.on_device else []
            command = [*headstack(), "measure", "-q", "--fio", str(job), "--overwrite", *destroy, *reported]
        asked, code, said = run(command, folder, names)
        asked.code = code
        asked.document = document_of(output)
        own = {"job.fio", "output.json", "strace", "file", "other"}
        created = {path.name: path.stat().st_size for path in folder.iterdir() if path.name not in own}
        # fio records what it has verified (verify_state_save); see the option in docs/fio.md.
        asked.created = {name: size for name, size in created.items() if not name.endswith("-verify.state")}
        if case.same_bytes:
            asked.contents = [Path(path).read_bytes() for path in paths]
        return asked, code, said


def document_of(output: Path) -> dict[str, Any] | None:
    """Returns the JSON of a program, after lines in which fio reports errors."""
    text = output.read_text() if output.exists() else ""
    begin = re.search(r"^\{", text, flags=re.M)
    document: dict[str, Any] | None = None if begin is None else json.loads(text[begin.start() :])
    return document


# What is compared.


@dataclass(frozen=True)
class Order:
    """The order of a kind's requests, by the steps between them within a file."""

    word: str
    steps: int
    runs: int
    """Number of steps to the end of the previous request."""
    repeats: int
    """Number of steps to the same place."""

    def is_like(self, other: Order) -> bool:
        """Whether both may have the same distribution."""
        if min(self.steps, other.steps) < STEPS_MIN:
            return True
        if self.word != other.word:
            return False
        total = max(self.steps, other.steps)
        return self.word != "random" or (
            near(self.runs, other.runs, total) and near(self.repeats, other.repeats, total)
        )

    def __str__(self) -> str:
        of = f" ({self.runs} runs, {self.repeats} repeats)" if self.word == "random" else ""
        return f"{self.word}{of}"


def order_of(requests: Sequence[tuple[str, int, int]], threads: Sequence[str]) -> Order:
    """Returns the order: sequential, strided or random."""
    last: dict[tuple[str, str], tuple[int, int]] = {}
    steps: Counter[int] = Counter()
    repeats = 0
    for (path, offset, length), thread in zip(requests, threads, strict=True):
        if (path, thread) in last:
            start, end = last[path, thread]
            steps[offset - end] += 1
            repeats += offset == start
        last[path, thread] = (offset, offset + length)
    total = steps.total()
    word = "random"
    if total == 0:
        word = "single"
    elif steps[0] >= 0.95 * total:
        word = "sequential"
    elif (most := steps.most_common(1)[0])[1] >= 0.9 * total:
        word = f"strided by {most[0]}"
    return Order(word, total, steps[0], repeats)


def kolmogorov_smirnov(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two samples may have the same distribution, at ``ALPHA``."""
    n, m = len(one), len(other)
    if not n or not m:
        return n == m
    a, b = sorted(one), sorted(other)
    i = j = 0
    distance = 0.0
    while i < n and j < m:
        value = min(a[i], b[j])
        while i < n and a[i] == value:
            i += 1
        while j < m and b[j] == value:
            j += 1
        distance = max(distance, abs(i / n - j / m))
    return distance <= math.sqrt(-math.log(ALPHA / 2) / 2 * (n + m) / (n * m))


def chi_square(one: Counter[int], other: Counter[int]) -> bool:
    """Whether two counts of sizes may have the same distribution: each cell within 3.9 standard deviations."""
    n, m = one.total(), other.total()
    for size in one.keys() | other.keys():
        share = (one[size] + other[size]) / (n + m)
        deviation = math.sqrt(share * (1 - share) * (1 / n + 1 / m))
        if abs(one[size] / n - other[size] / m) > 3.9 * deviation + 1 / min(n, m):
            return False
    return True


def near(one: int, other: int, total: int) -> bool:
    """Whether two counts among ``total`` draws may have the same probability: within 4 standard deviations of their
    difference.
    """
    share = min(1.0, (one + other) / max(1, 2 * total))
    return abs(one - other) <= 4 * math.sqrt(2 * total * share * (1 - share)) + 1


def deviation_of_count(sizes: Counter[int]) -> float:
    """Returns the standard deviation of the difference between two counts of requests of these sizes, for equal
    bytes."""
    count = sizes.total()
    mean_bytes = sum(size * n for size, n in sizes.items()) / count
    variance = sum(n * (size - mean_bytes) ** 2 for size, n in sizes.items()) / count
    return math.sqrt(2 * count * variance) / mean_bytes


def touches(requests: Iterable[tuple[str, int, int]]) -> Counter[tuple[str, int]]:
    """Counts the requests to each block."""
    counts: Counter[tuple[str, int]] = Counter()
    for path, offset, length in requests:
        for block in range(offset // BLOCK, (offset + max(length, 1) - 1) // BLOCK + 1):
            counts[path, block] += 1
    return counts


def ranks(requests: Sequence[tuple[str, int, int]]) -> list[float]:
    """Returns for each request the rank of its block by popularity."""
    counts = touches(requests)
    rank = {block: number for number, (block, _) in enumerate(counts.most_common())}
    return [float(rank[path, offset // BLOCK]) for path, offset, _ in requests]


def compare(case: Case, fio: Asked, ours: Asked) -> list[str]:
    """Returns the differences, in words."""
    found: list[str] = []

    def differs(what: str, theirs: object, own: object) -> None:
        found.append(f"{what}: {theirs} in fio, {own} here")

    compare_files(case, fio, ours, differs)
    if case.by_time or case.unseen:
        return found
    total = len(fio.requests)
    if total != len(ours.requests) and len({request[3] for request in fio.requests}) == 1:
        differs("requests", total, len(ours.requests))
    mixed = len({request[0] for request in fio.requests}) > 1
    for kind in ("read", "write", "trim"):
        theirs, own = fio.of(kind), ours.of(kind)
        if not theirs and not own:
            continue
        sizes = [Counter(length for *_, length in requests) for requests in (theirs, own)]
        varied = len(sizes[0]) > 1
        if varied:
            is_same = abs(len(theirs) - len(own)) <= 4 * deviation_of_count(sizes[0]) + 1
        else:
            is_same = near(len(theirs), len(own), total) if mixed else len(theirs) == len(own)
        if not is_same:
            differs(f"{kind}s", len(theirs), len(own))
        if not theirs or not own:
            continue
        if not chi_square(*sizes):
            differs(f"sizes of {kind}s", dict(sizes[0].most_common(4)), dict(sizes[1].most_common(4)))
        orders = [order_of(asked.of(kind), asked.threads_of(kind)) for asked in (fio, ours)]
        if not orders[0].is_like(orders[1]):
            differs(f"order of {kind}s", *orders)
        if case.ranks:
            alike = kolmogorov_smirnov(ranks(theirs), ranks(own))
        else:
            alike = all(
                kolmogorov_smirnov(*([float(o) for p, o, _ in requests if p == path] for requests in (theirs, own)))
                for path in ("file", "other")
            )
        if not alike:
            differs(f"places of {kind}s", f"mean {mean(theirs):,.0f}", f"mean {mean(own):,.0f}")
        covered = [touches(requests) for requests in (theirs, own)]
        blocks = len(covered[0] | covered[1])
        if not mixed and not near(len(covered[0]), len(covered[1]), 0 if is_once(covered) else blocks):
            differs(f"blocks of {kind}s", len(covered[0]), len(covered[1]))
    alternations = [sum(a[0] != b[0] for a, b in itertools.pairwise(r)) for r in (fio.requests, ours.requests)]
    # Requests that are behind their rate depend on time.
    if "rate" not in case.text and not near(alternations[0], alternations[1], max(1, total - 1)):
        differs("changes of kind", *alternations)
    for name in fio.flushes.keys() | ours.flushes.keys():
        tolerated = mixed and near(fio.flushes[name], ours.flushes[name], total)
        if fio.flushes[name] != ours.flushes[name] and not tolerated:
            differs(name, fio.flushes[name], ours.flushes[name])
    if fio.drops != ours.drops:
        differs("drops of the page cache", fio.drops, ours.drops)
    if "flow" in case.text:
        halves = [sum(r[1] == "file" for r in a.requests[: total // 2]) for a in (fio, ours)]
        if abs(halves[0] - halves[1]) > total / 20:
            differs("requests of the first job in the first half", *halves)
    if fio.contents != ours.contents:
        found.append("contents differ")
    return found


OF_PATHS = ("filename", "read_iolog")
"""Options with file names, which differ between the two programs."""


def compare_files(case: Case, fio: Asked, ours: Asked, differs: Callable[[str, object, object], None]) -> None:
    """Compares exit codes, the remaining files, and JSON."""
    if bool(fio.code) != bool(ours.code):
        differs("exit code", fio.code, ours.code)
    if fio.created != ours.created:
        differs("files", fio.created, ours.created)
    if fio.document is None or ours.document is None:
        if fio.document is not ours.document:
            differs("JSON", *("none" if asked.document is None else "printed" for asked in (fio, ours)))
        return
    theirs, own = fio.document, ours.document
    if set(theirs) != set(own):
        differs("keys of JSON", sorted(set(theirs) - set(own)), sorted(set(own) - set(theirs)))
    options = [_stated(document.get("global options", {})) for document in (theirs, own)]
    if options[0] != options[1]:
        differs("global options", *options)
    if len(theirs["jobs"]) != len(own["jobs"]):
        differs("jobs", [job["jobname"] for job in theirs["jobs"]], [job["jobname"] for job in own["jobs"]])
    for their_job, own_job in zip(theirs["jobs"], own["jobs"], strict=False):
        compare_jobs(case, their_job, own_job, differs)


def compare_jobs(
    case: Case, theirs: dict[str, Any], own: dict[str, Any], differs: Callable[[str, object, object], None]
) -> None:
    """Compares the JSON of a job."""
    name = theirs["jobname"]
    for key in ("jobname", "groupid", "error", "desc", "total_err", "first_error"):
        if theirs.get(key) != own.get(key):
            differs(f"{key} of {name}", theirs.get(key), own.get(key))
    options = [_stated(job.get("job options", {})) for job in (theirs, own)]
    if options[0] != options[1]:
        differs(f"options of {name}", *options)
    keys = [_keys(job) for job in (theirs, own)]
    if keys[0] != keys[1]:
        differs(f"keys of {name}", sorted(keys[0] - keys[1]), sorted(keys[1] - keys[0]))
    counted = [kind for kind in ("read", "write", "trim", "mixed") if kind in theirs and kind in own]
    total = sum(theirs[kind]["total_ios"] for kind in counted)
    for kind in counted:
        counts = [job[kind]["total_ios"] for job in (theirs, own)]
        sizes = [job[kind]["io_bytes"] / max(1, count) for job, count in zip((theirs, own), counts, strict=True)]
        is_mixed = kind != "mixed" and theirs[kind]["total_ios"] < total
        # Verified requests are compared in JSON as well; of varying lengths only the lengths.
        is_varied = any(size != int(size) for size in sizes) or re.search(r"bssplit|bsrange|bs=\S+,", case.text)
        tolerated = is_mixed and near(counts[0], counts[1], total)
        if counts[0] != counts[1] and not (tolerated or is_varied or case.by_time):
            differs(f"total_ios of {kind}s of {name}", *counts)


def _stated(options: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name not in OF_PATHS}


def _keys(value: object, way: str = "") -> set[str]:
    """Returns all keys of a document with their paths; bins and percentiles of kinds without requests have none."""
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, inner in value.items():
        if key == "job options":
            continue
        found |= {f"{way}.{key}"} | _keys(inner, f"{way}.{key}")
    return found


def is_once(covered: Sequence[Counter[tuple[str, int]]]) -> bool:
    """Whether every block was requested equally often, so that the number of requests is not random."""
    return all(len(set(counts.values())) <= 1 for counts in covered)


def mean(requests: Sequence[tuple[str, int, int]]) -> float:
    """Returns the mean of their offsets."""
    return sum(offset for _, offset, _ in requests) / len(requests)


@dataclass(frozen=True)
class Outcome:
    """The result of comparing a case."""

    word: str
    """``same``, ``differs``, ``refused`` (here) or ``fails in fio``."""
    detail: str


def outcome(case: Case) -> Outcome:
    """Runs a case in both programs."""
    ours, code, said = carry_out(case, "headstack")
    lines = [line for line in said.splitlines() if line.startswith("headstack: ")]
    if code == 2:
        why = re.sub(r"^headstack: (\S*job\.fio:(\d+:)? )?", "", lines[-1])
        refused_there = carry_out(case, "fio")[0].document is None
        return Outcome("refused by both" if refused_there else "refused", why)
    if code not in (0, 1) or ours.document is None:
        return Outcome("fails here", f"exit code {code}: {said[-300:]}")
    fio, code, said = carry_out(case, "fio")
    if fio.document is None or (code != 0 and ours.code == 0):
        return Outcome("fails in fio", said.strip().splitlines()[-1] if said.strip() else f"exit code {code}")
    found = compare(case, fio, ours)
    return Outcome("differs", "; ".join(found)) if found else Outcome("same", "")


# Reduces fio's own examples.

CUT = re.compile(r"^\s*(filename|directory|filesize|size|io_size|io_limit|runtime|timeout|time_based|ramp_time|nrfiles|"
                 r"ioengine|startdelay|iodepth|numjobs|cpus_allowed|numa_\w+|steadystate\w*|ss\w*|write_\w+_log|"
                 r"log_\w+|direct|fill_device|loops|openfiles|filename_format|unlink)\s*(=.*)?$")  # fmt: skip
OFFLOADED = "fio counts a request for number_ios when its offload thread has completed it, so that one more goes out"
EXAMPLES_DIFFER = {
    "cross-stripe-verify.fio": "fio verifies between writes; why it writes more is not known",
    "fixed-rate-submission.fio": OFFLOADED,
    "poisson-rate-submission.fio": OFFLOADED,
    "basic-verify.fio": VERIFIED,
    "exitwhat.fio": "how far the others are when the first job ends depends on time",
}
SMALL = "filename=FILE\nsize=1m\nnumber_ios=200\n"


def example(path: Path) -> Case:
    """Returns an example on a file of 1 MiB with at most 200 requests per job; options that determine requests are
    unchanged.
    """
    lines = [line for line in path.read_text(errors="replace").splitlines() if not CUT.match(line.split(";")[0])]
    text = "\n".join(line for line in lines if not line.startswith("exec_"))
    text = re.sub(r"^\s*(\[(?!global\]).*\])\s*$", rf"\1\n{SMALL}", text, flags=re.M)
    return Case(text, on_device="trim" in text, differs=EXAMPLES_DIFFER.get(path.name, ""))


def examples() -> dict[str, Case]:
    """Returns the examples whose engine is for files."""
    engine = re.compile(r"^\s*ioengine\s*=\s*(\w+)", re.M)
    files = {"libaio", "io_uring", "psync", "sync", "vsync", "pvsync", "pvsync2", "posixaio", "null", "mmap"}
    found = sorted(EXAMPLES.glob("*.fio"))
    return {p.name: example(p) for p in found if set(engine.findall(p.read_text(errors="replace"))) <= files}


def missing(case: Case | None = None) -> tuple[str, str] | None:
    """Returns a requirement that this machine lacks, as ``lacks`` takes it, and what is missing."""
    programs = [name for name in ("fio", "strace") if shutil.which(name) is None]
    if programs:
        return "programs", f"{' and '.join(programs)} not installed"
    if case is not None and case.on_device and (os.geteuid() != 0 or not os.path.exists("/dev/loop-control")):
        return "loop", "no loop device can be made"
    return None


def is_unsupported(found: Outcome) -> bool:
    """Whether a job is refused because of an option or a value; the document has the reason in other sections."""
    reasons = (": not supported: ", " is not allowed; allowed: ")
    return found.word == "refused" and any(reason in found.detail for reason in reasons)


def table(outcomes: dict[str, Outcome], cases: dict[str, Case]) -> str:
    """For the document: the number of the jobs that are the same, the jobs with an option that is not supported, and a
    row for each of the others.
    """
    same = [name for name, found in outcomes.items() if found.word == "same"]
    examples = ", ".join(f"`{name}`" for name in same[:3])
    rows = [f"Same in both programs: {len(same)} of {len(outcomes)} jobs, for example {examples}.\n\n"]
    unsupported = [name for name, found in outcomes.items() if is_unsupported(found)]
    if unsupported:
        names = ", ".join(f"`{name}`" for name in unsupported)
        rows.append(f"Refused because an option or value is not supported: {names}.\n\n")
    rows.append("| job | outcome | difference or reason |\n| --- | --- | --- |\n")
    for name, found in outcomes.items():
        if found.word == "same" or is_unsupported(found):
            continue
        why = cases[name].differs
        detail = f"{found.detail} ({why})" if found.word == "differs" and why else found.detail
        rows.append(f"| {name} | {found.word} | {detail.replace('|', '/')} |\n")
    return "".join(rows)


def write(section: str, outcomes: dict[str, Outcome], cases: dict[str, Case]) -> None:
    """Renews a section of the document."""
    document = ROOT / "docs" / "fio.md"
    begin, end = f"<!-- {section}: made by tests/python/fio_conformance.py -->\n", "<!-- end -->"
    before, rest = document.read_text().split(begin)
    document.write_text(f"{before}{begin}{table(outcomes, cases)}{rest[rest.index(end) :]}")


def main(names: Sequence[str]) -> int:
    """Compares, and updates the document if all cases are compared."""
    lacking = missing(Case("", on_device=True))
    if lacking is not None:
        print(f"skipped: what fio asks of the kernel is not compared: {lacking[1]}")
        return 0
    known = {**CASES, **examples()}
    if list(names) == ["--smoke"]:
        names = [next(iter(known))]
    chosen = {name: known[name] for name in names} if names else known
    outcomes: dict[str, Outcome] = defaultdict()
    for name, case in chosen.items():
        try:
            outcomes[name] = outcome(case)
        except subprocess.TimeoutExpired as late:
            outcomes[name] = Outcome("too slow", f"{late.cmd[-1]} took more than {TIME_LIMIT_S} s")
        print(f"{name:32} {outcomes[name].word:12} {outcomes[name].detail}", flush=True)
    if not names:
        # If fio's examples are not installed, their section stays.
        write("conformance", {name: outcomes[name] for name in CASES}, CASES)
        if installed := examples():
            write("conformance of examples", {name: outcomes[name] for name in installed}, installed)
    unexpected = [n for n, o in outcomes.items() if o.word in ("differs", "fails here") and not chosen[n].differs]
    if unexpected:
        print(f"without a known reason: {', '.join(unexpected)}", file=sys.stderr)
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

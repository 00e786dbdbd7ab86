"""Live exports under the clients that others wrote: libnbd's, QEMU's and fio's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headstack as hs
from conftest import needs_program
from headstack.live.serving import Live, Serving

MIB = 1 << 20
REPOSITORY = Path(__file__).parents[2]
SERVE = [
    "env",
    f"PYTHONPATH={REPOSITORY / 'python'}",
    sys.executable,
    "-c",
    "from headstack.cli.main import main; main()",
]


def run(program: str, *arguments: str | Path, fails: bool = False) -> str:
    """What a program prints; skips the test where it is not installed."""
    needs_program(program)
    # nbdsh wants the distribution's Python: others on the path, and our modules, would lead it astray.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = "/usr/bin:/bin:" + environment.get("PATH", "")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=100, env=environment)
    assert (done.returncode != 0) == fails, f"{program} {arguments}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(params=["constant:0s", "constant:1ms"])
def socket(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A device of 64 MiB that answers at once, and one that takes its time."""
    path = tmp_path / "socket"
    with hs.serve(request.param, unix=(str(path),), size="64MiB", floor="0s"):
        yield path


@pytest.fixture
def array(tmp_path: Path) -> Iterator[tuple[Live, Path]]:
    """A simulated drive; its bytes are in memory."""
    path = tmp_path / "array"
    with hs.serve("cheetah-x15-36lp", unix=(str(path),)) as live:
        yield live, path


def uri(socket: Path, export: str = "") -> str:
    return f"nbd+unix:///{export}?socket={socket}"


def random_file(path: Path, length: int) -> Path:
    path.write_bytes(os.urandom(length))
    return path


def test_nbdinfo_tells_what_is_there(socket: Path) -> None:
    told = json.loads(run("nbdinfo", "--json", uri(socket)))
    (export,) = told["exports"]
    assert export["export-size"] == 64 * MIB
    assert told["protocol"] == "newstyle-fixed"
    assert told["structured"]
    # libnbd asks for extended headers from 1.18 on, and says so.
    assert told.get("extended", True)
    assert export["contexts"] == ["base:allocation"]
    can = {name: value for name, value in export.items() if isinstance(value, bool)}
    assert can.pop("is_read_only") is False
    assert can.pop("is_rotational") is False
    assert all(can.values()), can
    assert (export["block_size_minimum"], export["block_size_maximum"]) == (512, 32 * MIB)
    listed = json.loads(run("nbdinfo", "--json", "--list", uri(socket)))
    assert [export["export-name"] for export in listed["exports"]] == ["disk"]
    run("nbdinfo", "--is", "rotational", uri(socket), fails=True)
    run("nbdinfo", "--can", "multi-conn", uri(socket))


def test_drives_are_rotational(array: tuple[Live, Path]) -> None:
    live, socket = array
    run("nbdinfo", "--is", "rotational", uri(socket))
    assert int(run("nbdinfo", "--size", uri(socket))) == live.exports[0][1]


def test_nbdcopy_brings_there_and_back_what_was_given(socket: Path, tmp_path: Path) -> None:
    image = random_file(tmp_path / "image", 48 * MIB)
    with image.open("r+b") as file:
        file.truncate(64 * MIB)
    run("nbdcopy", image, uri(socket))
    run("nbdcopy", uri(socket), tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == image.read_bytes()
    extents = [(e["length"], e["description"]) for e in json.loads(run("nbdinfo", "--json", "--map", uri(socket)))]
    assert extents == [(48 * MIB, "data"), (16 * MIB, "hole,zero")]


NBDSH = """
h.set_request_structured_replies({structured})
h.add_meta_context("base:allocation")
h.connect_uri({uri!r})
assert h.get_size() == 64 << 20 and h.get_structured_replies_negotiated() == {structured}
data = bytes(range(256)) * 32
h.pwrite(data, 8192)
h.pwrite(data, 1 << 20, nbd.CMD_FLAG_FUA)
h.flush()
h.cache(1 << 20, 0)
assert h.pread(8192, 8192) == data and h.pread(8192, 1 << 20) == data
h.trim(4096, 8192, nbd.CMD_FLAG_FUA)
h.zero(4096, 12288, nbd.CMD_FLAG_NO_HOLE)
assert h.pread(8192, 8192) == bytes(8192)
try:
    h.zero(4096, 0, nbd.CMD_FLAG_FAST_ZERO)
    raise SystemExit("zeros are no faster than data")
except nbd.Error as error:
    assert error.errno == "ENOTSUP", error.errno
h.set_strict_mode(0)
for call, errno in [
    (lambda: h.pread(512, 64 << 20), "EINVAL"),
    (lambda: h.pwrite(bytes(512), 64 << 20), "ENOSPC"),
    (lambda: h.pread(512, 100), "EINVAL"),
    (lambda: h.trim(512, 100 << 20), "EINVAL"),
    (lambda: h.zero(512, 100 << 20), "ENOSPC"),
]:
    try:
        call()
        raise SystemExit("taken: " + errno)
    except nbd.Error as error:
        assert error.errno == errno, (error.errno, errno)
seen = []
if {structured}:
    h.block_status(64 << 20, 0, lambda context, offset, entries, error: seen.extend(entries) or 0)
    assert seen == [12288, 3, 4096, 0, 1032192, 3, 8192, 0, 66052096, 3], seen
    chunks = []
    h.pread_structured(1 << 20, 1 << 20, lambda data, offset, status, error: chunks.append(status) or 0)
    assert chunks
cookies = [h.aio_pread(nbd.Buffer(65536), 65536 * number) for number in range(64)]
while cookies:
    h.poll(-1)
    cookies = [cookie for cookie in cookies if not h.aio_command_completed(cookie)]
h.shutdown()
print("all is well")
"""


@pytest.mark.parametrize("structured", [True, False])
def test_libnbd_calls_everything(socket: Path, structured: bool) -> None:
    script = NBDSH.format(uri=uri(socket), structured=structured)
    assert run("/usr/bin/nbdsh", "-c", script) == "all is well\n"


@pytest.mark.parametrize("how", ["connect_command", "connect_systemd_socket_activation"])
def test_a_client_starts_the_server(how: str) -> None:
    place = "stdio" if how == "connect_command" else "systemd"
    command = [*SERVE, "serve", "constant:0s", "--size", "1MiB", "-q", "--floor", "0s", "--nbd", place]
    script = f"h.{how}({command!r})\nassert h.get_size() == 1 << 20\nassert h.pread(512, 0) == bytes(512)\nh.shutdown()"
    run("/usr/bin/nbdsh", "-c", script)


def test_qemu_converts_maps_and_compares(socket: Path, tmp_path: Path) -> None:
    assert json.loads(run("qemu-img", "info", "--output=json", uri(socket)))["virtual-size"] == 64 * MIB
    image = random_file(tmp_path / "image", 16 * MIB)
    with image.open("r+b") as file:
        file.truncate(64 * MIB)
    run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, uri(socket))
    run("qemu-img", "compare", "-f", "raw", "-F", "raw", image, uri(socket))
    extents = json.loads(run("qemu-img", "map", "--output=json", "-f", "raw", uri(socket)))
    assert [(e["start"], e["length"], e["data"]) for e in extents] == [
        (0, 16 * MIB, True),
        (16 * MIB, 48 * MIB, False),
    ]
    run("qemu-img", "convert", "-O", "qcow2", uri(socket), tmp_path / "back.qcow2")
    run("qemu-img", "compare", image, tmp_path / "back.qcow2")


def test_qemu_io_reads_the_patterns_it_wrote(socket: Path) -> None:
    orders = [
        "write -P 0xab 1M 4M",
        "write -f -P 0xcd 8M 64k",
        "flush",
        "read -P 0xab 1M 4M",
        "read -P 0xcd 8M 64k",
        "discard 2M 1M",
        "write -z 8M 4k",
        "write -z -u 4M 64k",
        "read -P 0 2M 1M",
        "read -P 0 8M 4k",
        "read -P 0 4M 64k",
        "read -P 0xab 3M 1M",
        "aio_write -P 0x11 16M 1M",
        "aio_write -P 0x22 17M 1M",
        "aio_flush",
        "read -P 0x11 16M 1M",
        "read -P 0x22 17M 1M",
    ]
    told = run("qemu-io", "-f", "raw", uri(socket), *(word for order in orders for word in ("-c", order)))
    assert "failed" not in told, told


@pytest.mark.parametrize("rw", ["randwrite", "randtrim", "trimwrite"])
def test_fio_finds_what_it_wrote(socket: Path, rw: str) -> None:
    options: list[str] = ["--name=verify", "--ioengine=nbd", f"--uri={uri(socket)}", f"--rw={rw}", "--size=16m"]
    options += ["--bsrange=4k-64k", "--iodepth=16", "--fsync=32", "--randseed=1", "--output-format=json"]
    if rw != "randtrim":
        options += ["--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0"]
    told = run("fio", *options)
    job: dict[str, Any] = json.loads(told[told.index("{") :])["jobs"][0]
    assert job["error"] == 0
    assert job["trim" if rw == "randtrim" else "write"]["total_ios"] > 100
    if rw == "randwrite":
        assert job["read"]["total_ios"] > 100, "it looked at what it wrote"


def test_several_jobs_of_fio_have_a_connection_each(socket: Path) -> None:
    options = ["--ioengine=nbd", f"--uri={uri(socket)}", "--rw=randrw", "--bs=4k", "--numjobs=4", "--iodepth=8"]
    told = run("fio", "--name=jobs", *options, "--number_ios=500", "--size=64m", "--output-format=json")
    assert [job["error"] for job in json.loads(told[told.index("{") :])["jobs"]] == [0] * 4


def test_nbdkit_passes_on_what_it_is_given(socket: Path, tmp_path: Path) -> None:
    image, back = random_file(tmp_path / "image", 8 * MIB), tmp_path / "back"
    script = f'nbdcopy {image} "$uri" && nbdcopy "$uri" {back}'
    run("nbdkit", "-U", "-", "--filter=blocksize", "nbd", f"socket={socket}", "maxlen=64k", "--run", script)
    assert back.read_bytes()[: 8 * MIB] == image.read_bytes()


def certificates(folder: Path) -> tuple[str, str]:
    """An authority and a server's certificate that it signed, by openssl."""
    folder.mkdir()
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    authority, server = ([folder / f"{name}-{what}.pem" for what in ("cert", "key")] for name in ("ca", "server"))
    run("openssl", *new, "-subj", "/CN=authority", "-out", authority[0], "-keyout", authority[1])
    signed: list[str | Path] = ["-CA", authority[0], "-CAkey", authority[1], "-addext", "subjectAltName=DNS:localhost"]
    end = ["-addext", "basicConstraints=critical,CA:false", "-subj", "/CN=server"]
    run("openssl", *new, *signed, *end, "-out", server[0], "-keyout", server[1])
    return str(server[0]), str(server[1])


@pytest.mark.parametrize("required", [True, False])
def test_tls_is_had_by_who_asks(tmp_path: Path, required: bool) -> None:
    socket, keys = tmp_path / "socket", tmp_path / "keys"
    certificate, key = certificates(keys)
    serving = Serving(
        unix=(str(socket),),
        size="1MiB",
        floor="0s",
        tls_certificate=certificate,
        tls_key=key,
        tls_required=required,
    )
    with hs.serve("constant:0s", serving):
        encrypted = f"nbds+unix://localhost/?socket={socket}&tls-certificates={keys}"
        assert run("nbdinfo", "--size", encrypted) == f"{MIB}\n"
        run("nbdinfo", "--size", uri(socket), fails=required)


def test_a_certificate_without_a_key_is_refused(headstack: Any, tmp_path: Path) -> None:
    place = ["--nbd", f"unix:{tmp_path / 'socket'}"]
    for given, told in [
        (["--tls-certificate", "cert.pem"], "a certificate needs its key"),
        (["--tls-required"], "needs a certificate"),
        (["--tls-certificate", "cert.pem", "--tls-key", "key.pem"], "cert.pem: No such file"),
    ]:
        done = headstack("serve", "constant:0s", *place, *given)
        assert done.returncode != 0
        assert told in done.stderr, done.stderr

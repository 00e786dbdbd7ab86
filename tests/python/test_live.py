"""Live exports from the command line and from Python."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import headstack as hs
from conftest import CHEETAH, Headstack, lacks
from headstack.cli import serve as cli_serve
from headstack.live.control import Control
from nbd_client import Client

PATIENCE_S = 100


@contextmanager
def served(folder: Path, *arguments: str, umask: int = -1) -> Iterator[subprocess.Popen[str]]:
    """``headstack serve`` with a socket ``s``, ready for clients."""
    command = "from headstack.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "serve", *arguments, "--nbd", "unix:s"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        umask=umask,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("serving"), line + process.stdout.read()
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


def ended(process: subprocess.Popen[str], number: int = signal.SIGINT) -> str:
    """What it says after a signal."""
    process.send_signal(number)
    said, _ = process.communicate(timeout=PATIENCE_S)
    return said


def test_a_recorded_session_replays_to_the_nanosecond(tmp_path: Path, headstack: Headstack) -> None:
    with served(tmp_path, CHEETAH, "--record", "live.parquet", "--seed", "3") as process:
        client = Client(tmp_path / "s")
        draw = random.Random(5)
        under_way: dict[int, int] = {}
        for cookie in range(300):
            if len(under_way) == 8:
                done, error = client.reply()
                assert error == 0
                client.take(under_way.pop(done))
            offset = draw.randrange(client.capacity // 4096 - 1024) * 4096
            if cookie % 3:
                # A few are longer than a host sends at a time, and reach the drive in parts.
                length = 4096 if cookie % 50 else 4 << 20
                under_way[cookie] = length
                client.send(0, offset, length, cookie=cookie)
            else:
                under_way[cookie] = 0
                client.send(1, offset, 8192, b"x" * 8192, cookie=cookie)
        while under_way:
            done, _ = client.reply()
            client.take(under_way.pop(done))
        client.close()
        said = ended(process)
    assert process.returncode == 0, said
    replayed = headstack("trace", "replay", "live.parquet", CHEETAH, "--seed", "3", "--record", "again.parquet")
    assert replayed.returncode == 0, replayed.stderr
    select = "select arrival_ns, response_ns from read_parquet(?)"
    live, again = (
        duckdb.execute(select, [str(tmp_path / name)]).fetchall() for name in ("live.parquet", "again.parquet")
    )
    assert len(live) > 300
    assert live == again


FAULTS = """seed = 11

[[fault]]
at = "100ms"
what = "latency-spike"
time = "30ms"
percent = 20
distribution = "exponential"

[[fault]]
at = "2s"
for = "4s"
what = "link-errors"
percent = 5
time-out = "200ms"
"""


def _reads_and_writes(client: Client, requests: int, draw: random.Random) -> None:
    """A load at depth 8, whatever its answers are."""
    under_way: dict[int, int] = {}

    def hear() -> None:
        done, error = client.reply()
        length = under_way.pop(done)
        client.take(0 if error else length)

    for cookie in range(requests):
        if len(under_way) == 8:
            hear()
        offset = draw.randrange(client.capacity // 4096 - 1024) * 4096
        under_way[cookie] = 4096 if cookie % 3 else 0
        client.send(0 if cookie % 3 else 1, offset, 4096, b"" if cookie % 3 else b"x" * 4096, cookie=cookie)
    while under_way:
        hear()


def _hear_all(client: Client) -> None:
    while True:
        client.reply()


def test_a_session_with_faults_replays_to_the_nanosecond(tmp_path: Path, headstack: Headstack) -> None:
    (tmp_path / "faults.toml").write_text(FAULTS)
    options = ("--faults", "faults.toml", "--record", "live.parquet", "--seed", "3", "--speed", "20", "--control", "c")
    draw = random.Random(5)
    with served(tmp_path, CHEETAH, *options) as process, Control(tmp_path / "c") as control:

        def inject(what: str, lasts: str | None = None, **keys: object) -> None:
            control.order({"do": "inject", "fault": {"what": what, **keys}} | ({"for": lasts} if lasts else {}))

        client = Client(tmp_path / "s")
        _reads_and_writes(client, 150, draw)
        inject("weak-sectors", turns=3, percent=40.0)
        inject("hang", "500ms", kinds=["write"])
        _reads_and_writes(client, 150, draw)
        for what in ("drop-out", "power-cut"):
            # A tenth of a second, at this speed: so that these are under way when the device goes.
            inject("hang", "2s", kinds=["write"])
            for cookie in range(4):
                client.send(1, cookie << 20, 4096, b"y" * 4096, cookie=cookie)
            inject(what, "1s")
            with pytest.raises((EOFError, ConnectionError)):
                _hear_all(client)
            time.sleep(0.2)
            client = Client(tmp_path / "s")
            _reads_and_writes(client, 100, draw)
        client.close()
        log = control.order({"do": "injections"})
        said = ended(process)
    assert process.returncode == 0, said
    whats = {one["fault"]["what"] for one in log["injections"]}
    assert whats == {"latency-spike", "link-errors", "weak-sectors", "hang", "drop-out", "power-cut"}
    (tmp_path / "log.toml").write_text(log["schedule"])

    def replayed(faults: str) -> list[tuple[int, int | None]]:
        again = headstack(
            "trace", "replay", "live.parquet", CHEETAH, "--seed", "3", "--faults", faults, "--record", "again.parquet"
        )
        assert again.returncode == 0, again.stderr
        return requests("again.parquet")

    def requests(name: str) -> list[tuple[int, int | None]]:
        select = "select arrival_ns, response_ns from read_parquet(?)"
        return duckdb.execute(select, [str(tmp_path / name)]).fetchall()

    live = requests("live.parquet")
    assert len(live) >= 500
    assert live == replayed("log.toml")
    # The file that the session began with does not know what was injected later.
    assert live != replayed("faults.toml")


def test_an_idle_client_is_hung_up_on_when_power_fails(tmp_path: Path) -> None:
    with served(tmp_path, CHEETAH, "--control", "c") as process, Control(tmp_path / "c") as control:
        idle = Client(tmp_path / "s")
        idle.read(0, 4096)
        control.order({"do": "inject", "fault": {"what": "power-cut"}})
        assert idle.socket.recv(1) == b"", "it has no request under way, and hears of the cut nevertheless"
        control.order({"do": "inject", "fault": {"what": "power-on"}})
        again = Client(tmp_path / "s")
        again.read(0, 4096)
        again.close()
        said = ended(process)
    assert process.returncode == 0, said


def test_a_session_ends_with_a_verdict(tmp_path: Path) -> None:
    # Without a floor, which on a busy machine may be a good part of this.
    with served(tmp_path, "constant:5ms", "--floor", "0s", "--json", "fidelity.json") as process:
        client = Client(tmp_path / "s")
        begun = time.monotonic()
        assert client.read(0, 4096) == bytes(4096)
        assert time.monotonic() - begun >= 0.0045
        client.close()
        said = ended(process, signal.SIGTERM)
    assert "1 requests, queue depth at most 1" in said
    assert f"({os.getpid()}): 1 requests" in said
    assert "valid" in said
    fidelity = json.loads((tmp_path / "fidelity.json").read_text())
    assert fidelity["requests"] == 1
    assert fidelity["deepest_queue"] == 1
    assert fidelity["verdict"] in said
    assert not (tmp_path / "s").exists()


def test_a_file_keeps_its_bytes_and_belongs_to_one_server(tmp_path: Path, headstack: Headstack) -> None:
    constant = ("constant:0s", "--size", "64MiB", "--data", "disk.img")
    with served(tmp_path, *constant) as process:
        client = Client(tmp_path / "s")
        client.write(1 << 20, b"kept" * 1024)
        client.close()
        second = headstack("serve", *constant, "--nbd", "unix:other")
        assert second.returncode == 2
        assert "disk.img: is in use by another server" in second.stderr
        ended(process)
    assert (tmp_path / "disk.img").stat().st_blocks * 512 < 1 << 20
    with served(tmp_path, *constant):
        client = Client(tmp_path / "s")
        assert client.read(1 << 20, 4096) == b"kept" * 1024
        client.close()
    other_size = headstack("serve", "constant:0s", "--size", "1MiB", "--data", "disk.img", "--nbd", "unix:s")
    assert other_size.returncode == 2
    assert "disk.img: has 67108864 bytes; must be 1048576, the system's capacity" in other_size.stderr


def test_a_file_that_no_server_left_is_not_taken(tmp_path: Path, headstack: Headstack) -> None:
    image = tmp_path / "disk.img"
    image.write_bytes(b"mine" * (1 << 18))
    constant = ("constant:0s", "--floor", "0s", "--size", "1MiB", "--data", "disk.img")
    refused = headstack("serve", *constant, "--nbd", "unix:s")
    assert refused.returncode == 2
    assert "disk.img: has the system's size but was not created by a server; use --adopt" in refused.stderr
    assert image.read_bytes() == b"mine" * (1 << 18)
    with served(tmp_path, *constant, "--adopt") as process:
        client = Client(tmp_path / "s")
        assert client.read(0, 4096) == b"mine" * 1024
        client.close()
        ended(process)
    # It is the server's own from then on.
    with served(tmp_path, *constant) as process:
        ended(process)
    nothing = headstack("serve", "constant:0s", "--adopt", "--nbd", "unix:s")
    assert nothing.returncode == 2
    assert "adopt: needs a file" in nothing.stderr


def test_requests_stay_within_the_memory_that_is_granted(tmp_path: Path) -> None:
    def resident_kib(field: str) -> int:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.partition(field)[2].split()[0])

    arguments = ("constant:1ms", "--floor", "0s", "--size", "1GiB", "--memory", "128MiB", "--control", "c")
    with served(tmp_path, *arguments) as process, Control(tmp_path / "c") as control:
        before = resident_kib("VmHWM:")
        clients = [Client(tmp_path / "s") for _ in range(300)]
        for number, client in enumerate(clients):
            # 9.4 GiB are announced, and a little comes of each.
            client.send(1, number << 20, 32 << 20, b"x" * 4096)
        reader = Client(tmp_path / "s")
        for _ in range(4):
            assert reader.read(0, 32 << 20) == bytes(32 << 20)
        memory = control.order({"do": "status"})["memory"]
        assert memory["limit_bytes"] == 128 << 20
        assert memory["peak_bytes"] <= memory["limit_bytes"]
        assert resident_kib("VmHWM:") - before <= 128 << 10
        for client in [*clients, reader]:
            client.close()


def test_a_terabyte_takes_little_memory(tmp_path: Path) -> None:
    array = "demartek-512n-raid5-24"
    with served(tmp_path, array, "--data", "discard", "--keep", "0..1MiB") as process:
        client = Client(tmp_path / "s")
        assert client.capacity > 20e12
        for place in range(200):
            client.write(place * (client.capacity // 200 // 4096 * 4096), b"y" * 65536)
        assert client.read(0, 65536) == b"y" * 65536
        assert client.read(client.capacity // 200 // 4096 * 4096, 65536) == bytes(65536)
        client.close()
        status = Path(f"/proc/{process.pid}/status").read_text()
        resident_kib = int(status.partition("VmRSS:")[2].split()[0])
    assert resident_kib < 512 << 10


def test_orders_by_the_control_socket(tmp_path: Path, headstack: Headstack) -> None:
    with served(tmp_path, CHEETAH, "--control", "c") as process:
        client = Client(tmp_path / "s")
        client.read(0, 4096)
        status = json.loads(headstack("serve", "ctl", "c", "status").stdout)
        assert status["kinds"]["read"]["requests"] == 1
        assert status["kinds"]["read"]["response_ns"] > 0
        assert 'headstack_response_seconds_count{kind="read"} 1' in headstack("serve", "ctl", "c", "metrics").stdout
        shown = headstack("serve", "top", "c", "--once", "--interval", "50ms").stdout
        assert "model time" in shown
        assert "drive" in shown
        wrong = headstack("serve", "ctl", "c", "dance")
        assert wrong.returncode == 2
        assert "unknown variant `dance`" in wrong.stderr
        assert (tmp_path / "c").stat().st_mode & 0o777 == 0o600
        assert headstack("serve", "ctl", "c", "stop").returncode == 0
        process.wait(PATIENCE_S)
    assert not (tmp_path / "c").exists()
    nobody = headstack("serve", "ctl", "c", "status")
    assert nobody.returncode == 2
    assert "c: no export listens on this control socket" in nobody.stderr


def test_prometheus_by_http() -> None:
    with hs.serve("constant:1ms", tcp=("0",), metrics="0") as live:
        url = f"http://{live.metrics}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            samples = linted(answer.read().decode())
    assert samples['headstack_response_seconds_bucket{kind="read",le="0.001"}'] == 0


def linted(text: str) -> dict[str, float]:
    """The samples of Prometheus' text, which must be as ``promtool check metrics`` and its parser want it."""
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    samples: dict[str, float] = {}
    family = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in helped, f"{family}: its samples are not together"
            helped.add(family)
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == family, line
            assert kind in ("counter", "gauge", "histogram"), line
            kinds[name] = kind
            # Units are base units, and only counters are totals.
            assert (kind == "counter") == name.endswith("_total"), line
            assert not re.search(r"_(ns|us|ms|milliseconds|percent|mib|kib)(_|$)", name), line
            continue
        series, _, value = line.rpartition(" ")
        matched = re.fullmatch(r'(headstack_[a-z0-9_]+)(?:\{((?:[a-z_]+="[^"\n]*",?)+)\})?', series)
        assert matched, line
        base = re.sub(r"_(bucket|sum|count)$", "", matched[1]) if kinds.get(family) == "histogram" else matched[1]
        assert base == family, f"{line}: comes with {family}"
        assert series not in samples, f"{series}: twice"
        samples[series] = float(value)
    assert set(kinds) == helped
    for family in (name for name, kind in kinds.items() if kind == "histogram"):
        rows: dict[str, list[tuple[float, float]]] = {}
        for told, count in samples.items():
            if told.startswith(f"{family}_bucket"):
                rest, _, bound = told.rpartition('le="')
                rows.setdefault(rest, []).append((float(bound[:-2]), count))
        assert rows, family
        for rest, buckets in rows.items():
            assert buckets == sorted(buckets), "bounds and counts rise together"
            assert buckets[-1][0] == float("inf")
            labels = rest.removeprefix(f"{family}_bucket").rstrip("{,")
            counted = samples[f"{family}_count{labels + '}' if labels else ''}"]
            assert buckets[-1][1] == counted, f"{rest}: the last bucket has all"
            assert f"{family}_sum{labels + '}' if labels else ''}" in samples
    return samples


def test_metrics_of_an_array_that_loses_a_member(tmp_path: Path) -> None:
    array = "demartek-512n-raid5-24"
    with hs.serve(array, unix=(str(tmp_path / "s"),), control=str(tmp_path / "c"), data="discard"):
        client = Client(tmp_path / "s")
        for place in range(8):
            client.write(place << 16, b"m" * 4096)
            client.read(place << 16, 4096)
        with Control(tmp_path / "c") as control:
            devices = control.order({"do": "status"})["gauges"]["devices"]
            control.order({"do": "inject", "fault": {"what": "member-fails", "member": devices[0]["name"]}})
            control.order({"do": "inject", "fault": {"what": "latency-spike", "time": "1ms", "percent": 50.0}})
            samples = linted(control.order({"do": "metrics"}))
            status = control.order({"do": "status"})
        client.close()
    name = devices[0]["name"]
    state = status["gauges"]["devices"][0]["state"]
    assert state in ("missing", "rebuilding")
    assert samples[f'headstack_device_state{{device="{name}",state="{state}"}}'] == 1
    assert samples["headstack_active_faults"] == 2
    assert samples['headstack_fault_active{what="latency-spike"}'] == 1
    assert samples['headstack_response_seconds_count{kind="write"}'] == 8
    assert samples['headstack_bytes_total{kind="read"}'] == 8 * 4096
    assert samples["headstack_power_on"] == 1
    assert samples["headstack_lateness_seconds_count"] == 16
    group = status["gauges"]["groups"][0]["name"]
    assert samples[f'headstack_group_rebuild_size_bytes{{group="{group}"}}'] >= 0


def test_what_is_required_of_a_session_decides_its_exit_code(tmp_path: Path, headstack: Headstack) -> None:
    serve = ("serve", "constant:1ms", "--floor", "0s")
    # Nothing was asked of it, so that nothing can be said of it.
    nothing = headstack(*serve, "--run", "true", "--require", "valid:1s")
    assert nothing.returncode == 1
    assert "--require valid:1s: no verdict: no request was answered" in nothing.stderr
    assert headstack(*serve, "--run", "true").returncode == 0
    # The command's own failure stays its own.
    assert headstack(*serve, "--run", "exit 7", "--require", "valid:1s").returncode == 7
    for text in ("valid", "valid:", "fast:1ms", "valid:0s", "valid:soon"):
        refused = headstack(*serve, "--run", "touch run", "--require", text)
        assert refused.returncode == 2, text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("above_ns", "is_valid"), [(None, False), (999_999, True), (1_000_000, True), (1_000_001, False)]
)
def test_a_session_is_valid_from_its_bound_on(above_ns: int | None, is_valid: bool) -> None:
    assert cli_serve.is_valid(above_ns, cli_serve.parse_required_latency_ns("valid:1ms")) is is_valid


def silent(address: tuple[str, int] | str, count: int) -> list[socket.socket]:
    """Connections that say nothing."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    sockets = [socket.socket(family, socket.SOCK_STREAM) for _ in range(count)]
    for one in sockets:
        one.settimeout(PATIENCE_S)
        one.connect(address)
    return sockets


def test_silent_connections_keep_nobody_from_the_metrics_and_the_end(tmp_path: Path, headstack: Headstack) -> None:
    arguments = ("constant:1ms", "--floor", "0s", "--control", "c", "--metrics", "0")
    with served(tmp_path, *arguments) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        url = next(line.strip() for line in lines if "/metrics" in line)
        port = int(url.rpartition(":")[2].partition("/")[0])
        # Half a request is as good as none.
        scrapers = silent(("127.0.0.1", port), 300)
        scrapers[-1].sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        waiting = [*scrapers, *silent(str(tmp_path / "c"), 30), *silent(str(tmp_path / "s"), 300)]
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            assert "headstack_model_seconds" in answer.read().decode()
        # The rest of it is heard, whoever came meanwhile.
        scrapers[-1].sendall(b"me\r\n\r\n")
        assert scrapers[-1].recv(1 << 16).startswith(b"HTTP/1.0 200 OK")
        client = Client(tmp_path / "s")
        assert client.read(0, 512) == bytes(512)
        assert headstack("serve", "ctl", "c", "stop").returncode == 0
        assert process.wait(PATIENCE_S) == 0
        for one in waiting:
            one.close()


def test_a_port_that_others_reach_is_named(tmp_path: Path) -> None:
    with served(
        tmp_path, "constant:1ms", "--floor", "0s", "--metrics", "0.0.0.0:0", "--nbd", "tcp:0.0.0.0:0"
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        while not said or "Ctrl-C to end" not in said[-1]:
            said.append(process.stdout.readline())
            assert said[-1], "the export ended before it was ready"
    reached = [line for line in said if "is reachable from other machines" in line]
    assert len(reached) == 2
    assert "read and write all data" in reached[0]
    assert "read the metrics" in reached[1]


@pytest.mark.parametrize(("arguments", "mode"), [((), 0o600), (("--socket-mode", "0660"), 0o660)])
def test_sockets_belong_to_their_owner_whatever_the_umask(
    tmp_path: Path, arguments: tuple[str, ...], mode: int
) -> None:
    for umask in (0, 0o777):
        with served(tmp_path, "constant:1ms", "--floor", "0s", *arguments, umask=umask) as process:
            assert (tmp_path / "s").stat().st_mode & 0o777 == mode
            ended(process)


def test_slower_time(tmp_path: Path) -> None:
    with hs.serve("constant:2ms", unix=(str(tmp_path / "s"),), speed=0.1, floor="0s") as live:
        client = Client(tmp_path / "s")
        begun = time.monotonic()
        client.read(0, 512)
        assert time.monotonic() - begun >= 0.018
        client.close()
    assert live.fidelity is not None
    assert live.fidelity["speed"] == 0.1


def test_part_of_a_drive_and_its_options(tmp_path: Path) -> None:
    with hs.serve(f"{CHEETAH}@1GB", unix=(str(tmp_path / "s"),), options={"write_cache": "off"}) as live:
        assert live.exports == [("disk", 1_000_000_000 // 512 * 512)]
        client = Client(tmp_path / "s")
        assert client.capacity == live.exports[0][1]
        client.close()


def test_each_lun_is_an_export(tmp_path: Path) -> None:
    lun_array = next(name for name in hs.arrays.list() if len(hs.Array.load(name).description["luns"]) > 1)
    with hs.serve(lun_array, unix=(str(tmp_path / "s"),)) as live:
        assert len(live.exports) > 1
        for name, capacity in live.exports:
            client = Client(tmp_path / "s", name)
            assert client.capacity == capacity
            client.close()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((CHEETAH,), "no export endpoint; add --nbd unix:PATH, --fuse DIR or --ublk"),
        ((CHEETAH, "--nbd", "ftp:x"), "--nbd: 'ftp:x' is unknown; allowed: unix:PATH, tcp:[HOST:]PORT, stdio, systemd"),
        ((CHEETAH, "--nbd", "tcp:x"), "tcp: 'x' has no port; use for example 10809, 127.0.0.1:10809 or [::1]:10809"),
        (("chetah", "--nbd", "unix:s"), "chetah"),
        (("constant:fast", "--nbd", "unix:s"), "constant:"),
        (("constant:1ms", "--nbd", "unix:s", "--size", "100"), "size: 100 is less than a block of 512 bytes"),
        (
            (CHEETAH, "--nbd", "unix:s", "--size", "1GiB"),
            "size: applies only to constant:LATENCY; use NAME@RANGE for a part of a system",
        ),
        ((CHEETAH, "--nbd", "unix:s", "--speed", "0"), "speed: 0.0 is out of range; use for example 1"),
        ((CHEETAH, "--nbd", "unix:s", "--keep", "1MiB"), "keep: needs --data discard"),
        ((CHEETAH, "--nbd", "unix:s", "--data", "discard", "--keep", "1PB"), "keep: 1PB is not a range"),
        ((CHEETAH, "--nbd", "unix:plain"), "plain: exists and is not a socket"),
        ((CHEETAH, "--nbd", "unix:s", "--data", "/dev/sdzz"), "/dev/sdzz: no such device"),
        (
            (CHEETAH, "--nbd", "unix:s", "--data", "/tmp/../dev/sdzz"),
            "/tmp/../dev/sdzz: no such device; write output files outside /dev",
        ),
        (
            (CHEETAH, "--nbd", "unix:s", "--data", "/dev/null"),
            "/dev/null: is not a regular file; name one that can be read again",
        ),
        (("constant:1ms", "--nbd", "unix:s", "--memory", "1MiB"), "memory: 1MiB is too little"),
        ((CHEETAH, "--nbd", "systemd"), "LISTEN_FDS: no sockets were passed"),
        (("constant:1ms", "--nbd", "unix:s", "--record", "t.parquet"), "record: a device of constant latency"),
        (("constant:1ms", "--nbd", "unix:s", "--socket-mode", "rw"), "socket-mode: 'rw' is not a file mode; use 600"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, headstack: Headstack, arguments: tuple[str, ...], line: str) -> None:
    (tmp_path / "plain").write_text("somebody's file")
    refused = headstack("serve", *arguments)
    assert refused.returncode == 2, refused.stderr
    assert line in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert (tmp_path / "plain").read_text() == "somebody's file"
    assert sorted(os.listdir(tmp_path)) == ["plain"]


def test_an_order_after_the_end_is_refused(tmp_path: Path) -> None:
    live = hs.serve("constant:1ms", unix=(str(tmp_path / "s"),), control=str(tmp_path / "c"))
    control = Control(tmp_path / "c")
    assert control.order({"do": "status"})["outstanding"] == 0
    live.stop()
    with pytest.raises(hs.InputError, match="the session is over"):
        live.order({"do": "status"})


def test_a_mark_is_in_the_journal_when_it_is_answered(tmp_path: Path, headstack: Headstack) -> None:
    asked = ("constant:1ms", "--size", "1MiB", "--journal", "j", "--control", "c")
    with served(tmp_path, *asked) as process:
        client = Client(tmp_path / "s")
        client.send(1, 4096, 4096, b"abcd" * 1024, cookie=1)
        assert client.reply() == (1, 0)
        marked = headstack("serve", "ctl", str(tmp_path / "c"), "mark", "transaction", "17")
        assert marked.returncode == 0, marked.stderr
        assert json.loads(marked.stdout)["at_ns"] > 0
        journal = (tmp_path / "j").read_bytes()
        assert journal.startswith(b"hs-crash")
        assert 0 < journal.find(b"abcd" * 1024) < journal.find(b"transaction 17")
        ended(process)
    assert len((tmp_path / "j").read_bytes()) == len(journal) + 48, "and the word that this is the end"
    refused = headstack("serve", "constant:1ms", "--data", "discard", "--journal", "k", "--run", "true")
    assert refused.returncode == 2
    assert "journal: discarded contents have no journal" in refused.stderr


def test_a_port_of_loopback_is_one_of_both_its_addresses() -> None:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError as error:
            lacks("kernel", f"no ::1 here: {error}")
    for place in ("0", "localhost:0"):
        with hs.serve("constant:0s", size="1MiB", tcp=(place,), floor="0s") as live:
            first, second = live.addresses
            port = int(first.removeprefix("127.0.0.1:"))
            assert second == f"[::1]:{port}"
            for host in ("127.0.0.1", "::1"):
                with socket.create_connection((host, port)) as client:
                    assert client.recv(8) == b"NBDMAGIC"
    with hs.serve("constant:0s", size="1MiB", tcp=("127.0.0.1:0",), floor="0s") as live:
        assert len(live.addresses) == 1


def test_a_size_that_is_no_whole_block_is_reported(tmp_path: Path) -> None:
    with hs.serve("constant:0s", size="1000001", unix=(str(tmp_path / "s"),), floor="0s") as live:
        assert live.exports[0][1] == 999_936
        assert live.notes == ["size: 1000001 is rounded down to 999,936 bytes, a multiple of 512"]
    with hs.serve("constant:0s", size="1MiB", unix=(str(tmp_path / "s"),), floor="0s") as live:
        assert live.notes == []


def test_an_order_names_kinds_in_words_and_clears_a_fault(tmp_path: Path, headstack: Headstack) -> None:
    with served(tmp_path, "constant:1ms", "--size", "1MiB", "--control", "c") as process:
        client = Client(tmp_path / "s")
        for words in ("kinds=write", "kinds=write,trim", 'kinds=["write"]'):
            injected = headstack("serve", "ctl", "c", "inject", "errno", words)
            assert injected.returncode == 0, injected.stderr
        assert client.read(0, 512) == bytes(512)
        client.send(1, 0, 512, bytes(512), cookie=2)
        assert client.reply()[1] != 0
        assert headstack("serve", "ctl", "c", "clear", "number=0").returncode == 0
        client.send(1, 0, 512, bytes(512), cookie=3)
        assert client.reply()[1] != 0, "two others last"
        assert headstack("serve", "ctl", "c", "clear").returncode == 0
        client.send(1, 0, 512, bytes(512), cookie=4)
        assert client.reply() == (4, 0)
        wrong = headstack("serve", "ctl", "c", "inject", "errno", "kinds=writes")
        assert wrong.returncode == 2
        assert "unknown variant `writes`" in wrong.stderr
        ended(process)


IDLE = """
[[fault]]
at = "0s"
what = "media-error"
ranges = [{ offset = "1GiB", length = "4KiB" }]

[[fault]]
at = "0s"
what = "errno"
touching = "1GiB..2GiB"

[[fault]]
at = "0s"
what = "errno"
state = 3

[[fault]]
at = "1s"
what = "power-on"

[[fault]]
at = "0s"
what = "errno"
ranges = [{ offset = "1MiB", length = "4KiB" }]
"""


def test_faults_that_can_have_no_effect_are_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "idle.toml").write_text(IDLE)
    with served(tmp_path, "wd1200bb@0..64MiB", "--faults", "idle.toml") as process:
        assert process.stdout is not None
        said = [process.stdout.readline()]
        while "Ctrl-C to end" not in said[-1]:
            said.append(process.stdout.readline())
            assert said[-1], "the export ended before it was ready"
        ended(process)
    notes = re.findall(r"note: fault\[(\d)\]\.(\w+) has no effect: (.*)", "".join(said))
    assert [(index, key) for index, key, _ in notes] == [
        ("0", "ranges"),
        ("1", "touching"),
        ("2", "state"),
        ("3", "what"),
    ]
    assert notes[0][2] == "the ranges are outside the exported range (0..67108864 B)"
    assert notes[3][2] == "no earlier fault cuts the power"
    (tmp_path / "lying.toml").write_text('[[fault]]\nat = "0s"\nwhat = "lying-cache"\n')
    for system, is_idle in (("constant:1ms", True), ("wd1200bb@0..64MiB", False)):
        with hs.serve(system, unix=(str(tmp_path / "t"),), faults=str(tmp_path / "lying.toml"), floor="0s") as live:
            assert bool(live.notes) == is_idle, (system, live.notes)

"""What ``headstack judge`` reads: every kind of source, in its generations, with what is easily read wrongly."""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlparse

import polars as pl
import pytest

from conftest import lacks
from headstack import InputError, _native
from headstack.diagnosis.judging.observations import SCHEMA
from headstack.diagnosis.judging.sources import kinds as sources
from headstack.diagnosis.judging.sources import table
from headstack.diagnosis.judging.sources.counters import is_disk
from headstack.diagnosis.judging.sources.files import How
from headstack.diagnosis.judging.sources.prometheus import Server as Prometheus
from headstack.diagnosis.judging.sources.prometheus import rows_of_server
from headstack.diagnosis.judging.sources.table import declaration
from headstack.diagnosis.judging.sources.times import Times, zone_of

Rows = list[dict[str, Any]]
T = 1_700_000_000


def read(*paths: Path, columns: str | None = None, **told: Any) -> tuple[Rows, How]:
    """The rows of files, without what is null."""
    how = How(**told)
    parts = sources.parts(map(str, paths), how, None if columns is None else declaration(columns))
    rows = [row for part in parts for row in part.frame.iter_rows(named=True)]
    return [{key: value for key, value in row.items() if value is not None} for row in rows], how


def caveats(how: How) -> str:
    return " | ".join(how.caveats())


Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return file


# /proc/diskstats


def diskstats(name: str = "sda", /, **of: int) -> str:
    """A line: of Linux 4.17 with 14 fields, or with flushes of 20."""
    keys = ("reads", "rmerged", "rsectors", "rms", "writes", "wmerged", "wsectors", "wms", "now", "busyms", "waitedms")
    fields = [of.get(key, 0) for key in keys]
    if "flushes" in of:
        fields += [0, 0, 0, 0, of["flushes"], of["flushms"]]
    return f"   8       0 {name} {' '.join(map(str, fields))}\n"


def test_dumps_become_intervals(write: Write) -> None:
    begin = {
        "reads": 100,
        "rsectors": 800,
        "rms": 1000,
        "writes": 10,
        "wsectors": 80,
        "wms": 50,
        "busyms": 500,
        "waitedms": 900,
    }
    end = {
        "reads": 300,
        "rsectors": 2400,
        "rms": 3000,
        "writes": 10,
        "wsectors": 80,
        "wms": 50,
        "busyms": 7500,
        "waitedms": 20900,
    }
    text = "".join(
        f"{time}\n{diskstats(flushes=n, flushms=8 * n, **of)}{diskstats('sda1', **of)}{diskstats('dm-0', **of)}"
        for time, n, of in ((T, 0, begin), (T + 10, 2, end))
    )
    rows, how = read(write("db1.log", text))
    assert rows == [
        {
            "host": "db1", "disk": "sda", "start_s": T, "length_s": 10, "reads": 200, "writes": 0, "requests": 200,
            "read_bytes": 1600 * 512, "write_bytes": 0, "bytes": 1600 * 512, "read_latency_s": pytest.approx(0.01),
            "latency_s": pytest.approx(0.01), "in_flight": pytest.approx(2), "busy": pytest.approx(0.7), "flushes": 2,
            "flush_latency_s": pytest.approx(0.008), "discards": 0,
        }
    ]  # fmt: skip
    assert how.caveats() == ["dm-0 not judged, because built from others: the disks are judged instead (sda)"]


def test_milliseconds_wrap_and_counters_begin_anew(write: Write) -> None:
    readings = [
        {"reads": 1000, "rms": 2**32 - 500},
        {"reads": 1100, "rms": 500},
        {"reads": 5, "rms": 10},
        {"reads": 15, "rms": 60},
        # Smaller, though far from where it would wrap: the disk is another.
        {"reads": 20, "rms": 20},
        {"reads": 30, "rms": 40},
    ]
    text = "".join(f"{T + 10 * n}\n{diskstats(**of)}" for n, of in enumerate(readings))
    rows, how = read(write("a.log", text))
    assert [(row["start_s"] - T, row["reads"], row["read_latency_s"]) for row in rows] == [
        (0, 100, pytest.approx(0.01)),
        (20, 10, pytest.approx(0.005)),
        (40, 10, pytest.approx(0.002)),
    ]
    assert "counters were reset (2 times)" in caveats(how)


def test_a_missing_interval_makes_a_longer_one_but_not_one_of_hours(write: Write) -> None:
    times = (0, 10, 40, 40, 30, 10_000, 10_010)
    text = "".join(f"{T + at}\n{diskstats(reads=at, rms=at)}" for at in times)
    rows, how = read(write("a.log", text))
    assert [(row["start_s"] - T, row["length_s"]) for row in rows] == [(0, 10), (10, 30), (10_000, 10)]
    assert "time did not advance" in caveats(how)


def test_a_folder_of_dumps_is_one_host(write: Write) -> None:
    for n, name in enumerate(("20240101-000000", "20240101-000010", "2024-01-01T00:00:25")):
        write(f"web7/diskstats.{name}", diskstats(reads=100 * n, rms=100 * n))
    rows, how = read(write("web7/.hidden", "x").parent)
    assert [(row["host"], row["start_s"], row["length_s"]) for row in rows] == [
        ("web7", 1704067200, 10),
        ("web7", 1704067210, 15),
    ]
    assert "local times without a zone" in caveats(how)


def test_dumps_without_times_want_to_be_told(write: Write) -> None:
    with pytest.raises(InputError, match="no times; state the interval with --every TIME"):
        read(write("a.log", diskstats(reads=1) + diskstats(reads=2)))


@pytest.mark.parametrize(
    ("line", "zone", "time_s"),
    [
        ("1700000000", None, T),
        ("1700000000.25", None, T + 0.25),
        ("zzz ***Tue Nov 14 22:13:20 UTC 2023", None, T),
        ("# Tue Nov 14 11:13:20 PM CET 2023", "Europe/Berlin", T),
        ("Time: 2023-11-14T23:13:20+0100", None, T),
        ("timestamp=2023-11-14 22:13:20Z", None, T),
        ("11/14/2023 10:13:20 PM", None, T),
        ("14.11.2023 23:13:20", "Europe/Berlin", T),
        ("11/14/23 22:13:20", "UTC", T),
        ("   8  0 sda 1 2 3", None, None),
        ("hello", None, None),
    ],
)
def test_times_are_read_as_they_are_written(line: str, zone: str | None, time_s: float | None) -> None:
    assert Times(None if zone is None else zone_of(zone)).of_line(line + "\n") == time_s


def test_the_hour_that_comes_twice_goes_on() -> None:
    times = Times(zone_of("Europe/Berlin"))
    found = [times.read(f"2023-10-29 {time}:00") for time in ("01:30", "02:00", "02:30", "02:00", "02:30", "03:00")]
    assert None not in found
    assert [b - a for a, b in itertools.pairwise(found)] == [1800] * 5  # type: ignore[operator]
    with pytest.raises(InputError, match="Europe/Atlantis"):
        zone_of("Europe/Atlantis")


# sysstat

GENERATIONS = {
    "now": {"r/s": 50.0, "w/s": 10.0, "f/s": 2.0, "rkB/s": 200.0, "wkB/s": 40.0, "r_await": 4.0, "w_await": 1.0,
            "f_await": 9.0, "aqu-sz": 0.21, "rareq-sz": 4.0, "util": 30.0},
    "older": {"r/s": 50.0, "w/s": 10.0, "rMB/s": 200 / 1024, "wMB/s": 40 / 1024, "r_await": 4.0, "w_await": 1.0,
              "aqu-sz": 0.21, "svctm": 1.0, "util": 30.0},
    "first": {"rrqm": 0.0, "r": 50.0, "w": 10.0, "rkB": 200.0, "wkB": 40.0, "avgrq-sz": 8.0, "avgqu-sz": 0.21,
              "await": 3.5, "r_await": 4.0, "w_await": 1.0, "svctm": 1.0, "util": 30.0},
}  # fmt: skip


def iostat(blocks: list[dict[str, Any]], **header: Any) -> str:
    host = {"nodename": "n1", "sysname": "Linux", "number-of-cpus": 4, "date": "11/14/23", **header}
    return json.dumps({"sysstat": {"hosts": [{**host, "statistics": blocks}]}}, indent=1)


def since_boot(disks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over a long time, which are no whole counts per interval."""
    return [
        {key: round(value * 1.0137, 2) if isinstance(value, float) else value for key, value in disk.items()}
        for disk in disks
    ]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_iostat_of_three_generations(write: Write, generation: str) -> None:
    disks = [{"disk_device": "sda", **GENERATIONS[generation]}, {"disk_device": "loop3", **GENERATIONS[generation]}]
    stamps = ("2023-11-14T23:13:20+0100", "2023-11-14T23:13:30+0100")
    blocks = [{"timestamp": at, "disk": of} for at, of in zip(stamps, (since_boot(disks), disks), strict=True)]
    (row,), how = read(write("x.json", iostat(blocks)))
    assert (row["host"], row["disk"], row["start_s"], row["length_s"]) == ("n1", "sda", T, 10)
    assert (row["reads"], row["writes"], row["requests"]) == (500, 100, 600)
    assert (row["read_bytes"], row["bytes"]) == (pytest.approx(200 * 1024 * 10), pytest.approx(240 * 1024 * 10))
    assert (row["read_latency_s"], row["write_latency_s"]) == (0.004, 0.001)
    assert row["latency_s"] == pytest.approx(0.0035)
    assert (row["in_flight"], row["busy"]) == (0.21, 0.3)
    assert row.get("flushes") == (20 if generation == "now" else None)
    assert "first block of iostat is dropped" in caveats(how)


def test_iostat_says_0_where_nothing_was_asked(write: Write) -> None:
    idle = {"disk_device": "sda", "r/s": 0.0, "w/s": 10.0, "r_await": 0.0, "w_await": 2.0}
    stamps = ("11/14/2023 10:13:20 PM", "11/14/2023 10:13:30 PM")
    (row,), how = read(write("x.json", iostat([{"timestamp": at, "disk": [idle]} for at in stamps])))
    assert "read_latency_s" not in row
    assert row["latency_s"] == pytest.approx(0.002)
    assert row["start_s"] == T
    assert "taken as UTC" in caveats(how)


def test_iostat_without_times_and_cut_short(write: Write, tmp_path: Path) -> None:
    block = {"avg-cpu": {"idle": 1.0}, "disk": [{"disk_device": "sda", **GENERATIONS["now"]}]}
    text = iostat([block] * 4)
    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(text[: text.rindex('"avg-cpu"') + 20].encode()))
    rows, how = read(path, every_s=15.0)
    assert [(row["start_s"] % 86400, row["length_s"]) for row in rows] == [(15, 15), (30, 15)]
    assert rows[0]["start_s"] - 15 == 1699920000
    assert "ends in the middle" in caveats(how)


def test_iostat_as_text(write: Write) -> None:
    block = (
        "avg-cpu:  %user   %nice\n           1,00    0,00\n\n"
        "Device            r/s     rkB/s   r_await    w/s     wkB/s   w_await  aqu-sz  %util\n"
        "nvme0n1         50,00    200,00      4,00   0,00      0,00      0,00    0,20  30,00\n"
        "nvme0n1p1       50,00    200,00      4,00   0,00      0,00      0,00    0,20  30,00\n\n"
    )
    text = "Linux 6.1.0 (n2) \t11/14/23 \t_x86_64_\t(4 CPU)\n\n"
    text += "".join(f"11/14/23 22:13:{at}\n{block}" for at in (20, 35))
    (row,), _ = read(write("x.txt", text))
    assert (row["host"], row["disk"], row["start_s"], row["length_s"]) == ("n2", "nvme0n1", T, 15)
    assert (row["reads"], row["read_latency_s"], row["busy"]) == (750, 0.004, 0.3)


@pytest.mark.parametrize(
    "disk",
    [
        {"tps": 60.0, "rd_sec": 400.0, "wr_sec": 80.0, "avgrq-sz": 8.0, "avgqu-sz": 0.2, "await": 3.5},
        {"tps": 60.0, "rkB": 200.0, "wkB": 40.0, "dkB": 0.0, "areq-sz": 4.0, "aqu-sz": 0.2, "await": 3.5},
    ],
)
def test_sadf_does_not_tell_reads_from_writes(write: Write, disk: dict[str, Any]) -> None:
    def stamp(time: str, length: int, **of: Any) -> dict[str, Any]:
        return {"timestamp": {"date": "2023-11-14", "time": time, "interval": length} | of}

    blocks = [
        stamp("22:13:20", 600, utc=1) | {"disk": [{"disk-device": "sda", "util-percent": 120.0, **disk}]},
        {"restarts": [{"boot": {"date": "2023-11-14"}}]},
        stamp("22:13:25", 0, utc=1) | {"disk": [{"disk-device": "sda", **disk}]},
        stamp("22:23:20", 600) | {"disk": [{"disk-device": "sda", **disk}]},
    ]
    text = json.dumps({"sysstat": {"hosts": [{"nodename": "n3", "sysdata-version": 2.16, "statistics": blocks}]}})
    rows, how = read(write("sa.json", text))
    assert [(row["start_s"], row["length_s"]) for row in rows] == [(T - 600, 600), (T, 600)]
    row = rows[0]
    assert (row["requests"], row["latency_s"], row["in_flight"], row["busy"]) == (36000, 0.0035, 0.2, 1.0)
    assert row["read_bytes"] == 200 * 1024 * 600
    assert row["bytes"] == 240 * 1024 * 600
    assert "reads" not in row
    assert "means over 600 s" in caveats(how)
    assert "reads from writes" in caveats(how)


# Prometheus


def exposition(reads: float, spent: float, device: str = "sda", serial: str = "S1") -> str:
    return (
        '# HELP node_disk_io_now The number of I/Os currently in progress.\nnode_disk_io_now{device="sda"} 0\n'
        f'node_disk_info{{device="{device}",major="8",minor="0",model="ST \\"X\\" 1",serial="{serial}"}} 1\n'
        f'node_disk_reads_completed_total{{device="{device}"}} {reads:e}\n'
        f'node_disk_reads_completed_total{{device="{device}1"}} {reads:e}\n'
        f'node_disk_read_bytes_total{{device="{device}"}} {4096 * reads}\n'
        f'node_disk_read_time_seconds_total{{device="{device}"}} {spent}\n'
        'node_uname_info{nodename="n4",machine="x86_64"} 1\n'
    )


def test_scrapes_have_their_own_clock_and_disks_keep_their_names(write: Write) -> None:
    text = "".join(
        f"{exposition(100 * n, n, device)}node_time_seconds {T + 15 * n:.9e}\n"
        for n, device in enumerate(("sda", "sda", "sdb"))
    )
    rows, _ = read(write("scrapes.prom", text))
    # sda became sdb, but is the same disk.
    assert [(row["host"], row["disk"], row["model"], row["reads"]) for row in rows] == [
        ("n4", "S1", 'ST "X" 1', 100),
        ("n4", "S1", 'ST "X" 1', 100),
    ]
    assert (rows[0]["read_latency_s"], rows[0]["read_bytes"]) == (0.01, 409600)


def matrix(values: dict[str, list[tuple[float, str]]], **labels: str) -> list[dict[str, Any]]:
    of = {"device": "sda", "instance": "db1:9100", "job": "node"} | labels
    return [{"metric": {"__name__": name, **of}, "values": series} for name, series in values.items()]


def answer(result: list[dict[str, Any]]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_range_queries_a_file_each_are_one(write: Write) -> None:
    times = [T, T + 60, T + 120, T + 300, T + 360]
    reads = list(zip(times, ("0", "600", "1200", "10", "610"), strict=True))
    spent = list(zip(times, ("0", "3", "9", "0.1", "6.1"), strict=True))
    paths = [
        write(f"{name}.json", answer(matrix({f"node_disk_{name}_total": values})))  # type: ignore[dict-item]
        for name, values in (("reads_completed", reads), ("read_time_seconds", spent))
    ]
    rows, how = read(*paths)
    assert [(row["host"], row["start_s"] - T, row["reads"]) for row in rows] == [
        ("db1", 0, 600),
        ("db1", 60, 600),
        ("db1", 300, 600),
    ]
    assert [row["read_latency_s"] for row in rows] == pytest.approx([0.005, 0.01, 0.01])
    assert "counters were reset" in caveats(how)


def test_rates_and_instants_are_refused(write: Write) -> None:
    rate = answer([{"metric": {"device": "sda", "instance": "a:1"}, "values": [[T, "1"]]}])
    with pytest.raises(InputError, match=r"like those of rate\(\)"):
        read(write("rate.json", rate))
    with pytest.raises(InputError, match="allowed: matrix"):
        read(write("vector.json", rate.replace("matrix", "vector")))
    with pytest.raises(InputError, match="refused the query: parse error"):
        read(write("error.json", '{"status": "error", "error": "parse error", "x": {"resultType": 1}}'))


def test_a_server_is_asked_window_by_window() -> None:
    asked: list[dict[str, list[str]]] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlparse(self.path).query)
            asked.append(query)
            start, end, step = (float(query[key][0]) for key in ("start", "end", "step"))
            times = [start + step * n for n in range(int((end - start) / step) + 1)]
            values = {
                "node_disk_reads_completed_total": [(at, str(10 * (at - T))) for at in times],
                "node_disk_read_time_seconds_total": [(at, str(0.05 * (at - T))) for at in times],
            }
            body = answer(matrix(values)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        rows = list(rows_of_server(Prometheus.of(url), 'job="node"', T, T + 60 * 600, 60.0, How()))
        with pytest.raises(InputError, match="no answer"):
            list(rows_of_server(Prometheus.of("http://127.0.0.1:1"), "", T, T + 60, 60.0, How()))
    finally:
        server.shutdown()
        server.server_close()
    assert len(asked) == 3
    assert 'job="node"}' in asked[0]["query"][0]
    # Nothing is lost where windows meet.
    assert [row.start_s for row in rows] == [T + 60 * n for n in range(600)]
    assert {row.figures["reads"] for row in rows} == {600}


@contextmanager
def guarded(tls: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[str | None]]]:
    """A server that answers nobody whom it does not know: its port, and what it was told."""
    told: list[str | None] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.append(self.headers["Authorization"])
            known = told[-1] in ("Basic cmVhZGVyOmE6Yi9j", "Bearer a-token")
            if self.path.startswith("/moved/"):
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{self.server.server_port}{self.path[6:]}")  # type: ignore[attr-defined]
            else:
                self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write(answer(matrix({"node_disk_reads_completed_total": [(T, "1"), (T + 60, "2")]})).encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, told
    finally:
        server.shutdown()
        server.server_close()


def asked_of(server: Prometheus) -> list[Any]:
    return list(rows_of_server(server, "", T, T + 60, 60.0, How()))


def test_a_server_that_wants_to_know_who_asks_is_told(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token\n")
    with guarded() as (port, told):
        place = f"127.0.0.1:{port}"
        assert len(asked_of(Prometheus.of(f"http://reader:a%3Ab%2Fc@{place}"))) == 1
        assert len(asked_of(Prometheus.of(f"http://{place}/", token_file=str(token)))) == 1
        for address in (f"http://{place}", f"http://reader:wrong@{place}"):
            with pytest.raises(InputError, match=f"^http://{place}/api.*HTTP 401: credentials are required"):
                asked_of(Prometheus.of(address))
        # Whoever it is led to is not told.
        with pytest.raises(InputError, match="HTTP 401"):
            asked_of(Prometheus.of(f"http://{place}/moved", token_file=str(token)))
        assert told[-2:] == ["Bearer a-token", None]
    with pytest.raises(InputError, match="one of them"):
        Prometheus.of("http://a:b@host", token_file=str(token))
    with pytest.raises(InputError, match="'host' is not an address") as refused:
        Prometheus.of("reader:secret@host")
    assert "secret" not in str(refused.value)
    token.write_text("")
    with pytest.raises(InputError, match="must contain one token"):
        Prometheus.of("http://host", token_file=str(token))


def test_a_server_is_believed_by_whom_the_reader_names(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    if shutil.which("openssl") is None:
        lacks("programs", "no openssl")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made: list[str | Path] = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        key,
        "-out",
        certificate,
        *names,
    ]
    subprocess.run(made, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with guarded(tls) as (port, _):
        address = f"https://reader:a%3Ab%2Fc@127.0.0.1:{port}"
        assert len(asked_of(Prometheus.of(address, ca_file=str(certificate)))) == 1
        with pytest.raises(InputError, match="certificate verify failed"):
            asked_of(Prometheus.of(address))
    with pytest.raises(InputError, match="no readable certificates"):
        Prometheus.of(address, ca_file=str(key))


# ZFS and Ceph


def zpool(*rows: tuple[str, str, str, str]) -> str:
    """Name, what is allocated and free, operations, and the wait of the disk in ns."""
    return "".join(
        f"{name}\t{held}\t{held}\t{ops}\t0\t4096\t0\t{ns}\t-\t{ns}\t-\t-\t-\t-\t-\t-\t-\t-\n"
        for name, held, ops, ns in rows
    )


def test_zpool_members_without_pools_and_groups(write: Write) -> None:
    block = zpool(
        ("tank", "100", "30", "9000000"), ("mirror-0", "60", "20", "9000000"), ("sda", "-", "10", "4000000"),
        ("sdb", "-", "10", "8000000"), ("wwn-0x5", "40", "0", "-"), ("logs", "-", "0", "-"),
        ("nvme0n1p1", "7", "1", "50000"), ("rpool", "5", "1", "1"), ("sdz", "5", "1", "2000000"),
    )  # fmt: skip
    rows, how = read(write("nas.log", "".join(f"{at}\n{block}" for at in (T, T + 10))))
    assert [(row["disk"], row["reads"], row.get("read_latency_s")) for row in rows] == [
        ("nvme0n1p1", 10, pytest.approx(5e-5)),
        ("sda", 100, pytest.approx(0.004)),
        ("sdb", 100, pytest.approx(0.008)),
        ("sdz", 10, pytest.approx(0.002)),
        ("wwn-0x5", 0, None),
    ]
    assert rows[0]["host"] == "nas"
    assert "first block of zpool iostat is dropped" in caveats(how)
    rows, _ = read(write("nas.log", block * 3), every_s=10.0)
    assert {row["start_s"] for row in rows} == {10, 20}
    short = "\n".join("\t".join(line.split("\t")[:7]) for line in block.splitlines())
    rows, how = read(write("nas.log", f"{T}\n{short}\n{T + 10}\n{short}\n"))
    assert {row["disk"] for row in rows} == {"sda", "sdb", "sdz", "nvme0n1p1", "wwn-0x5"}
    assert "no latencies: use zpool iostat -vly" in caveats(how)


def test_ceph_both_nestings_and_units(write: Write) -> None:
    def infos(**stats: int) -> dict[str, Any]:
        return {"osd_perf_infos": [{"id": 3, "perf_stats": stats}, {"id": 4, "perf_stats": {"commit_latency_ms": 0}}]}

    new = {"osdstats": infos(commit_latency_ms=12, apply_latency_ms=12, commit_latency_ns=12345678)}
    old = infos(commit_latency_ms=12, apply_latency_ms=12)
    text = "".join(f"{T + 10 * n}\n{json.dumps(of, indent=2)}\n" for n, of in enumerate((new, new, old)))
    rows, _ = read(write("cluster.log", text))
    assert [(row["start_s"] - T, row.get("latency_s")) for row in rows if row["disk"] == "osd.3"] == [
        (0, 0.012345678),
        (10, 0.012),
    ]
    # 0 ms is nothing asked, or less than half of one: not a latency.
    assert {row.get("latency_s") for row in rows if row["disk"] == "osd.4"} == {None}
    rows, _ = read(write("lines.log", "".join(json.dumps(new) + "\n" for _ in range(3))), every_s=5.0)
    assert len([row for row in rows if row["disk"] == "osd.3"]) == 2


# Tables


def test_columns_are_declared_with_units_and_rates(write: Write, tmp_path: Path) -> None:
    text = (
        "box,dev,at,iops,mb,lat,use\nb,sda,2023-11-14 22:13:20,100,1.5,3000,50\na,sdb,2023-11-14 22:13:35,,2,4000,10\n"
    )
    told = "host=box,disk=dev,time=at:iso,every=15s,requests=iops:/s,bytes=mb:MB/s,latency=lat:us,utilization=use:%"
    rows, how = read(write("t.csv", text), columns=told)
    assert rows[0] == {
        "host": "b", "disk": "sda", "start_s": T, "length_s": 15, "requests": 1500, "bytes": 22.5e6,
        "latency_s": pytest.approx(0.003), "in_flight": pytest.approx(0.3), "busy": 0.5,
    }  # fmt: skip
    assert "requests" not in rows[1]
    assert "taken as UTC" in caveats(how)
    _native.take_notes_of_renamed_keys()
    assert read(tmp_path / "t.csv", columns=told.replace("utilization", "busy"))[0] == rows
    assert "`busy` is now `utilization`" in _native.take_notes_of_renamed_keys()
    with pytest.raises(InputError, match="two names of one key"):
        read(tmp_path / "t.csv", columns=f"{told},busy=use:%")
    toml = "\n".join(f'{key} = "{value}"' for key, _, value in (pair.partition("=") for pair in told.split(",")))
    pl.read_csv(tmp_path / "t.csv").write_parquet(tmp_path / "t.parquet")
    assert read(tmp_path / "t.parquet", columns=str(write("mine.toml", toml)))[0] == rows


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("disk=dev,time=at:s", "every=15s"),
        ("time=at:s,every=15s", "disk is missing"),
        ("disk=dev,time=at:s,every=15s,latnecy=x", "latnecy is unknown; allowed: time"),
        ("disk=dev,time=at:s,every=15s,latency=x:us", "no column 'x'; the table has dev, at, lat"),
        ("disk=dev,time=at:s,every=15s,latency=lat:h", "unit 'h' is unknown; allowed: s, ms, us, ns"),
        ("disk=dev,time=at:s,every=15s,latency=lat:ms/s", "unit 'ms/s' is unknown"),
        ("disk", "KEY=COLUMN:UNIT"),
    ],
)
def test_wrong_columns_are_refused_with_what_is_allowed(write: Write, told: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(write("t.csv", f"dev,at,lat\nsda,{T},1\n"), columns=told)


def test_large_tables_come_in_parts_that_keep_peers_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "PART_ROWS", 300)
    times = [T + 15.0 * n for n in range(1000)]
    own = pl.DataFrame({"host": "h", "disk": [d for d in "ab" for _ in times], "start_s": times * 2, "length_s": 15.0})
    own.with_columns(reads=1.0, writes=0.0, read_latency_s=0.01).write_parquet(tmp_path / "own.parquet")
    parts = list(sources.parts([str(tmp_path / "own.parquet")], How()))
    assert len(parts) > 5
    assert max(part.frame.height for part in parts) <= 300
    whole = pl.concat([part.frame for part in parts])
    assert whole["start_s"].is_sorted()
    assert whole.height == 2000
    assert list(whole.schema) == list(SCHEMA)
    assert all(
        part.frame.group_by("start_s").len()["len"].to_list().count(2) == part.frame.height // 2 for part in parts
    )


# All kinds


def test_hosts_are_merged_in_order_of_time(write: Write) -> None:
    stamps = [f"2023-11-14T22:13:{at}+0000" for at in (20, 30, 40)]
    blocks = [{"timestamp": at, "disk": [{"disk_device": "sda", **GENERATIONS["now"]}]} for at in stamps]
    paths = [write(f"logs/{host}.json", iostat(blocks, nodename=host)) for host in ("a", "b")]
    rows, _ = read(paths[0].parent)
    assert [(row["host"], row["start_s"] - T) for row in rows] == [("a", 0), ("b", 0), ("a", 10), ("b", 10)]


def test_what_is_of_no_kind_or_of_two_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="unknown kind of file; allowed: iostat -x -o JSON"):
        read(write("prose.txt", "It was a dark and stormy night.\n"))
    with pytest.raises(InputError, match="declare their meanings with --columns"):
        read(write("t.csv", "dev,at\nsda,1\n"))
    with pytest.raises(InputError, match=r"several kinds \(diskstats, zpool\)"):
        read(write("a.log", f"{T}\n{diskstats()}"), write("b.log", f"{T}\n{zpool(('tank', '1', '1', '1'))}"))


def test_disks_are_told_from_what_is_made_of_them() -> None:
    disks = "sda sdaa vdb xvdc nvme0n1 nvme10n2 mmcblk0 hda nbd0 pmem0"
    others = "sda1 sdaa12 vdb2 nvme0n1p3 nvme0c0n1 mmcblk0p1 mmcblk0boot0 loop0 ram3 zram0 dm-2 md127 sr0 nbd0p1 fd0"
    assert [name for name in disks.split() if not is_disk(name)] == []
    assert [name for name in others.split() if is_disk(name)] == []

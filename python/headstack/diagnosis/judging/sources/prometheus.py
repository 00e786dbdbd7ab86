"""Readers of node_exporter's disk metrics: from its own output, or from Prometheus."""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from headstack._native import InputError
from headstack.diagnosis.judging.sources.counters import Differences, judged
from headstack.diagnosis.judging.sources.files import Clock, How, Row, blocks, opened, stem

SAMPLE = re.compile(r"^(node_\w+)(?:\{(.*?)\})?\s+(\S+)(?:\s+(-?\d+))?\s*$", re.MULTILINE)
"""Metric, labels, value, milliseconds since 1970."""
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

COUNTERS = {
    "node_disk_reads_completed_total": "reads",
    "node_disk_read_bytes_total": "read_bytes",
    "node_disk_read_time_seconds_total": "read_s",
    "node_disk_writes_completed_total": "writes",
    "node_disk_written_bytes_total": "write_bytes",
    "node_disk_write_time_seconds_total": "write_s",
    "node_disk_io_time_seconds_total": "busy_s",
    "node_disk_io_time_weighted_seconds_total": "waited_s",
    "node_disk_flush_requests_total": "flushes",
    "node_disk_flush_requests_time_seconds_total": "flush_s",
    "node_disk_discards_completed_total": "discards",
}
STALLED = "node_pressure_io_waiting_seconds_total"
PROCESSORS = "node_cpu_seconds_total"
IDLE_MODES = {"idle": "idle_s", "iowait": "idle_s", "steal": "steal_s"}
"""Modes of processors. One that waits for I/O is idle too."""
INFO = "node_disk_info"
TIME = "node_time_seconds"
HOST = "node_uname_info"

WINDOW_POINTS = 240
"""Number of points per query: for a thousand disks that is 2.4 million numbers. A server returns at most 11,000 of a
series.
"""
PATIENCE_S = 30.0
"""Time limit of an answer in seconds."""


@dataclass(frozen=True)
class Server:
    """A Prometheus server with its credentials.

    >>> from headstack.diagnosis.judging.sources.prometheus import Server
    >>> Server.of("https://reader:secret@metrics.example/prometheus").url
    'https://metrics.example/prometheus'
    """

    url: str
    """The address without secrets, for messages."""
    authorization: str | None = None
    tls: ssl.SSLContext | None = None

    @staticmethod
    def of(address: str, token_file: str | None = None, ca_file: str | None = None) -> Server:
        """Creates a server from its address, which may contain a percent-encoded user and password; or with a file that
        has a bearer token, and one with additional certificate authorities. Raises ``InputError``."""
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = address.rpartition("@")[2]
            raise InputError(
                f"--prometheus: {shown!r} is not an address; allowed: http://HOST:PORT or https://HOST:PORT"
            )
        user, at, place = parts.netloc.rpartition("@")
        authorization = None
        if at:
            named = ":".join(urllib.parse.unquote(part) for part in user.partition(":")[::2])
            authorization = f"Basic {base64.b64encode(named.encode()).decode()}"
        if token_file is not None:
            if at:
                raise InputError("--token-file: the address also names a user; give only one of them")
            authorization = f"Bearer {_token(token_file)}"
        tls = None
        if ca_file is not None:
            try:
                tls = ssl.create_default_context(cafile=ca_file)
            except (OSError, ssl.SSLError) as error:
                raise InputError(f"--ca-file: {ca_file}: has no readable certificates: {error}") from None
        return Server(urllib.parse.urlunsplit(parts._replace(netloc=place)).rstrip("/"), authorization, tls)

    def get(self, path: str, parameters: Mapping[str, str], patience_s: float) -> Any:
        """Returns its answer as JSON. Raises ``InputError``."""
        place = f"{self.url}{path}"
        request = urllib.request.Request(f"{place}?{urllib.parse.urlencode(parameters)}")
        if self.authorization is not None:
            # Not sent to redirected addresses.
            request.add_unredirected_header("Authorization", self.authorization)
        try:
            with urllib.request.urlopen(request, timeout=patience_s, context=self.tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                credentials = "USER:PASSWORD in the address, or --token-file"
                raise InputError(f"{place}: HTTP {error.code}: credentials are required; use {credentials}") from None
            message = error.read().decode(errors="replace")[:300]
            raise InputError(f"{place}: HTTP {error.code}: {message}") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{place}: no answer: {getattr(error, 'reason', error)}") from None


def _token(path: str) -> str:
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file: {path}: cannot be read: {error}") from None
    if not token or "\n" in token:
        raise InputError(f"--token-file: {path}: must contain one token")
    return token


class Series(TypedDict):
    """One series of the answer to a range query."""

    metric: dict[str, str]
    """Its labels; ``__name__`` is the name of the metric."""
    values: list[tuple[float, str]]
    """Seconds since 1970, and the value as text."""


class Machines:
    """Disks and their counters by instance and device."""

    def __init__(self, how: How) -> None:
        self.how = how
        # Sums are kernel milliseconds, which the exporter has divided: they wrap like the kernel's.
        self.differences = Differences(how, wraps=True)
        self.models: dict[tuple[str, str], str] = {}
        self.serials: dict[tuple[str, str], str] = {}

    def add_disk(self, host: str, labels: Mapping[str, str]) -> None:
        """Adds the model and serial number of a disk."""
        key = host, labels.get("device", "")
        if labels.get("model"):
            self.models[key] = labels["model"]
        if serial := labels.get("serial") or labels.get("wwn"):
            self.serials[key] = serial

    def row(self, host: str, device: str, time_s: float, counts: Mapping[str, float]) -> Row | None:
        """Returns the row of an interval. A disk is named by its serial number if known, since names may change."""
        key = host, device
        disk = self.serials.get(key, device)
        row = self.differences.row(host, disk, time_s, counts)
        return None if row is None else replace(row, model=self.models.get(key))


def scrapes(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields rows of disks between scrapes of a node_exporter, which include its own clock."""
    machines, clock = Machines(how), Clock(paths[0], how)
    named = how.host or stem(paths[0] if len(paths) == 1 else paths[0].parent)
    for block in blocks(paths, how):
        for text in _repeated("".join(block.lines)):
            counts: dict[str, dict[str, float]] = defaultdict(dict)
            host, time_s, infos = named, block.time_s, []
            for metric, labels, value, stamp in SAMPLE.findall(text):
                of = _labels(labels)
                if metric == TIME and time_s is None:
                    time_s = float(value)
                elif metric == HOST and how.host is None:
                    host = of.get("nodename", named)
                elif metric == INFO:
                    infos.append(of)
                elif metric in COUNTERS:
                    counts[of["device"]][COUNTERS[metric]] = float(value)
                    if stamp and time_s is None:
                        time_s = float(stamp) / 1000
            for of in infos:
                machines.add_disk(host, of)
            at_s, shares = clock.moment(time_s), host_sums(text)
            for device in judged(sorted(counts), how):
                if row := machines.row(host, device, at_s, counts[device] | shares):
                    yield row


def host_sums(text: str) -> dict[str, float]:
    """Returns the host's sums of time in a scrape: of processors, as a mean, and of stalls by I/O."""
    sums: dict[str, float] = defaultdict(float)
    processors: set[str] = set()
    for metric, labels, value, _ in SAMPLE.findall(text):
        if metric == STALLED:
            sums["stalled_s"] = float(value)
        elif metric == PROCESSORS:
            of = _labels(labels)
            processors.add(of.get("cpu", ""))
            if (mode := IDLE_MODES.get(of.get("mode", ""))) is not None:
                sums[mode] += float(value)
    return {name: value if name == "stalled_s" else value / len(processors) for name, value in sums.items()}


def _repeated(text: str) -> list[str]:
    """Splits scrapes without times in between: a metric occurs once in each."""
    begins = [match.start() for match in re.finditer(r"^# HELP node_disk_io_now .*$", text, re.MULTILINE)]
    if len(begins) < 2:
        return [text]
    return [text[begin:end] for begin, end in zip([0, *begins[1:]], [*begins[1:], len(text)], strict=True)]


def _labels(text: str) -> dict[str, str]:
    return {name: re.sub(r"\\(.)", lambda match: match[1], value).strip() for name, value in LABEL.findall(text)}


def ranges(paths: list[Path], how: How) -> Iterator[Row]:
    """Yields rows of disks from stored range queries: one of every metric, or a file for each."""
    series: list[Series] = []
    for path in paths:
        with opened(path) as stream:
            try:
                documents = json.load(stream)
            except json.JSONDecodeError as error:
                raise InputError(f"{path}: not valid JSON: {error}") from None
        # jq -s makes one list of documents.
        for document in documents if isinstance(documents, list) else [documents]:
            series += _series(document, str(path))
    yield from _rows(series, Machines(how), str(paths[0]))


def rows_of_server(
    server: Server, matchers: str, from_s: float, to_s: float, step_s: float, how: How, patience_s: float = PATIENCE_S
) -> Iterator[Row]:
    """Yields rows of disks from a server, window by window. Raises ``InputError`` if it does not answer."""
    machines = Machines(how)
    chosen = "|".join([*COUNTERS, INFO])
    query = f'{{__name__=~"{chosen}"{"," if matchers else ""}{matchers}}}'
    begin_s, is_first = from_s, True
    while begin_s <= to_s:
        end_s = min(to_s, begin_s + WINDOW_POINTS * step_s)
        parameters = {"query": query, "start": f"{begin_s:.3f}", "end": f"{end_s:.3f}", "step": f"{step_s:g}"}
        series = _series(server.get("/api/v1/query_range", parameters, patience_s), server.url)
        if series or not is_first:
            yield from _rows(series, machines, server.url)
        is_first = is_first and not series
        begin_s = end_s + step_s
    if is_first:
        raise InputError(f"{server.url}: has no node_disk_ metrics in that period that match {{{matchers}}}")


def _series(document: Any, where: str) -> list[Series]:
    if not isinstance(document, dict) or document.get("status") == "error":
        reason = document.get("error", "no reason") if isinstance(document, dict) else "not an object"
        raise InputError(f"{where}: Prometheus refused the query: {reason}")
    data = document.get("data", document)
    if data.get("resultType") != "matrix":
        raise InputError(f"{where}: resultType is {data.get('resultType')!r}; allowed: matrix, of a range query")
    series: list[Series] = data["result"]
    return series


def _rows(series: Iterable[Series], machines: Machines, where: str) -> Iterator[Row]:
    """Yields the rows of series, in order of time."""
    counts: dict[float, dict[tuple[str, str], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    devices: dict[str, set[str]] = defaultdict(set)
    unnamed = 0
    for counter in series:
        labels = counter["metric"]
        # Ports are the exporter's.
        host = machines.how.host or labels.get("nodename") or labels.get("instance", "").rpartition(":")[0]
        host = host or labels.get("instance", "")
        name = labels.get("__name__")
        unnamed += name is None
        if name == INFO:
            machines.add_disk(host, labels)
        elif name in COUNTERS:
            devices[host].add(labels["device"])
            for time_s, value in counter["values"]:
                counts[float(time_s)][host, labels["device"]][COUNTERS[name]] = float(value)
    if unnamed and not counts:
        raise InputError(
            f"{where}: its series have no names, like those of rate(); allowed: the counters themselves, "
            'such as {__name__=~"node_disk_.*"}'
        )
    disks = {host: set(judged(sorted(names), machines.how)) for host, names in devices.items()}
    for time_s in sorted(counts):
        for (host, device), counted in sorted(counts[time_s].items()):
            if device in disks[host] and (row := machines.row(host, device, time_s, counted)):
                yield row

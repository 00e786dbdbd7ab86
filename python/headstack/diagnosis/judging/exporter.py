"""``Exporter``: serves verdicts in Prometheus' text format over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headstack._native import InputError
from headstack.diagnosis.judging.verdict import KINDS, SLOW, Verdict

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PATIENCE_S = 10.0
"""Time limit in seconds for a client's request."""

Metric = tuple[str, str, Callable[[Verdict], float | None]]

METRICS: tuple[Metric, ...] = (
    (
        "headstack_disk_slowness_ratio",
        "Request latency divided by the expected latency; 1 is as expected.",
        lambda verdict: verdict.slower.factor if verdict.slower else verdict.course[-1][1] if verdict.course else None,
    ),
    (
        "headstack_disk_slowness_evidence_ratio",
        "Evidence of slowness, as a share of the alarm threshold; 1 is an alarm.",
        lambda verdict: verdict.evidence,
    ),
    (
        "headstack_disk_verdict_confidence_ratio",
        "Confidence of the verdict, from 0 to 1.",
        lambda verdict: verdict.confidence,
    ),
    (
        "headstack_disk_slow_since_timestamp_seconds",
        "When a slow disk became slow, in seconds since 1970.",
        lambda verdict: verdict.since_s if verdict.kind == SLOW else None,
    ),
)


def exposition(verdicts: Sequence[Verdict], judged_s: float | None, left_out: int = 0) -> str:
    """Returns the text: each disk's verdict as a gauge of 1 for its kind, with its known figures, and the number of
    intervals that maintenance windows left out."""
    name = "headstack_disk_verdict"
    lines = [f"# HELP {name} 1 for the verdict on the disk, 0 for the others.", f"# TYPE {name} gauge"]
    for verdict in verdicts:
        for kind in KINDS:
            lines.append(f'{name}{{{_labels(verdict)},verdict="{kind}"}} {int(verdict.kind == kind)}')
    for name, help_text, figure in METRICS:
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge"]
        lines += [
            f"{name}{{{_labels(verdict)}}} {value!r}" for verdict in verdicts if (value := figure(verdict)) is not None
        ]
    name = "headstack_judge_last_interval_timestamp_seconds"
    lines += [f"# HELP {name} End of the last interval that was judged.", f"# TYPE {name} gauge"]
    lines += [] if judged_s is None else [f"{name} {judged_s!r}"]
    name = "headstack_judge_maintenance_intervals_total"
    lines += [f"# HELP {name} Intervals left out, because they are in a maintenance window.", f"# TYPE {name} counter"]
    lines.append(f"{name} {left_out}")
    return "\n".join(lines) + "\n"


def _labels(verdict: Verdict) -> str:
    pairs = {"host": verdict.host, "disk": verdict.disk} | ({"model": verdict.model} if verdict.model else {})
    return ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs.items())


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Exporter:
    """Serves HTTP from a thread of its own until the context ends."""

    def __init__(self, place: str) -> None:
        """Raises ``InputError`` if it cannot listen there."""
        host, _, port = place.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise InputError(f"--export: {place!r}; allowed: [HOST:]PORT")
        self.text = exposition((), None)
        try:
            self._server = ThreadingHTTPServer((host.strip("[]") or "127.0.0.1", int(port)), _handler(self))
        except OSError as error:
            raise InputError(f"--export: {place}: {(error.strerror or str(error)).lower()}") from None
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """The address that the system assigned."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(exporter: Exporter) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S

        def do_GET(self) -> None:
            is_known = self.path.partition("?")[0] in ("/", "/metrics")
            body = (exporter.text if is_known else "metrics are at /metrics\n").encode()
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Prints nothing."""

    return Handler

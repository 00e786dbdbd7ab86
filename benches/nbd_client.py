"""Processor time of NBD clients per request, compared with fio's engine nbd: `nbd_client.py [ROUNDS]` prints JSON.

Both use one server alternately, at equal depth and block size; the server answers after a fixed time, so that both have
the same request rate. Processor time is that of the client process, user and system. Start-up is excluded: each client
runs for a short and a longer time, and the differences are used.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CAPACITY_BYTES = 256 << 20
SHORT_S, LONG_S = 1, 4
HEADSTACK = [sys.executable, "-c", "from headstack.cli.main import main; main()"]
WORKLOADS = [("read", 4096, 32), ("write", 4096, 32), ("read", 65536, 16), ("read", 4096, 1)]
SERVERS = {
    "headstack serve, 1 ms": [*HEADSTACK, "serve", "constant:1ms", "--size", str(CAPACITY_BYTES), "-q"],
    "nbdkit memory": ["nbdkit", "-f", "memory", str(CAPACITY_BYTES)],
}


def asked(command: list[str]) -> float:
    """Returns the seconds of processor time that a command has used."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def by_fio(uri: str, kind: str, size: int, depth: int, seconds: int, out: Path) -> tuple[float, int]:
    """Returns the seconds of processor time, and the requests, of fio."""
    rw = {"read": "randread", "write": "randwrite"}[kind]
    load = [f"--rw={rw}", f"--bs={size}", f"--iodepth={depth}", f"--size={CAPACITY_BYTES}"]
    timed = ["--time_based", f"--runtime={seconds}", "--output-format=json", f"--output={out}"]
    used_s = asked(["fio", "--name=nbd", "--ioengine=nbd", f"--uri={uri}", *load, *timed])
    text = out.read_text()
    job = json.loads(text[text.index("{") :])["jobs"][0]
    return used_s, job["read"]["total_ios"] + job["write"]["total_ios"]


def by_headstack(uri: str, kind: str, size: int, depth: int, seconds: int, out: Path) -> tuple[float, int]:
    """Returns the seconds of processor time, and the requests, of headstack."""
    share = {"read": "100", "write": "0"}[kind]
    load = ["--size", str(size), "--read", share, "--random", "100", "--depth", str(depth), "--time", f"{seconds}s"]
    used_s = asked([*HEADSTACK, "measure", uri, *load, "--destroy", uri, "-q", "--json", str(out)])
    [result] = json.loads(out.read_text())
    return used_s, sum(kind["count"] for kind in result["kinds"].values())


CLIENTS = {"headstack": by_headstack, "fio": by_fio}


def measure_round(client: str, uri: str, workload: tuple[str, int, int], out: Path) -> tuple[float, float]:
    """Returns requests per second, and microseconds of processor time per request."""
    short_s, few = CLIENTS[client](uri, *workload, SHORT_S, out)
    long_s, many = CLIENTS[client](uri, *workload, LONG_S, out)
    return (many - few) / (LONG_S - SHORT_S), (long_s - short_s) * 1e6 / (many - few)


def compare(server: str, uri: str, workload: tuple[str, int, int], rounds: int, out: Path) -> dict[str, object]:
    """Returns medians of alternating rounds."""
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in CLIENTS}
    for _ in range(rounds):
        for name in CLIENTS:
            seen[name].append(measure_round(name, uri, workload, out))
    told: dict[str, object] = {"server": server, "kind": workload[0], "size": workload[1], "depth": workload[2]}
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in seen.items()}
    for name, (ios_per_s, processor_us) in medians.items():
        told[name] = {"ios_per_s": ios_per_s, "processor_us": processor_us}
    told["processor_ratio"] = medians["headstack"][1] / medians["fio"][1]
    return told


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        told = []
        for number, (name, command) in enumerate(SERVERS.items()):
            socket = Path(folder) / f"socket-{number}"
            where = ["-U", str(socket)] if command[0] == "nbdkit" else ["--nbd", f"unix:{socket}"]
            server = subprocess.Popen(
                [*command[:2], *where, *command[2:]] if command[0] == "nbdkit" else [*command, *where]
            )
            try:
                while not socket.exists():
                    time.sleep(0.05)
                uri = f"nbd+unix:///?socket={socket}"
                told += [compare(name, uri, workload, rounds, Path(folder) / "out") for workload in WORKLOADS]
            finally:
                server.terminate()
                server.wait()
        print(json.dumps({"load": os.getloadavg(), "compared": told}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)

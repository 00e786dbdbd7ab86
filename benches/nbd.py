"""The zero-latency path of a live export compared with nbdkit's memory plugin: `nbd.py [ROUNDS [SECONDS]]` prints JSON.

Both servers are always ready, with written memory; fio alternates between them, so that other load of the machine
affects both. Processor time is the server's own, user and system, from /proc. Exits with 77 if fio, its engine nbd or
nbdkit is not installed.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CAPACITY_BYTES = 256 << 20
SECONDS = 1.0
STARTS_WITHIN_S = 60
LACKING = 77
HEADSTACK = [sys.executable, "-c", "from headstack.cli.main import main; main()"]
WORKLOADS = [("randread", 32), ("randwrite", 32), ("randread", 1), ("randwrite", 1)]


def processor_s(process: int) -> float:
    """Seconds of processor time that a process has used, all its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fio(socket: Path, *options: str) -> dict[str, float]:
    """Runs fio against a server; returns the number of I/Os, and IOPS."""
    uri = f"--uri=nbd+unix:///?socket={socket}"
    common = ["fio", "--name=live", "--ioengine=nbd", uri, "--output-format=json", f"--size={CAPACITY_BYTES}"]
    done = subprocess.run([*common, *options], check=True, capture_output=True, text=True)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    sides = [job["read"], job["write"]]
    return {"ios": sum(side["total_ios"] for side in sides), "ios_per_s": sum(side["iops"] for side in sides)}


def lacks() -> str | None:
    """Names the programs and modules that the comparison needs and this machine does not have."""
    missing = next((program for program in ("fio", "nbdkit") if shutil.which(program) is None), None)
    if missing is not None:
        return f"{missing} is not installed"
    engine = subprocess.run(["fio", "--enghelp=nbd"], capture_output=True, check=False)
    return None if engine.returncode == 0 else "fio has no engine nbd"


def wait_for(sockets: dict[str, Path], servers: dict[str, subprocess.Popen[bytes]]) -> None:
    """Returns when all servers listen; raises if one of them ends or takes too long."""
    deadline_s = time.monotonic() + STARTS_WITHIN_S
    while not all(socket.exists() for socket in sockets.values()):
        for name, server in servers.items():
            if server.poll() is not None:
                raise SystemExit(f"{name} ended with exit code {server.returncode}")
        if time.monotonic() > deadline_s:
            raise SystemExit(f"no server after {STARTS_WITHIN_S} s")
        time.sleep(0.05)


def measure_round(socket: Path, process: int, kind: str, depth: int, seconds: float) -> tuple[float, float]:
    """I/O per second, and microseconds of the server's processor time for each."""
    before_s = processor_s(process)
    timed = ["--time_based", f"--runtime={round(seconds * 1000)}ms", "--bs=4k", f"--rw={kind}", f"--iodepth={depth}"]
    told = fio(socket, *timed)
    if not told["ios"]:
        raise SystemExit(f"fio completed no I/O in {seconds} s")
    return told["ios_per_s"], (processor_s(process) - before_s) * 1e6 / told["ios"]


def main(rounds: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sockets = {name: Path(folder) / name for name in ("headstack", "nbdkit")}
        serve = ["serve", "constant:0s", "--size", str(CAPACITY_BYTES), "-q", "--nbd", f"unix:{sockets['headstack']}"]
        headstack = subprocess.Popen([*HEADSTACK, *serve])
        nbdkit = subprocess.Popen(["nbdkit", "-f", "-U", str(sockets["nbdkit"]), "memory", str(CAPACITY_BYTES)])
        servers = {"headstack": headstack.pid, "nbdkit": nbdkit.pid}
        try:
            wait_for(sockets, {"headstack": headstack, "nbdkit": nbdkit})
            for socket in sockets.values():
                fio(socket, "--rw=write", "--bs=1m", "--iodepth=4")
            print(json.dumps([compare(sockets, servers, kind, depth, rounds, seconds) for kind, depth in WORKLOADS]))
        finally:
            for server in (headstack, nbdkit):
                server.terminate()
                server.wait()


def compare(
    sockets: dict[str, Path], servers: dict[str, int], kind: str, depth: int, rounds: int, seconds: float
) -> dict[str, object]:
    """Medians of alternating rounds."""
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, process in servers.items():
            seen[name].append(measure_round(sockets[name], process, kind, depth, seconds))
    told: dict[str, object] = {"kind": kind, "depth": depth}
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in seen.items()}
    for name, (ios_per_s, processor_us) in medians.items():
        told[name] = {"ios_per_s": ios_per_s, "processor_us": processor_us}
    return told


if __name__ == "__main__":
    if (missing := lacks()) is not None:
        print(missing, file=sys.stderr)
        sys.exit(LACKING)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7, float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS)

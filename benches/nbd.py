"""The zero-latency path of a live export against nbdkit's memory plugin: `nbd.py [ROUNDS]` prints JSON.

Both servers stand ready all the time, their memory written; fio asks one after the other, so that what else the machine
does meets both. Processor time is the server's own, of user and system, from /proc.
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
SECONDS = 1
HEADSTACK = [sys.executable, "-c", "from headstack.cli import main; main()"]
WORKLOADS = [("randread", 32), ("randwrite", 32), ("randread", 1), ("randwrite", 1)]


def processor_s(process: int) -> float:
    """Seconds of processor time that a process has used, all its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fio(socket: Path, *options: str) -> dict[str, float]:
    """Runs fio against a server; I/Os, and how many of them in a second."""
    uri = f"--uri=nbd+unix:///?socket={socket}"
    common = ["fio", "--name=live", "--ioengine=nbd", uri, "--output-format=json", f"--size={CAPACITY_BYTES}"]
    done = subprocess.run([*common, *options], check=True, capture_output=True, text=True)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    sides = [job["read"], job["write"]]
    return {"ios": sum(side["total_ios"] for side in sides), "ios_per_s": sum(side["iops"] for side in sides)}


def one_round(socket: Path, process: int, kind: str, depth: int) -> tuple[float, float]:
    """I/O per second, and microseconds of the server's processor time for each."""
    before_s = processor_s(process)
    timed = ["--time_based", f"--runtime={SECONDS}", "--bs=4k", f"--rw={kind}", f"--iodepth={depth}"]
    told = fio(socket, *timed)
    return told["ios_per_s"], (processor_s(process) - before_s) * 1e6 / told["ios"]


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sockets = {name: Path(folder) / name for name in ("headstack", "nbdkit")}
        serve = ["serve", "constant:0s", "--size", str(CAPACITY_BYTES), "-q", "--nbd", f"unix:{sockets['headstack']}"]
        headstack = subprocess.Popen([*HEADSTACK, *serve])
        nbdkit = subprocess.Popen(["nbdkit", "-f", "-U", str(sockets["nbdkit"]), "memory", str(CAPACITY_BYTES)])
        servers = {"headstack": headstack.pid, "nbdkit": nbdkit.pid}
        try:
            while not all(socket.exists() for socket in sockets.values()):
                time.sleep(0.05)
            for socket in sockets.values():
                fio(socket, "--rw=write", "--bs=1m", "--iodepth=4")
            print(json.dumps([compare(sockets, servers, kind, depth, rounds) for kind, depth in WORKLOADS]))
        finally:
            for server in (headstack, nbdkit):
                server.terminate()
                server.wait()


def compare(sockets: dict[str, Path], servers: dict[str, int], kind: str, depth: int, rounds: int) -> dict[str, object]:
    """Medians of alternating rounds."""
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, process in servers.items():
            seen[name].append(one_round(sockets[name], process, kind, depth))
    told: dict[str, object] = {"kind": kind, "depth": depth}
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in seen.items()}
    for name, (ios_per_s, processor_us) in medians.items():
        told[name] = {"ios_per_s": ios_per_s, "processor_us": processor_us}
    told["ios_per_s_ratio"] = medians["headstack"][0] / medians["nbdkit"][0]
    told["processor_ratio"] = medians["headstack"][1] / medians["nbdkit"][1]
    return told


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)

"""The machine's own disk through a file: calibrated for a minute, then compared on twelve workloads that no probe runs,
in three rounds. This takes two to three minutes and temporarily 2 GiB under target/; on a quiet machine the rounds are
more consistent.

`benches/own_disk.py` only reads; with `--write`, it writes to the file as well. `benches/own_disk.py --smoke` only
creates a small file and inspects it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
SIZE_BYTES, PIECE_BYTES = 2 << 30, 16 << 20


def main() -> int:
    path = REPOSITORY / "target" / f"own-disk-{os.getpid()}.bin"
    path.parent.mkdir(exist_ok=True)
    smoke = "--smoke" in sys.argv[1:]
    size_bytes = PIECE_BYTES if smoke else SIZE_BYTES
    try:
        # Incompressible bytes in allocated blocks.
        with path.open("wb") as file:
            for _ in range(size_bytes // PIECE_BYTES):
                file.write(os.urandom(PIECE_BYTES))
            os.fsync(file.fileno())
        writes = ["--write", "--overwrite"] if "--write" in sys.argv[1:] else []
        if smoke:
            command = [sys.executable, "-m", "headstack", "inspect", str(path)]
            return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
        command = [sys.executable, "-m", "headstack", "twin", "validate", "--device", str(path), "--time", "1min"]
        return subprocess.run([*command, *writes, "--quiet"], check=False).returncode
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())

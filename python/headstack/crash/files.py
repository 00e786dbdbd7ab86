"""What of an ext4 file system lies at a place of its image, by debugfs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

SUPERBLOCK_BYTES = 1024
MAGIC_BYTES = 1024 + 56
BLOCKS_ASKED = 64
"""Of a long write, at most so many blocks are asked for."""


def files_of(image: str, offset_bytes: int, length_bytes: int) -> tuple[str, ...]:
    """Names of files, or of parts of the file system, in a range; none where it is no ext4, or debugfs is not there."""
    block_bytes = block_size(image)
    if block_bytes is None or shutil.which("debugfs") is None:
        return ()
    found = ["the superblock"] if offset_bytes < 2 * SUPERBLOCK_BYTES and offset_bytes + length_bytes > 1024 else []
    first, end = offset_bytes // block_bytes, -(-(offset_bytes + length_bytes) // block_bytes)
    blocks = range(first, min(end, first + BLOCKS_ASKED))
    said = asked(image, f"icheck {' '.join(map(str, blocks))}")
    inodes = sorted({int(inode) for inode in re.findall(r"^\d+\s+(\d+)\s*$", said, re.MULTILINE)})
    if inodes:
        names = dict(
            re.findall(r"^(\d+)\s+/*(/.*)$", asked(image, f"ncheck {' '.join(map(str, inodes))}"), re.MULTILINE)
        )
        found += [special(inode) or names.get(str(inode), f"inode {inode}") for inode in inodes]
    elif not found and "<block not found>" not in said:
        return ()
    elif not found:
        found.append("metadata, or a block in no use")
    return tuple(found)


def repair(image: str) -> None:
    """Replays the journal of an ext4 file system, if that is what an image holds."""
    if block_size(image) is not None and shutil.which("e2fsck") is not None:
        subprocess.run(["e2fsck", "-fy", image], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def special(inode: int) -> str | None:
    """Inodes that have no name."""
    return {2: "/", 7: "the resize inode", 8: "the journal"}.get(inode)


def block_size(image: str) -> int | None:
    """The blocks of an ext4 file system; None where there is none."""
    with Path(image).open("rb") as file:
        head = file.read(2048)
    if head[MAGIC_BYTES : MAGIC_BYTES + 2] != b"\x53\xef":
        return None
    return 1024 << int.from_bytes(head[SUPERBLOCK_BYTES + 24 : SUPERBLOCK_BYTES + 28], "little")


def asked(image: str, question: str) -> str:
    """What debugfs answers."""
    done = subprocess.run(["debugfs", "-R", question, image], capture_output=True, text=True, check=False)
    return done.stdout

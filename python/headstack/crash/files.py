"""Finds the files of an ext4 file system at a position of its image, with debugfs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

SUPERBLOCK_BYTES = 1024
MAGIC_BYTES = 1024 + 56
BLOCKS_MAX = 64
"""Maximum number of blocks of a long write to look up."""


def find_program(program: str) -> str | None:
    """Returns the path of a file system's program, also in root's folders; ``None`` if it is not installed."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def files_of(image: str, offset_bytes: int, length_bytes: int) -> tuple[str, ...]:
    """Returns the names of files, or of parts of the file system, in a range; empty if it is not ext4, or debugfs is
    not installed.
    """
    block_bytes, debugfs = block_size(image), find_program("debugfs")
    if block_bytes is None or debugfs is None:
        return ()
    end_bytes = offset_bytes + length_bytes
    names = ["the superblock"] if offset_bytes < 2 * SUPERBLOCK_BYTES and end_bytes > SUPERBLOCK_BYTES else []
    first, end = offset_bytes // block_bytes, -(-end_bytes // block_bytes)
    blocks = range(first, min(end, first + BLOCKS_MAX))
    output = run_debugfs(debugfs, image, f"icheck {' '.join(map(str, blocks))}")
    inodes = sorted({int(inode) for inode in re.findall(r"^\d+\s+(\d+)\s*$", output, re.MULTILINE)})
    if inodes:
        output = run_debugfs(debugfs, image, f"ncheck {' '.join(map(str, inodes))}")
        paths = dict(re.findall(r"^(\d+)\s+/*(/.*)$", output, re.MULTILINE))
        names += [special(inode) or paths.get(str(inode), f"inode {inode}") for inode in inodes]
    elif not names and "<block not found>" in output:
        names.append("metadata, or an unused block")
    return tuple(names)


def repair(image: str) -> None:
    """Replays the journal of an ext4 file system, if an image contains one."""
    e2fsck = find_program("e2fsck")
    if block_size(image) is not None and e2fsck is not None:
        subprocess.run([e2fsck, "-fy", image], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def special(inode: int) -> str | None:
    """Returns the name of an inode without a path."""
    return {2: "/", 7: "the resize inode", 8: "the journal"}.get(inode)


def block_size(image: str) -> int | None:
    """Returns the block size of an ext4 file system; ``None`` if there is none."""
    with Path(image).open("rb") as file:
        head = file.read(2048)
    if head[MAGIC_BYTES : MAGIC_BYTES + 2] != b"\x53\xef":
        return None
    return 1024 << int.from_bytes(head[SUPERBLOCK_BYTES + 24 : SUPERBLOCK_BYTES + 28], "little")


def run_debugfs(debugfs: str, image: str, question: str) -> str:
    """Returns debugfs' answer."""
    return subprocess.run([debugfs, "-R", question, image], capture_output=True, text=True, check=False).stdout

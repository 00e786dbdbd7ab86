"""A minimal NBD client for tests: simple replies, one request at a time or many."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

READ, WRITE, DISCONNECT, FLUSH, TRIM = range(5)
FUA = 1
EIO, ENOSPC = 5, 28


class Client:
    """A connection to an export over a unix socket."""

    def __init__(self, path: Path, export: str = "") -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        assert self.take(16) == b"NBDMAGICIHAVEOPT"
        self.take(2)
        name = export.encode()
        data = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)
        self.socket.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 7, len(data)) + data)
        while True:
            _, _, kind, length = struct.unpack(">QIII", self.take(20))
            told = self.take(length)
            if kind == 1:
                return
            assert kind == 3, told
            if told[:2] == b"\0\0":
                self.capacity = struct.unpack(">Q", told[2:10])[0]

    def take(self, length: int) -> bytes:
        """Receives this number of bytes."""
        got = b""
        while len(got) < length:
            part = self.socket.recv(length - len(got))
            if not part:
                raise EOFError("the server has hung up")
            got += part
        return got

    def send(self, command: int, offset: int, length: int, data: bytes = b"", flags: int = 0, cookie: int = 0) -> None:
        """Sends a request, without waiting for its reply."""
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, flags, command, cookie, offset, length) + data)

    def reply(self) -> tuple[int, int]:
        """Receives the next reply: its cookie and its error."""
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert magic == 0x67446698
        return cookie, error

    def read(self, offset: int, length: int) -> bytes:
        """Reads, or raises OSError."""
        self.send(READ, offset, length)
        _, error = self.reply()
        if error:
            raise OSError(error, "read")
        return self.take(length)

    def write(self, offset: int, data: bytes, flags: int = 0) -> None:
        """Writes, or raises OSError."""
        self.send(WRITE, offset, len(data), data, flags)
        _, error = self.reply()
        if error:
            raise OSError(error, "write")

    def flush(self) -> None:
        """Flushes, or raises OSError."""
        self.send(FLUSH, 0, 0)
        _, error = self.reply()
        if error:
            raise OSError(error, "flush")

    def close(self) -> None:
        """Disconnects."""
        self.send(DISCONNECT, 0, 0)
        self.socket.close()

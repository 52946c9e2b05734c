"""SpoolFile: messages on disk that wait for a broker, one JSON text a line after a header.

A file belongs to whoever holds its lock: the process that writes it, and when that is gone, the one
that sends it. A last line without an end was cut by a crash and counts as never written.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tocsin.wire.blackboard.messages import Message

SUFFIX = ".spool"
READ_BYTES = 1 << 20
LINE_BYTES_MAX = 64 << 20  # no message is as long; a file that is one such line is damaged

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


class Header(msgspec.Struct, frozen=True):
    """The first line: the broker that the messages are for."""

    broker: str
    spool: int = 1


_decode_header = msgspec.json.Decoder(Header).decode


class SpoolFile:
    """An open and locked one. `damaged` counts the lines that could not be read."""

    def __init__(self, path: Path, descriptor: int, header: Header, start: int) -> None:
        self.path = path
        self.broker = header.broker
        self.damaged = 0
        self._descriptor = descriptor
        self._start = self._offset = start
        self.size = os.fstat(descriptor).st_size

    @property
    def has_more(self) -> bool:
        """True if something was not taken from the front yet."""
        return self.size > self._offset

    def append(self, messages: Sequence[Message]) -> None:
        """Write at the end, all or, if the disk is full or fails (OSError), nothing."""
        data = b"".join([_encode(message) + b"\n" for message in messages])
        written = 0
        try:
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise
        self.size += len(data)

    def front(self, count_max: int) -> tuple[list[Message], int]:
        """The oldest messages that wait, and the place behind them for `release`."""
        buffer = self._read_lines()
        messages: list[Message] = []
        place = 0
        while len(messages) < count_max:
            end = buffer.find(b"\n", place)
            if end < 0:
                break
            try:
                messages.append(_decode(buffer[place:end]))
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.damaged += 1
            place = end + 1
        if not place:
            # What is left has no end: nobody goes on writing it.
            self.damaged += 1
            return [], self.size
        return messages, self._offset + place

    def _read_lines(self) -> bytes:
        size = READ_BYTES
        while True:
            buffer = os.pread(self._descriptor, size, self._offset)
            if b"\n" in buffer or len(buffer) < size or size >= LINE_BYTES_MAX:
                return buffer
            size *= 4

    def release(self, place: int) -> None:
        """All before the place has arrived; when that is everything, the file starts over."""
        self._offset = place
        if not self.has_more and self.size > self._start:
            os.ftruncate(self._descriptor, self._start)
            self.size = self._offset = self._start

    def sync(self) -> None:
        """Wait until the disk has it."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Let others have it; a file with nothing in it is removed."""
        if not self.has_more:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Close a descriptor that belongs to a parent process, which keeps the lock."""
        os.close(self._descriptor)


def create(directory: Path, broker: str, name: str) -> SpoolFile:
    """A new file of ours; OSError if that cannot be."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    header = Header(broker)
    line = _encode(header) + b"\n"
    # Locked before it has its name, so that nobody can take it for one left behind.
    hidden = directory / f".{name}"
    descriptor = os.open(hidden, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, line)
        path = directory / f"{name}{SUFFIX}"
        hidden.rename(path)
    except OSError:
        os.close(descriptor)
        hidden.unlink(missing_ok=True)
        raise
    return SpoolFile(path, descriptor, header, len(line))


def take(path: Path) -> SpoolFile | None:
    """A file that nobody holds; None if somebody does, or it is none of ours."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had it before us may have sent and removed it.
        if os.fstat(descriptor).st_nlink == 0:
            raise OSError
        line = os.pread(descriptor, 4_096, 0).partition(b"\n")[0]
        return SpoolFile(path, descriptor, _decode_header(line), len(line) + 1)
    except (OSError, msgspec.DecodeError):
        os.close(descriptor)
        return None


def files_in(directory: Path) -> list[Path]:
    """All there are, oldest first."""
    found: list[tuple[float, Path]] = []
    with suppress(OSError):
        for path in directory.glob(f"*{SUFFIX}"):
            with suppress(OSError):
                found.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(found)]


def bytes_in(directory: Path) -> int:
    """How much waits there altogether."""
    total = 0
    for path in files_in(directory):
        with suppress(OSError):
            total += path.stat().st_size
    return total

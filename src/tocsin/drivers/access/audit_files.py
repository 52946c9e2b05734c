"""The files of the audit log: one is written to, the oldest go. To be called by one thread."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tocsin.access.audit.lines import START, Place, hash_of, read_line, written
from tocsin.access.audit.records import AuditRecord, Kind
from tocsin.event.instant import rfc3339_ns

SUFFIX: Final = ".jsonl"
END: Final = "end.json"  # how far the log goes, so that a cut at the end is noticed too
FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
TAIL_BYTES: Final = 64 << 10  # more than the longest line


@dataclass(frozen=True, slots=True)
class FileOptions:
    """How large a file may become, how old, and how many there may be."""

    file_bytes_max: int = 16 << 20
    file_age_s: float = 86_400.0
    files_max: int = 64


class AuditFiles:
    """See the module. Whatever cannot be written raises OSError, and can be tried again."""

    def __init__(self, directory: Path, options: FileOptions) -> None:
        self._directory = directory
        self._options = options
        self._last = START
        self._descriptor: int | None = None
        self._path = directory
        self._size = 0
        self._inode = 0
        self._begun_s = 0.0
        self._is_known = False  # how far it goes

    def append(self, records: Sequence[AuditRecord], *, sync: bool) -> None:
        """Write all of these or none. `sync`: they are on the disk when this returns."""
        if not self._is_known:
            records = [*self._recover(), *records]
        self._rotate()
        assert self._descriptor is not None
        last, lines = self._last, list[bytes]()
        for record in records:
            line, last = written(record, last)
            lines.append(line)
        data = b"".join(lines)
        try:
            _write(self._descriptor, data)
            if sync:
                os.fsync(self._descriptor)
        except OSError:
            with suppress(OSError):  # what is left of it is found and named later
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)
        self._last = last
        self._is_known = True
        with suppress(OSError):  # it says less then, and that is true too
            self._write_end()

    def close(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.fsync(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    # Going on where the last process stopped

    def _recover(self) -> list[AuditRecord]:
        """Learn how far the log goes; returns what is to be said about its last line."""
        _make_private(self._directory)
        end = read_end(self._directory)
        path = next(reversed(audit_files(self._directory)), None)
        if path is None:
            self._last = START if end is None else end
            return []
        lines = _tail(path).splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            self._end_line(path)
        read = [(read_line(data.rstrip(b"\n")), data.rstrip(b"\n")) for data in lines]
        known = [Place(line.n, hash_of(data)) for line, data in read if line is not None]
        self._last = known[-1] if known else (end or START)
        if read and read[-1][0] is None:
            return [_cut(f"the last line of {path.name} is cut or cannot be read")]
        if end is not None and end.n > self._last.n:
            return [_cut(f"{end.n - self._last.n} lines are missing after {self._last.n}")]
        return []

    def _end_line(self, path: Path) -> None:
        """What was written of it stays as it is, on a line of its own."""
        with path.open("ab") as file:
            file.write(b"\n")

    # Files

    def _rotate(self) -> None:
        """Go on in the file there is, or in a new one."""
        if self._descriptor is None:
            path = next(reversed(audit_files(self._directory)), None)
            if path is not None and path.stat().st_size < self._options.file_bytes_max:
                self._open(path)
        elif self._is_over():
            self.close()
        if self._descriptor is None:
            number = self._last.n + 1
            self._open(self._directory / f"{number:012d}{SUFFIX}")
            self._prune()

    def _is_over(self) -> bool:
        options, age_s = self._options, time.time() - self._begun_s
        if self._size >= options.file_bytes_max or (self._size and age_s >= options.file_age_s):
            return True
        try:
            return self._path.stat().st_ino != self._inode  # somebody moved or removed it
        except FileNotFoundError:
            return True

    def _open(self, path: Path) -> None:
        _make_private(self._directory)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, FILE_MODE)
        os.fchmod(self._descriptor, FILE_MODE)
        found = os.fstat(self._descriptor)
        self._path, self._size, self._inode = path, found.st_size, found.st_ino
        self._begun_s = time.time() if not found.st_size else _begun_s(path)

    def _prune(self) -> None:
        """The oldest go. Room is made before the next file is filled, so the total is bounded."""
        files = audit_files(self._directory)
        for path in files[: max(0, len(files) - self._options.files_max)]:
            path.unlink(missing_ok=True)

    def _write_end(self) -> None:
        scratch = self._directory / f".{END}.new"
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            json.dump({"n": self._last.n, "hash": self._last.hash}, file)
        scratch.replace(self._directory / END)


def audit_files(directory: Path) -> list[Path]:
    """The oldest first. The name of each is the number of its first line."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    stems = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
    numbers = sorted((int(stem), stem) for stem in stems if stem.isascii() and stem.isdigit())
    return [directory / f"{stem}{SUFFIX}" for _, stem in numbers]


def read_end(directory: Path) -> Place | None:
    """How far the log went at least; None if that is not known."""
    try:
        kept = json.loads((directory / END).read_text(encoding="ascii"))
        return Place(int(kept["n"]), str(kept["hash"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _cut(reason: str) -> AuditRecord:
    return AuditRecord(time_ns=time.time_ns(), kind=Kind.CUT, reason=reason)


def _make_private(directory: Path) -> None:
    directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    if directory.stat().st_mode & 0o077:
        directory.chmod(DIRECTORY_MODE)


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        tail = file.read()
    if size > TAIL_BYTES:
        tail = tail.partition(b"\n")[2]
    return tail


def _begun_s(path: Path) -> float:
    """When the first line of a file was written."""
    with path.open("rb") as file:
        line = read_line(file.readline(TAIL_BYTES).rstrip(b"\n"))
    moment_ns = None if line is None else rfc3339_ns(line.time)
    return time.time() if moment_ns is None else moment_ns / 1e9


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

"""The lines of the audit log: JSON, each with its number and with the hash of the line before.

So a line that was changed, removed or added does not fit to the one that follows; and a file that
was cut ends before the number and the hash that are kept beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from tocsin.access.audit.records import AuditRecord, Kind
from tocsin.event.instant import rfc3339, rfc3339_or_none
from tocsin.wire.api.audit_views import AuditEntry

FIRST: Final = "0" * 64
"""What the first line of all has in place of the hash of the one before."""


class AuditLine(AuditEntry, frozen=True, kw_only=True, omit_defaults=True):
    """A record as it is written."""

    before: str = ""  # the hash of the line before


class Place(msgspec.Struct, frozen=True):
    """How far the log goes: the number of the last line, and its hash."""

    n: int
    hash: str


START: Final = Place(0, FIRST)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AuditLine).decode
_DECISIONS: Final = {None: "", True: "allowed", False: "refused"}


def written(record: AuditRecord, last: Place) -> tuple[bytes, Place]:
    """The line of the record, with its end, and how far the log goes with it."""
    line = AuditLine(
        n=last.n + 1,
        time=rfc3339(record.time_ns),
        kind=str(record.kind),
        principal=_encodable(record.principal),
        credential=_encodable(record.credential),
        endpoint=record.endpoint,
        peer=record.peer,
        action=record.action,
        resource=_encodable(record.resource),
        decision=_DECISIONS[record.allowed],
        reason=_encodable(record.reason),
        count=record.count,
        since=rfc3339_or_none(record.since_ns),
        before=last.hash,
    )
    data = _encode(line)
    return data + b"\n", Place(line.n, hash_of(data))


def hash_of(line: bytes) -> str:
    """The hash of a line without its end."""
    return hashlib.sha256(line).hexdigest()


def read_line(data: bytes) -> AuditLine | None:
    """The line; None for what is none."""
    try:
        return _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Fault(msgspec.Struct, frozen=True):
    """Something in the log that is not as it was written."""

    file: str
    line: int
    problem: str
    is_damage: bool = True  # else the broker noticed it itself when it started again


def verify(
    files: Iterable[tuple[str, Iterable[bytes]]], end: Place | None
) -> tuple[int, list[Fault]]:
    """How many lines there are, and what is wrong with them. `files` are the oldest first, each
    with its lines and their ends; `end` is how far the log went at least."""
    chain = _Chain()
    for name, lines in files:
        chain.begin_file(name)
        for data in lines:
            chain.add(data)
    chain.close(end)
    return chain.count, chain.faults


class _Chain:
    def __init__(self) -> None:
        self.count = 0
        self.faults: list[Fault] = []
        self._last: Place | None = None  # None: of the first file, whatever is before it
        self._file, self._number = "", 0
        self._unreadable: tuple[str, int] | None = None

    def begin_file(self, name: str) -> None:
        self._file, self._number = name, 0

    def add(self, data: bytes) -> None:
        self._number += 1
        self.count += 1
        line = read_line(data.rstrip(b"\n")) if data.endswith(b"\n") else None
        if line is None:
            self._report_unreadable()
            self._unreadable = self._file, self._number
            return
        self._check(line)
        self._unreadable = None
        self._last = Place(line.n, hash_of(data.rstrip(b"\n")))

    def _check(self, line: AuditLine) -> None:
        last = self._last
        if line.kind == Kind.CUT:
            self._check_cut(line, last)
        self._report_unreadable()
        if self._unreadable is not None:
            return  # what comes after it cannot fit
        if last is None:
            first = self._file.partition(".")[0]  # a file is named by the number of its first line
            if first.isdigit() and self._number == 1 and int(first) != line.n:
                self._report(f"has number {line.n}, and the file began with {int(first)}")
            elif line.n == 1 and line.before != FIRST:
                self._report("is not the first line that was written")
            return
        if line.n != last.n + 1:
            self._report(f"has number {line.n}, and the one before it has {last.n}")
        elif line.before != last.hash:
            self._report("does not fit to the one before it: one of the two was changed")

    def _check_cut(self, line: AuditLine, last: Place | None) -> None:
        """The broker itself found the end of the log other than it had left it."""
        if self._unreadable is None:
            self._report(f"was written after a cut: {line.reason}")
        elif last is None or line.before == last.hash:
            file, number = self._unreadable
            problem = f"was cut when the broker was killed, as it noticed at {line.time}"
            self.faults.append(Fault(file, number, problem, is_damage=False))
            self._unreadable = None

    def close(self, end: Place | None) -> None:
        self._report_unreadable()
        last = self._last or START
        if end is None:
            return
        if end.n > last.n:
            self._report(f"is the last one, with number {last.n}, but {end.n} were written")
        elif end.n == last.n and end.hash != last.hash:
            self._report("is the last one, and it was changed")

    def _report_unreadable(self) -> None:
        if self._unreadable is not None:
            file, number = self._unreadable
            self.faults.append(Fault(file, number, "is cut or cannot be read"))

    def _report(self, problem: str) -> None:
        self.faults.append(Fault(self._file, self._number, problem))


def lines_of(data: bytes) -> Iterator[bytes]:
    """The lines of a file, with their ends; the last one may have none."""
    return iter(data.splitlines(keepends=True))


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()

"""Reads the audit log: what is asked for, a page at a time, and whether it is whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tocsin.access.audit.lines import AuditLine, Fault, lines_of, read_line, verify
from tocsin.access.audit.query import AuditQuery
from tocsin.drivers.access.audit_files import audit_files, read_end

SCANNED_MAX: Final = 200_000  # lines that one page looks at: about half a second


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Lines, the oldest first. Further ones follow after the number `next`; `is_last` if there are
    none now."""

    lines: list[AuditLine]
    next: int
    is_last: bool


def read_page(directory: Path, query: AuditQuery) -> AuditPage:
    """Those after `query.after`; without it, the last ones. Raises OSError."""
    if query.after is None:
        return _last(directory, query)
    found: list[AuditLine] = []
    scanned, next_number = 0, query.after
    for path in _from(directory, query.after):
        for line in _read(path):
            if line.n <= query.after:
                continue
            if len(found) == query.limit or scanned == SCANNED_MAX:
                return AuditPage(found, next_number, is_last=False)
            scanned += 1
            next_number = line.n
            if query.wants(line):
                found.append(line)
    return AuditPage(found, next_number, is_last=True)


def _last(directory: Path, query: AuditQuery) -> AuditPage:
    found: list[AuditLine] = []
    scanned, newest = 0, 0
    for path in reversed(audit_files(directory)):
        lines = list(_read(path))
        newest = newest or (lines[-1].n if lines else 0)
        for line in reversed(lines):
            scanned += 1
            if query.wants(line):
                found.append(line)
            if len(found) == query.limit:
                break
        is_older = lines and query.since and lines[0].time < query.since
        if len(found) == query.limit or scanned >= SCANNED_MAX or is_older:
            break
    return AuditPage(found[::-1], newest, is_last=True)


def verify_files(directory: Path) -> tuple[int, list[Fault]]:
    """How many lines there are, and what is wrong with them. Raises OSError."""
    end = read_end(directory)  # first: what is written meanwhile only makes it longer
    return verify(((path.name, _lines(path)) for path in audit_files(directory)), end)


def _from(directory: Path, after: int) -> list[Path]:
    """The files that may have lines after this number: the last that begins before it, and on."""
    files = audit_files(directory)
    begun = [place for place, path in enumerate(files) if int(path.stem) <= after + 1]
    return files[begun[-1] if begun else 0 :]


def _read(path: Path) -> Iterator[AuditLine]:
    """What cannot be read is left out: `verify_files` names it."""
    for data in _lines(path):
        line = read_line(data.rstrip(b"\n"))
        if line is not None:
            yield line


def _lines(path: Path) -> Iterator[bytes]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return  # the oldest went meanwhile
    yield from lines_of(data)

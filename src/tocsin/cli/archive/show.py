"""`tocsin archive ls` and `verify`, for people and for programs."""

from __future__ import annotations

import os
from dataclasses import asdict
from itertools import groupby

from tocsin.archive.catalog import Catalog, Piece
from tocsin.archive.file_names import parse_date
from tocsin.cli.progress import Progress
from tocsin.cli.render import plural, say, show, show_json, table

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
UNIT = 1_024
FRESH = "fresh"


def show_archive(directory: str, *, files: bool, as_json: bool) -> int:
    """List an archive by date, or file by file."""
    catalog = Catalog(directory)
    pieces = catalog.pieces()
    for foreign in catalog.foreign():
        say(f"not of the archive: {foreign.path}: {foreign.reason}")
    if files:
        _show_files(pieces, as_json=as_json)
    else:
        _show_dates(pieces, as_json=as_json)
    if not as_json:
        say(_summary(directory, pieces))
    return 0


def _show_files(pieces: list[Piece], *, as_json: bool) -> None:
    if as_json:
        for piece in pieces:
            show_json({"date": date_or_fresh(piece), **asdict(piece)})
        return
    rows = [(date_or_fresh(p), p.first, p.last, sized(p.bytes), p.path) for p in pieces]
    table(("date", "first", "last", "size", "file"), rows)


def _show_dates(pieces: list[Piece], *, as_json: bool) -> None:
    rows = []
    for date, some in groupby(pieces, key=date_or_fresh):
        group = list(some)
        size = sum(each.bytes for each in group)
        rows.append((date, len(group), group[0].first, group[-1].last, size))
    if as_json:
        for row in rows:
            show_json(dict(zip(("date", "files", "first", "last", "bytes"), row, strict=True)))
        return
    shown = [(date, files, first, last, sized(size)) for date, files, first, last, size in rows]
    table(("date", "files", "first", "last", "size"), shown)


def _summary(directory: str, pieces: list[Piece]) -> str:
    if not pieces:
        return f"{directory}: nothing yet"
    count = sum(each.last - each.first + 1 for each in pieces)
    size = sized(sum(each.bytes for each in pieces))
    return f"{directory}: {plural(count, 'event')} in {plural(len(pieces), 'file')}, {size}"


def date_or_fresh(piece: Piece) -> str:
    if piece.is_fresh:
        return FRESH
    return parse_date(os.path.basename(os.path.dirname(piece.path))) or "?"


def sized(count: int) -> str:
    """A size for a person: 812 B, 3.4 MiB."""
    size, unit = float(count), 0
    while size >= UNIT and unit < len(UNITS) - 1:
        size, unit = size / UNIT, unit + 1
    return f"{count} B" if unit == 0 else f"{size:.1f} {UNITS[unit]}"


def verify_archive(directory: str, *, as_json: bool) -> int:
    """Read every file; exit code 1 if anything is damaged, or was not read."""
    from tocsin.archive.verify import verify

    with Progress("bytes") as progress:
        report = verify(directory, progress.reach)
    if as_json:
        show_json({**asdict(report), "ok": report.ok})
        return 0 if report.ok else 1
    for finding in report.findings:
        show(f"{finding.level}: {finding.where}: {finding.what}")
        if finding.remedy:
            show(f"  {finding.remedy}")
    if report.left_out:
        say(f"... {report.left_out} more")
    levels = {finding.level for finding in report.findings}
    verdict = "not everything was read" if "unread" in levels else "all is well"
    verdict = "there is damage" if "damage" in levels else verdict
    say(
        f"{plural(report.events, 'event')} ({report.first} to {report.last}) in "
        f"{plural(report.files, 'file')}, {sized(report.size_bytes)}: {verdict}"
    )
    return 0 if report.ok else 1

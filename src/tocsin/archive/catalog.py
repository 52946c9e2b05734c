"""Catalog: which files of an archive hold which events, at the price of looking at what changed.

Files never change, so a directory that did not change is not read again, and of one that did only
new names are looked at. (A damaged one may be written again under its name; whoever does that says
so to the catalog that it uses itself.)
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tocsin.archive.file_names import FRESH, UNFINISHED, parse_date, parse_range

# A file system records when a directory changed to a tick of its clock; FAT's is the longest. What
# changed so recently may have changed again within the same tick, and is read again.
TICK_NS: Final = 2_000_000_000
# A reader that has just listed a fresh file still finds it for so long after it was merged.
GRACE_S: Final = 900.0


@dataclass(frozen=True, slots=True)
class Piece:
    """One file: the events `first` through `last`, but for those the log could not give."""

    first: int
    last: int
    path: str
    is_fresh: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class Foreign:
    """A file that is no piece of the archive, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Arranged:
    """Files of an archive in order, and those that are left out of it."""

    pieces: list[Piece]
    """Ascending, each event in one of them at most."""
    superseded: list[Piece]
    """Fresh ones whose events another one holds as well."""
    overlaps: list[Foreign]


@dataclass(slots=True)
class _Folder:
    changed_ns: int = -1
    is_settled: bool = False
    pieces: dict[str, Piece] = field(default_factory=dict)
    foreign: dict[str, Foreign] = field(default_factory=dict)


class Catalog:
    """The pieces of the archive in one directory."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = os.fspath(directory)
        self._folders: dict[str, _Folder] = {}
        self._pieces: list[Piece] | None = None
        self._superseded: list[Piece] = []
        self._overlaps: list[Foreign] = []
        self._turn = threading.Lock()  # lists are made again, never changed, once they are given

    def pieces(self) -> list[Piece]:
        """What there is now: ascending, each event in one of them at most.

        A directory that does not exist holds nothing.
        """
        with self._turn:
            if self._look() or self._pieces is None:
                self._pieces = self._sort()
            return self._pieces

    def foreign(self) -> list[Foreign]:
        """Files that were left out, as of the last look, and why."""
        with self._turn:
            folders = self._folders.values()
            found = [each for folder in folders for each in folder.foreign.values()]
            return sorted([*found, *self._overlaps], key=lambda each: each.path)

    def superseded(self) -> list[Piece]:
        """Fresh files, as of the last look, whose events another one holds as well."""
        return self._superseded

    def look_again(self) -> None:
        """Forget what was seen: a file was written again under its name."""
        with self._turn:
            self._folders.clear()
            self._pieces = None

    def dates(self) -> list[str]:
        """The dates there are, as of the last look, ascending."""
        with self._turn:
            return sorted(date for name in self._folders if (date := parse_date(name)))

    def through(self) -> int:
        """The last sequence number that the archive covers; 0 if it is empty."""
        pieces = self.pieces()
        return pieces[-1].last if pieces else 0

    def _look(self) -> bool:
        """Learn what changed. True if anything did."""
        # Fresh ones first: a file is sealed before the fresh ones it is made of are removed, so
        # that this order sees each event in one place at least.
        changed = self._look_into(FRESH)
        for name in self._date_folders():
            changed |= self._look_into(name)
        return changed

    def _date_folders(self) -> list[str]:
        try:
            with os.scandir(self.directory) as entries:
                names = [each.name for each in entries if parse_date(each.name) and each.is_dir()]
        except (FileNotFoundError, NotADirectoryError):
            names = []
        gone = self._folders.keys() - {*names, FRESH}
        return names + sorted(gone)

    def _look_into(self, name: str) -> bool:
        path = os.path.join(self.directory, name)
        try:
            changed_ns = os.stat(path).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return self._folders.pop(name, None) is not None
        folder = self._folders.get(name)
        if folder is None:
            folder = self._folders[name] = _Folder()
        elif folder.is_settled and folder.changed_ns == changed_ns:
            return False
        folder.is_settled = time.time_ns() - changed_ns > TICK_NS
        folder.changed_ns = changed_ns
        return _read_folder(path, folder, is_fresh=name == FRESH)

    def _sort(self) -> list[Piece]:
        order = arranged([p for folder in self._folders.values() for p in folder.pieces.values()])
        self._superseded, self._overlaps = order.superseded, order.overlaps
        return order.pieces


def arranged(found: Sequence[Piece]) -> Arranged:
    """What was found, wherever that was, in order. A sealed file goes before any fresh one."""
    order = Arranged([], [], [])
    _place(order, [each for each in found if not each.is_fresh])
    _place(order, [each for each in found if each.is_fresh])
    return order


def _place(order: Arranged, pieces: list[Piece]) -> None:
    """Add those that share no event with what is in the order already, or with one another."""
    kept: list[Piece] = []
    before = iter(order.pieces)
    placed = next(before, None)
    for piece in sorted(pieces, key=_by_range):
        while placed is not None and placed.last < piece.first:
            placed = next(before, None)
        if kept and piece.first <= kept[-1].last:
            _leave_out(order, piece, kept[-1])
        elif placed is not None and placed.first <= piece.last:
            _leave_out(order, piece, placed)
        else:
            kept.append(piece)
    order.pieces.extend(kept)
    order.pieces.sort(key=_by_range)


def _by_range(piece: Piece) -> tuple[int, int]:
    """The order of files; of those that begin alike the longest is first."""
    return piece.first, -piece.last


def _leave_out(order: Arranged, piece: Piece, other: Piece) -> None:
    if piece.is_fresh and other.first <= piece.first and piece.last <= other.last:
        order.superseded.append(piece)
    else:
        reason = f"its sequence numbers overlap those of {other.path}"
        order.overlaps.append(Foreign(piece.path, reason))


def _read_folder(path: str, folder: _Folder, *, is_fresh: bool) -> bool:
    """Bring what is known of a directory up to date. True if that changed anything."""
    try:
        names = set(os.listdir(path))
    except FileNotFoundError:
        names = set()
    known = folder.pieces.keys() | folder.foreign.keys()
    for name in known - names:
        folder.pieces.pop(name, None)
        folder.foreign.pop(name, None)
    added = [name for name in names - known if not name.startswith(UNFINISHED)]
    for name in added:
        found = _look_at(path, name, is_fresh=is_fresh)
        if isinstance(found, Piece):
            folder.pieces[name] = found
        elif found is not None:
            folder.foreign[name] = found
    return bool(added or known - names)


def _look_at(folder: str, name: str, *, is_fresh: bool) -> Piece | Foreign | None:
    path = os.path.join(folder, name)
    try:
        size = os.stat(path).st_size
    except FileNotFoundError:
        return None
    return named(name, path, size, is_fresh=is_fresh)


def named(name: str, path: str, size: int, *, is_fresh: bool) -> Piece | Foreign:
    """What a file is, by its name."""
    covered = parse_range(name)
    if covered is None:
        return Foreign(path, "its name is not that of a file of the archive")
    return Piece(*covered, path, is_fresh, size)


def overlapping(pieces: list[Piece], after: int, through: int) -> Iterator[Piece]:
    """Those that hold any of the events in (after, through]."""
    return (each for each in pieces if each.last > after and each.first <= through)

"""The high-water mark: how far the log had come, in a small file outside of it.

After each commit the number of the commit and of the last event are written here, in place and
without a sync, which costs a few microseconds. The commit itself was synced before, so the mark
is never ahead of a log that lost nothing. A killed broker leaves it exact. After a power cut it may
be as old as the kernel lets a page wait (half a minute, as a rule), but no older than the last
start.

Two slots, in sectors of their own: one is written at the start and at the end, and synced; the
other with each commit. A slot that a power cut tore is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from zlib import crc32

import apsw

from tocsin.store.files import AS_WAL, reading

MARK_SUFFIX = "-mark"
SYNCED_AT, NOTED_AT = 0, 512

_MAGIC = b"TocsMark"
_slot = Struct(">8sqqB")
_crc = Struct(">I")
_SLOT_BYTES = _slot.size + _crc.size
# As a write-ahead log: SQLite gives it the permissions of the database, and the first sync of a new
# one also syncs the directory.
_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | AS_WAL


@dataclass(frozen=True, slots=True)
class HighWater:
    """How far the log had come. `is_synced`: no commit was answered before the disk had it."""

    commits: int
    last_seq: int
    is_synced: bool = True

    def packed(self) -> bytes:
        slot = _slot.pack(_MAGIC, self.commits, self.last_seq, self.is_synced)
        return slot + _crc.pack(crc32(slot))


class MarkFile:
    """The mark of the one writer, open to be written."""

    def __init__(self, log_path: str, vfs: str | None) -> None:
        self._path = log_path + MARK_SUFFIX
        self._vfs = vfs or ""
        self._file: apsw.VFSFile | None = None

    def note(self, reached: HighWater) -> None:
        """For when the broker is killed. Called with every commit."""
        (self._file or self._open()).xWrite(reached.packed(), NOTED_AT)

    def sync(self, reached: HighWater) -> None:
        """For when the machine loses power."""
        file = self._file or self._open()
        file.xWrite(reached.packed(), SYNCED_AT)
        file.xWrite(reached.packed(), NOTED_AT)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)

    def close(self) -> None:
        if self._file is not None:
            self._file.xClose()
            self._file = None

    def _open(self) -> apsw.VFSFile:
        """Not at once: a full disk may have no room for a new file."""
        self._file = apsw.VFSFile(self._vfs, self._path, [_WRITE, 0])
        return self._file


def read_mark(log_path: str, vfs: str | None = None) -> HighWater | None:
    """The mark, or None if there is none that can be read."""
    with reading(log_path + MARK_SUFFIX, vfs) as (read, _):
        slots = [read(_SLOT_BYTES, at) for at in (SYNCED_AT, NOTED_AT)]
    found = [mark for slot in slots if (mark := _unpacked(slot)) is not None]
    return max(found, key=lambda mark: mark.commits, default=None)


def _unpacked(slot: bytes) -> HighWater | None:
    if len(slot) != _SLOT_BYTES or _crc.unpack(slot[-4:]) != (crc32(slot[:-4]),):
        return None
    magic, commits, last_seq, is_synced = _slot.unpack(slot[:-4])
    return HighWater(commits, last_seq, bool(is_synced)) if magic == _MAGIC else None

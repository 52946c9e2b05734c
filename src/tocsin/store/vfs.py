"""SimDisk: a disk in memory that loses power, refuses to sync and runs full when the test says so.

The shipped store runs on it unchanged. A write goes to what a program reads back at once, and to
what a power cut leaves only when the file is synced. Until then it is pending: `crash` keeps,
drops or tears each pending write on its own, as a disk that reorders its queue may.
"""

from __future__ import annotations

from random import Random
from typing import Any

import apsw

SECTOR_BYTES = 512

# SQLite on Unix syncs the directory too when it first syncs a new file of these kinds.
FLAGS_THAT_SYNC_DIRECTORY = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL

# A pending change: bytes at an offset, or (None) the file's new length.
Change = tuple[int, bytes | None]


class PowerCut(Exception):
    """The simulated machine has no power: the operation did not happen, nor will any other."""


class Content:
    """One file: as programs see it, as the disk has it, and what stands between the two."""

    __slots__ = ("known", "on_disk", "pending", "seen")

    def __init__(self) -> None:
        self.seen = bytearray()
        self.on_disk = bytearray()
        self.pending: list[Change] = []
        self.known = False  # the directory on disk has the file

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.on_disk, change)
        self.pending.clear()
        self.known = True

    def lose_power(self, random: Random | None) -> None:
        for change in self.pending:
            kept = _survivor(change, random) if random else None
            if kept is not None:
                _apply(self.on_disk, kept)
        self.pending.clear()
        self.seen = bytearray(self.on_disk)


def _apply(content: bytearray, change: Change) -> None:
    offset, data = change
    gap = offset - len(content)
    if gap > 0:
        content.extend(bytes(gap))
    if data is None:
        del content[offset:]
    else:
        content[offset : offset + len(data)] = data


def _survivor(change: Change, random: Random) -> Change | None:
    """What a power cut leaves of a change: all, nothing, or for a write a part from either end."""
    fate = random.random()
    if fate < 0.35:
        return None
    offset, data = change
    if fate < 0.6 or data is None or len(data) < 2:
        return change
    cut = random.randrange(1, len(data))
    if fate < 0.85:
        cut = cut // SECTOR_BYTES * SECTOR_BYTES
    return (offset, data[:cut]) if random.random() < 0.5 else (offset + cut, data[cut:])


class SimDisk(apsw.VFS):
    """Register one under a name, and open a Store with `vfs=` that name.

    Faults, all of which may be changed at any time: `cut_at` is the number of the operation (write,
    sync, truncate, delete; the first is 1) at which the power goes; `sync_fails` fails every sync;
    `bytes_max` is the room there is.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.operations = 0
        self.cut_at: int | None = None
        self.sync_fails = False
        self.bytes_max: int | None = None
        self.has_power = True
        self._files: dict[str, Content] = {}
        self._unlinked: dict[str, Content] = {}  # deleted; a power cut may undo it
        self._boots = 0
        super().__init__(name, "")

    def crash(self, random: Random | None) -> None:
        """The power goes and comes back. Connections from before can do nothing any more.

        Without `random`, nothing survives that was not synced.
        """
        for path, content in self._unlinked.items():
            if random is None or random.random() < 0.5:
                self._files.setdefault(path, content)
        self._unlinked.clear()
        for path in list(self._files):
            content = self._files[path]
            if not content.known and (random is None or random.random() < 0.5):
                del self._files[path]
            else:
                content.known = True
                content.lose_power(random)
        self.has_power = True
        self.cut_at = None
        self._boots += 1

    def size_bytes(self) -> int:
        return sum(len(content.seen) for content in self._files.values())

    def flip_bit(self, path: str, bit: int) -> None:
        """Change one bit of a file, on the disk and for readers."""
        content = self._files[path]
        for copy in (content.seen, content.on_disk):
            copy[bit // 8] ^= 1 << (bit % 8)

    def sync_file(self, path: str) -> None:
        """As if the kernel had written the file out by itself."""
        self._files[path].sync()

    def step(self, boot: int) -> None:
        """Count an operation that changes the disk, and let the power go if it is time."""
        self.operations += 1
        if self.operations == self.cut_at:
            self.has_power = False
        if not self.has_power or boot != self._boots:
            raise PowerCut(f"the power went at operation {self.operations}")

    def sync_directory(self) -> None:
        self._unlinked.clear()

    def has_room(self, more_bytes: int) -> bool:
        return self.bytes_max is None or self.size_bytes() + more_bytes <= self.bytes_max

    # What SQLite calls

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        flags[1] = flags[0]
        if path is None:
            return _SimFile(self, Content(), self._boots, syncs_directory=False)
        if path not in self._files:
            if not flags[0] & apsw.SQLITE_OPEN_CREATE:
                raise apsw.CantOpenError(path)
            self._files[path] = Content()
        syncs_directory = bool(flags[0] & FLAGS_THAT_SYNC_DIRECTORY)
        return _SimFile(self, self._files[path], self._boots, syncs_directory=syncs_directory)

    def xAccess(self, pathname: str, flags: int) -> bool:
        return pathname in self._files

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.step(self._boots)
        content = self._files.pop(filename, None)
        if content is not None and content.known and not syncdir:
            self._unlinked[filename] = content

    def xFullPathname(self, name: str) -> str:
        return name


class _SimFile:
    """An open file. Locks are granted to all: SQLite is told to be alone with the file."""

    __slots__ = ("_boot", "_content", "_disk", "_syncs_directory")

    def __init__(
        self, disk: SimDisk, content: Content, boot: int, *, syncs_directory: bool
    ) -> None:
        self._disk = disk
        self._content = content
        self._boot = boot
        self._syncs_directory = syncs_directory

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self._content.seen[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.step(self._boot)
        content = self._content
        written = bytes(data)
        grown = offset + len(written) - len(content.seen)
        if grown > 0 and not self._disk.has_room(grown):
            raise apsw.FullError("the simulated disk is full")
        _apply(content.seen, (offset, written))
        content.pending.append((offset, written))

    def xTruncate(self, newsize: int) -> None:
        self._disk.step(self._boot)
        _apply(self._content.seen, (newsize, None))
        self._content.pending.append((newsize, None))

    def xSync(self, flags: int) -> None:
        self._disk.step(self._boot)
        if self._disk.sync_fails:
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        if self._syncs_directory and not self._content.known:
            self._disk.sync_directory()
        self._content.sync()

    def xFileSize(self) -> int:
        return len(self._content.seen)

    def xClose(self) -> None:
        pass

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, ptr: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return SECTOR_BYTES

    def xDeviceCharacteristics(self) -> int:
        return 0

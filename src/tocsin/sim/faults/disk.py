"""FaultyDisk: the simulated disk, with a count of what its power cuts did to unsynced writes."""

from __future__ import annotations

from collections import Counter
from random import Random

from tocsin.store.vfs import Change, Content, SimDisk

Copy = tuple[bytes, bytes, list[Change], bool]


class FaultyDisk(SimDisk):
    """Loses power as its parent does; can also lose the program alone, with every write kept."""

    def __init__(self, name: str, seen: Counter[str]) -> None:
        super().__init__(name)
        self._seen = seen

    def crash(self, random: Random | None) -> None:
        unsynced = {
            path: (bytes(content.seen), bytes(content.on_disk))
            for path, content in self._files.items()
            if content.pending
        }
        super().crash(random)
        for path, (written, synced) in unsynced.items():
            content = self._files.get(path)
            left = b"" if content is None else bytes(content.seen)
            if left == synced:
                self._seen["unsynced writes lost"] += 1
            elif left == written:
                self._seen["unsynced writes kept"] += 1
            else:
                self._seen["unsynced writes torn"] += 1

    def copy(self) -> dict[str, Copy]:
        """All files, as they are for readers and on the disk."""
        return {
            path: (bytes(each.seen), bytes(each.on_disk), list(each.pending), each.known)
            for path, each in self._files.items()
        }

    def restore(self, files: dict[str, Copy]) -> None:
        """Put a copy back, in place of everything that is there."""
        self._files.clear()
        for path, (seen, on_disk, pending, known) in files.items():
            content = self._files[path] = Content()
            content.seen, content.on_disk = bytearray(seen), bytearray(on_disk)
            content.pending, content.known = list(pending), known
        self._unlinked.clear()
        self.kill()

    def file_bytes(self, path: str) -> int:
        """How much of a file is on the disk for good."""
        content = self._files[path]
        return min(len(content.seen), len(content.on_disk))

    def place_of(self, path: str, data: bytes) -> int:
        """Where a file has these bytes for good; -1 if it does not."""
        place = self._files[path].on_disk.find(data)
        return place if place + len(data) <= self.file_bytes(path) else -1

    def has_files(self, directory: str) -> bool:
        """True if anything was ever written there."""
        return any(path.startswith(f"{directory}/") for path in self._files)

    def kill(self) -> None:
        """The program ends and the machine runs on: what was written is there, synced or not."""
        self.has_power = True
        self.cut_at = None
        self._boots += 1

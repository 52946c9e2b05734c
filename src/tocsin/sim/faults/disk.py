"""FaultyDisk: the simulated disk, with a count of what its power cuts did to unsynced writes."""

from __future__ import annotations

from collections import Counter
from random import Random

from tocsin.store.vfs import SimDisk


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

    def has_files(self, directory: str) -> bool:
        """True if anything was ever written there."""
        return any(path.startswith(f"{directory}/") for path in self._files)

    def kill(self) -> None:
        """The program ends and the machine runs on: what was written is there, synced or not."""
        self.has_power = True
        self.cut_at = None
        self._boots += 1

"""DiskSpace: how much room the disk of the log has, and whether events are taken for it.

Below `log.free_bytes_min` publishers are refused (T403), while there is still room for what makes
room: cursors, ends of subscriptions, retention. The same when a commit met a full disk. Events are
taken again when there is more room than that, and a file of the largest event's size can be made.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.config import Settings
from tocsin.errors import DiskFull

LOOK_S: Final = 0.5
BACK_SHARE: Final = 1.1  # of `free_bytes_min`: else a byte more or less would open and close it
PROBE_NAME: Final = "space-probe"
MIB: Final = 1 << 20


class DiskSpace:
    """Looks at the disk twice a second, as long as the broker runs."""

    def __init__(self, port: BrokerPort, settings: Settings) -> None:
        self._own = port.own(internal("disk"))
        self._runtime = port.runtime
        self._directory = Path(settings.log.directory)
        self._event_bytes_max = settings.events.event_bytes_max
        self.free_bytes_min = settings.log.free_bytes_min
        self.free_bytes = 0
        self.reason: str | None = None
        """Why no events are taken; None if they are."""
        self._full_seen = 0
        self._look()

    def _look(self) -> None:
        if self._runtime.is_stopping:
            return
        with suppress(OSError):  # then it stays as it was; the log says what is wrong
            found = os.statvfs(self._directory)
            self.free_bytes = found.f_bavail * found.f_frsize
            self._judge()
        self._runtime.call_later(LOOK_S, self._look)

    def _judge(self) -> None:
        full_count = self._own.disk_full_count
        met_full, self._full_seen = full_count > self._full_seen, full_count
        if self.reason is None:
            if met_full or self.free_bytes < self.free_bytes_min:
                self._close()
        elif self.free_bytes >= self.free_bytes_min * BACK_SHARE and self._has_room():
            self.reason = None
            self._own.refuse_events(None)
            self._runtime.note("info", "the disk has room again: events are taken")
        else:
            self.reason = self._words()

    def _close(self) -> None:
        self.reason = self._words()
        self._own.refuse_events(self._refusal)
        self._runtime.note("error", f"no events are accepted: {self.reason}", code=DiskFull.code)

    def _refusal(self) -> DiskFull:
        return DiskFull(
            self.reason or self._words(),
            remedy="Free some space, keep less (log.retain_bytes), or lower log.free_bytes_min.",
        )

    def _words(self) -> str:
        free = f"{self.free_bytes / MIB:,.1f} MiB free"
        least = f"log.free_bytes_min is {self.free_bytes_min / MIB:,.1f} MiB"
        if self.free_bytes < self.free_bytes_min * BACK_SHARE:
            return f"there is too little room in {self._directory}: {free}, and {least}"
        return f"there is no room in {self._directory} ({free})"

    def _has_room(self) -> bool:
        """Also where a quota leaves less than the disk has."""
        probe = self._directory / PROBE_NAME
        try:
            descriptor = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._event_bytes_max)
            finally:
                os.close(descriptor)
        except OSError:
            return False
        finally:
            with suppress(OSError):
                probe.unlink()
        return True

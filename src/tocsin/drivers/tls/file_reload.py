"""FileReload: files of certificates, keys and rules are exchanged while the broker runs.

Certificates are looked at every few seconds, and all at a SIGHUP: rules only then, since they are
written by hand. What is new holds for new connections, and who was revoked is signed in no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tocsin.drivers.logger import WriteLog
from tocsin.errors import TocsinError

Stamp = tuple[int, int, int] | None


@dataclass(eq=False, slots=True)
class _Watched:
    """Files that belong together: a certificate and its key, authorities and their lists."""

    what: str
    paths: Sequence[str]
    load: Callable[[], None]
    loaded: tuple[Stamp, ...] = ()
    failed: tuple[Stamp, ...] = ()  # so they were when they could not be used
    complaint: str = ""
    when_asked: bool = False  # at a SIGHUP alone

    def stamps(self) -> tuple[Stamp, ...]:
        return tuple(_stamp(path) for path in self.paths)


class FileReload:
    """See the module. Begins with `start`."""

    def __init__(self, note: WriteLog, reload_s: float) -> None:
        self._note = note
        self._reload_s = reload_s
        self._watched: list[_Watched] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(
        self,
        what: str,
        paths: Sequence[str],
        load: Callable[[], None],
        *,
        when_asked: bool = False,
    ) -> None:
        """Call `load` when one of these files is another than before. They are loaded already."""
        watched = _Watched(what, [path for path in paths if path], load, when_asked=when_asked)
        watched.loaded = watched.stamps()
        self._watched.append(watched)

    @property
    def has_files(self) -> bool:
        return bool(self._watched)

    def start(self) -> None:
        if self._watched:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._reload_s, self._turn)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def complaints(self) -> list[str]:
        """Which files cannot be used; what was read before still holds."""
        return [each.complaint for each in self._watched if each.complaint]

    def look(self, *, is_asked: bool = True) -> None:
        """Load what has changed, now; by itself, of what waits for a SIGHUP nothing."""
        for each in self._watched:
            if each.when_asked and not is_asked:
                continue
            stamps = each.stamps()
            if stamps != each.loaded:
                self._load(each, stamps, is_final=each.when_asked)
            elif each.complaint:  # what could not be used was replaced by what was there before
                each.failed, each.complaint = (), ""

    def _turn(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._reload_s, self._turn)
        self.look(is_asked=False)

    def _load(self, each: _Watched, stamps: tuple[Stamp, ...], *, is_final: bool) -> None:
        try:
            each.load()
        except TocsinError as error:
            # A certificate and its key are two files: whoever looks between sees two that do not
            # fit. So it is a complaint if they are still the same at the next look.
            if (is_final or stamps == each.failed) and not each.complaint:
                each.complaint = f"{each.what} cannot be used: {error.problem}"
                self._note(
                    "error",
                    "a file that was exchanged cannot be used; what was there before still holds",
                    what=each.what,
                    code=error.code,
                    why=error.problem,
                    remedy=error.remedy,
                )
            each.failed = stamps
            return
        each.loaded, each.failed, each.complaint = stamps, (), ""
        self._note(
            "info", "a file was exchanged and is in use", what=each.what, files=list(each.paths)
        )


def _stamp(path: str) -> Stamp:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ctime_ns, found.st_size, found.st_ino  # also if its mode is another

"""ProfileWatch: keeps the aggregate profile fresh, in a thread of its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread

from tocsin.client.blackboard.link import Link
from tocsin.wire.blackboard.messages import Profile

POLL_S = 30.0
RETRY_S_MIN = 0.1
RETRY_S_MAX = 2.0
POLL_S_MIN = 1.0  # who answers sooner although nothing is new is asked no more often than this


class ProfileWatch:
    """Calls `on_profile` with each new profile, and `on_lost` each time that nobody answers."""

    def __init__(
        self,
        link: Link,
        on_profile: Callable[[Profile], None],
        on_lost: Callable[[Exception], None],
    ) -> None:
        self._link = link
        self._on_profile = on_profile
        self._on_lost = on_lost
        self._ended = Event()
        self._thread = Thread(target=self._run, name="tocsin-profile", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends soon; whoever closes the link wakes it."""
        self._ended.set()

    def _run(self) -> None:
        version: int | None = None
        pause_s = RETRY_S_MIN
        while not self._ended.is_set():
            asked_at = time.monotonic()
            try:
                wait_s = 0.0 if version is None else POLL_S
                profile = self._link.profile(after=version, wait_s=wait_s)
            except Exception as error:  # whatever a link does, a workflow goes on
                if self._ended.is_set():
                    return
                self._on_lost(error)
                self._ended.wait(pause_s)
                pause_s = min(pause_s * 2, RETRY_S_MAX)
                # A broker that was away may count its versions from the start.
                version = None
                continue
            pause_s = RETRY_S_MIN
            if profile.version != version:
                self._on_profile(profile)
            elif time.monotonic() - asked_at < POLL_S_MIN:
                self._ended.wait(POLL_S_MIN)
            version = profile.version

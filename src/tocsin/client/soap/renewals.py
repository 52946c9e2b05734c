"""Leases renewed in the background, at four fifths of their time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread
from typing import Final

from tocsin.client.soap.faults import is_gone
from tocsin.client.soap.message import Ended
from tocsin.errors import SoapRefused, TocsinError

RENEW_AT: Final = 0.8
AGAIN_S_MIN: Final = 0.5
AGAIN_S_MAX: Final = 60.0


@dataclass(slots=True)
class Lease:
    """Something granted until a moment of the monotonic clock."""

    renew: Callable[[], float | None]  # asks for more; how long was granted, None for ever
    lapse: Callable[[Ended], None]  # called when it is over
    ends_at_s: float
    due_s: float
    again_s: float = AGAIN_S_MIN


class Renewals:
    """One thread for all leases of a client, started with the first."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._leases: list[Lease] = []
        self._thread: Thread | None = None
        self._closed = False

    def add(
        self,
        lease_s: float,
        renew: Callable[[], float | None],
        lapse: Callable[[Ended], None],
    ) -> Lease:
        """Renew what was granted for so long."""
        now_s = time.monotonic()
        lease = Lease(renew, lapse, now_s + lease_s, now_s + lease_s * RENEW_AT)
        with self._changed:
            self._leases.append(lease)
            if self._thread is None and not self._closed:
                self._thread = Thread(target=self._run, name="tocsin-renewals", daemon=True)
                self._thread.start()
            self._changed.notify()
        return lease

    def granted(self, lease: Lease, lease_s: float | None) -> None:
        """It was renewed by other means; None is for ever."""
        if lease_s is None:
            self.remove(lease)
            return
        now_s = time.monotonic()
        with self._changed:
            lease.ends_at_s = now_s + lease_s
            lease.due_s = now_s + lease_s * RENEW_AT
            lease.again_s = AGAIN_S_MIN
            self._changed.notify()

    def remove(self, lease: Lease) -> None:
        """It needs no renewing any more."""
        with self._changed:
            if lease in self._leases:
                self._leases.remove(lease)

    def close(self) -> None:
        """End the thread; what it is just asking may take until its own time is up."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            lease = self._next()
            if lease is None:
                return
            self._renew(lease)

    def _next(self) -> Lease | None:
        with self._changed:
            while not self._closed:
                now_s = time.monotonic()
                first = min(self._leases, key=lambda lease: lease.due_s, default=None)
                if first is not None and first.due_s <= now_s:
                    return first
                self._changed.wait(None if first is None else first.due_s - now_s)
        return None

    def _renew(self, lease: Lease) -> None:
        try:
            self.granted(lease, lease.renew())
        except TocsinError as error:
            gone = isinstance(error, SoapRefused) and is_gone(error)
            now_s = time.monotonic()
            if gone or now_s >= lease.ends_at_s:
                self.remove(lease)
                lease.lapse(Ended("NotRenewed", error.problem))
                return
            with self._changed:
                lease.due_s = min(now_s + lease.again_s, max(lease.ends_at_s, now_s + AGAIN_S_MIN))
                lease.again_s = min(lease.again_s * 2, AGAIN_S_MAX)

"""KeptUp: what subscriptions over a connection have in common.

In force when it was begun, as one in process is; found again when the connection breaks.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Self

from tocsin.client.batching import COME_BACK
from tocsin.client.blackboard.link import Delivered
from tocsin.client.transport.address import Address
from tocsin.client.transport.connection import cannot_reach
from tocsin.errors import BrokerRefused, CannotReachBroker, TocsinError

BEGIN_S_MAX = 10.0  # a broker that takes longer to answer is as good as away
RETRY_S = 0.5


def is_away(error: TocsinError) -> bool:
    """True if the broker is not there, or not ready: asked again later, it may be."""
    if isinstance(error, BrokerRefused):
        return error.status in COME_BACK
    return isinstance(error, CannotReachBroker)


class KeptUp(ABC):
    """Goes on after the last message it handed out when the connection broke."""

    def __init__(self, address: Address, concepts: tuple[str, ...], after: int | None) -> None:
        self._address = address
        self._concepts = concepts
        self._after = after
        self._in_force = False
        self._early: list[Delivered] = []
        self._closed = False

    @abstractmethod
    def _read(self, wait_s: float) -> list[Delivered]:
        """What comes next, connected first if need be; `_in_force` once the broker says so."""

    @abstractmethod
    def _hang_up(self) -> None:
        """Close the connection; the next read opens another."""

    @abstractmethod
    def close(self) -> None:
        """End it, from any thread."""

    def begun(self) -> Self:
        """Itself, once the broker has it; raises what it refuses, and CannotReachBroker."""
        deadline = time.monotonic() + BEGIN_S_MAX
        try:
            while not self._in_force:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise cannot_reach(self._address, "it does not answer")
                self._early += self._read(left_s)
        except BaseException:
            self._hang_up()
            raise
        return self

    def take(self, wait_s: float) -> list[Delivered]:
        """Raises what the broker refuses; one that is away is asked again, in time or next time."""
        if self._early:
            came, self._early = self._early, []
            return came
        deadline = time.monotonic() + wait_s
        while not self._closed:
            try:
                came = self._read(max(0.001, deadline - time.monotonic()))
            except TocsinError as error:
                self._hang_up()
                if not is_away(error):
                    raise
                time.sleep(max(0.0, min(RETRY_S, deadline - time.monotonic())))
                came = []
            if came or time.monotonic() >= deadline:
                return came
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Memory: how many bytes the tables of discovery hold, as they are in messages, and for whom.

Limits of number do not bound memory where one entry may have 256 texts of 4,096 characters. A
request in a waiting list is one that is counted already, so those lists have no bytes of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.wire.link.discovery_messages import DiscoveryMessage, Result

RESOURCES: Final = "resources"  # advertisements of other brokers
REQUESTS: Final = "requests"  # that passed and are not forgotten yet, and continuous ones
RESULTS: Final = "results"  # that are shared, or that continuous requests were told of
TABLES: Final = (RESOURCES, REQUESTS, RESULTS)

_encode = msgspec.msgpack.Encoder().encode


def size_of(message: DiscoveryMessage | Result) -> int:
    """In bytes."""
    return len(_encode(message))


def limits(options: DiscoveryOptions) -> dict[str, int]:
    """The most of each table."""
    return {
        RESOURCES: options.resource_bytes_max,
        REQUESTS: options.request_bytes_max,
        RESULTS: options.result_bytes_max,
    }


class Memory:
    """What the tables of one broker hold."""

    def __init__(self) -> None:
        self.held = dict.fromkeys(TABLES, 0)
        self.refused = dict.fromkeys(TABLES, 0)  # how often there was no room
        self._requests_of: Counter[str] = Counter()  # by the neighbour that they came from
        # Forgets the answer that has been shared for the longest time; False if there is none.
        self.forget_an_answer: Callable[[], bool] = _nothing_to_forget

    def add(self, table: str, size: int) -> None:
        """So much more; or less, if it is negative."""
        self.held[table] += size

    def add_request(self, neighbour: str, size: int) -> None:
        self.add(REQUESTS, size)
        self._requests_of[neighbour] += size
        if not self._requests_of[neighbour]:
            del self._requests_of[neighbour]

    def problem_of_request(self, neighbour: str, size: int, options: DiscoveryOptions) -> str:
        """Why there is no room for it, if there is none. Clients here have no share of their own:
        their number is limited elsewhere."""
        problem = ""
        if self.held[REQUESTS] + size > options.request_bytes_max:
            problem = "too many bytes of requests"
        elif neighbour and (
            self._requests_of[neighbour] + size > options.request_bytes_per_neighbour_max
        ):
            problem = "too many bytes of requests over one link"
        if problem:
            self.refused[REQUESTS] += 1
        return problem

    def has_room_for_result(self, size: int, options: DiscoveryOptions) -> bool:
        """True if there is room, perhaps because answers are not shared any more."""
        while self.held[RESULTS] + size > options.result_bytes_max:
            if not self.forget_an_answer():
                self.refused[RESULTS] += 1
                return False
        return True


def _nothing_to_forget() -> bool:
    return False

"""Link: the way between publishers, the blackboard and subscribers, whatever it is made of.

Paper 004, section 4.1: all communication is behind an interface into which anything can be plugged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, Self

from tocsin.wire.blackboard.messages import Message, Profile


class Delivered(NamedTuple):
    """A message with the pairs that were asked for, and its place in the log to go on after."""

    seq: int
    message: Message


class Subscription(Protocol):
    """What one subscriber gets. For one thread at a time; `close` may come from another."""

    def take(self, wait_s: float) -> list[Delivered]:
        """What came, oldest first; nothing if nothing came in that time."""

    def close(self) -> None:
        """End it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Link(Protocol):
    """Both sides of a blackboard. `publish` and `profile` may be in use by one thread each.

    What goes wrong is a TocsinError: CannotReachBroker if nobody is there, BrokerRefused if it is
    about what was said.
    """

    @property
    def name(self) -> str:
        """Where it leads to, for words and for files that wait."""

    @property
    def is_remote(self) -> bool:
        """True if it may be away, so that its last profile is worth keeping."""

    def publish(self, messages: Sequence[Message]) -> int:
        """Hand over messages; how many were new. They are kept when this returns."""

    def profile(self, *, after: int | None = None, wait_s: float = 0.0) -> Profile:
        """The aggregate profile: at once, or when its version is not `after`, or after the wait."""

    def subscribe(self, concepts: Iterable[str], *, after: int | None = None) -> Subscription:
        """Messages with any of these concepts, from now on or from a place in the log.

        In force when this returns: what is published from then on comes. What cannot be asked for,
        and a broker that is away, is raised here; one that goes away later is found again.
        """

    def interrupt(self) -> None:
        """Wake whoever waits here, as if the connection had broken."""

    def reopened(self) -> Link:
        """The same link for a forked child, which must not use its parent's."""

    def close(self) -> None:
        """Close what is open; the next use opens it again."""

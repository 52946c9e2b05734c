"""Channels: between two cores of discovery everything arrives whole, in order and once (A6).

A channel begins on each side when that side is told of the link. What is on its way when a link
breaks is lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tocsin.wire.link.discovery_messages import DiscoveryMessage

_Link = tuple[str, str]  # sender, receiver
_Messages = deque[DiscoveryMessage]


class Channels:
    """Of all brokers of one overlay."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        self._fail = fail
        self._sent: dict[_Link, _Messages] = {}  # since the sender was last told of the link
        self._taken: dict[_Link, _Messages] = {}  # where the receiver takes its messages from

    def up(self, broker: str, neighbour: str) -> None:
        """A broker is told of a link."""
        self._sent[broker, neighbour] = deque()
        self._taken.pop((neighbour, broker), None)

    def sent(self, sender: str, receiver: str, message: DiscoveryMessage) -> None:
        if (sender, receiver) not in self._sent:
            self._fail(f"7: {sender} sends to {receiver}, with which it has no link")
        else:
            self._sent[sender, receiver].append(message)

    def received(self, sender: str, receiver: str, message: DiscoveryMessage) -> None:
        link = sender, receiver
        if link not in self._taken:
            # Of the latest link: a side that has another one by now has said hello to this one.
            self._taken[link] = self._sent.get(link, deque())
        messages = self._taken[link]
        if not messages:
            self._fail(f"7: {receiver} got {message}, which {sender} has not sent")
        elif (first := messages.popleft()) != message:
            self._fail(f"7: {receiver} got {message} from {sender}, and not {first}")

    def waiting(self, sender: str, receiver: str) -> int:
        """How many messages are on their way over the present link."""
        return len(self._sent.get((sender, receiver), ()))

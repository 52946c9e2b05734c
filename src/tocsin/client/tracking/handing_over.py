"""Messages to a link, where one that is refused does not keep the others back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tocsin.client.blackboard.link import Link
from tocsin.errors import BrokerRefused, TocsinError, UnknownConcept
from tocsin.wire.blackboard.messages import Message

# Answers that speak about one of the messages, not about the broker.
_ABOUT_A_MESSAGE = frozenset({400, 413, 415, 422})


def hand_over(
    link: Link, messages: Sequence[Message], refused: Callable[[TocsinError], None]
) -> int:
    """How many were new to it. `refused` is told of each that it will not have; what stands in the
    way of all of them is raised."""
    if not messages:
        return 0
    try:
        return link.publish(messages)
    except (BrokerRefused, UnknownConcept) as error:
        if isinstance(error, BrokerRefused) and error.status not in _ABOUT_A_MESSAGE:
            raise
        if len(messages) == 1:
            refused(error)
            return 0
    middle = len(messages) // 2
    first = hand_over(link, messages[:middle], refused)
    return first + hand_over(link, messages[middle:], refused)

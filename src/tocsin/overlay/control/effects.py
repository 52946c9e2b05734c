"""What the core of control messages asks of whoever runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tocsin.event.control_topic import ControlTopic
from tocsin.wire.link.messages import Control


@dataclass(frozen=True, slots=True)
class Send:
    """Send the message to this neighbour, if there is room for it."""

    neighbour: str
    message: Control


@dataclass(frozen=True, slots=True)
class Deliver:
    """It has arrived where it was meant for, or at one of these places."""

    topic: ControlTopic
    message: Control


Effect = Send | Deliver


class Ways(Protocol):
    """Where other brokers are."""

    @property
    def version(self) -> int:
        """Another one whenever some broker is reached otherwise than before."""

    def ways_to(self, broker: str) -> list[str]:
        """The neighbours behind which it is; several only while there is a cycle."""


class NoWays:
    """Of a broker without links."""

    version = 0

    def ways_to(self, broker: str) -> list[str]:
        return []

"""What the SOAP services of a broker are given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from tocsin.access.decision import Action
from tocsin.access.session import Session
from tocsin.broker.effects import Ended
from tocsin.broker.log import Page, StoreReader
from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.latest import Reading
from tocsin.event.stored import Stored
from tocsin.event.topic import TopicPattern
from tocsin.services.soap.consumers import ConsumerRules
from tocsin.services.soap.message_sign_in import MessageSignIn
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wstopics.tree import TopicTree


class Topics(Protocol):
    """The topics that there are, as far as the broker has seen them of late."""

    def tree(self) -> TopicTree: ...

    def announce(self, topic: TopicName) -> None:
        """Somebody will publish on this."""

    def look_back(
        self, head: int, read: Callable[[Callable[[StoreReader], Page]], Awaitable[Page]]
    ) -> Awaitable[None]:
        """Find those of the last events in the log."""


def topics_for(port: BrokerPort, session: Session, topics: Topics) -> TopicTree:
    """Those on which the session may publish, or get or read anything."""
    port.check(session, Action.READ, "topics")
    readable = port.readable(session, "topics")
    return topics.tree() if readable is None else topics.tree().part(readable.has_topic)


@dataclass(frozen=True, slots=True)
class SoapOptions:
    """Limits that the operator sets."""

    event_limits: Limits
    pull_points_max: int
    pull_point_backlog: int
    pull_wait_s_max: float
    redeliver_s: float


@dataclass(frozen=True, slots=True)
class SoapContext:
    """The broker, and what is known beside it."""

    port: BrokerPort
    options: SoapOptions
    consumers: ConsumerRules
    topics: Topics
    latest: Callable[[TopicPattern, Reading], Awaitable[Stored | None]]  # on a topic, by a reading
    on_ended: Callable[[Callable[[Ended], None]], None]  # calls it when a subscription ends
    security: MessageSignIn | None = None  # None: nobody signs in, here or elsewhere

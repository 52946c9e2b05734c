"""What a Web-services consumer gets: messages, and the end of a subscription."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.wire.soap.topics import TopicName


@dataclass(frozen=True, slots=True)
class Message:
    """One notification. `payload` is one XML element as it was sent, `envelope` what carried it.

    `topic` is the path of local names; `topic_name` is the expression with its namespaces.
    """

    payload: bytes
    topic: str = ""
    action: str | None = None
    producer: str | None = None
    id: str | None = None
    envelope: bytes = field(default=b"", repr=False)
    topic_name: TopicName | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a subscription is over: SourceShuttingDown, DeliveryFailure, ..., and in words."""

    status: str
    reason: str = ""

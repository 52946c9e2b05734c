"""The messages of the producer/consumer protocol, as its paper has them.

How they are written and read is in `minimal_wire`, with the choices that were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


class NotInThePaper(Exception):
    """The peer said something that a reader of the paper does not understand."""


class Failed(Exception):
    """The peer answered Failure; the words are its ReturnDetail."""


@dataclass(frozen=True)
class Value:
    """One value of an event, or one parameter (which has no accuracy)."""

    text: str
    units: str | None = None
    accuracy: str | None = None


@dataclass(frozen=True)
class Content:
    """An event (section 3), or the parameters of one: a named set of names and values."""

    name: str
    namespace: str
    values: Mapping[str, Value]

    def text(self, name: str) -> str:
        """The value of one pair, without its attributes."""
        return self.values[name].text


@dataclass(frozen=True)
class SubscribeRequest:
    request_id: str
    subscription_id: str
    asked: Content


@dataclass(frozen=True)
class SubscribeReply:
    request_id: str
    success: bool
    detail: str | None = None
    subscription_id: str | None = None


@dataclass(frozen=True)
class UnsubscribeRequest:
    request_id: str
    subscription_id: str


@dataclass(frozen=True)
class UnsubscribeReply:
    request_id: str
    success: bool
    detail: str | None = None


@dataclass(frozen=True)
class Event:
    subscription_id: str
    content: Content | None
    error: str | None = None
    error_detail: str | None = None


@dataclass(frozen=True)
class QueryRequest:
    request_id: str
    asked: Content


@dataclass(frozen=True)
class QueryReply:
    request_id: str
    success: bool
    detail: str | None = None
    content: Content | None = None


@dataclass(frozen=True)
class EventNamesRequest:
    request_id: str


@dataclass(frozen=True)
class EventNamesReply:
    request_id: str
    success: bool
    detail: str | None = None
    names: tuple[tuple[str, str], ...] = ()  # (name, namespace), as the attributes have them


Request: TypeAlias = SubscribeRequest | UnsubscribeRequest | QueryRequest | EventNamesRequest
Reply: TypeAlias = SubscribeReply | UnsubscribeReply | QueryReply | EventNamesReply
Message: TypeAlias = Request | Reply | Event

REPLY_TO: Mapping[type, type] = {
    SubscribeRequest: SubscribeReply,
    UnsubscribeRequest: UnsubscribeReply,
    QueryRequest: QueryReply,
    EventNamesRequest: EventNamesReply,
}

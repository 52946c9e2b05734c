"""A link for an address: http and https, ws and wss."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from tocsin.client.blackboard.http_link import HttpLink
from tocsin.client.blackboard.link import Link, Subscription
from tocsin.client.blackboard.websocket_link import WebSocketLink
from tocsin.client.transport.address import Address
from tocsin.credentials.sign_in import SignIn
from tocsin.errors import TocsinError
from tocsin.wire.blackboard.messages import Message, Profile


def open_link(address: str | Address | None = None, **sign_in: Unpack[SignIn]) -> Link:
    """The blackboard of the broker there, at TOCSIN_BROKER, or on this machine; BadSetting if the
    address is none. Nothing is connected before it is used."""
    if isinstance(address, str) and address.startswith(("ws://", "wss://")):
        return WebSocketLink(address, **sign_in)
    return HttpLink(address, **sign_in)


def link_or_unavailable(address: str | None = None, **sign_in: Unpack[SignIn]) -> Link:
    """The same for callers that must not fail: a bad address, or credentials that cannot be used,
    are reported when the link is used."""
    try:
        return open_link(address, **sign_in)
    except TocsinError as error:
        return UnavailableLink(address or "", error)


class UnavailableLink:
    """The link for an address that is not valid: every use raises why."""

    is_remote = True

    def __init__(self, name: str, error: TocsinError) -> None:
        self.name = name
        self._error = error

    def publish(self, messages: Sequence[Message]) -> int:
        raise self._error

    def profile(self, *, after: int | None = None, wait_s: float = 0.0) -> Profile:
        raise self._error

    def subscribe(self, concepts: Iterable[str], *, after: int | None = None) -> Subscription:
        raise self._error

    def interrupt(self) -> None:
        """Nobody waits here."""

    def reopened(self) -> UnavailableLink:
        return self

    def close(self) -> None:
        """Nothing is open."""

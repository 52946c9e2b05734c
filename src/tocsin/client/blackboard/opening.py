"""A link for an address: http and https, ws and wss."""

from __future__ import annotations

from tocsin.client.blackboard.http_link import HttpLink
from tocsin.client.blackboard.link import Link
from tocsin.client.blackboard.nowhere import Nowhere
from tocsin.client.blackboard.websocket_link import WebSocketLink
from tocsin.errors import TocsinError


def open_link(address: str | None = None) -> Link:
    """The blackboard of the broker there, at TOCSIN_BROKER, or on this machine; BadSetting if the
    address is none. Nothing is connected before it is used."""
    if address is not None and address.startswith(("ws://", "wss://")):
        return WebSocketLink(address)
    return HttpLink(address)


def link_or_nowhere(address: str | None = None) -> Link:
    """The same for who must not fail: an address that is none leads nowhere, and says so there."""
    try:
        return open_link(address)
    except TocsinError as error:
        return Nowhere(address or "", error)

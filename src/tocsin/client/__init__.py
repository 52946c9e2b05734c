"""Publish and consume from Python: two lines to publish, three to consume.

    Publisher().publish("lead/ohio/radar", {"load5": 7})

    for event in Consumer("topic lead/**"):
        print(event)

WseClient and WsntClient do the same by WS-Eventing and WS-Notification. Resources registers
machines and services, and finds them.

Names are loaded on use, so that a program that only publishes does not pay for the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tocsin.client.consumer import AsyncConsumer, Consumer
    from tocsin.client.incoming.consumed_event import ConsumedEvent
    from tocsin.client.publisher import AsyncPublisher, Publisher
    from tocsin.client.resources import AsyncResources, Resources
    from tocsin.client.soap.message import Message
    from tocsin.client.soap.security import UsernameToken, X509Signature
    from tocsin.client.wse import WseClient
    from tocsin.client.wsnt import WsntClient

__all__ = [
    "AsyncConsumer",
    "AsyncPublisher",
    "AsyncResources",
    "ConsumedEvent",
    "Consumer",
    "Message",
    "Publisher",
    "Resources",
    "UsernameToken",
    "WseClient",
    "WsntClient",
    "X509Signature",
]

_HOMES = {
    "AsyncConsumer": "consumer",
    "AsyncPublisher": "publisher",
    "AsyncResources": "resources",
    "ConsumedEvent": "incoming.consumed_event",
    "Consumer": "consumer",
    "Message": "soap.message",
    "Publisher": "publisher",
    "Resources": "resources",
    "UsernameToken": "soap.security",
    "WseClient": "wse",
    "WsntClient": "wsnt",
    "X509Signature": "soap.security",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)

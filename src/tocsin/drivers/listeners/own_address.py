"""OwnAddresses: where this process listens, and whether a sink leads back to it: what is sent there
would come in again, and be sent again."""

from __future__ import annotations

import re
import socket
from ipaddress import IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

from tocsin.broker.delivery.address import PORTS, SinkAddress
from tocsin.broker.delivery.trust import is_this_machine
from tocsin.config import Settings
from tocsin.errors import SinkRefused

ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})

_TAKE_EVENTS: Final = frozenset({"soap", "axis2", "wsman", "onvif", "events", "gma", "blackboard"})


class OwnAddresses:
    """What the settings say, and what the listeners got once they are open."""

    def __init__(self, settings: Settings) -> None:
        self._http = settings.http
        self._origin = settings.delivery.origin
        self.http = settings.http.address  # with the port that it really got, once it is open
        self.listeners: dict[str, str] = {}  # by name, once they are open

    @property
    def origin(self) -> str:
        """How this broker names itself to webhooks."""
        return self._origin or self.http

    @property
    def url(self) -> str:
        return f"{self._http.scheme}://{self.http}"

    def base(self, host: str) -> str:
        """The start of the addresses that a client is given who reached us by this `Host`."""
        return self._http.public_url.rstrip("/") or f"{self._http.scheme}://{host or self.http}"

    def handshake(self, subscription_id: str, token: str) -> str:
        """Where a webhook may answer later whether it wants events."""
        base = f"{self._http.scheme}://{self.origin}"
        return f"{base}/subscriptions/{subscription_id}/handshake?token={token}"

    def check_not_own(self, sink: SinkAddress, reached_as: str = "") -> None:
        """Raise SinkRefused if the sink is this broker. `reached_as` is how whoever asks calls it:
        the start of a URL."""
        known = (self._http.public_url, reached_as)
        if any(_is_listener(each, sink) for each in self.listeners.values()) or any(
            _is_below(url, sink) for url in known if url
        ):
            raise SinkRefused(
                "that is this broker itself, and it would deliver to itself for ever",
                remedy="Name the consumer's own address, or that of a message box.",
            )


def _is_listener(listener: str, sink: SinkAddress) -> bool:
    own, _, port = listener.rpartition(":")
    own = own.strip("[]")
    if str(sink.port) != port:
        return False
    if sink.host == own or sink.host.removesuffix(".") == socket.gethostname().lower():
        return True
    if _is_loopback(sink.host):
        return own in ANY_ADDRESS or _is_loopback(own)
    return own in ANY_ADDRESS and _is_address_of_this_machine(sink.host)


def _is_loopback(host: str) -> bool:
    if is_this_machine(host):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address_of_this_machine(host: str) -> bool:
    """Only an address of its own can be bound to. Names are not looked up here."""
    try:
        number = ip_address(host)
    except ValueError:
        return False
    family = socket.AF_INET6 if isinstance(number, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _is_below(url: str, sink: SinkAddress) -> bool:
    """True if the sink is where this URL leads, at a path that takes events here. A proxy may have
    other services at the same host and port."""
    try:
        parts = urlsplit(url)
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        return False
    start = parts.path.rstrip("/") + "/"
    if (parts.hostname, port) != (sink.host, sink.port) or not sink.target.startswith(start):
        return False
    return re.split("[/?]", sink.target[len(start) :], maxsplit=1)[0] in _TAKE_EVENTS

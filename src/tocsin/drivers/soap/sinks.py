"""Consumers that we may send to, judged when somebody subscribes.

No Web-services specification has a way to ask a consumer whether it wants what it is sent. So it
must be on this machine, in the operator's list of trusted hosts, or where the request came from:
whoever subscribes its own address has said that it wants it.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from tocsin.config import is_loopback
from tocsin.delivery.trust import (
    Sink,
    address_is_listed,
    is_trusted,
    name_is_listed,
    parse_sink,
    why_refused,
)
from tocsin.errors import SinkRefused

if TYPE_CHECKING:
    from tocsin.drivers.node import Node


def is_this_machine(host: str) -> bool:
    """True for the name that always leads back to where it is said (RFC 6761)."""
    name = host.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost")


def _is_ourselves(node: Node, sink: Sink) -> bool:
    own_host, _, own_port = node.address.rpartition(":")
    if str(sink.port) != own_port:
        return False
    own = own_host.strip("[]")
    is_near = is_this_machine(sink.host) or sink.host.startswith("127.") or sink.host == "::1"
    return sink.host == own or (is_near and is_loopback(node.address))


def check_consumer(node: Node, address: str, peer: str) -> None:
    """Raise BadSubscription or SinkRefused if nothing may be sent there."""
    sink = parse_sink(address, soap_tcp=True)
    host = sink.host
    rules = node.rules
    if _is_ourselves(node, sink):
        raise SinkRefused(
            "that is this broker itself, and it would hear itself for ever",
            remedy="Name the consumer's own address, or that of a message box.",
        )
    try:
        # A name is judged when it is looked up, at each delivery; this one needs no looking up.
        number = ip_address("127.0.0.1" if is_this_machine(host) else host)
    except ValueError:
        number = None
    is_listed = name_is_listed(host, rules.trusted)
    if number is not None and not (is_listed or address_is_listed(number, rules.trusted)):
        kind = why_refused(number, allow_private=rules.allow_private)
        if kind is not None:
            raise SinkRefused(
                f"{host} is a {kind} address, and the broker may not send there",
                remedy="Name a public address, or have the operator add it to delivery.trusted.",
            )
    if not is_trusted(host, rules.trusted) and host != peer.rpartition(":")[0].strip("[]"):
        raise SinkRefused(
            f"{host} is neither trusted nor where the subscription came from",
            remedy="Subscribe from the consumer's own host, or have the operator add it to "
            "delivery.trusted.",
        )

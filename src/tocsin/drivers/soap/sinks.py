"""Consumers that we may send to, judged when somebody subscribes.

No Web-services specification has a way to ask a consumer whether it wants what it is sent. So it
must be on this machine, in the operator's list of trusted hosts, or where the request came from:
whoever subscribes its own address has said that it wants it.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from tocsin.broker.delivery.trust import (
    address_is_listed,
    is_trusted,
    name_is_listed,
    parse_sink,
    why_refused,
)
from tocsin.drivers.own_address import check_not_ourselves, is_this_machine
from tocsin.errors import SinkRefused

if TYPE_CHECKING:
    from tocsin.drivers.node import Node


def check_consumer(node: Node, address: str, peer: str, reached_as: str = "") -> None:
    """Raise BadSubscription or SinkRefused if nothing may be sent there."""
    sink = parse_sink(address, soap_tcp=True)
    host = sink.host
    rules = node.rules
    check_not_ourselves(node, sink, reached_as)
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

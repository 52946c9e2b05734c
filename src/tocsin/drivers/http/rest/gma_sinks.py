"""Consumers of performance events that we may send to, judged when somebody subscribes them.

Their protocol has no way to ask a consumer whether it wants what somebody else subscribed for it,
and whoever accepts a connection may take it for one that it must serve. So it must be on this
machine, or in the operator's list of trusted hosts.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from tocsin.broker.delivery.trust import (
    Sink,
    address_is_listed,
    is_this_machine,
    is_trusted,
    name_is_listed,
    why_refused,
)
from tocsin.drivers.own_address import check_not_ourselves
from tocsin.errors import SinkRefused

if TYPE_CHECKING:
    from tocsin.drivers.node import Node


def check_performance_consumer(node: Node, sink: Sink) -> None:
    """Raise SinkRefused if nothing may be sent there."""
    host, rules = sink.host, node.rules
    check_not_ourselves(node, sink)
    if not is_trusted(host, rules.trusted):
        raise SinkRefused(
            f"{host} is not trusted, and a gma sink cannot be asked whether it wants events",
            remedy="Have the operator add it to delivery.trusted, or let the consumer subscribe "
            "at the broker's frames listener.",
        )
    try:
        # A name is judged when it is looked up, at each delivery; this one needs no looking up.
        number = ip_address("127.0.0.1" if is_this_machine(host) else host)
    except ValueError:
        return
    if name_is_listed(host, rules.trusted) or address_is_listed(number, rules.trusted):
        return
    kind = why_refused(number, allow_private=rules.allow_private)
    if kind is not None:
        raise SinkRefused(
            f"no event may be pushed to {host}: the address is {kind}",
            remedy="Allow it with delivery.trusted, or let the consumer subscribe at the "
            "broker's frames listener.",
        )

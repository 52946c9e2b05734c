"""Consumers that we may send to, judged when somebody subscribes.

No Web-services specification has a way to ask a consumer whether it wants what it is sent. So it
must be on this machine, in the operator's list of trusted hosts, or where the request came from:
whoever subscribes its own address has said that it wants it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address

from tocsin.broker.delivery.trust import (
    Sink,
    SinkRules,
    address_is_listed,
    is_this_machine,
    is_trusted,
    name_is_listed,
    parse_sink,
    why_refused,
)
from tocsin.errors import SinkRefused


@dataclass(frozen=True, slots=True)
class ConsumerRules:
    """Who may be sent to. `check_not_ourselves` raises SinkRefused for an address of this broker;
    its second argument is how whoever asks calls the broker: the start of a URL."""

    sinks: SinkRules
    check_not_ourselves: Callable[[Sink, str], None]

    def check(self, address: str, peer: str, reached_as: str = "") -> None:
        """Raise BadSubscription or SinkRefused if nothing may be sent there."""
        sink = parse_sink(address, soap_tcp=True)
        host = sink.host
        rules = self.sinks
        self.check_not_ourselves(sink, reached_as)
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
                    remedy="Name a public address, or have the operator add it to "
                    "delivery.trusted.",
                )
        if not is_trusted(host, rules.trusted) and host != peer.rpartition(":")[0].strip("[]"):
            raise SinkRefused(
                f"{host} is neither trusted nor where the subscription came from",
                remedy="Subscribe from the consumer's own host, or have the operator add it to "
                "delivery.trusted.",
            )

"""Consumers that we may send to, judged when somebody subscribes.

No Web-services specification has a way to ask a consumer whether it wants what it is sent. So it
must be on this machine, in the operator's list of trusted hosts, or where the request came from:
whoever subscribes its own address has said that it wants it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.sinks import Sink, Sinks
from tocsin.broker.delivery.trust import SinkRules, check_host
from tocsin.errors import SinkRefused


@dataclass(frozen=True, slots=True)
class ConsumerRules:
    """Who may be sent to. `check_not_ourselves` raises SinkRefused for an address of this broker;
    its second argument is how whoever asks calls the broker: the start of a URL."""

    sinks: Sinks[Sink]
    rules: SinkRules
    check_not_ourselves: Callable[[SinkAddress, str], None]

    def check(self, url: str, peer: str, reached_as: str = "") -> None:
        """Raise BadSubscription or SinkRefused if nothing may be sent there."""
        address = self.sinks.parse(url, soap=True)
        self.check_not_ourselves(address, reached_as)
        check_host(address.host, self.rules)
        is_peer = address.host == peer.rpartition(":")[0].strip("[]")
        if not is_peer and not self.sinks.is_trusted(url, self.rules):
            raise SinkRefused(
                f"{address.host} is neither trusted nor where the subscription came from",
                remedy="Subscribe from the consumer's own host, or have the operator add it to "
                "delivery.trusted.",
            )

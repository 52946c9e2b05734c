"""How many connections one peer has at a listener, so that one cannot take them all.

A peer is an IPv4 address, or an IPv6 network of 64 bits, which is what one customer gets. Those on
this machine are not counted: all its programs, and a proxy in front of the broker, are one address.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network
from typing import Final

from tocsin.broker.delivery.trust import ip_of

_NETWORK_BITS: Final = 64


class Peers:
    """Connections by peer. No peer may have more than half of those that a listener takes."""

    def __init__(self, per_peer_max: int, connections_max: int) -> None:
        self.most = max(1, min(per_peer_max, connections_max // 2))
        self._counts: dict[str, int] = {}

    def enter(self, host: str) -> bool:
        """Count one connection more; False if the peer has as many as it may have."""
        peer = peer_of(host)
        if not peer:
            return True
        count = self._counts.get(peer, 0)
        if count >= self.most:
            return False
        self._counts[peer] = count + 1
        return True

    def leave(self, host: str) -> None:
        """A connection that was counted is gone."""
        peer = peer_of(host)
        if not peer:
            return
        count = self._counts[peer] - 1
        if count:
            self._counts[peer] = count
        else:
            del self._counts[peer]


def peer_of(host: str) -> str:
    """Under which name an address is counted; empty if it is one of this machine, or none."""
    address = ip_of(host)
    if address is None or address.is_loopback:
        return ""
    if isinstance(address, IPv6Address):
        return str(IPv6Network((address, _NETWORK_BITS), strict=False))
    return str(address)

"""Where somebody connects from: the address without its port, and how it is counted."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

NETWORK_BITS: Final = 64  # of IPv6: what one customer gets


def host_of(peer: str) -> str:
    """The address of a peer that is written host:port."""
    host, colon, port = peer.rpartition(":")
    return host.strip("[]") if colon and port.isdigit() else peer


def counted_as(host: str) -> str:
    """The name under which an address is counted: of IPv6, its network of 64 bits."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        if not address.is_loopback:
            return str(IPv6Network((address, NETWORK_BITS), strict=False))
    return str(address)

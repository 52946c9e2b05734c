"""Where events may be pushed: which networks are refused, and who is exempt.

A sink is judged twice: when somebody subscribes, and each time a connection is made, because by
then its name may lead elsewhere. `why_refused` is that judgement, `SinkRules` says who is exempt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from tocsin.errors import BadSetting, SinkRefused

Address = IPv4Address | IPv6Address

# Networks that are near us: fine for a broker that serves only its own machine, else refused.
NEARBY: tuple[tuple[str, IPv4Network | IPv6Network], ...] = tuple(
    (kind, ip_network(text))
    for kind, text in (
        ("loopback", "127.0.0.0/8"),
        ("private", "10.0.0.0/8"),
        ("private", "172.16.0.0/12"),
        ("private", "192.168.0.0/16"),
        ("carrier-grade NAT", "100.64.0.0/10"),
        ("link-local", "169.254.0.0/16"),
        ("loopback", "::1/128"),
        ("private", "fc00::/7"),
        ("link-local", "fe80::/10"),
    )
)

# Networks where no sink can be, or where a cloud hands out its credentials. First match names it.
NEVER: tuple[tuple[str, IPv4Network | IPv6Network], ...] = tuple(
    (kind, ip_network(text))
    for kind, text in (
        ("cloud metadata", "169.254.169.254/32"),
        ("cloud metadata", "169.254.170.0/24"),
        ("cloud metadata", "168.63.129.16/32"),
        ("cloud metadata", "100.100.100.200/32"),
        ("cloud metadata", "fd00:ec2::/32"),
        ("unspecified", "0.0.0.0/8"),
        ("protocol assignment", "192.0.0.0/24"),
        ("documentation", "192.0.2.0/24"),
        ("6to4 relay", "192.88.99.0/24"),
        ("benchmark", "198.18.0.0/15"),
        ("documentation", "198.51.100.0/24"),
        ("documentation", "203.0.113.0/24"),
        ("multicast", "224.0.0.0/4"),
        ("reserved", "240.0.0.0/4"),
        ("unspecified", "::/128"),
        ("IPv4-compatible", "::/96"),
        ("NAT64", "64:ff9b::/96"),
        ("NAT64", "64:ff9b:1::/48"),
        ("protocol assignment", "2001::/23"),  # Teredo among them
        ("documentation", "2001:db8::/32"),
        ("6to4", "2002::/16"),
        ("documentation", "3fff::/20"),
        ("segment routing", "5f00::/16"),
        ("multicast", "ff00::/8"),
    )
)

# What the registry has given out for use between networks; all else of IPv6 is reserved.
GLOBAL_IPV6 = IPv6Network("2000::/3")


@dataclass(frozen=True, slots=True)
class SinkRules:
    """What the operator allows: nearby networks as a whole, and the trusted by name or network."""

    allow_private: bool = False
    trusted: tuple[str, ...] = ()


def why_refused(address: Address, *, allow_private: bool) -> str | None:
    """The kind of network that this address is in, if no event may go there; None if it may."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    if mapped is not None:
        return why_refused(mapped, allow_private=allow_private) or "IPv4-mapped"
    # Loopback lies inside the range of IPv4-compatible addresses, so the nearby come first, ...
    nearby = next((kind for kind, network in NEARBY if address in network), None)
    # ... but a metadata service stays closed to brokers that may otherwise reach what is near.
    if nearby == "loopback":
        return None if allow_private else nearby
    never = next((kind for kind, network in NEVER if address in network), None)
    if never is not None:
        return never
    if nearby is not None:
        return None if allow_private else nearby
    if isinstance(address, IPv6Address) and address not in GLOBAL_IPV6:
        return "reserved"
    return None


def check_host(host: str, rules: SinkRules) -> None:
    """Raise SinkRefused for an address, or this machine, if no event may go there. Another name is
    judged when it is looked up, at each delivery."""
    try:
        number = ip_address("127.0.0.1" if is_this_machine(host) else host)
    except ValueError:
        return
    if name_is_listed(host, rules.trusted) or address_is_listed(number, rules.trusted):
        return
    kind = why_refused(number, allow_private=rules.allow_private)
    if kind is not None:
        raise SinkRefused(
            f"no event may be pushed to {host}: the address is {kind}",
            remedy="Have the operator add it to delivery.trusted, or use a message box.",
        )


def check_trusted(entries: Iterable[str]) -> tuple[str, ...]:
    """The entries of a list of trusted hosts, in one spelling; raises BadSetting."""
    return tuple(_checked(entry.strip().lower()) for entry in entries)


def _checked(entry: str) -> str:
    if _network(entry) is not None:
        return entry
    name = entry.removeprefix("*.").removesuffix(".")
    if re.fullmatch(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", name) is None:
        raise BadSetting(
            f"{entry!r} is not a host name, address or network",
            remedy="Give a name, *.suffix, an address, or a network such as 10.0.0.0/8.",
        )
    return entry.removesuffix(".")


def is_trusted(host: str, trusted_hosts: Iterable[str]) -> bool:
    """True if a sink at this host need not be asked first: this machine, or one of the list."""
    address = _literal(host)
    if address is not None:
        return address.is_loopback or address_is_listed(address, trusted_hosts)
    name = host.lower().removesuffix(".")
    return name == "localhost" or name_is_listed(name, trusted_hosts)


def name_is_listed(host: str, trusted_hosts: Iterable[str]) -> bool:
    """True if the host's name is in the list, or under a suffix in it."""
    name = host.lower().removesuffix(".")
    return any(
        name.endswith(entry[1:]) if entry.startswith("*.") else name == entry
        for entry in trusted_hosts
    )


def address_is_listed(address: Address, trusted_hosts: Iterable[str]) -> bool:
    """True if the address is in a network of the list."""
    return any(address in network for entry in trusted_hosts if (network := _network(entry)))


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def is_this_machine(host: str) -> bool:
    """True for the name that always leads back to where it is said (RFC 6761)."""
    name = host.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost")


def plain_address(host: str) -> str:
    """An address in one spelling, the same for all of this machine's own; empty if it is none."""
    address = ip_of(host)
    if address is None:
        return ""
    return "127.0.0.1" if address.is_loopback else str(address)


def ip_of(host: str) -> IPv4Address | IPv6Address | None:
    """The address, as IPv4 if it is one in the form of IPv6; None for a name."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address

"""The limits of the settings, and which of them apply to a principal and to an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

import msgspec

EVERYBODY: Final = "*"

Network = IPv4Network | IPv6Network


class Quota(StrEnum):
    """What there is a limit on."""

    CONNECTIONS = "connections"
    STREAMS = "streams"
    SUBSCRIPTIONS = "subscriptions"
    BOXES = "boxes"
    REGISTRATIONS = "registrations"  # of resources, publishers and entries of the directory
    PUBLISH_RATE = "publish_rate"  # events a second
    IN_FLIGHT_BYTES = "in_flight_bytes"  # of events that were sent and are not on disk yet


class QuotaRule(msgspec.Struct, frozen=True):
    """Limits, and whose: of one of these, with `*` for everybody."""

    limits: Mapping[Quota, float]
    burst: float | None = None  # events above the rate, at once; a second's worth if it is not said
    principal: str = ""
    group: str = ""
    peer: str = ""  # * or empty; else `network`
    network: Network | None = None


class Limits(msgspec.Struct, frozen=True):
    """What applies to one holder."""

    by_quota: Mapping[Quota, float]
    burst: float = 0.0

    @property
    def has_any(self) -> bool:
        return bool(self.by_quota)


def limits_of(rules: Sequence[QuotaRule], name: str, groups: frozenset[str]) -> Limits:
    """The principal's own before those of its groups, and these before everybody's. Of several
    groups, the largest."""
    own = [rule for rule in rules if rule.principal == name]
    of_groups = [rule for rule in rules if rule.group in groups and rule.group]
    of_all = [rule for rule in rules if rule.principal == EVERYBODY]
    return _merged([_largest(own), _largest(of_groups), _largest(of_all)])


def limits_at(rules: Sequence[QuotaRule], at: str) -> Limits:
    """Of an address, or of a network of IPv6 that is counted as one. Those of the smallest network
    around it before those of larger ones, and of every address. Who is on this machine is counted
    where a network says so."""
    try:
        counted = ip_network(at)
    except ValueError:
        return Limits({})
    inside = [
        (rule.network.prefixlen, rule)
        for rule in rules
        if rule.network is not None and _is_within(counted, rule.network)
    ]
    inside.sort(key=lambda each: -each[0])
    found = [rule for _, rule in inside]
    if not counted.is_loopback:
        found += [rule for rule in rules if rule.peer == EVERYBODY]
    return _merged(found)


def _is_within(network: Network, wider: Network) -> bool:
    return network.version == wider.version and network.subnet_of(wider)  # type: ignore[arg-type]


def _largest(rules: Sequence[QuotaRule]) -> QuotaRule:
    """Of each limit the largest."""
    limits: dict[Quota, float] = {}
    burst: float | None = None
    for rule in rules:
        for quota, limit in rule.limits.items():
            if limit >= limits.get(quota, 0):
                limits[quota] = limit
                burst = rule.burst if quota is Quota.PUBLISH_RATE else burst
    return QuotaRule(limits, burst)


def _merged(rules: Sequence[QuotaRule]) -> Limits:
    """Of each limit the first."""
    limits: dict[Quota, float] = {}
    burst: float | None = None
    for rule in rules:
        if Quota.PUBLISH_RATE in rule.limits and Quota.PUBLISH_RATE not in limits:
            burst = rule.burst
        limits = {**rule.limits, **limits}
    return Limits(limits, max(1.0, burst or limits.get(Quota.PUBLISH_RATE, 0.0)))

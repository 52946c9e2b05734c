"""[[quotas]] in the settings: whose limits, and which."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network, ip_network
from typing import Any, Final

from tocsin.access.peers import NETWORK_BITS
from tocsin.access.policy.rights import check_name
from tocsin.access.quotas.rules import EVERYBODY, Network, Quota, QuotaRule
from tocsin.access.session import BROKER
from tocsin.errors import BadRight, BadSetting

MAPPED_BITS: Final = 96  # of IPv6, before an address of IPv4
_WHOSE: Final = ("principal", "group", "peer")
_BURST: Final = "publish_burst"
_KEYS: Final = (*_WHOSE, *Quota, _BURST)


def read_quota(table: Mapping[str, Any], where: str) -> QuotaRule:
    """One table; `where` it stands. Raises BadSetting."""
    for key in table:
        if key not in _KEYS:
            raise BadSetting(
                f"{where} has no setting {key!r}", remedy=f"It may have {', '.join(_KEYS)}."
            )
    named = [key for key in _WHOSE if key in table]
    if len(named) > 1:
        raise BadSetting(
            f"{where} is for {' and for '.join(named)}",
            remedy="Give one of principal, group and peer; without any it is for every principal.",
        )
    limits = {each: _number(table[each], each, where) for each in Quota if each in table}
    burst = _number(table[_BURST], _BURST, where) if _BURST in table else None
    if not limits:
        raise BadSetting(f"{where} has no limit", remedy=f"Give some of {', '.join(Quota)}.")
    if burst is not None and Quota.PUBLISH_RATE not in limits:
        raise BadSetting(f"{where} has a burst and no rate", remedy="Give publish_rate too.")
    return _whose(table, QuotaRule(limits, burst), where)


def _whose(table: Mapping[str, Any], rule: QuotaRule, where: str) -> QuotaRule:
    name = next((table[key] for key in _WHOSE if key in table), EVERYBODY)
    if not isinstance(name, str) or not name:
        raise BadSetting(f"{where} is for {name!r}", remedy="Give a name, or * for everybody.")
    if "peer" in table:
        if name == EVERYBODY:
            return QuotaRule(rule.limits, rule.burst, peer=EVERYBODY)
        try:
            return QuotaRule(rule.limits, rule.burst, network=_counted(name))
        except ValueError:
            raise BadSetting(
                f"{where}: {name!r} is not an address or a network",
                remedy='Write peer = "192.0.2.7", "192.0.2.0/24" or "*".',
            ) from None
    key = "group" if "group" in table else "principal"
    try:
        check_name(name, key)
    except BadRight as error:
        raise BadSetting(f"{where}: {error.problem}", remedy=error.remedy) from None
    if name == BROKER.name:
        raise BadSetting(f"{where} is for the broker itself", remedy="Name who signs in.")
    if key == "group":
        return QuotaRule(rule.limits, rule.burst, group=name)
    return QuotaRule(rule.limits, rule.burst, principal=name)


def _counted(text: str) -> Network:
    """The network, as addresses are counted: of IPv6 at least 64 bits. Raises ValueError."""
    network = ip_network(text, strict=False)
    if isinstance(network, IPv4Network) or network.is_loopback:
        return network
    mapped = network.network_address.ipv4_mapped
    if mapped is not None and network.prefixlen >= MAPPED_BITS:
        return IPv4Network((mapped, network.prefixlen - MAPPED_BITS))
    return (
        network if network.prefixlen <= NETWORK_BITS else network.supernet(new_prefix=NETWORK_BITS)
    )


def _number(value: object, key: str, where: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1e18:  # type: ignore[operator]
        raise BadSetting(f"{where}: {key} = {value!r}", remedy="Give a number above zero.")
    return float(value)  # type: ignore[arg-type]

"""Where events may be pushed: reading a sink's address, and judging the network it leads to.

A sink is judged twice. `parse_sink` refuses what is no web address when somebody subscribes. The
network address that a name leads to is judged each time a connection is made, because a name may
lead elsewhere by then: `why_refused` is that judgement, and `SinkRules` says who is exempt.
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
from urllib.parse import quote

import msgspec

from tocsin.errors import BadSetting, BadSubscription, SinkRefused

SINK_CHARS_MAX = 2048
HOST_CHARS_MAX = 253  # RFC 1035 section 2.3.4, without the root's dot
SOAP_TCP = "soap.tcp"
GMA = ("gma", "gmas")  # performance events by TCP, and by TLS
PORTS = {
    "http": 80,
    "https": 443,
    SOAP_TCP: 8081,  # as in Microsoft's WSE
    "gma": 8401,
    "gmas": 8401,
}

# A POST to one of these could be taken for commands of another protocol. Browsers refuse them too.
PORTS_REFUSED = frozenset(
    {
        *(7, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 79),
        *(110, 111, 113, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427),
        *(465, 512, 513, 514, 515, 532, 540, 548, 554, 556, 563, 587, 601, 636),
        *(873, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 2375, 3306, 3389, 3659, 4045, 4190),
        *(5060, 5061, 5432, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697),
        *(9042, 9092, 10080, 11211, 27017),
    }
)

Address = IPv4Address | IPv6Address

_URL = re.compile(r"(?P<scheme>[a-z.]+)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(#.*)?", re.I)
_AUTHORITY = re.compile(
    r"(\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(:(?P<port>[0-9]{0,5}))?", re.I
)
# What RFC 3986 lets a path or query hold, and the percent sign of what is encoded already.
_TARGET_KEPT = "/?%:@!$&'()*+,;=[]~"

REMEDY = "A sink is an address such as https://example.org/hook."


class Sink(msgspec.Struct, frozen=True):
    """A sink's address, taken apart. `host` is lower-case ASCII, without the brackets of IPv6."""

    host: str
    port: int
    tls: bool
    target: str
    soap_tcp: bool = False  # takes SOAP in DIME messages, and no HTTP
    gma: bool = False  # takes performance events in frames, and no HTTP

    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if self.gma:
            scheme = GMA[self.tls]
        else:
            scheme = SOAP_TCP if self.soap_tcp else "https" if self.tls else "http"
        return host if self.port == PORTS[scheme] else f"{host}:{self.port}"


def parse_sink(url: str, *, soap_tcp: bool = False, gma: bool = False) -> Sink:
    """The sink that an address names; raises BadSubscription or SinkRefused.

    `soap_tcp`: it may be a soap.tcp address too, because what goes there is SOAP. `gma`: it may be
    a gma or gmas address, because what goes there may be told as performance events.
    """
    if len(url) > SINK_CHARS_MAX:
        raise _bad(
            f"the sink's address has {len(url)} characters", f"At most {SINK_CHARS_MAX} are taken."
        )
    if any(char.isspace() or not char.isprintable() for char in url):
        raise _bad("the sink's address holds a space or control character", "Percent-encode it.")
    parts = _URL.fullmatch(url)
    scheme = parts["scheme"].lower() if parts else ""
    allowed = ("http", "https", *((SOAP_TCP,) if soap_tcp else ()), *(GMA if gma else ()))
    if parts is None or scheme not in allowed:
        other = " Performance events may go to gma://host:port." if gma else ""
        raise _bad(f"the sink {url!r} is not an http or https address", f"{REMEDY}{other}")
    is_gma = scheme in GMA
    if is_gma and parts["target"] not in ("", "/"):
        raise _bad(f"the sink {url!r} has a path", f"Write {scheme}://host:port.")
    host, port = _host_and_port(parts["authority"], url)
    target = quote(parts["target"], safe=_TARGET_KEPT)
    if not target.startswith("/"):
        target = f"/{target}"
    if port is None:
        port = PORTS[scheme]
    return Sink(host, port, scheme in ("https", "gmas"), target, scheme == SOAP_TCP, is_gma)


def host_of(url: str) -> str:
    """The host of a sink of any kind."""
    return parse_sink(url, soap_tcp=True, gma=True).host


def is_gma_address(url: str) -> bool:
    """True if it begins as the address of a consumer of performance events does."""
    return url.partition(":")[0].lower() in GMA


def _host_and_port(authority: str, url: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise _bad(
            "the sink's address holds a user name or password",
            "Leave it out, and set config.secret so that the sink can verify our requests.",
        )
    parts = _AUTHORITY.fullmatch(_in_ascii(authority, url))
    if parts is None:
        raise _bad(
            f"the sink {url!r} has no valid host", f"{REMEDY} Put an IPv6 address in [brackets]."
        )
    port = int(parts["port"]) if parts["port"] else None
    if port is not None and not 0 < port < 65536:
        raise _bad(f"the sink {url!r} has an impossible port", "Ports go from 1 to 65535.")
    if port in PORTS_REFUSED:
        raise SinkRefused(
            f"port {port} belongs to another protocol", remedy="Let the sink listen elsewhere."
        )
    if parts["v6"] is None:
        return _name(parts["name"].lower(), url), port
    try:
        return str(IPv6Address(parts["v6"])), port
    except ValueError:
        raise _bad(f"the sink {url!r} has no valid IPv6 address", REMEDY) from None


def _in_ascii(authority: str, url: str) -> str:
    """International names in the form that is looked up, so that what we judge is what we ask."""
    if authority.isascii():
        return authority
    name, colon, port = authority.partition(":")
    try:
        return name.encode("idna").decode("ascii") + colon + port
    except UnicodeError:
        raise _bad(f"the sink {url!r} has a host that is not a valid name", REMEDY) from None


def _name(host: str, url: str) -> str:
    labels = host.removesuffix(".").split(".")
    if len(host) > HOST_CHARS_MAX or not all(0 < len(label) < 64 for label in labels):
        raise _bad(f"the sink {url!r} has a host that is not a valid name", REMEDY)
    return host


def _bad(problem: str, remedy: str) -> BadSubscription:
    return BadSubscription(problem, remedy=remedy)


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

"""The addresses of sinks: URLs taken apart, whatever their scheme is."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from urllib.parse import quote

import msgspec

from tocsin.errors import BadSubscription, SinkRefused

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
TLS = frozenset({"https", "gmas"})

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

_URL = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(#.*)?", re.I
)
_AUTHORITY = re.compile(
    r"(\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(:(?P<port>[0-9]{0,5}))?", re.I
)
# What RFC 3986 lets a path or query hold, and the percent sign of what is encoded already.
_TARGET_KEPT = "/?%:@!$&'()*+,;=[]~"

REMEDY = "A sink is an address such as https://example.org/hook."


class SinkAddress(msgspec.Struct, frozen=True):
    """An address, taken apart. `host` is lower-case ASCII, without the brackets of IPv6."""

    scheme: str
    host: str
    port: int
    tls: bool
    target: str  # path and query
    usual_port: int = 0

    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == self.usual_port else f"{host}:{self.port}"


def scheme_of(url: str) -> str:
    """The scheme in lower case, empty if there is none. Raises BadSubscription if the text is too
    long or holds what no address may hold."""
    if len(url) > SINK_CHARS_MAX:
        raise _bad(
            f"the sink's address has {len(url)} characters", f"At most {SINK_CHARS_MAX} are taken."
        )
    if any(char.isspace() or not char.isprintable() for char in url):
        raise _bad("the sink's address holds a space or control character", "Percent-encode it.")
    parts = _URL.fullmatch(url)
    return parts["scheme"].lower() if parts else ""


def parse_address(url: str, port: int | None = None, *, tls: bool | None = None) -> SinkAddress:
    """The parts of scheme://host:port/path?query; raises BadSubscription or SinkRefused.

    `port` and `tls` are for a scheme that is not built in: its usual port, and whether it is TLS.
    """
    scheme = scheme_of(url)
    parts = _URL.fullmatch(url)
    if parts is None:
        raise _bad(f"the sink {url!r} is not an address", REMEDY)
    usual = PORTS.get(scheme, 0) if port is None else port
    host, named = _host_and_port(parts["authority"], url, usual)
    target = quote(parts["target"], safe=_TARGET_KEPT)
    if not target.startswith("/"):
        target = f"/{target}"
    is_tls = scheme in TLS if tls is None else tls
    return SinkAddress(scheme, host, usual if named is None else named, is_tls, target, usual)


def host_of(url: str) -> str:
    """The host of an address of any scheme."""
    return parse_address(url).host


def is_gma_address(url: str) -> bool:
    """True if it begins as the address of a consumer of performance events does."""
    return url.partition(":")[0].lower() in GMA


def _host_and_port(authority: str, url: str, usual_port: int) -> tuple[str, int | None]:
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
    if port in PORTS_REFUSED and port != usual_port:
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

"""Where a producer or a consumer is: host:port, gma://host:port, or gmas://host:port for TLS."""

from __future__ import annotations

from ipaddress import ip_address
from typing import NamedTuple

from tocsin.errors import BadSetting

DEFAULT_ADDRESS = "127.0.0.1:8401"  # where the broker on this machine speaks the protocol
TEXT_CHARS_MAX = 300

_SCHEMES = {"gma": False, "gmas": True}
_EVERYWHERE = frozenset({"0.0.0.0", "::", ""})


class PeerAddress(NamedTuple):
    """A host and a port, and whether TLS is used there."""

    host: str
    port: int
    tls: bool = False

    @property
    def is_loopback(self) -> bool:
        """True if only programs on that machine itself can use it."""
        return is_loopback(self.host)

    @property
    def authority(self) -> str:
        """host:port, as people write it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def seen_as(self, host_name: str) -> PeerAddress:
        """The address that others can use: one that means every interface gets the host's name."""
        return self._replace(host=host_name) if self.host in _EVERYWHERE else self

    def __str__(self) -> str:
        return f"{'gmas' if self.tls else 'gma'}://{self.authority}"


def is_loopback(host: str) -> bool:
    """True if every machine means itself by it."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def read_address(text: str, *, listening: bool = False) -> PeerAddress:
    """The address that a text says; BadSetting if it says none. Listening, the port may be 0."""
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "gma", text
    host, colon, port_text = rest.removesuffix("/").rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    port = int(port_text) if port_text.isascii() and port_text.isdigit() else -1
    is_valid = (
        len(text) <= TEXT_CHARS_MAX
        and scheme in _SCHEMES
        and colon
        and (bare or listening)
        and all(c.isalnum() or c in ".-_:%" for c in bare)
        and (":" not in bare or bare != host)
        and (0 if listening else 1) <= port <= 65_535
    )
    if not is_valid:
        raise BadSetting(
            f"{text[:TEXT_CHARS_MAX]!r} is not the address of a producer or consumer",
            remedy="Write host:port, as in 127.0.0.1:8401, or gmas://host:port for TLS.",
        )
    return PeerAddress(bare, port, _SCHEMES[scheme])

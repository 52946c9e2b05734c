"""Where a broker is: its URL, taken apart once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from tocsin.credentials.lookup import Credentials, Origin
from tocsin.errors import BadSetting

if TYPE_CHECKING:
    from typing import Unpack

    from tocsin.credentials.sign_in import SignIn

DEFAULT_BROKER = "http://127.0.0.1:8400"
BROKER_VARIABLE = "TOCSIN_BROKER"
CA_FILE_VARIABLE = "TOCSIN_CA_FILE"
URL_CHARS_MAX = 2_048

_PORTS = {"http": 80, "https": 443}


class Address(NamedTuple):
    """A broker's address; `prefix` is the path that a proxy put in front of the broker's own.

    `ca_file` names authorities to trust besides the system's (None: those of TOCSIN_CA_FILE).
    `credentials` are for this broker and no other; None: nothing is shown there.
    """

    host: str
    port: int
    tls: bool
    prefix: str
    ca_file: str | None = None
    credentials: Credentials | None = None

    @property
    def origin(self) -> Origin:
        """Whom its credentials belong to."""
        return Origin("https" if self.tls else "http", self.host.lower(), self.port)

    @property
    def authority(self) -> str:
        """Host and port as a Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}{self.prefix}"


def broker_address(
    url: str | Address | None = None, ca_file: str | None = None, **sign_in: Unpack[SignIn]
) -> Address:
    """The broker at `url`, or at TOCSIN_BROKER, or on this machine, and what is shown to it."""
    if isinstance(url, Address):
        return url
    address = _address(url, ca_file)
    return address._replace(credentials=Credentials(address.origin, **sign_in))


def address_learned(url: str) -> Address:
    """Of a broker that nobody named just now: what the environment has is for another, perhaps, so
    that only a login with this one is shown to it."""
    address = _address(url, None)
    return address._replace(credentials=Credentials(address.origin, environment={}))


def _address(url: str | None, ca_file: str | None) -> Address:
    text = url or os.environ.get(BROKER_VARIABLE) or DEFAULT_BROKER
    scheme, found, rest = text.partition("://")
    if not found:
        scheme, rest = "http", text
    authority, slash, path = rest.partition("/")
    host, port = _host_and_port(authority, _PORTS.get(scheme, 0))
    odd = not text.isascii() or not text.isprintable() or " " in text or len(text) > URL_CHARS_MAX
    if odd or scheme not in _PORTS or not host or port is None or "@" in host or "?" in path:
        raise BadSetting(
            f"{text!r} is not the address of a broker",
            remedy=f"Give a URL such as {DEFAULT_BROKER}, by --broker or {BROKER_VARIABLE}.",
        )
    return Address(host, port, scheme == "https", (slash + path).rstrip("/"), ca_file)


def locate(url: str) -> tuple[Address, str]:
    """The host and the target of a URL; BadSetting if it is none that we can post to."""
    from urllib.parse import quote, urlsplit  # here: `tocsin pub` starts sooner without

    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        parts, port = urlsplit(""), 0
    host = parts.hostname or ""
    if not (port and host) or len(url) > URL_CHARS_MAX or not url.isprintable() or " " in url:
        raise BadSetting(
            f"{url[:200]!r} is not an http or https URL",
            remedy="Give an http or https URL, such as http://127.0.0.1:8400/soap.",
        )
    target = quote(parts.path or "/", safe="/:;,@!$&'()*+=~%-._")
    if parts.query:
        target += "?" + quote(parts.query, safe="/:;,@!$&'()*+=~%-._?")
    return Address(host, port, parts.scheme == "https", ""), target


def _host_and_port(authority: str, default_port: int) -> tuple[str, int | None]:
    if authority.startswith("["):
        host, _, rest = authority[1:].partition("]")
        port_text = rest.removeprefix(":")
    else:
        host, _, port_text = authority.partition(":")
    if not port_text:
        return host, default_port
    if not port_text.isdecimal() or len(port_text) > 5:
        return host, None
    port = int(port_text)
    return host, port if 0 < port < 65_536 else None

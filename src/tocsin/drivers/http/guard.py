"""Who may ask: not a web page of another site, and not under a name that is not ours.

A browser sends requests wherever a page tells it to. Without this, any page that a person visits
could publish to a broker on that person's machine, or open a socket to read from it. Programs that
are no browsers send neither Origin nor Sec-Fetch-Site and do not notice.

The Host is checked while we listen on loopback only: a page can have its own name point to
127.0.0.1 (DNS rebinding), and then Origin and Host agree; but the Host is not ours.
"""

from __future__ import annotations

from ipaddress import ip_address

from tocsin.drivers.http.request import Headers
from tocsin.errors import BadRequest, ForeignOrigin, TocsinError

READS = frozenset({b"GET", b"HEAD", b"OPTIONS"})
FROM_BROWSERS = frozenset({b"origin", b"sec-fetch-site"})
HOSTS_REMEMBERED_MAX = 64


class Guard:
    """Decides by the head of a request. Remembers Hosts that passed: nearly all are the same."""

    def __init__(self, *, on_loopback: bool, names: tuple[str, ...]) -> None:
        self._on_loopback = on_loopback
        self._names = frozenset(name.lower().rstrip(".") for name in names)
        self.passed: set[bytes | None] = set()

    def check(self, method: bytes, headers: Headers) -> None:
        """Raise what the client did wrong, if it did."""
        host = headers.get(b"host")
        if host not in self.passed:
            self._check_host(host)
        if FROM_BROWSERS.isdisjoint(headers):
            return
        if method not in READS or b"upgrade" in headers:
            _check_page(headers)
        else:
            _check_read(headers)

    def _check_host(self, host: bytes | None) -> None:
        if self._on_loopback and host and not self._is_ours(_name_of(host)):
            raise ForeignOrigin(
                f"this broker does not answer to the name {host[:80].decode('latin-1')!r}",
                remedy="Use localhost or 127.0.0.1, or add the name to http.names.",
            )
        if len(self.passed) < HOSTS_REMEMBERED_MAX:
            self.passed.add(host)

    def _is_ours(self, name: str) -> bool:
        if name in self._names or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True  # an address cannot be made to point elsewhere


def _name_of(host: bytes) -> str:
    """The host without its port, and without the brackets of an IPv6 address."""
    text = host.decode("latin-1").lower()
    if text.startswith("["):
        address, bracket, port = text[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise _bad_host(text)
        return address
    name, _, port = text.partition(":")
    if port and not port.isdecimal():
        raise _bad_host(text)
    return name.rstrip(".")


def _bad_host(text: str) -> TocsinError:
    return BadRequest(
        f"invalid Host header: {text[:80]!r}", remedy="Send a name or an address, and a port."
    )


def _check_page(headers: Headers) -> None:
    origin = headers.get(b"origin")
    if origin is None:
        is_own = headers[b"sec-fetch-site"] in (b"same-origin", b"none")
    else:
        host = headers.get(b"host", b"").lower()
        is_own = bool(host) and origin.partition(b"://")[2].lower() == host
    if not is_own:
        raise _foreign(origin or b"another site")


def _check_read(headers: Headers) -> None:
    """A page of another site could not read the answer, but asking alone takes events out of a box
    and holds a stream open. A person who follows a link to us is welcome."""
    site = headers.get(b"sec-fetch-site", b"none")
    if site not in (b"same-origin", b"none") and headers.get(b"sec-fetch-mode") != b"navigate":
        raise _foreign(headers.get(b"origin", b"another site"))


def _foreign(origin: bytes) -> ForeignOrigin:
    return ForeignOrigin(
        f"a web page from {origin[:80].decode('latin-1')} sent this request",
        remedy="Send it from a page of this broker, or from a program that is not a browser.",
    )

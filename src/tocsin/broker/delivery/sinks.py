"""Sinks: the ways to push, by the scheme of an address.

A `Sink` says what addresses of its scheme look like and what may be sent there. `Sinks` has those
of this broker: the built-in ones and those that other packages register as `tocsin.sinks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tocsin.broker.delivery.address import (
    GMA,
    PORTS,
    SOAP_TCP,
    TLS,
    SinkAddress,
    parse_address,
    scheme_of,
)
from tocsin.broker.delivery.trust import SinkRules, check_host, is_trusted
from tocsin.errors import BadSubscription, SinkRefused
from tocsin.event.subscription import Config


class Sink(Protocol):
    """What can be done with addresses of one scheme."""

    @property
    def takes_events(self) -> bool:
        """True if subscriptions of the HTTP API may go there."""

    @property
    def takes_soap(self) -> bool:
        """True if subscriptions of Web-services consumers may go there."""

    @property
    def has_handshake(self) -> bool:
        """True if a consumer can be asked whether it wants events. If not, it must be trusted."""

    def parse(self, url: str) -> SinkAddress:
        """Raises BadSubscription if the address is invalid."""

    def is_trusted(self, address: SinkAddress, rules: SinkRules) -> bool:
        """True if events may go there without asking first."""

    def check_config(self, config: Config) -> None:
        """Raises BadSubscription if a subscription asks for what cannot be done there."""


S_co = TypeVar("S_co", bound=Sink, covariant=True)


class Sinks(Generic[S_co]):
    """The sinks of a broker. `load` gives the one of a scheme, and is called when it is needed."""

    def __init__(self, schemes: Iterable[str], load: Callable[[str], S_co]) -> None:
        self._schemes = frozenset(schemes)
        self._load = load
        self._loaded: dict[str, S_co] = {}

    def of(self, url: str) -> S_co:
        """The sink for an address; raises BadSubscription, which names the known schemes."""
        scheme = scheme_of(url)
        sink = self._loaded.get(scheme)
        if sink is None:
            if scheme not in self._schemes:
                raise _unknown(url, scheme, self._schemes)
            sink = self._loaded[scheme] = self._load(scheme)
        return sink

    def parse(self, url: str, *, soap: bool = False) -> SinkAddress:
        """The parts of an address that takes events, or SOAP; raises BadSubscription."""
        sink = self.of(url)
        if not (sink.takes_soap if soap else sink.takes_events):
            what = "SOAP messages" if soap else "events of the HTTP API"
            raise BadSubscription(
                f"the sink {url!r} takes no {what}",
                remedy="Name an address such as https://example.org/hook.",
            )
        return sink.parse(url)

    def check(self, url: str, rules: SinkRules, *, soap: bool = False) -> SinkAddress:
        """As `parse`; also raises SinkRefused if every push there would be refused."""
        address, sink = self.parse(url, soap=soap), self.of(url)
        if not sink.has_handshake and not sink.is_trusted(address, rules):
            raise SinkRefused(
                f"{address.host} is not trusted, and a {address.scheme} sink cannot be asked "
                "whether it wants events",
                remedy="Have the operator add it to delivery.trusted, or let the consumer connect "
                "to the broker.",
            )
        check_host(address.host, rules)
        return address

    def is_trusted(self, url: str, rules: SinkRules) -> bool:
        """True if events may go there without asking first."""
        sink = self.of(url)
        return sink.is_trusted(sink.parse(url), rules)

    def check_config(self, url: str, config: Config) -> None:
        """Raises BadSubscription if this cannot be had at that address."""
        self.of(url).check_config(config)


def _unknown(url: str, scheme: str, known: Iterable[str]) -> BadSubscription:
    problem = f"no sink has the scheme {scheme!r}" if scheme else "it has no scheme"
    return BadSubscription(
        f"the sink {url!r} cannot be used: {problem}",
        remedy=f"Known schemes: {', '.join(sorted(known))}; as in https://example.org/hook.",
    )


@dataclass(frozen=True, slots=True)
class UrlSink:
    """A sink whose addresses are scheme://host:port/path."""

    port: int
    tls: bool = False
    has_path: bool = True
    takes_events: bool = True
    takes_soap: bool = False
    has_handshake: bool = False
    has_formats: bool = False  # the modes of CloudEvents, and secrets to sign in and sign with

    def parse(self, url: str) -> SinkAddress:
        address = parse_address(url, self.port, tls=self.tls)
        if not self.has_path and address.target != "/":
            raise BadSubscription(
                f"the sink {url!r} has a path", remedy=f"Write {address.scheme}://host:port."
            )
        return address

    def is_trusted(self, address: SinkAddress, rules: SinkRules) -> bool:
        return is_trusted(address.host, rules.trusted)

    def check_config(self, config: Config) -> None:
        has_secrets = config.secret is not None or config.credential is not None
        if not self.has_formats and (has_secrets or config.mode != Config().mode):
            raise BadSubscription(
                "events are sent to this sink in its own format, not CloudEvents",
                remedy="Leave config.secret, config.credential and config.mode out.",
            )


def url_sink(scheme: str) -> UrlSink:
    """The addresses of a built-in scheme."""
    port, tls = PORTS[scheme], scheme in TLS
    if scheme in GMA:
        return UrlSink(port, tls, has_path=False)
    if scheme == SOAP_TCP:
        return UrlSink(port, tls, takes_events=False, takes_soap=True)
    return UrlSink(port, tls, takes_soap=True, has_handshake=True, has_formats=True)

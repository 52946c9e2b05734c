"""The built-in sinks, by the scheme of an address, and where this broker may push to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.sinks import Sinks, UrlSink, url_sink
from tocsin.broker.delivery.trust import SinkRules, check_trusted
from tocsin.config import Settings, is_loopback
from tocsin.drivers.plugins import SINKS, Plugins, plugins
from tocsin.drivers.push.envelope_sender import EnvelopeSender
from tocsin.drivers.push.gma_sender import GmaSender
from tocsin.drivers.push.http_sender import HttpSender
from tocsin.drivers.push.sender import PushContext, PushSink, Sender

OpenSender = Callable[[PushContext, int, str, SinkAddress], Sender]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSink(UrlSink):
    """A sink at a host and port."""

    sender: OpenSender

    def open_sender(
        self, context: PushContext, lane: int, url: str, address: SinkAddress
    ) -> Sender:
        return self.sender(context, lane, url, address)


def _built_in(scheme: str, sender: OpenSender) -> NetworkSink:
    return NetworkSink(**asdict(url_sink(scheme)), sender=sender)


HTTP = _built_in("http", HttpSender)
HTTPS = _built_in("https", HttpSender)
ENVELOPES = _built_in("soap.tcp", EnvelopeSender)
GMA = _built_in("gma", GmaSender)
GMAS = _built_in("gmas", GmaSender)


def built_in_sinks() -> Sinks[PushSink]:
    """The sinks that Tocsin has itself."""
    ours = Plugins(SINKS)
    return Sinks(ours.names, ours.load)


def installed_sinks() -> Sinks[PushSink]:
    """Those, and those of other packages; raises BadSetting if one of those cannot be loaded."""
    found = plugins(SINKS)
    for name in found.others:
        found.load(name)
    return Sinks(found.names, found.load)


def sink_rules(settings: Settings) -> SinkRules:
    """The rules of its settings; BadSetting if they name no host or network."""
    return SinkRules(
        allow_private=_private_allowed(settings), trusted=check_trusted(settings.delivery.trusted)
    )


def _private_allowed(settings: Settings) -> bool:
    wanted = settings.delivery.private
    if wanted != "auto":
        return wanted == "yes"
    return all(map(is_loopback, settings.addresses().values()))

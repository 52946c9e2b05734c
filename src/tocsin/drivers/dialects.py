"""Dialects: the protocols of a broker, each opened by its name.

A dialect is a coroutine that is given a `DialectContext` and opens what the settings ask for. Those
of other packages are named in `dialects.listen`, with the address where they shall listen.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from tocsin.broker.port import BrokerPort
from tocsin.config import OFF, Settings
from tocsin.drivers.frames.datagrams import listen as listen_datagrams
from tocsin.drivers.frames.listener import FramesListener
from tocsin.drivers.frames.listener import listen as listen_frames
from tocsin.drivers.http.listener import listen as listen_http
from tocsin.drivers.http.rest.context import RestContext
from tocsin.drivers.link.links import Links
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.drivers.listeners.stream_listener import StreamListener
from tocsin.drivers.pegasus.listener import listen as listen_pegasus
from tocsin.drivers.pegasus.listener import listener_limits
from tocsin.drivers.plugins import BUILT_IN, DIALECTS, plugins
from tocsin.drivers.soap_services import SoapServices
from tocsin.drivers.soap_tcp.listener import listen as listen_soap_tcp
from tocsin.errors import BadSetting
from tocsin.services.performance.service import Addresses
from tocsin.services.performance.session import ARCHIVE


class Listener(Protocol):
    """Where a protocol is spoken."""

    @property
    def address(self) -> str: ...

    async def close(self) -> None: ...


Listeners = dict[str, Listener]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """What the built-in dialects need beside the port."""

    rest: RestContext
    soap: SoapServices
    links: Links
    trusted: tuple[str, ...]  # hosts and networks that datagrams are taken from


@dataclass(frozen=True, slots=True)
class DialectContext:
    """What a dialect is given."""

    port: BrokerPort
    settings: Settings
    tls: ssl.SSLContext | None  # if clients must use TLS
    budget: ReceiveBudget  # of bytes that are received and not yet handled
    note: Callable[..., None]
    built_in: BuiltIn
    address: str = ""  # of a dialect from outside: where it shall listen
    listeners: Listeners = field(default_factory=dict)  # those that are open


Dialect = Callable[[DialectContext], Awaitable[Mapping[str, Listener]]]
"""Opens listeners and gives them by name; none if the settings want none."""


async def open_dialects(context: DialectContext) -> None:
    """Open all listeners; each is in `context.listeners` as soon as it is open."""
    known = plugins(DIALECTS)
    wanted = context.settings.dialects.by_name()
    for name in wanted:
        if name in BUILT_IN[DIALECTS]:
            raise BadSetting(
                f"dialects.listen names {name!r}, which is built in",
                remedy=f"Set the address with {name}.address.",
            )
        known.load(name)  # before anything is open
    for name in [*BUILT_IN[DIALECTS], *wanted]:
        opener: Dialect = known.load(name)
        await _open(replace(context, address=wanted.get(name, "")), opener)


async def _open(context: DialectContext, opener: Dialect) -> None:
    opened = await opener(context)
    for listener in [*opened.values(), *context.listeners.values()]:
        if isinstance(listener, StreamListener | FramesListener):
            listener.quotas = context.built_in.rest.access.connection_quotas
    taken = opened.keys() & context.listeners.keys()
    context.listeners.update({name: each for name, each in opened.items() if name not in taken})
    if taken:
        raise BadSetting(
            f"two dialects have a listener named {', '.join(sorted(taken))}",
            remedy="Uninstall one of the two packages.",
        )


async def open_http(context: DialectContext) -> Mapping[str, Listener]:
    ours, settings = context.built_in, context.settings
    http = await listen_http(
        ours.rest,
        settings.http.address,
        ours.soap.answer,
        tls=context.tls,
        budget=context.budget,
    )
    ours.rest.addresses.http = http.address
    return {"http": http}


async def open_frames(context: DialectContext) -> Mapping[str, Listener]:
    settings, tls, budget = context.settings.frames, context.tls, context.budget
    service = context.built_in.rest.performance
    opened = context.listeners  # at once: if a later one fails, the earlier ones are closed
    if not settings.is_off:
        frames = await listen_frames(
            service, context.settings, settings.address, tls=tls, budget=budget
        )
        opened["frames"] = frames
        if settings.udp and tls is None:  # where TLS is wanted, nothing is said in clear
            opened["datagrams"] = await listen_datagrams(
                service, context.built_in.trusted, frames.address
            )
    if settings.archive != OFF:
        opened["archive"] = await listen_frames(
            service,
            context.settings,
            settings.archive,
            name="archive",
            roles=ARCHIVE,
            tls=tls,
            budget=budget,
        )
    service.addresses = Addresses(
        frames=opened["frames"].address if "frames" in opened else None,
        archive=opened["archive"].address if "archive" in opened else None,
        udp="datagrams" in opened,
        tls=tls is not None,
    )
    return {}


async def open_soap_tcp(context: DialectContext) -> Mapping[str, Listener]:
    settings = context.settings.soap_tcp
    if settings.is_off:
        return {}
    listener = await listen_soap_tcp(
        context.built_in.soap.answer,
        settings.address,
        settings,
        context.note,
        tls=context.tls,
        budget=context.budget,
        per_peer_max=context.settings.limits.connections_per_peer_max,
        peer_connected=context.port.peer_connected,
    )
    return {"soap_tcp": listener}


async def open_pegasus(context: DialectContext) -> Mapping[str, Listener]:
    settings = context.settings.pegasus
    if settings.is_off:
        return {}
    listener = await listen_pegasus(
        context.port,
        context.settings,
        settings.address,
        listener_limits(settings),
        tls=context.tls,
        budget=context.budget,
    )
    return {"pegasus": listener}


async def open_link(context: DialectContext) -> Mapping[str, Listener]:
    settings = context.settings.overlay
    if settings.is_off:
        return {}
    return {"link": await context.built_in.links.listen(settings.address, context.tls)}

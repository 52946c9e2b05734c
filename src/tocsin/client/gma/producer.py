"""Producer: offers events, makes them for whoever subscribes, and pushes them to who should have
them.

    with Producer("127.0.0.1:8405") as producer:
        producer.offer("Temperature", lambda parameters: {"Celsius": Quantity(21.5, "degC")})
        producer.serve_forever()
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from threading import Event, Lock, RLock
from time import monotonic
from typing import Any, Final, Unpack

from tocsin.client.closeable import Closeable
from tocsin.client.event_json import now_text
from tocsin.client.gma.address import is_loopback, read_address
from tocsin.client.gma.connection import IdSource
from tocsin.client.gma.connector import Connectors
from tocsin.client.gma.consumer_peers import ConsumerPeers
from tocsin.client.gma.encoded_event import (
    EncodedEvent,
    Result,
    Time,
    encode_events,
    parameters_of,
    stamp_of,
)
from tocsin.client.gma.feed import ENDED, OPEN, QUEUED_BYTES_MAX, QUEUED_EVENTS_MAX, Feed, Outbox
from tocsin.client.gma.listener import listening_context
from tocsin.client.gma.loop import EmitLimit, LoopThread
from tocsin.client.gma.offers import Demand, Make, Offer, Offers
from tocsin.client.gma.registration import (
    ANSWER_S_MAX,
    LEASE_S_MAX,
    LEASE_S_MIN,
    DirectoryEntry,
    Registration,
    entry_events,
)
from tocsin.client.gma.resubscriber import Resubscriber
from tocsin.client.transport.address import broker_address
from tocsin.client.transport.tls import client_context
from tocsin.credentials.lookup import client_certificate_of
from tocsin.credentials.sign_in import SignIn
from tocsin.errors import BadMessage, BadSetting, Busy
from tocsin.event.value import Scalar
from tocsin.wire.gma.conversation import PRODUCER
from tocsin.wire.gma.names import EventName, read_name

DEFAULT_PERIOD_S: Final = 10.0
FEEDS_MAX: Final = 1_000
REGISTRATIONS_MAX: Final = 10
EMIT_S_MAX: Final = 30.0
DIAL_S_MAX: Final = 10.0
START_S_MAX: Final = 10.0
CLOSE_S_MAX: Final = 5.0
WAIT_S_MIN: Final = 0.1  # for what needs a moment, however late it is


class Producer(Closeable):
    """Any thread may call it. `host` is the HostName of events that do not say one ("": none)."""

    def __init__(
        self,
        listen: str | None = "127.0.0.1:0",
        *,
        host: str | None = None,
        tls_certificate: str = "",
        tls_key: str = "",
        ca_file: str | None = None,
        client_certificate: str | None = None,
        client_key: str | None = None,
    ) -> None:
        where = None if listen is None else read_address(listen, listening=True)
        context = listening_context(tls_certificate, tls_key)
        self._offers = Offers(socket.gethostname() if host is None else host)
        presented = client_certificate_of(client_certificate, client_key, os.environ)
        self._calling = cache(partial(client_context, ca_file, presented))
        self._emit_limit = EmitLimit()
        self._closed = Event()
        self._changing = Lock()  # the feeds and registrations
        self._ending = RLock()
        self._is_ended = False
        self._feeds: list[Feed] = []
        self._registrations: list[Registration] = []
        self._thread = LoopThread("tocsin-producer")
        self._ids = IdSource()
        self._connectors = Connectors(PRODUCER, self._ids, DIAL_S_MAX)
        self._consumer_peers = ConsumerPeers(self._thread, self._offers, self._ids)
        if where is not None:
            try:
                secure = where._replace(tls=context is not None)
                self._thread.ask(self._consumer_peers.open(secure, context), START_S_MAX)
            except BaseException:
                self._thread.close()
                raise

    @property
    def address(self) -> str | None:
        """Where consumers reach it: host:port; None if it does not listen."""
        return (
            None if self._consumer_peers.address is None else self._consumer_peers.address.authority
        )

    @property
    def dropped(self) -> int:
        """Events that consumers lost by reading too slowly; each of them was sent an error."""
        return self._consumer_peers.dropped

    @property
    def registration_error(self) -> str | None:
        """Why it is not in a directory that it should be in; None if it is."""
        return next((each.error for each in self._registrations if each.error), None)

    # What there is

    def offer(
        self,
        name: str,
        make: Make | None = None,
        *,
        parameters: Iterable[str] = ("Period",),
        period_s: float = DEFAULT_PERIOD_S,
    ) -> None:
        """Offer events: `make` is called whenever one is wanted. Without it they are emitted."""
        self._offers.add(_name(name), make, tuple(parameters), period_s)

    def event(
        self,
        name: str,
        *,
        parameters: Iterable[str] = ("Period",),
        period_s: float = DEFAULT_PERIOD_S,
    ) -> Callable[[Make], Make]:
        """The same as a decorator."""

        def offered(make: Make) -> Make:
            self.offer(name, make, parameters=parameters, period_s=period_s)
            return make

        return offered

    def emit(self, name: str, values: Result, time: Time = None) -> None:
        """Send the event to all who subscribed to that name. A new name is offered from now on.

        Several values in a list are one sample, of all disks for instance, with one time stamp.
        """
        self._check_open()
        known = read_name(name)
        offer = self._offers.find(known)
        now = now_text()
        made = encode_events(known, values, host=self._offers.host, now=stamp_of(time, now))
        size = sum(len(each.content) for each in made)
        if offer is None:
            offer = self._offers.find_or_add(known, DEFAULT_PERIOD_S)
        if not self._emit_limit.enter(size, EMIT_S_MAX):
            raise Busy("events are emitted faster than they can go out", remedy="Emit fewer.")
        self._thread.call(self._emitted, offer, made, size)

    # Who should have it

    def push_to(
        self,
        consumer_address: str,
        name: str,
        *,
        period: float | str | None = None,
        filter: str | None = None,
        parameters: Mapping[str, Scalar | Any] | None = None,
        keep_max: int = QUEUED_EVENTS_MAX,
        keep_bytes_max: int = QUEUED_BYTES_MAX,
    ) -> Feed:
        """Begin a subscription with a consumer, such as an archive or a broker, and keep it up.

        While the consumer is away so many events are kept, and so many bytes of them; then the
        oldest are dropped.
        """
        self._check_open()
        address = read_address(consumer_address)
        offer = self._offers.find(_name(name))
        if offer is None:
            raise BadSetting(f"there are no events {name}", remedy=self._offers.listed())
        asked = parameters_of(offer.name, period, parameters)
        for limit, value in (("keep_max", keep_max), ("keep_bytes_max", keep_bytes_max)):
            if value < 1:
                raise BadSetting(f"{limit} is {value}", remedy="Give 1 or more.")
        outbox = Outbox(keep_max, keep_bytes_max, new_number=self._ids.event)
        feed = Feed(self._thread, asked, outbox)
        try:
            offer.check(asked.elements)
            demand = Demand(self._thread, offer, asked, filter, feed)
        except BadMessage as error:
            raise BadSetting(error.problem, remedy=error.remedy) from None
        context = self._calling() if address.tls else None

        async def begin() -> None:
            feed.begin(Resubscriber(self._connectors.to(address, context), feed), demand)

        with self._changing:
            self._feeds = [each for each in self._feeds if each.state != ENDED]
            if len(self._feeds) >= FEEDS_MAX:
                raise BadSetting(f"there are {FEEDS_MAX} feeds", remedy="Close some of them.")
            self._feeds.append(feed)
        self._in_loop(begin())
        return feed

    def register(
        self,
        directory: str | None = "http://127.0.0.1:8400",
        *,
        name: str | None = None,
        attributes: Mapping[str, Scalar] | None = None,
        lease_s: float = 600.0,
        **sign_in: Unpack[SignIn],
    ) -> None:
        """Be found in a directory from now until `close`; `registration_error` says why not.

        One that listens for its own machine alone has no address in a directory elsewhere.
        """
        self._check_open()
        if self._consumer_peers.address is None:
            raise BadSetting(
                "a producer that does not listen cannot be found",
                remedy="Give it an address: Producer(listen='127.0.0.1:0').",
            )
        if not LEASE_S_MIN <= lease_s <= LEASE_S_MAX:
            raise BadSetting(
                f"lease_s is {lease_s}", remedy=f"Give {LEASE_S_MIN:g} seconds to {LEASE_S_MAX:g}."
            )
        broker = broker_address(directory, **sign_in)
        is_near = is_loopback(broker.host)
        entry = partial(self._entry, name, dict(attributes or {}), is_near=is_near)
        registration = Registration(broker, entry, lease_s)
        with self._changing:
            if len(self._registrations) >= REGISTRATIONS_MAX:
                raise BadSetting(
                    f"it is in {REGISTRATIONS_MAX} directories", remedy="Register in each once."
                )
            self._registrations.append(registration)
        registration.start(ANSWER_S_MAX)

    # Its life

    def serve_forever(self) -> None:
        """Wait until it is closed, or interrupted from the keyboard."""
        with suppress(KeyboardInterrupt):
            self._closed.wait()

    def close(self, timeout_s: float = CLOSE_S_MAX) -> None:
        """End every subscription, notify every peer, and leave the directory, within that time.

        Half of it is for events that wait to be acknowledged; what is left of them is lost.
        """
        self._closed.set()
        with self._ending:  # who closes it, too, waits until it is closed
            if self._is_ended:
                return
            self._is_ended = True
            last_s = monotonic() + timeout_s
            for registration in self._registrations:
                registration.close()
            for feed in self._feeds:
                self._thread.call(feed.stop_source)
            for feed in self._feeds:
                if feed.state == OPEN:
                    feed.flush(max(0.0, last_s - timeout_s / 2 - monotonic()))
            with suppress(RuntimeError, TimeoutError):
                self._thread.ask(self._end(), max(WAIT_S_MIN, last_s - monotonic()))
            self._offers.close()
            self._thread.close()
            for registration in self._registrations:
                registration.join(max(WAIT_S_MIN, last_s - monotonic()))

    async def _end(self) -> None:
        await asyncio.gather(self._consumer_peers.close(), *(feed.end() for feed in self._feeds))

    def _in_loop(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            self._thread.ask(work, START_S_MAX)
        except RuntimeError:
            self._check_open()  # it was closed meanwhile
            raise

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise BadSetting("this producer is closed", remedy="Make another one.")

    def _entry(
        self, name: str | None, attributes: dict[str, Scalar], *, is_near: bool
    ) -> DirectoryEntry:
        assert self._consumer_peers.address is not None, "it was looked at before"
        host = self._offers.host or socket.gethostname()
        address = self._consumer_peers.address.seen_as(host)
        events = entry_events(self._offers.all())
        shown = None if address.is_loopback and not is_near else str(address)
        return DirectoryEntry(name or address.authority, shown, host, events, attributes)

    def _emitted(self, offer: Offer, made: list[EncodedEvent], size: int) -> None:
        self._emit_limit.leave(size)
        offer.last = made or offer.last
        for demand in list(offer.demands):
            for each in made:
                demand.emitted(each)


def _name(text: str) -> EventName:
    """A name that can be written; BadEvent if it cannot."""
    name = read_name(text)
    encode_events(name, {}, host="", now=now_text())
    return name

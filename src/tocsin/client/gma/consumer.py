"""Consumer: asks producers for events, subscribes to them, or has them brought.

for event in Consumer("node7:8405").subscribe("UptimeCPULoad", period="10s"):
    print(event["Load5"])
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from threading import Lock, RLock
from typing import Any, Final, TypeVar

from tocsin.client.closeable import Closeable
from tocsin.client.gma.address import DEFAULT_ADDRESS, read_address
from tocsin.client.gma.connection import IdSource
from tocsin.client.gma.connector import Connector, Connectors
from tocsin.client.gma.encoded_event import EncodedEvent, parameters_of, read_filter, without_period
from tocsin.client.gma.listener import listening_context
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.peer_errors import cannot_reach, is_ours, refused
from tocsin.client.gma.producer_peers import ProducerPeers
from tocsin.client.gma.resubscriber import Resubscriber
from tocsin.client.gma.subscription import Subscription, SubscriptionReceiver
from tocsin.client.transport.tls import client_context
from tocsin.credentials.lookup import client_certificate_of
from tocsin.errors import BadSetting
from tocsin.event.value import Quantity, Scalar
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER
from tocsin.wire.gma.names import EventName, read_name

TIMEOUT_S: Final = 10.0
CLOSE_S_MAX: Final = 10.0
SUBSCRIPTIONS_MAX: Final = 1_000
_MARGIN_S: Final = 5.0  # the loop's own time-outs come first

T = TypeVar("T")


class Consumer(Closeable):
    """Any thread may call it. `producer` is an address, without it that of the broker here.

    With `listen` it takes events from producers that call: iterate over it, or `take`.
    """

    def __init__(
        self,
        producer: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        listen: str | None = None,
        ca_file: str | None = None,
        tls_certificate: str = "",
        tls_key: str = "",
        client_certificate: str | None = None,
        client_key: str | None = None,
    ) -> None:
        self._address = read_address(producer or DEFAULT_ADDRESS)
        where = None if listen is None else read_address(listen, listening=True)
        shown = listening_context(tls_certificate, tls_key)
        self._calling = None
        if self._address.tls:
            presented = client_certificate_of(client_certificate, client_key, os.environ)
            self._calling = client_context(ca_file, presented)
        self._timeout_s = timeout_s
        self._closed = False
        self._lock = Lock()
        self._ending = RLock()
        self._receivers: list[SubscriptionReceiver] = []
        self._producer_peers: ProducerPeers | None = None
        self._ids = IdSource()
        self._connectors = Connectors(CONSUMER, self._ids, timeout_s)
        self._thread = LoopThread("tocsin-consumer")
        if where is not None:
            self._producer_peers = ProducerPeers(self._thread, self._ids)
            try:
                self._thread.ask(self._producer_peers.open(where, shown), timeout_s + _MARGIN_S)
            except BaseException:
                self._thread.close()
                raise

    def __del__(self) -> None:
        # `Consumer(...).query(...)` in one line leaves nobody to close it.
        if hasattr(self, "_thread") and not self._closed:
            self._closed = True
            self._thread.close()

    # Ask

    def event_names(self) -> list[EventName]:
        """Which events the producer has."""
        reply = self._request(lambda conversation: conversation.event_names())
        assert isinstance(reply, m.EventNamesReply), "no other reply answers it"
        return list(reply.names)

    def query(
        self, name: str, filter: str | None = None, **parameters: Scalar | Quantity
    ) -> m.PerformanceEvent:
        """One event, now."""
        asked = without_period(parameters_of(read_name(name), None, parameters))
        wanted = read_filter(filter)
        reply = self._request(
            lambda conversation: conversation.query(asked, filter),
            None if wanted is None else lambda conversation: conversation.query(asked),
        )
        assert isinstance(reply, m.QueryReply), "no other reply answers it"
        if reply.event is None:
            raise refused(self._address, "it replied without an event")
        # There is no word in this reply on whether the filter was applied.
        if not EncodedEvent(reply.event).passes(wanted):
            raise refused(self._address, "the event that it has does not pass the filter")
        return reply.event

    # Subscribe

    def subscribe(
        self,
        name: str,
        *,
        period: float | str | None = None,
        filter: str | None = None,
        after: int | None = None,
        **parameters: Scalar | Quantity,
    ) -> Subscription:
        """Events as they come, from now on; `after` begins at that place in a broker's log."""
        asked = parameters_of(read_name(name), period, parameters)
        receiver = SubscriptionReceiver(self._thread, asked, filter, after)

        async def begin() -> None:
            await receiver.begin(
                Resubscriber(self._connectors.to(self._address, self._calling), receiver)
            )

        self._check_open()
        with self._lock:
            self._receivers = [each for each in self._receivers if each.why is None]
            if len(self._receivers) >= SUBSCRIPTIONS_MAX:
                raise BadSetting(
                    f"there are {SUBSCRIPTIONS_MAX} subscriptions", remedy="Unsubscribe some."
                )
            self._receivers.append(receiver)
        # To connect and to be replied to may each take as long as that; and again unfiltered.
        self._in_loop(begin(), self._timeout_s * 4 + _MARGIN_S)
        return Subscription(self._thread, receiver, self)

    # Have them brought

    @property
    def address(self) -> str | None:
        """Where producers reach it: host:port; None if it does not listen."""
        found = None if self._producer_peers is None else self._producer_peers.address
        return None if found is None else found.authority

    @property
    def errors(self) -> int:
        """How many errors producers that called have sent in place of events."""
        return 0 if self._producer_peers is None else self._producer_peers.errors

    @property
    def error(self) -> str | None:
        """The last of them."""
        return None if self._producer_peers is None else self._producer_peers.error

    def __iter__(self) -> Iterator[m.PerformanceEvent]:
        return self

    def __next__(self) -> m.PerformanceEvent:
        event = self.take(None)
        if event is None:
            raise StopIteration
        return event

    def take(self, timeout_s: float | None = None) -> m.PerformanceEvent | None:
        """The next event that a producer brought; None if none came in time, or it is closed."""
        if self._producer_peers is None:
            raise BadSetting(
                "this consumer does not listen",
                remedy="Give it an address: Consumer(listen='127.0.0.1:0'); or subscribe.",
            )
        arrival = self._producer_peers.inbox.take(timeout_s)
        return None if arrival is None else arrival.event

    # Its life

    def close(self) -> None:
        """End every subscription, and notify every peer."""
        with self._ending:  # who closes it, too, waits until it is closed
            if self._closed:
                return
            self._closed = True
            with suppress(RuntimeError, TimeoutError):
                self._thread.ask(self._end(), CLOSE_S_MAX)
            self._thread.close()

    async def _end(self) -> None:
        await asyncio.gather(*(each.end() for each in self._receivers if each.why is None))
        self._connectors.close()
        if self._producer_peers is not None:
            await self._producer_peers.close()

    def _request(self, build: BuildRequest, unfiltered: BuildRequest | None = None) -> m.Reply:
        self._check_open()
        # Twice, because what was kept open may be closed; and each time to connect and to ask.
        return self._in_loop(self._send(build, unfiltered), self._timeout_s * 6 + _MARGIN_S)

    async def _send(self, build: BuildRequest, unfiltered: BuildRequest | None) -> m.Reply:
        connector = self._connectors.to(self._address, self._calling)
        return await send_request(connector, build, unfiltered)

    def _in_loop(self, work: Coroutine[Any, Any, T], timeout_s: float) -> T:
        try:
            return self._thread.ask(work, timeout_s)
        except TimeoutError:
            raise cannot_reach(self._address, f"no end within {timeout_s:g} s") from None
        except RuntimeError:
            if not self._closed:
                raise
            raise cannot_reach(self._address, "this consumer is closed") from None

    def _check_open(self) -> None:
        if self._closed:
            raise cannot_reach(self._address, "this consumer is closed")


BuildRequest = Callable[[c.Conversation], m.QueryRequest | m.EventNamesRequest]


async def send_request(
    connector: Connector, build: BuildRequest, unfiltered: BuildRequest | None = None
) -> m.Reply:
    """The reply that says Success; raises if it does not, or none comes.

    `unfiltered` asks for the same without the filter, for a peer that does not support one.
    """
    connector.keep_open = True  # who asks once asks again
    found = await _send_with_retry(connector, build)
    if unfiltered is not None and not connector.is_tocsin and _is_foreign(connector, found):
        found = await _send_with_retry(connector, unfiltered)
    if isinstance(found, str):
        raise cannot_reach(connector.address, found)
    if found.returned != m.SUCCESS:
        raise refused(connector.address, found.detail)
    return found


def _is_foreign(connector: Connector, found: m.Reply | str) -> bool:
    """True if the peer hung up, or refused in words that are not ours."""
    if isinstance(found, str):
        return True
    return found.returned != m.SUCCESS and not is_ours(refused(connector.address, found.detail))


async def _send_with_retry(connector: Connector, build: BuildRequest) -> m.Reply | str:
    """The reply, or why the connection was closed without one."""
    was_open = connector.is_open
    found = await _send_once(connector, build)
    # What was kept open may have been closed at the other end; to ask twice does no harm.
    return await _send_once(connector, build) if was_open and isinstance(found, str) else found


async def _send_once(connector: Connector, build: BuildRequest) -> m.Reply | str:
    outgoing = await connector.open(is_urgent=True)
    try:
        async with asyncio.timeout(connector.timeout_s):
            reply = await outgoing.send_request(build(outgoing.conversation))
    except TimeoutError:
        if not outgoing.users:
            outgoing.abort("it did not reply")
        raise cannot_reach(
            connector.address, f"no reply within {connector.timeout_s:g} s"
        ) from None
    return reply or outgoing.why or "the connection was closed"

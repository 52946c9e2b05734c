"""Producers that called a consumer, and the events that they bring (an archive)."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final

from tocsin.client.gma.connection import IdSource
from tocsin.client.gma.inbox import Arrival, Inbox
from tocsin.client.gma.listener import AcceptedPeer, PeerListener
from tocsin.client.gma.loop import LoopThread
from tocsin.client.gma.peer_errors import error_text
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m

SEEN_MAX: Final = 50_000  # numbers; a feed of ours has 256 at most on their way
_FULL: Final = "the program takes no more"

log = logging.getLogger("tocsin.gma")


class SeenNumbers:
    """Which numbers came of late, so that what is sent again is not taken twice."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    def is_new(self, feed: str, number: str) -> bool:
        """True for a number that this feed did not use, as far as can be remembered."""
        if (feed, number) in self._seen:
            return False
        self._seen[feed, number] = None
        if len(self._seen) > SEEN_MAX:
            self._seen.popitem(last=False)
        return True


class ProducerPeer(AcceptedPeer):
    """A producer that called. Of the loop's thread alone."""

    role = c.CONSUMER
    frame_bytes_max = 4 << 20

    def __init__(self, peers: ProducerPeers) -> None:
        super().__init__(peers)
        self._all = peers

    def handle(self, received: c.Received) -> None:
        match received:
            case c.SubscribeAsked(request):
                self._subscribe(request)
            case c.EventArrived(subscription, message):
                self._event_received(subscription, message)
            case _:
                pass

    def _subscribe(self, request: m.SubscribeRequest) -> None:
        asked = request.options
        agreed = None
        if asked is not None:
            agreed = m.Options(role=c.CONSUMER, acknowledge=asked.acknowledge)
        reply, _ = self.conversation.accept(request, agreed=agreed)
        self.send(reply)

    def _event_received(self, subscription: c.Subscription, message: m.EventMessage) -> None:
        if message.error is not None:
            self._all.failed(error_text(message.error, message.error_detail))
        number, event = message.request_id, message.event
        agreed, size = subscription.agreed, self.message_bytes
        if number is None or agreed is None or agreed.acknowledge is None:
            if event is not None:
                self._all.take(self, Arrival(event, size))
            return
        if event is not None and not self._all.seen.is_new(agreed.acknowledge, number):
            event = None  # it waits, or was taken, already; but this one wants its answer, too

        def taken() -> None:
            self._all.thread.call(self.send, m.EventReply(number))

        self._all.take(self, Arrival(event, size, taken=taken))


class ProducerPeers(PeerListener[ProducerPeer]):
    """The listening side of a consumer. Any thread may use `inbox`, and read the rest."""

    def __init__(self, thread: LoopThread, ids: IdSource) -> None:
        super().__init__(thread, ids, lambda: ProducerPeer(self))
        self.seen = SeenNumbers()
        self.inbox = Inbox(lambda: thread.call(self._release))
        self.error: str | None = None
        self.errors = 0
        self._held: set[ProducerPeer] = set()

    async def close(self) -> None:
        await super().close()
        self.inbox.end()

    def forget(self, peer: ProducerPeer) -> None:
        super().forget(peer)
        self._held.discard(peer)

    def take(self, peer: ProducerPeer, arrival: Arrival) -> None:
        if not self.inbox.put(arrival):
            self._held.add(peer)
            peer.hold(_FULL)

    def failed(self, error: str) -> None:
        self.errors += 1
        self.error = error
        log.warning("an error in place of an event: %s", error)

    def _release(self) -> None:
        held, self._held = self._held, set()
        for peer in held:
            peer.release(_FULL)

"""OutgoingConnection: one that we opened, and all that is under way on it."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from tocsin.client.gma.address import PeerAddress
from tocsin.client.gma.connection import PeerConnection
from tocsin.client.gma.peer_errors import one_line, refused
from tocsin.errors import BrokerRefused, TocsinError
from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.write import event_message

FRAME_BYTES_MAX: Final = 16 << 20
FLIGHTS_MAX: Final = 700  # events that wait for their answer; a conversation keeps track of 1,000


class SubscriptionOwner(Protocol):
    """Whose subscription it is."""

    retries_after_end: (
        bool  # a peer that says goodbye does so for now, as a broker that is restarted
    )
    has_filter: bool  # which a peer may not support

    def subscribe_request(
        self, conversation: c.Conversation, *, is_plain: bool
    ) -> tuple[m.SubscribeRequest, c.Subscription]:
        """What is asked of the peer on each connection; if `is_plain`, without the filter."""

    def agreed(self, remote: RemoteSubscription) -> None:
        """The peer agreed: events may flow."""

    def event_received(self, message: m.EventMessage) -> None:
        """An event, or an error in its remote."""

    def reply_received(self, reply: m.EventReply) -> None:
        """An answer to an event of ours."""

    def has_room(self) -> None:
        """The peer has read on, or answered."""

    def disconnected(self, error: TocsinError) -> bool:
        """There is no connection, or no agreement; True to try again."""

    def subscription_ended(self, why: str) -> None:
        """It is over, and nothing is tried again."""


class RemoteSubscription:
    """One subscription on one connection, from the request for it to its end."""

    def __init__(
        self,
        outgoing: OutgoingConnection,
        subscriber: SubscriptionOwner,
        request_id: str,
        subscription: c.Subscription,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._outgoing = outgoing
        self.subscriber = subscriber
        self.request_id = request_id
        self.subscription = subscription
        self.flights: set[str] = set()
        self.was_ended = False  # by the peer
        self.detail: str | None = None  # of the reply in which the peer agreed
        # Whether the peer agreed; False if the connection was closed before it replied.
        self.replied: asyncio.Future[bool | BrokerRefused] = loop.create_future()
        self.gone: asyncio.Future[str] = loop.create_future()

    @property
    def is_open(self) -> bool:
        """True if events may flow."""
        return self.subscription.peer_id is not None and not self.gone.done()

    @property
    def is_alone(self) -> bool:
        """True if nobody else has anything to do with the connection."""
        return self._outgoing.users <= 1

    @property
    def may_send(self) -> bool:
        """True if there is room for an event, without taking that of the others."""
        return self.is_open and self._outgoing.has_room_for(self)

    @property
    def unread_bytes(self) -> int:
        return self._outgoing.unread_bytes

    @property
    def message_bytes(self) -> int:
        """Of the message that is being handled."""
        return self._outgoing.message_bytes

    def send_event(self, content: bytes, number: str | None) -> None:
        """Bring the peer an event; with a number it is answered."""
        self._outgoing.send_event(self, content, number)

    def send_error(self, error: str, detail: str) -> None:
        """Send an error in place of an event now, or not at all."""
        if self.is_open and not self._outgoing.is_clogged:
            assert self.subscription.peer_id is not None, "it is open"
            message = m.EventMessage(self.subscription.peer_id, error=error, error_detail=detail)
            self._outgoing.send(message)

    def hold(self) -> None:
        """Read no more: for this one there is no room."""
        self._outgoing.hold(self.subscription.own_id)

    def release(self) -> None:
        """There is room again."""
        self._outgoing.release(self.subscription.own_id)

    def drop(self, why: str) -> None:
        """Give the connection up."""
        self._outgoing.abort(why)

    def unsubscribe(self) -> asyncio.Future[m.Reply | None] | None:
        """End it; the reply of the peer, if it has to be notified."""
        return self._outgoing.unsubscribe(self)

    def end(self, why: str, outcome: bool | BrokerRefused = False) -> None:
        """It is over."""
        if not self.replied.done():
            self.replied.set_result(outcome)
        if not self.gone.done():
            self.gone.set_result(why)


class ConnectionOwner(Protocol):
    """Whose connection it is."""

    address: PeerAddress
    keep_open: bool  # it is kept when nothing is under way on it

    def connection_closed(self, outgoing: OutgoingConnection) -> None:
        """It is closed."""


class OutgoingConnection(PeerConnection):
    """Of the loop's thread alone. `is_plain`: no filter is sent on it."""

    def __init__(
        self, owner: ConnectionOwner, conversation: c.Conversation, *, is_plain: bool
    ) -> None:
        super().__init__(conversation, frame_bytes_max=FRAME_BYTES_MAX, accepted=False)
        self._owner = owner
        self._subscriptions: dict[str, RemoteSubscription] = {}  # by our ids
        self._flights: dict[str, RemoteSubscription] = {}  # by the numbers of events
        self._replies: dict[str, asyncio.Future[m.Reply | None]] = {}
        self.is_plain = is_plain
        self.was_agreed = False  # to anything
        self.why: str | None = None  # it is closed
        self.opened_s = asyncio.get_running_loop().time()

    @property
    def users(self) -> int:
        """Subscriptions and questions that are under way."""
        return len(self._subscriptions) + len(self._replies)

    # What this side does

    def ask(self, subscriber: SubscriptionOwner, *, is_plain: bool) -> RemoteSubscription:
        """Ask for a subscription."""
        request, subscription = subscriber.subscribe_request(self.conversation, is_plain=is_plain)
        remote = RemoteSubscription(self, subscriber, request.request_id, subscription)
        if self.is_open:
            self._subscriptions[subscription.own_id] = remote
            self.send(request)
        else:
            remote.end("the connection was closed")
        return remote

    def send_request(self, request: m.Request) -> asyncio.Future[m.Reply | None]:
        """Ask something; None comes if the connection is closed first. To cancel it is to give up:
        if a reply comes yet, it is no surprise."""
        future: asyncio.Future[m.Reply | None] = asyncio.get_running_loop().create_future()
        if self.is_open:
            self._replies[request.request_id] = future
            future.add_done_callback(lambda _: self._give_up(request.request_id))
            self.send(request)
        else:
            future.set_result(None)
        return future

    def _give_up(self, request_id: str) -> None:
        if self._replies.pop(request_id, None) is not None:
            self.conversation.give_up(request_id)
            self.close_if_idle()

    def unsubscribe(self, remote: RemoteSubscription) -> asyncio.Future[m.Reply | None] | None:
        """End a subscription."""
        if remote.gone.done():
            return None
        conversation = self.conversation
        goodbye = None
        if remote.subscription.peer_id is None:
            conversation.give_up(remote.request_id)
        else:
            goodbye = self.send_request(conversation.unsubscribe(remote.subscription))
        self._end(remote, "this side ended the subscription")
        return goodbye

    def has_room_for(self, remote: RemoteSubscription) -> bool:
        share = max(1, FLIGHTS_MAX // max(1, len(self._subscriptions)))
        return (
            self.is_open
            and not self.is_clogged
            and len(self._flights) < FLIGHTS_MAX
            and len(remote.flights) < share
        )

    def send_event(self, remote: RemoteSubscription, content: bytes, number: str | None) -> None:
        message = self.conversation.event(remote.subscription, None, number)
        if number is not None:
            self._flights[number] = remote
            remote.flights.add(number)
        frame = event_message(message.subscription_id, content, request_id=number)
        self.send_bytes(frame)

    def close_if_idle(self) -> None:
        """Hang up if nobody needs it any more."""
        if not self.users and not self._owner.keep_open:
            self.close("no subscription is left")

    def _end(
        self, remote: RemoteSubscription, why: str, outcome: bool | BrokerRefused = False
    ) -> None:
        self._subscriptions.pop(remote.subscription.own_id, None)
        for number in remote.flights:
            # It may be sent again on this connection: then the first answer to it counts.
            self.conversation.give_up(number)
            self._flights.pop(number, None)
        freed, remote.flights = remote.flights, set()
        remote.release()
        remote.end(why, outcome)
        if freed:
            self.has_room()
        self.close_if_idle()

    # What happens on it

    def has_room(self) -> None:
        # Whoever was first the last time is last now.
        subscriptions = list(self._subscriptions.items())
        for own_id, remote in subscriptions[:1]:
            del self._subscriptions[own_id]
            self._subscriptions[own_id] = remote
        for _, remote in subscriptions:
            if remote.is_open:
                remote.subscriber.has_room()

    def closed(self, why: str) -> None:
        self.why = why
        subscriptions, self._subscriptions = self._subscriptions, {}
        replies, self._replies = self._replies, {}
        self._flights.clear()
        for remote in subscriptions.values():
            remote.end(why)
        for future in replies.values():
            if not future.done():
                future.set_result(None)
        self._owner.connection_closed(self)

    def received(self, received: c.Received) -> None:
        match received:
            case c.Subscribed(subscription, detail):
                self._agreed(self._subscriptions[subscription.own_id], detail)
            case c.Refused(subscription, detail):
                error = refused(self._owner.address, detail)
                self._end(self._subscriptions[subscription.own_id], error.problem, error)
            case c.EventArrived(subscription, message):
                self._subscriptions[subscription.own_id].subscriber.event_received(message)
            case c.Answered(_, m.EventReply() as reply):
                self._answered(reply)
            case c.Answered(_, reply):
                self._replied(reply)
            case c.Ended(subscription):
                remote = self._subscriptions[subscription.own_id]
                remote.was_ended = True
                self._end(remote, f"{self._owner.address} ended the subscription")
            case c.SubscribeAsked(request) | c.RequestReceived(request):
                detail = "nothing can be asked on this connection: its caller asks"
                self.send(self.conversation.refuse(request, detail))

    def _agreed(self, remote: RemoteSubscription, detail: str | None) -> None:
        self.was_agreed = True
        remote.detail = one_line(detail) if detail else None
        if not remote.replied.done():
            remote.replied.set_result(True)
        remote.subscriber.agreed(remote)

    def _answered(self, reply: m.EventReply) -> None:
        was_full = len(self._flights) >= FLIGHTS_MAX
        remote = self._flights.pop(reply.request_id, None)
        if remote is not None:
            remote.flights.discard(reply.request_id)
            remote.subscriber.reply_received(reply)
        if was_full:
            self.has_room()

    def _replied(self, reply: m.Reply) -> None:
        future = self._replies.pop(reply.request_id, None)
        if future is not None and not future.done():
            future.set_result(reply)
        self.close_if_idle()

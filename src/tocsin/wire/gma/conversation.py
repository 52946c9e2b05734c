"""Conversation: one side of the protocol between two peers, and what may follow what.

Pure: messages go in by `receive`, and what they mean comes out; what this side wants to say is made
here, so that its ids are unique and its replies are expected. Either party may be producer,
consumer or both, either may subscribe and unsubscribe, and each knows a subscription by its own id:

    who     says                  is then          who may follow
    either  SubscribeRequest      asked            the other: SubscribeReply
            ... Success           open             producer: Event; either: UnsubscribeRequest
            ... Failure           gone
    either  UnsubscribeRequest    gone             the other: UnsubscribeReply

A request of a consumer and one of a producer are the same message (section 4.3). Who only consumes
takes each for an offer, who only produces for a request. Who does both looks at the role that our
`Options` may say, and without it goes by what happens: whoever sends an event is the producer.

Messages pass each other on their way, so what is about something that ended a moment ago is no
mistake of anybody's. What this side remembers to tell the two apart has limits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count

from tocsin.errors import BrokenConversation, TooManySubscriptions
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.received import (
    Answered,
    Ended,
    EventArrived,
    Received,
    Refusal,
    Refused,
    RequestReceived,
    Stale,
    SubscribeAsked,
    Subscribed,
    Subscription,
)

__all__ = [
    "CONSUMER",
    "PRODUCER",
    "Answered",
    "Conversation",
    "Ended",
    "EventArrived",
    "Received",
    "Refusal",
    "Refused",
    "RequestReceived",
    "Stale",
    "SubscribeAsked",
    "Subscribed",
    "Subscription",
]

PRODUCER = "producer"
CONSUMER = "consumer"
OTHER_ROLE: dict[str | None, str] = {PRODUCER: CONSUMER, CONSUMER: PRODUCER}

SUBSCRIPTIONS_MAX = 1_000  # of one conversation
ASKED_MAX = 1_000  # requests of the peer that wait for their reply
WAITING_MAX = 1_000  # requests of ours that do
REMEMBERED_MAX = 1_000  # what ended of late: messages on their way may still speak of it


class Conversation:
    """One side. `roles` is what this side can be; `new_id` names its subscriptions and
    `new_request_id` its requests: without them both are unique in this conversation only."""

    def __init__(
        self,
        roles: frozenset[str] = frozenset({PRODUCER, CONSUMER}),
        new_id: Callable[[], str] | None = None,
        new_request_id: Callable[[], str] | None = None,
        *,
        subscriptions_max: int = SUBSCRIPTIONS_MAX,
    ) -> None:
        numbers, requests = count(1), count(1)
        self._roles = roles
        self._new_id = new_id or (lambda: str(next(numbers)))
        self._new_request_id = new_request_id or (lambda: str(next(requests)))
        self._subscriptions_max = subscriptions_max
        self._open: dict[str, Subscription] = {}  # by our id
        self._peer_ids: dict[str, Subscription | None] = {}  # of what the peer asked for
        self._waiting: OrderedDict[str, m.Request | m.EventMessage] = OrderedDict()
        self._asking: dict[str, Subscription] = {}  # by the id of our SubscribeRequest
        self._ending: dict[str, Subscription] = {}  # by the id of our UnsubscribeRequest
        self._asked: set[str] = set()
        self._former: OrderedDict[str, None] = OrderedDict()  # our ids of what ended
        # Requests that wait no longer, with the subscription that was asked for.
        self._given_up: OrderedDict[str, Subscription | None] = OrderedDict()
        self._forgot = False  # one of these: a reply to it looks like one to no request

    @property
    def subscriptions(self) -> list[Subscription]:
        """Those that are open."""
        return list(self._open.values())

    @property
    def is_settled(self) -> bool:
        """The peer has answered to all that this side ended, or asked for and then gave up."""
        return not self._ending and not any(self._given_up.values())

    # What this side says

    def subscribe(
        self,
        parameters: m.Parameters,
        *,
        filter: str | None = None,
        options: m.Options | None = None,
        peer_role: str | None = None,
    ) -> tuple[m.SubscribeRequest, Subscription]:
        """Ask for events, or offer them if the peer is to be the consumer."""
        if self._is_full():
            raise TooManySubscriptions(
                f"{self._subscriptions_max} subscriptions are open with this peer",
                remedy="End some of them, or use another connection.",
            )
        own_role = self._only_role() or (options.role if options else None)
        subscription = Subscription(
            self._new_id(),
            parameters,
            filter,
            options,
            peer_role=peer_role or OTHER_ROLE.get(own_role),
        )
        request = m.SubscribeRequest(
            self._new_request_id(), subscription.own_id, parameters, filter, options
        )
        self._wait_for(request.request_id, request)
        self._asking[request.request_id] = subscription
        return request, subscription

    def accept(
        self,
        request: m.SubscribeRequest,
        *,
        detail: str | None = None,
        agreed: m.Options | None = None,
    ) -> tuple[m.SubscribeReply, Subscription]:
        """Agree to what the peer asked."""
        subscription = Subscription(
            self._new_id(),
            request.parameters,
            request.filter,
            request.options,
            request.subscription_id,
            self._role_of(request),
            agreed,
        )
        self._open[subscription.own_id] = subscription
        self._peer_ids[request.subscription_id] = subscription
        self._asked.discard(request.request_id)
        reply = m.SubscribeReply(request.request_id, m.SUCCESS, detail, subscription.own_id, agreed)
        return reply, subscription

    def refuse(self, request: m.Request, detail: str) -> m.Reply:
        """Say no, and why."""
        if isinstance(request, m.SubscribeRequest):
            self._peer_ids.pop(request.subscription_id, None)
        self._asked.discard(request.request_id)
        return m.failure(type(request), request.request_id, detail)

    def replied(self, request: m.Request) -> None:
        """The reply to what was `RequestReceived` is on its way."""
        self._asked.discard(request.request_id)

    def unsubscribe(self, subscription: Subscription) -> m.UnsubscribeRequest:
        """End it from this side."""
        assert subscription.peer_id is not None, "an open one is known to both sides"
        request = m.UnsubscribeRequest(self._new_request_id(), subscription.peer_id)
        self._forget(subscription)
        self._wait_for(request.request_id, request)
        self._ending[request.request_id] = subscription
        return request

    def query(self, parameters: m.Parameters, filter: str | None = None) -> m.QueryRequest:
        request = m.QueryRequest(self._new_request_id(), parameters, filter)
        self._wait_for(request.request_id, request)
        return request

    def event_names(self) -> m.EventNamesRequest:
        request = m.EventNamesRequest(self._new_request_id())
        self._wait_for(request.request_id, request)
        return request

    def give_up(self, request_id: str) -> None:
        """No reply came in time; if one comes yet, it is no surprise."""
        if self._waiting.pop(request_id, None) is not None:
            self._ending.pop(request_id, None)
            subscription = self._asking.pop(request_id, None)
            if subscription is not None:
                _remember(self._former, subscription.own_id)
            self._given_up[request_id] = subscription
            if len(self._given_up) > REMEMBERED_MAX:
                self._given_up.popitem(last=False)
                self._forgot = True

    # What the peer says

    def receive(self, message: m.Message) -> Received:
        """What a message means; BrokenConversation if nothing led to it."""
        if isinstance(message, m.EventMessage):
            return self._event(message)
        if isinstance(message, m.Reply):
            return self._reply(message)
        if message.request_id in self._asked:
            return _no(message, f"requestID {message.request_id} is in use by an earlier request")
        if isinstance(message, m.UnsubscribeRequest):
            return self._unsubscribe(message)  # whatever waits: it waits for nothing itself
        if len(self._asked) >= ASKED_MAX:
            return _no(message, f"{ASKED_MAX} requests wait for their reply already")
        if isinstance(message, m.SubscribeRequest):
            return self._subscribe(message)
        if PRODUCER not in self._roles:
            return _no(message, "this is a consumer: it has no events to give")
        self._asked.add(message.request_id)
        return RequestReceived(message)

    def _subscribe(self, request: m.SubscribeRequest) -> Received:
        role = request.options.role if request.options else None
        if role is not None and not self._roles - {role}:
            return _no(request, f"both sides would be the {role}")
        if request.subscription_id in self._peer_ids:
            return _no(request, f"SubscriptionID {request.subscription_id} is in use; end it first")
        if self._is_full():
            return _no(request, f"{self._subscriptions_max} subscriptions are open already")
        self._peer_ids[request.subscription_id] = None
        self._asked.add(request.request_id)
        return SubscribeAsked(request)

    def _role_of(self, request: m.SubscribeRequest) -> str | None:
        role = request.options.role if request.options else None
        return OTHER_ROLE.get(self._only_role(), role)

    def _only_role(self) -> str | None:
        return next(iter(self._roles)) if len(self._roles) == 1 else None

    def _is_full(self) -> bool:
        found = len(self._open) + len(self._asking) + len(self._asked)
        return found >= self._subscriptions_max

    def _unsubscribe(self, request: m.UnsubscribeRequest) -> Received:
        subscription = self._open.get(request.subscription_id)
        if subscription is None:
            if self._has_ended(request.subscription_id):
                # Both ended it at once: each gets a reply, and neither is wrong.
                detail = "it has ended already"
                return Refusal(m.UnsubscribeReply(request.request_id, m.SUCCESS, detail))
            return _no(request, f"there is no subscription {request.subscription_id}")
        self._forget(subscription)
        return Ended(subscription, m.UnsubscribeReply(request.request_id))

    def _event(self, message: m.EventMessage) -> Received:
        subscription = self._open.get(message.subscription_id)
        if subscription is None:
            if self._has_ended(message.subscription_id):
                return Stale(message)
            raise BrokenConversation(
                f"an event came for the subscription {message.subscription_id[:80]!r}, "
                "which does not exist",
                remedy="Send events with the SubscriptionID that the consumer gave.",
            )
        settled = subscription.peer_role is None
        if subscription.peer_role == CONSUMER:
            if subscription.options is None or subscription.options.role is None:
                return Stale(message)  # without roles the peer could not know
            raise BrokenConversation(
                f"the consumer of the subscription {message.subscription_id[:80]!r} sent an event",
                remedy="Subscribe as a producer to send events.",
            )
        subscription.peer_role = PRODUCER
        return EventArrived(subscription, message, settled)

    def _reply(self, reply: m.Reply) -> Received:
        request = self._waiting.get(reply.request_id)
        if request is None:
            if reply.request_id in self._given_up or self._forgot:
                return self._late(reply)
            raise BrokenConversation(
                f"a {type(reply).__name__} came to no request ({reply.request_id[:80]!r})",
                remedy="Reply with the requestID of the request.",
            )
        if m.REPLY_TO[type(request)] is not type(reply):
            raise BrokenConversation(
                f"a {type(reply).__name__} came to a {type(request).__name__}",
                remedy=f"Reply with a {m.REPLY_TO[type(request)].__name__}.",
            )
        del self._waiting[reply.request_id]
        if isinstance(reply, m.SubscribeReply):
            return self._subscribed(self._asking.pop(reply.request_id), reply)
        self._ending.pop(reply.request_id, None)
        return Answered(request, reply)

    def _late(self, reply: m.Reply) -> Stale:
        subscription = self._given_up.get(reply.request_id)
        if subscription is None or not isinstance(reply, m.SubscribeReply):
            return Stale(reply)
        self._given_up[reply.request_id] = None
        if reply.returned != m.SUCCESS or reply.subscription_id is None:
            return Stale(reply)
        subscription.peer_id = reply.subscription_id
        return Stale(reply, self.unsubscribe(subscription))

    def _has_ended(self, own_id: str) -> bool:
        """A moment ago, or as far as the peer can know it is still open."""
        return own_id in self._former or any(
            own_id == subscription.own_id for subscription in self._ending.values()
        )

    def _subscribed(self, subscription: Subscription, reply: m.SubscribeReply) -> Received:
        if reply.returned != m.SUCCESS:
            _remember(self._former, subscription.own_id)
            return Refused(subscription, reply.detail)
        if reply.subscription_id is None:
            raise BrokenConversation(
                "the reply says Success, and no SubscriptionID",
                remedy="Name the subscription in the reply, so that it can be ended.",
            )
        subscription.peer_id = reply.subscription_id
        subscription.agreed = reply.options
        self._open[subscription.own_id] = subscription
        return Subscribed(subscription, reply.detail)

    # Events of ours

    def event(
        self,
        subscription: Subscription,
        event: m.PerformanceEvent | None,
        request_id: str | None = None,
    ) -> m.EventMessage:
        """The message that brings the peer an event; with a number, if it agreed to answer.

        None for the event if whoever asks has its element written already.
        """
        assert subscription.peer_id is not None, "an open one is known to both sides"
        message = m.EventMessage(subscription.peer_id, event, request_id=request_id)
        if request_id is not None:
            waiting = self._waiting.get(request_id)
            assert not isinstance(waiting, m.Request), "events are numbered apart from requests"
            self._wait_for(request_id, message)
        return message

    def _wait_for(self, request_id: str, request: m.Request | m.EventMessage) -> None:
        self._waiting[request_id] = request
        while len(self._waiting) > WAITING_MAX:
            self.give_up(next(iter(self._waiting)))

    def _forget(self, subscription: Subscription) -> None:
        self._open.pop(subscription.own_id, None)
        peer_id = subscription.peer_id
        # Only its own: the peer may have used the id again since.
        if peer_id is not None and self._peer_ids.get(peer_id) is subscription:
            del self._peer_ids[peer_id]
        _remember(self._former, subscription.own_id)


def _no(request: m.Request, detail: str) -> Refusal:
    return Refusal(m.failure(type(request), request.request_id, detail))


def _remember(memory: OrderedDict[str, None], key: str) -> None:
    memory[key] = None
    if len(memory) > REMEMBERED_MAX:
        memory.popitem(last=False)

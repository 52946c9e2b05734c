"""A consumer, and an archive, of the producer/consumer protocol; see minimal_wire."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from queue import Empty, Queue
from typing import Self

from minimal_line import Conversation, Listener, connect
from minimal_messages import (
    Content,
    Event,
    EventNamesReply,
    EventNamesRequest,
    Failed,
    Message,
    NotInThePaper,
    QueryReply,
    QueryRequest,
    Reply,
    SubscribeReply,
    SubscribeRequest,
    UnsubscribeReply,
    UnsubscribeRequest,
    Value,
)
from minimal_wire import EVENTS, PARAMETERS, answers

WAIT_S_MAX = 10.0


def asked_for(
    name: str,
    namespace: str,
    *,
    written_in: str,
    period: tuple[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Content:
    """The parameters element; `written_in` is its namespace if the event is of the Grid Forum."""
    values = {key: Value(text) for key, text in (parameters or {}).items()}
    if period is not None:
        values["Period"] = Value(period[0], units=period[1])
    return Content(name, written_in if namespace == EVENTS else namespace, values)


class Subscription:
    """One subscription as the consumer sees it: what came, and whether it is over."""

    def __init__(self, side: Consuming, conversation: Conversation, asked: Content) -> None:
        self.side = side
        self.conversation = conversation
        self.asked = asked
        self.namespace = EVENTS if asked.namespace == PARAMETERS else asked.namespace
        self.own_id = str(next(side.subscription_ids))
        self.producer_id: str | None = None
        self.ended = threading.Event()
        self.events: Queue[Event] = Queue()

    def next_event(self, wait_s: float = WAIT_S_MAX) -> Content:
        """The next event; an Error in its place raises Failed."""
        message = self.next_message(wait_s)
        if message.content is None:
            raise Failed(f"{message.error}: {message.error_detail}")
        return message.content

    def next_message(self, wait_s: float = WAIT_S_MAX) -> Event:
        deadline_s = time.monotonic() + wait_s
        while True:
            over = self.conversation.ended.is_set() or time.monotonic() >= deadline_s
            try:
                # In short waits, so that a connection that ended meanwhile is noticed.
                return self.events.get(timeout=0 if over else min(wait_s, 0.1))
            except Empty:
                if over:
                    break
        problem = self.conversation.problem
        raise problem or AssertionError(f"no event of {self.asked.name} in {wait_s} s")

    def take(self, message: Event) -> None:
        if self.producer_id is None:
            raise NotInThePaper(f"an Event before its SubscribeReply: {message}")
        content = message.content
        if content is not None and not answers(self.asked, self.namespace, content):
            raise NotInThePaper(f"{self.asked} was asked for, {content} came")
        self.events.put(message)

    def unsubscribe(self) -> None:
        """Say goodbye; after the reply nothing may come any more."""
        assert self.producer_id is not None
        request_id = self.conversation.next_request_id()
        request = UnsubscribeRequest(request_id, self.producer_id)
        reply = self.conversation.ask(request, lambda reply: self.side.end(self))
        assert isinstance(reply, UnsubscribeReply)
        if not reply.success:
            raise Failed(reply.detail)


class Consuming:
    """What a consumer does with the messages of its producers, on any of its connections."""

    def __init__(self) -> None:
        self.subscription_ids = itertools.count(101)
        self.open: dict[str, Subscription] = {}
        self.closed: set[str] = set()
        self.initiated: Queue[Subscription] = Queue()

    def handle(self, conversation: Conversation, message: Message) -> None:
        match message:
            case Event():
                self.own(conversation, message.subscription_id).take(message)
            case UnsubscribeRequest():
                self.goodbye(conversation, message)
            case SubscribeRequest():
                self.subscribed(conversation, message)
            case _:
                raise NotInThePaper(f"a consumer is not asked for {message}")

    def own(self, conversation: Conversation, subscription_id: str) -> Subscription:
        subscription = self.open.get(subscription_id)
        if subscription is None or subscription.conversation is not conversation:
            state = "ended" if subscription_id in self.closed else "unknown"
            raise NotInThePaper(f"an Event for the {state} subscription {subscription_id!r}")
        return subscription

    def end(self, subscription: Subscription) -> None:
        self.open.pop(subscription.own_id, None)
        self.closed.add(subscription.own_id)
        subscription.ended.set()

    def goodbye(self, conversation: Conversation, request: UnsubscribeRequest) -> None:
        subscription = self.open.get(request.subscription_id)
        if subscription is not None and subscription.conversation is conversation:
            self.end(subscription)
        known = request.subscription_id in self.closed
        detail = None if known else f"no subscription {request.subscription_id}"
        conversation.send(UnsubscribeReply(request.request_id, known, detail))

    def subscribed(self, conversation: Conversation, request: SubscribeRequest) -> None:
        raise NotInThePaper(f"this consumer takes no subscription of a producer's: {request}")


class PlainConsumer(Consuming):
    """A consumer connected to one producer."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.conversation = Conversation(connect(address), self.handle).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up. Raises NotInThePaper if the producer sent what the paper does not have."""
        self.conversation.close()

    def event_names(self) -> tuple[tuple[str, str], ...]:
        """Names and namespaces of the events to be had."""
        reply = self.conversation.ask(EventNamesRequest(self.conversation.next_request_id()))
        assert isinstance(reply, EventNamesReply)
        if not reply.success:
            raise Failed(reply.detail)
        return reply.names

    def query(
        self,
        name: str,
        namespace: str = EVENTS,
        *,
        written_in: str = EVENTS,
        parameters: Mapping[str, str] | None = None,
    ) -> Content:
        """One event, now."""
        asked = asked_for(name, namespace, written_in=written_in, parameters=parameters)
        reply = self.conversation.ask(QueryRequest(self.conversation.next_request_id(), asked))
        assert isinstance(reply, QueryReply)
        if not reply.success or reply.content is None:
            raise Failed(reply.detail)
        if not answers(asked, namespace, reply.content):
            raise NotInThePaper(f"{asked} was asked for, {reply.content} came")
        return reply.content

    def subscribe(
        self,
        name: str,
        namespace: str = EVENTS,
        *,
        period: tuple[str, str] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> Subscription:
        """A stream of events; the period is a number and its units, as in ("600", "sec")."""
        asked = asked_for(
            name, namespace, written_in=PARAMETERS, period=period, parameters=parameters
        )
        subscription = Subscription(self, self.conversation, asked)
        self.open[subscription.own_id] = subscription
        request_id = self.conversation.next_request_id()
        request = SubscribeRequest(request_id, subscription.own_id, asked)
        reply = self.conversation.ask(request, lambda reply: self.accepted(subscription, reply))
        assert isinstance(reply, SubscribeReply)
        if not reply.success:
            raise Failed(reply.detail)
        return subscription

    def accepted(self, subscription: Subscription, reply: Reply) -> None:
        # On the thread that reads, so that an event right behind the reply finds its subscription.
        assert isinstance(reply, SubscribeReply)
        subscription.producer_id = reply.subscription_id
        if not reply.success:
            self.end(subscription)


class PlainArchive(Consuming):
    """A consumer that listens: producers connect to it and initiate subscriptions."""

    def __init__(
        self, *, refuses: frozenset[str] = frozenset(), passes_foreign: bool = False
    ) -> None:
        super().__init__()
        self.refuses = refuses
        self.listener = Listener(self.handle, passes_foreign=passes_foreign)
        self.address = self.listener.address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening. Raises NotInThePaper if a producer sent what the paper does not have."""
        self.listener.close()

    def next_subscription(self, wait_s: float = WAIT_S_MAX) -> Subscription:
        """The next subscription that a producer initiated."""
        try:
            return self.initiated.get(timeout=wait_s)
        except Empty:
            raise AssertionError(f"no producer subscribed within {wait_s} s") from None

    def subscribed(self, conversation: Conversation, request: SubscribeRequest) -> None:
        if request.asked.name in self.refuses:
            detail = f"no {request.asked.name} here"
            conversation.send(SubscribeReply(request.request_id, success=False, detail=detail))
            return
        subscription = Subscription(self, conversation, request.asked)
        subscription.producer_id = request.subscription_id
        self.open[subscription.own_id] = subscription
        conversation.send(
            SubscribeReply(request.request_id, True, subscription_id=subscription.own_id)
        )
        self.initiated.put(subscription)

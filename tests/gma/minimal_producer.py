"""A producer of the producer/consumer protocol; see minimal_wire."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Self, TypeAlias

from minimal_line import STOP_S_MAX, Conversation, LineClosed, Listener, close_all, connect
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
    SubscribeReply,
    SubscribeRequest,
    UnsubscribeReply,
    UnsubscribeRequest,
    Value,
)
from minimal_wire import EVENTS, PARAMETERS, period_s

# From the parameters of the request to the values of one event, without its time.
Measure: TypeAlias = Callable[[Mapping[str, Value]], Mapping[str, Value]]
EventName: TypeAlias = tuple[str, str]  # (name, namespace)


def time_stamp() -> Value:
    return Value(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))


class Served:
    """One subscription as the producer sees it: events at its period until somebody ends it."""

    def __init__(
        self,
        producer: PlainProducer,
        conversation: Conversation,
        event: EventName,
        asked: Content,
        every_s: float,
    ) -> None:
        self.producer = producer
        self.conversation = conversation
        self.event = event
        self.asked = asked
        self.every_s = every_s
        self.own_id = str(next(producer.subscription_ids))
        self.consumer_id: str | None = None
        self.ended = threading.Event()
        self.sending = threading.Lock()
        self.sender = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """An event at once, then one each period."""
        while True:
            try:
                if not self.send_one():
                    return
            except LineClosed:
                self.ended.set()
                return
            if self.ended.wait(self.every_s):
                return

    def send_one(self) -> bool:
        """Send the event of this moment, unless it is over. Returns whether it was sent."""
        assert self.consumer_id is not None
        try:
            message = Event(self.consumer_id, self.producer.measured(self.event, self.asked))
        except Exception as problem:
            message = Event(self.consumer_id, None, "Failure", str(problem))
        with self.sending:
            if self.ended.is_set():
                return False
            self.conversation.send(message)
            return True

    def stop(self) -> None:
        """No event is sent after this returns."""
        with self.sending:
            self.ended.set()

    def unsubscribe(self) -> None:
        """End it from this side."""
        assert self.consumer_id is not None
        self.stop()
        request_id = self.conversation.next_request_id()
        reply = self.conversation.ask(UnsubscribeRequest(request_id, self.consumer_id))
        assert isinstance(reply, UnsubscribeReply)
        if not reply.success:
            raise Failed(reply.detail)


class PlainProducer:
    """Listens for consumers, and connects to those that it wants to send to."""

    def __init__(
        self,
        measures: Mapping[str | EventName, Measure],
        *,
        every_s: float = 1.0,
        passes_foreign: bool = False,
    ) -> None:
        self.measures = {
            (key, EVENTS) if isinstance(key, str) else key: measure
            for key, measure in measures.items()
        }
        self.every_s = every_s
        self.subscription_ids = itertools.count(9001)
        self.served: dict[str, Served] = {}
        self.requests: list[Message] = []
        self.outgoing: list[Conversation] = []
        self.listener = Listener(self.handle, passes_foreign=passes_foreign)
        self.address = self.listener.address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all. Raises NotInThePaper if a consumer sent what the paper does not have."""
        for served in list(self.served.values()):
            served.stop()
        try:
            self.listener.close()
        finally:
            close_all(self.outgoing)
            for served in list(self.served.values()):
                if served.sender.is_alive():
                    served.sender.join(STOP_S_MAX)

    def handle(self, conversation: Conversation, message: Message) -> None:
        self.requests.append(message)
        match message:
            case SubscribeRequest():
                self.subscribe(conversation, message)
            case UnsubscribeRequest():
                self.unsubscribe(conversation, message)
            case QueryRequest():
                conversation.send(self.answer(message))
            case EventNamesRequest():
                names = tuple(self.measures)
                conversation.send(EventNamesReply(message.request_id, bool(names), names=names))
            case _:
                raise NotInThePaper(f"a producer is not sent {message}")

    def event_of(self, asked: Content) -> EventName:
        """The event that a parameters element is about."""
        namespace = EVENTS if asked.namespace == PARAMETERS else asked.namespace
        if (asked.name, namespace) not in self.measures:
            raise LookupError(f"no event {asked.name} in {namespace}")
        return asked.name, namespace

    def measured(self, event: EventName, asked: Content) -> Content:
        parameters = {name: value for name, value in asked.values.items() if name != "Period"}
        values = self.measures[event](parameters)
        return Content(*event, {**values, "TimeStamp": time_stamp()})

    def answer(self, request: QueryRequest) -> QueryReply:
        try:
            content = self.measured(self.event_of(request.asked), request.asked)
        except Exception as problem:
            return QueryReply(request.request_id, success=False, detail=str(problem))
        return QueryReply(request.request_id, success=True, content=content)

    def subscribe(self, conversation: Conversation, request: SubscribeRequest) -> None:
        """A consumer-initiated subscription: the reply first, then the events."""
        try:
            event = self.event_of(request.asked)
            every_s = period_s(request.asked) or self.every_s
            self.check_new(conversation, request.subscription_id)
        except (LookupError, ValueError) as problem:
            reply = SubscribeReply(request.request_id, success=False, detail=str(problem))
            conversation.send(reply)
            return
        served = Served(self, conversation, event, request.asked, every_s)
        served.consumer_id = request.subscription_id
        self.served[served.own_id] = served
        conversation.send(SubscribeReply(request.request_id, True, subscription_id=served.own_id))
        served.sender.start()

    def check_new(self, conversation: Conversation, consumer_id: str) -> None:
        for served in list(self.served.values()):
            if served.conversation is conversation and served.consumer_id == consumer_id:
                raise ValueError(f"subscription {consumer_id} is there already")

    def unsubscribe(self, conversation: Conversation, request: UnsubscribeRequest) -> None:
        served = self.served.get(request.subscription_id)
        known = served is not None and served.conversation is conversation
        if served is not None and known:
            served.stop()
        detail = None if known else f"no subscription {request.subscription_id}"
        conversation.send(UnsubscribeReply(request.request_id, known, detail))

    def push_to(
        self, address: str, event: str | EventName, *, period: tuple[str, str] | None = None
    ) -> Served:
        """A producer-initiated subscription at a consumer that listens (section 4.3)."""
        event = (event, EVENTS) if isinstance(event, str) else event
        values = {} if period is None else {"Period": Value(period[0], units=period[1])}
        asked = Content(event[0], PARAMETERS if event[1] == EVENTS else event[1], values)
        conversation = Conversation(connect(address), self.handle).start()
        self.outgoing.append(conversation)
        served = Served(self, conversation, event, asked, period_s(asked) or self.every_s)
        self.served[served.own_id] = served
        request = SubscribeRequest(conversation.next_request_id(), served.own_id, asked)
        reply = conversation.ask(request)
        assert isinstance(reply, SubscribeReply)
        if not reply.success:
            del self.served[served.own_id]
            raise Failed(reply.detail)
        served.consumer_id = reply.subscription_id
        served.sender.start()
        return served

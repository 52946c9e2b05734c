"""What is sent to a consumer on one connection, and which names of events it was offered."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.names import EventName

NAMES_MAX: Final = 500  # open at once; past it the longest unused one is ended, and offered again
ASK_AGAIN_S: Final = 60.0  # who ended a subscription is left alone for so long

Offer = tuple[str, EventName]
"""Which subscription of the broker, and which of its events."""


class Outgoing(msgspec.Struct, frozen=True):
    """An event as it goes out."""

    name: EventName
    number: str
    content: bytes


class EventBatch(msgspec.Struct, frozen=True):
    """Events that go together, in this order. `feed` is under which name they are numbered."""

    feed: str
    events: tuple[Outgoing, ...]


class Offers:
    """Makes, finds and ends them; the messages to send for that are returned."""

    def __init__(self, conversation: c.Conversation) -> None:
        self._conversation = conversation
        self._open: OrderedDict[Offer, c.Subscription] = OrderedDict()
        self._asked: dict[Offer, str] = {}  # not answered yet; by which request
        self._ended: dict[Offer, float] = {}  # by the consumer, and when it may be asked again

    @property
    def is_empty(self) -> bool:
        """Nothing is open, or asked."""
        return not self._open and not self._asked

    def find(self, offer: Offer) -> c.Subscription | None:
        """What events go under, if the consumer agreed; now it is not the longest unused one."""
        subscription = self._open.get(offer)
        if subscription is not None:
            self._open.move_to_end(offer)
        return subscription

    def is_asked(self, offer: Offer) -> bool:
        return offer in self._asked

    def is_unwanted(self, offer: Offer, now_s: float) -> bool:
        """The consumer ended it not long ago."""
        return self._ended.get(offer, 0.0) > now_s

    def make(self, offer: Offer) -> list[m.Message]:
        self._ended.pop(offer, None)
        messages: list[m.Message] = []
        if len(self._open) >= NAMES_MAX:
            _, unused = self._open.popitem(last=False)
            messages.append(self._conversation.unsubscribe(unused))
        feed, name = offer
        options = m.Options(role=c.PRODUCER, acknowledge=feed)
        request, _ = self._conversation.subscribe(m.Parameters(name), options=options)
        self._asked[offer] = request.request_id
        return [*messages, request]

    def accepted(self, subscription: c.Subscription) -> None:
        self._open[self.answered(subscription)] = subscription

    def answered(self, subscription: c.Subscription) -> Offer:
        """The consumer answered to this one; it is not asked any more."""
        options = subscription.options
        assert options is not None, "every offer of ours says what we are"
        assert options.acknowledge is not None, "and how its events are numbered"
        offer = (options.acknowledge, subscription.parameters.name)
        self._asked.pop(offer, None)
        return offer

    def over(self, subscription: c.Subscription, now_s: float) -> Offer:
        """The consumer wants no more of these."""
        offer = next(offer for offer, each in self._open.items() if each is subscription)
        del self._open[offer]
        if len(self._ended) >= NAMES_MAX:
            self._ended.pop(next(iter(self._ended)))
        self._ended[offer] = now_s + ASK_AGAIN_S
        return offer

    def end(self, feed: str) -> list[m.Message]:
        """Nothing more of this subscription of the broker comes."""
        for offer in [offer for offer in self._asked if offer[0] == feed]:
            # If the consumer agrees yet, the conversation knows how to take it back.
            self._conversation.give_up(self._asked.pop(offer))
        open_now = [offer for offer in self._open if offer[0] == feed]
        return [self._conversation.unsubscribe(self._open.pop(offer)) for offer in open_now]

    def end_all(self) -> list[m.Message]:
        """Nothing more comes."""
        feeds = dict.fromkeys(feed for feed, _ in (*self._open, *self._asked))
        return [goodbye for feed in feeds for goodbye in self.end(feed)]

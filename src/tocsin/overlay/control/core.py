"""ControlCore: where control messages go from one broker of a tree, and which are dropped.

Time is that of a clock that nobody sets. A message is taken once, whatever it says and however
often it comes; it crosses no more links than it may, and never the one that it came over.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Final

import msgspec

from tocsin.errors import (
    BadControlMessage,
    ControlFull,
    ControlRateReached,
    NoSuchBroker,
    TocsinError,
)
from tocsin.event.control_topic import EVERY_BROKER, FLOOD_HOPS_MAX, ControlGroup, ControlTopic
from tocsin.overlay.control.effects import Deliver, Effect, NoWays, Send, Ways
from tocsin.overlay.control.options import ControlOptions
from tocsin.overlay.control.rates import Rates
from tocsin.overlay.control.seen import Seen
from tocsin.overlay.control.serving import Serving
from tocsin.wire.link.messages import Control

_ALL: Final = ""  # the one name in the rate of all together


class Dropped(StrEnum):
    """Why a message goes no further."""

    RATE = "rate"  # too many of one sender, or of all
    MEMORY = "memory"  # too many are remembered
    WAITING = "waiting"  # too much waits for a neighbour
    MAILBOX = "mailbox"  # too much waits for the stream of an entity, or it gets too many
    INVALID = "invalid"
    ORIGIN = "origin"  # it is not behind who has sent it
    NO_WAY = "no way"  # nothing leads to the broker that it is for
    RIGHT = "right"  # the neighbour that it would go to has none to it


class Counts:
    """Messages, by their groups, and why some were dropped."""

    def __init__(self) -> None:
        self.sent: Counter[ControlGroup] = Counter()  # by clients and services of this broker
        self.received: Counter[ControlGroup] = Counter()  # from neighbours
        self.forwarded: Counter[ControlGroup] = Counter()  # to neighbours
        self.delivered: Counter[ControlGroup] = Counter()  # here
        self.repeats = 0  # received once more, while there was a cycle
        self.dropped: Counter[Dropped] = Counter()


class ControlCore:
    """See the module."""

    def __init__(self, broker: str, options: ControlOptions) -> None:
        self.broker = broker
        self.options = options
        self._ways: Ways = NoWays()
        self.serving = Serving(broker, options, self._ways)
        self.counts = Counts()
        self._links: dict[str, None] = {}
        self._rates = Rates(options.neighbour_rate, options.senders_max)
        self._total = Rates(options.total_rate, 1)
        self._entities = Rates(options.entity_rate, options.senders_max)
        self._seen = Seen(options.remembered_ns, options.remembered_max)

    @property
    def remembered(self) -> int:
        """How many messages are known not to be taken again."""
        return len(self._seen)

    # Links

    def use(self, ways: Ways) -> None:
        """There are links; to be called before the first of them is up."""
        self._ways = self.serving.ways = ways

    def link_up(self, neighbour: str) -> None:
        self._links[neighbour] = None
        self.serving.link_up(neighbour)

    def link_down(self, neighbour: str) -> None:
        self._links.pop(neighbour, None)
        self.serving.link_down(neighbour)

    # Messages of this broker

    def check_rate(self, sender: str, now_ns: int) -> None:
        """ControlRateReached if this client, or everybody together, sends too much."""
        if not self._entities.take(sender, now_ns):
            wait_s = self._entities.wait_s(sender, now_ns)
            raise self._reached(self.options.entity_rate, "of one client", wait_s)
        if not self._total.take(_ALL, now_ns):
            wait_s = self._total.wait_s(_ALL, now_ns)
            raise self._reached(self.options.total_rate, "of all", wait_s)

    def _reached(self, rate: float, whose: str, wait_s: float) -> ControlRateReached:
        self.counts.dropped[Dropped.RATE] += 1
        return ControlRateReached(
            f"{rate:g} control messages a second {whose} are as many as there may be",
            remedy="Wait; or ask the operator of this broker to raise it.",
            retry_after_s=wait_s,
        )

    def send(self, message: Control, now_ns: int) -> list[Effect]:
        """Of a client or a service of this broker. BadControlMessage if it cannot go there,
        NoSuchBroker if nothing leads to the broker that it is for, ControlFull."""
        topic = ControlTopic.parse(message.topic)
        check_reach(topic, message)
        to = message.to
        if to not in ("", EVERY_BROKER, self.broker) and not self._ways.ways_to(to):
            self.counts.dropped[Dropped.NO_WAY] += 1
            raise NoSuchBroker(
                f"no way leads to the broker {to}",
                remedy="It may be away; GET /overlay lists those that can be reached.",
            )
        self._seen.forget(now_ns)
        self._remember(message, now_ns)
        self.counts.sent[topic.group] += 1
        return self._spread(topic, message, "")

    # Messages of neighbours

    def receive(self, neighbour: str, message: Control, now_ns: int) -> list[Effect]:
        """Raises for what is dropped and should not have been sent: the neighbour is told."""
        if not self._rates.take(neighbour, now_ns):
            raise self._reached(self.options.neighbour_rate, "of one neighbour", 0.0)
        if not self._total.take(_ALL, now_ns):
            raise self._reached(self.options.total_rate, "of all", 0.0)
        topic = self._checked(neighbour, message)
        self._seen.forget(now_ns)
        self.counts.received[topic.group] += 1
        if message.origin == self.broker or (message.origin, message.id) in self._seen:
            self.counts.repeats += 1
            return []
        self._remember(message, now_ns)
        return self._spread(topic, message, neighbour)

    def _checked(self, neighbour: str, message: Control) -> ControlTopic:
        try:
            topic = ControlTopic.parse(message.topic)
            check_reach(topic, message)
        except TocsinError:
            self.counts.dropped[Dropped.INVALID] += 1
            raise
        # Answers go to the origin, so nobody may name one that is elsewhere.
        if message.origin != self.broker and neighbour not in self._ways.ways_to(message.origin):
            self.counts.dropped[Dropped.ORIGIN] += 1
            raise BadControlMessage(
                f"{neighbour} sends a control message of {message.origin[:64]}, which is not "
                "behind it",
                remedy="Nothing needs to be done if that broker has just moved.",
            )
        return topic

    def _remember(self, message: Control, now_ns: int) -> None:
        if self._seen.is_full:
            self.counts.dropped[Dropped.MEMORY] += 1
            raise ControlFull(
                f"{len(self._seen)} control messages are remembered, as many as may be",
                remedy="Send it again in a minute.",
            )
        self._seen.add((message.origin, message.id), now_ns)

    def _spread(self, topic: ControlTopic, message: Control, came_by: str) -> list[Effect]:
        """To whom it is meant for here, and to the neighbours behind which others are."""
        effects: list[Effect] = []
        if self._is_for_here(topic, message):
            self.counts.delivered[topic.group] += 1
            effects.append(Deliver(topic, message))
        # At its origin nothing has been crossed yet.
        left = message.ttl - 1 if came_by else message.ttl
        if left > 0:
            onward = msgspec.structs.replace(message, ttl=left)
            onto = self._towards(topic, message, came_by)
            effects += [Send(each, onward) for each in self._links if each in onto]
        return effects

    def _is_for_here(self, topic: ControlTopic, message: Control) -> bool:
        if message.to:
            return message.to in (EVERY_BROKER, self.broker)
        own = self.serving.own
        return bool(own) and (not topic.name or topic.name in own)

    def _towards(self, topic: ControlTopic, message: Control, came_by: str) -> set[str]:
        """The neighbours through which it goes on: not the one that it came by."""
        ways_to, to = self._ways.ways_to, message.to
        if to == self.broker:
            return set()
        if to == EVERY_BROKER:
            return self._links.keys() - {came_by}
        if to:  # there is one way, also while there is a cycle
            way = next((each for each in ways_to(to) if each != came_by), None)
            if way is None:
                self.counts.dropped[Dropped.NO_WAY] += 1
            return set() if way is None else {way}
        found: set[str] = set()
        for entry in self.serving.brokers(topic.name):
            if entry.broker != self.broker:
                found.update(ways_to(entry.broker))
        return found - {came_by}

    def dropped(self, neighbour: str) -> ControlFull:
        """There was no room for a message on the way to this neighbour."""
        self.counts.dropped[Dropped.WAITING] += 1
        return ControlFull(
            f"{neighbour} does not take control messages as quickly as they come",
            remedy="Send it again later.",
        )

    def forwarded(self, message: Control) -> None:
        """It was sent to a neighbour."""
        self.counts.forwarded[ControlTopic.parse(message.topic).group] += 1


def check_reach(topic: ControlTopic, message: Control) -> None:
    """BadControlMessage for a message that may not go to whom it says, or not as far."""
    to_nodes = topic.group in (ControlGroup.TOPICS, ControlGroup.NODES)
    if not message.to and not to_nodes:
        problem = "names no broker that it is for"
    elif message.to == EVERY_BROKER and topic.group is ControlGroup.NODES:
        problem = "is for topic discovery nodes, and not for everybody"
    elif (
        message.to == EVERY_BROKER
        and topic.group is not ControlGroup.RIGHTS
        and message.ttl > FLOOD_HOPS_MAX
    ):
        problem = f"may cross {message.ttl} links, and not {FLOOD_HOPS_MAX} at most"
    else:
        return
    raise BadControlMessage(
        f"a control message on {message.topic} {problem}",
        remedy="To a broker by its id; to all topic discovery nodes without one; to everybody "
        f'by "{EVERY_BROKER}", over at most {FLOOD_HOPS_MAX} links.',
    )

"""Two sides that keep the rules, and messages between them that take their time.

Whatever they do and whenever messages arrive, nobody finds the conversation broken; once all has
arrived, both have the same subscriptions open; and what a side remembers stays within its limits.
"""

from __future__ import annotations

from collections import deque

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tocsin.wire.gma import conversation as c
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import CONSUMER, PRODUCER, Conversation
from tocsin.wire.gma.names import EventName

LOAD = m.Parameters(EventName("UptimeCPULoad"))
EVENT = m.PerformanceEvent(EventName("UptimeCPULoad"), "2000-11-09T21:51:45Z")
SUBSCRIPTIONS_MAX = 4

BOTH = frozenset({PRODUCER, CONSUMER})
# Who can only be one thing meets somebody who can be the other.
PAIRS = [
    (BOTH, BOTH),
    (frozenset({PRODUCER}), BOTH),
    (BOTH, frozenset({CONSUMER})),
    (frozenset({CONSUMER}), frozenset({PRODUCER})),
]
SIDES = st.sampled_from([0, 1])


class Side:
    """One party, what it has yet to decide on, and what is on its way to it."""

    def __init__(self, roles: frozenset[str], prefix: str) -> None:
        numbers = iter(range(1, 1_000_000))
        self.roles = roles
        self.conversation = Conversation(
            roles, lambda: f"{prefix}{next(numbers)}", subscriptions_max=SUBSCRIPTIONS_MAX
        )
        self.inbox: deque[m.Message] = deque()
        self.undecided: list[m.SubscribeRequest] = []
        self.unanswered: list[m.QueryRequest | m.EventNamesRequest] = []
        self.requests: list[str] = []
        self.numbered = 0


class TwoSides(RuleBasedStateMachine):
    @initialize(pair=st.sampled_from(PAIRS), same_ids=st.booleans())
    def meet(self, pair: tuple[frozenset[str], frozenset[str]], same_ids: bool) -> None:
        # Each side's ids are its own: that both use the same ones must make no difference.
        self.sides = [Side(pair[0], "s"), Side(pair[1], "s" if same_ids else "t")]

    def say(self, who: int, message: m.Message) -> None:
        self.sides[1 - who].inbox.append(message)

    # What a side may do

    @rule(who=SIDES, tell=st.booleans(), data=st.data())
    def subscribe(self, who: int, tell: bool, data: st.DataObject) -> None:
        side = self.sides[who]
        conversation = side.conversation
        waiting = len(side.undecided) + len(side.unanswered) + len(conversation._asking)
        if len(conversation.subscriptions) + waiting >= SUBSCRIPTIONS_MAX:
            return
        role = data.draw(st.sampled_from(sorted(side.roles))) if tell else None
        request, _ = conversation.subscribe(LOAD, options=m.Options(role=role) if tell else None)
        side.requests.append(request.request_id)
        self.say(who, request)

    @rule(who=SIDES, data=st.data())
    def unsubscribe(self, who: int, data: st.DataObject) -> None:
        side = self.sides[who]
        if side.conversation.subscriptions:
            chosen = data.draw(st.sampled_from(side.conversation.subscriptions))
            request = side.conversation.unsubscribe(chosen)
            side.requests.append(request.request_id)
            self.say(who, request)

    @rule(who=SIDES, data=st.data(), numbered=st.booleans())
    def send_event(self, who: int, data: st.DataObject, numbered: bool) -> None:
        side = self.sides[who]
        chosen = [
            each
            for each in side.conversation.subscriptions
            if PRODUCER in side.roles and each.peer_role != PRODUCER
        ]
        if chosen:
            side.numbered += 1
            number = f"e{side.numbered}" if numbered else None
            subscription = data.draw(st.sampled_from(chosen))
            self.say(who, side.conversation.event(subscription, EVENT, number))

    @rule(who=SIDES, names=st.booleans())
    def ask(self, who: int, names: bool) -> None:
        conversation = self.sides[who].conversation
        request = conversation.event_names() if names else conversation.query(LOAD)
        self.sides[who].requests.append(request.request_id)
        self.say(who, request)

    @rule(who=SIDES, data=st.data())
    def give_up(self, who: int, data: st.DataObject) -> None:
        side = self.sides[who]
        if side.requests:
            side.conversation.give_up(data.draw(st.sampled_from(side.requests)))

    @rule(who=SIDES, agree=st.booleans())
    def decide(self, who: int, agree: bool) -> None:
        side = self.sides[who]
        if not side.undecided:
            return
        request = side.undecided.pop()
        if agree:
            self.say(who, side.conversation.accept(request)[0])
        else:
            self.say(who, side.conversation.refuse(request, "not today"))

    @rule(who=SIDES)
    def answer(self, who: int) -> None:
        side = self.sides[who]
        if side.unanswered:
            request = side.unanswered.pop()
            side.conversation.replied(request)
            self.say(who, m.REPLY_TO[type(request)](request.request_id))

    # What arrives, one at a time and in order, whenever it does

    @rule(who=SIDES)
    def arrive(self, who: int) -> None:
        side = self.sides[who]
        if not side.inbox:
            return
        message = side.inbox.popleft()
        match side.conversation.receive(message):
            case c.SubscribeAsked(request=request):
                side.undecided.append(request)
            case c.RequestReceived(request=question):
                side.unanswered.append(question)
            case c.Ended(reply=reply) | c.Refusal(reply=reply):
                self.say(who, reply)
            case c.Stale(answer=m.UnsubscribeRequest() as request):
                self.say(who, request)
            case c.EventArrived(message=m.EventMessage(request_id=str(number))):
                self.say(who, m.EventReply(number))
            case c.Subscribed() | c.Refused() | c.Answered() | c.EventArrived() | c.Stale():
                pass

    def is_quiet(self) -> bool:
        return not any(s.inbox or s.undecided or s.unanswered for s in self.sides)

    @precondition(lambda self: not self.is_quiet())
    @rule()
    def let_everything_arrive(self) -> None:
        while not self.is_quiet():
            for who in (0, 1):
                self.arrive(who)
                self.decide(who, agree=True)
                self.answer(who)

    # What holds at all times

    @invariant()
    def both_have_the_same_open_once_all_has_arrived(self) -> None:
        if not self.is_quiet():
            return
        first, second = (side.conversation.subscriptions for side in self.sides)
        mine = sorted((each.own_id, each.peer_id) for each in first)
        theirs = sorted((each.peer_id, each.own_id) for each in second)
        assert mine == theirs

    @invariant()
    def memory_is_bounded(self) -> None:
        for side in self.sides:
            talk = side.conversation
            assert len(talk._open) + len(talk._asking) <= SUBSCRIPTIONS_MAX
            assert len(talk._peer_ids) <= SUBSCRIPTIONS_MAX
            assert talk._asking.keys() <= talk._waiting.keys()
            assert talk._ending.keys() <= talk._waiting.keys()
            assert len(talk._asked) == len(side.undecided) + len(side.unanswered)
            assert len(talk._waiting) <= c.WAITING_MAX
            assert len(talk._former) <= c.REMEMBERED_MAX
            assert len(talk._given_up) <= c.REMEMBERED_MAX


TwoSides.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
test_two_sides_that_keep_the_rules_never_disagree = TwoSides.TestCase

"""Two brokers on one log: the same numbers, one store of each event, everybody gets everything."""

from __future__ import annotations

from broker.harness import event, only, seqs
from tocsin.broker.broker import Broker
from tocsin.broker.effects import Accepted, Commit, ReadLog, Reply, StreamOut
from tocsin.broker.options import BrokerOptions
from tocsin.broker.snapshot import load_snapshot
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.event.filter import EVERYTHING
from tocsin.event.stored import Append, StateChange, Stored
from tocsin.event.subscription import Kind, Subscription
from tocsin.store.memory import SharedEvents, memory_store

NOW = 1_000_000_000_000


class Member:
    """One of the brokers, with a stream that reads everything."""

    def __init__(self, shared: SharedEvents) -> None:
        options = BrokerOptions()
        self.store = memory_store(shared)
        self.broker = Broker(
            options, new_id=lambda: "id", jitter=lambda: 0.0, is_trusted=lambda sink: True
        )
        self.broker.recover(load_snapshot(self.store, options), NOW)
        self.broker.open_stream(EVERYTHING, None, "stream")
        self.unheard: list[list[Stored]] = []  # of what others appended, if it is late
        self.is_late = False
        self.store.follow(self.broker.head, self._hear)
        self.answers: dict[object, object] = {}
        self.read: list[int] = []
        self.settle()

    def _hear(self, events: list[Stored]) -> None:
        if self.is_late:
            self.unheard.append(events)
        else:
            self.broker.appended(events, NOW)

    def hear(self) -> None:
        """What is late comes."""
        unheard, self.unheard = self.unheard, []
        for events in unheard:
            self.broker.appended(events, NOW)

    def settle(self) -> None:
        while effects := self.broker.flush(NOW):
            self.answers |= {e.token: e.result for e in only(Reply, effects)}
            self.read += seqs(only(StreamOut, effects))
            for commit in only(Commit, effects):
                applied = self.store.commit(commit.append, commit.change)
                self.broker.committed(applied, self.store.first_seq, NOW)


def members() -> tuple[Member, Member]:
    shared = SharedEvents()
    return Member(shared), Member(shared)


def test_both_hand_on_all_events_with_the_same_numbers() -> None:
    one, two = members()

    one.broker.publish([event(1)], "a")
    two.broker.publish([event(2)], "b")
    one.settle()
    two.settle()
    one.broker.publish([event(3)], "c")
    one.settle()
    two.settle()

    assert one.read == two.read == [1, 2, 3]
    assert one.broker.head == two.broker.head == 3
    assert one.answers == {"a": Accepted(1, 1, 1), "c": Accepted(1, 3, 3)}
    assert two.answers == {"b": Accepted(1, 2, 2)}


def test_a_repeat_sent_to_another_broker_is_known() -> None:
    one, two = members()
    one.broker.publish([event(1)], "a")
    two.broker.publish([event(1), event(2)], "b")
    one.settle()

    two.settle()
    one.settle()

    assert two.answers == {"b": Accepted(2, 1, 2, 1)}
    assert one.read == two.read == [1, 2]


def test_events_of_another_broker_may_come_while_a_commit_is_under_way() -> None:
    one, two = members()
    one.broker.publish([event(1)], "a")
    (commit,) = only(Commit, one.broker.flush(NOW))
    two.broker.publish([event(2)], "b")
    two.settle()

    applied = one.store.commit(commit.append, commit.change)
    one.broker.committed(applied, one.store.first_seq, NOW)
    one.settle()
    two.settle()

    assert one.answers == {"a": Accepted(1, 2, 2)}
    assert one.read == two.read == [1, 2]


def test_a_commit_is_done_when_all_that_came_before_it_is_known() -> None:
    one, two = members()
    one.is_late = True
    two.broker.publish([event(1)], "b")
    two.settle()
    one.broker.publish([event(2)], "a")
    one.broker.subscribe(box(), EVERYTHING, None, "box", NOW)

    one.settle()
    assert one.answers == {"a": Accepted(1, 2, 2)}  # it is in the log
    assert one.read == []

    one.hear()
    one.settle()
    assert one.read == [1, 2]
    assert one.broker.head == 2
    assert isinstance(one.answers["box"], SubscriptionView)
    assert one.answers["box"].cursor == 2


def test_what_others_append_behind_an_unanswered_commit_waits_for_its_events() -> None:
    one, two = members()
    one.broker.publish([event(1)], "a")
    (commit,) = only(Commit, one.broker.flush(NOW))
    applied = one.store.commit(commit.append, commit.change)
    two.broker.publish([event(2)], "b")
    two.settle()

    assert one.broker.head == 0
    known = one.broker.committed(applied, one.store.first_seq, NOW)
    one.settle()

    assert [stored.seq for stored in known] == one.read == [1, 2]


def test_who_subscribes_gets_what_others_append_before_the_answer() -> None:
    one, two = members()
    one.broker.subscribe(box(), EVERYTHING, None, "box", NOW)
    (commit,) = only(Commit, one.broker.flush(NOW))
    applied = one.store.commit(commit.append, commit.change)
    two.broker.publish([event(1)], "b")
    two.settle()
    one.broker.committed(applied, one.store.first_seq, NOW)

    (read,) = only(ReadLog, one.broker.flush(NOW))

    assert read.after == 0


def test_what_is_heard_twice_is_handed_on_once() -> None:
    one, two = members()
    two.broker.publish([event(1)], "b")
    two.settle()
    one.store.follow(0, one._hear)

    one.settle()

    assert one.read == [1]


def test_the_log_is_trimmed_to_where_every_broker_lets_go() -> None:
    one, two = members()
    for number in (1, 2, 3):
        one.broker.publish([event(number)], number)
        one.settle()

    one.store.commit(Append(), StateChange(trim_to=3))
    assert one.store.first_seq == 1

    two.store.commit(Append(), StateChange(trim_to=2))
    assert one.store.first_seq == two.store.first_seq == 3


def box() -> Subscription:
    return Subscription(id="", kind=Kind.BOX)

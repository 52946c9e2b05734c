"""Two brokers on one log: the same numbers, one store of each event, everybody gets everything."""

from __future__ import annotations

from broker.harness import event, only, seqs
from tocsin.broker.broker import Broker
from tocsin.broker.effects import Accepted, Commit, Reply, StreamOut
from tocsin.broker.options import BrokerOptions
from tocsin.broker.snapshot import load_snapshot
from tocsin.event.filter import EVERYTHING
from tocsin.event.stored import Stored
from tocsin.store.memory import SharedEvents, memory_store

NOW = 1_000_000_000_000


class Member:
    """One of the brokers, with a stream that reads everything."""

    def __init__(self, shared: SharedEvents) -> None:
        options = BrokerOptions()
        self.store = memory_store(shared, self._hear)
        self.broker = Broker(
            options, new_id=lambda: "id", jitter=lambda: 0.0, is_trusted=lambda sink: True
        )
        self.broker.recover(load_snapshot(self.store, options), NOW)
        self.broker.open_stream(EVERYTHING, None, "stream")
        self.answers: dict[object, object] = {}
        self.read: list[int] = []
        self.settle()

    def _hear(self, events: list[Stored]) -> None:
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

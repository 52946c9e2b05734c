"""Results that go straight to another broker: acknowledged, sent once more, in bounded memory."""

from __future__ import annotations

from typing import Any, cast

from far_broker import ADDRESS, FarBroker
from link_peer import LinkedBroker, options_with

from manual_runtime import ManualRuntime
from tocsin.errors import BadLinkMessage
from tocsin.services.link import direct, direct_connection
from tocsin.services.link.direct import DirectResults
from tocsin.wire.link import messages as m
from tocsin.wire.link.discovery_messages import Done, Result, Results

ACKNOWLEDGE_S = 4.0
LARGE = Done(request_id="q", brokers=tuple(f"broker-{number:05}" for number in range(5_000)))


def results(number: int) -> Results:
    found = Result(
        adv_id=f"v{number}", broker="here", resource_id=f"r{number}", attributes={}, as_of_ns=1
    )
    return Results("q", (found,))


class Sender:
    """A broker that sends results to the far one."""

    def __init__(self, far: FarBroker) -> None:
        self.runtime = ManualRuntime()
        self.direct = DirectResults(
            self.runtime.port,
            cast(Any, far),
            "here",
            cast(Any, None),
            options_with(direct_addresses=(ADDRESS,), heartbeat_s=ACKNOWLEDGE_S / 2),
        )

    def send(self, *numbers: int) -> None:
        for number in numbers:
            self.direct.send("far", ADDRESS, results(number))
        self.runtime.settle()

    def said(self, words: str) -> bool:
        return any(words in message for _, message in self.runtime.notes)


def test_what_was_left_on_the_connection_of_a_broker_that_crashed_comes_by_a_new_one() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1)
    far.answer()
    far.crash()

    sender.send(2, 3)
    sender.runtime.pass_s(ACKNOWLEDGE_S)
    far.answer()

    assert [end.heard for end in far.ends] == [
        [m.Direct(m.PROTOCOL_VERSION, "here", "far"), results(1)],
        [m.Direct(m.PROTOCOL_VERSION, "here", "far"), results(2), results(3)],
    ]
    assert not sender.direct.dropped
    assert not sender.runtime.notes


def test_what_was_on_its_way_when_the_connection_ended_is_sent_again_at_once() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1, 2)

    far.ends[0].break_off()
    sender.runtime.settle()
    far.answer()
    sender.runtime.pass_s(ACKNOWLEDGE_S)

    assert far.ends[1].heard[1:] == [results(1), results(2)]
    assert len(far.ends) == 2


def test_what_is_lost_twice_is_given_up_and_the_log_says_so() -> None:
    far = FarBroker()
    sender = Sender(far)
    far.is_away = True
    sender.send(1, 2)

    sender.runtime.pass_s(10 * ACKNOWLEDGE_S)

    assert len(far.ends) == 2
    assert sender.direct.dropped == 2
    assert sender.said("results are not delivered")


def test_what_was_acknowledged_is_not_sent_again() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1)
    sender.send(2, 3)
    far.ends[0].say(m.HeartbeatReply(2))

    far.ends[0].break_off()
    sender.runtime.settle()

    assert far.ends[1].heard[1:] == [results(3)]


def test_a_reply_to_more_than_was_sent_acknowledges_nothing_that_follows() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1)
    far.ends[0].say(m.HeartbeatReply(1_000), m.HeartbeatReply(1_000))

    sender.send(2)
    far.ends[0].break_off()
    sender.runtime.settle()

    assert far.ends[1].heard[1:] == [results(2)]


def test_a_slow_broker_that_goes_on_acknowledging_is_waited_for() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(*range(1, 6))
    for through in range(1, 6):
        sender.runtime.pass_s(0.75 * ACKNOWLEDGE_S)
        far.ends[0].say(m.HeartbeatReply(through))

    assert len(far.ends) == 1


def test_the_heartbeat_of_the_receiver_is_answered_and_ends_nothing() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1)

    far.ends[0].say(m.Heartbeat(7))

    assert far.ends[0].heard[-1] == m.HeartbeatReply(7)
    sender.send(2)
    assert far.ends[0].heard[-1] == results(2)
    assert len(far.ends) == 1


def test_a_refusal_is_final_and_in_the_log() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1)

    far.ends[0].say(m.Refuse(BadLinkMessage.code, "results for broker other"))
    sender.runtime.pass_s(ACKNOWLEDGE_S)

    assert len(far.ends) == 1
    assert sender.direct.dropped == 1
    assert sender.said("results are not delivered")


def test_anything_else_that_comes_ends_the_connection() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1)

    far.ends[0].say(m.Welcome())

    assert far.ends[0].is_over
    assert sender.direct.dropped == 1


def test_a_connection_that_is_not_used_is_closed() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1)
    far.answer()

    sender.runtime.pass_s(direct_connection.IDLE_S)

    assert far.ends[0].is_over
    assert len(far.ends) == 1
    assert not sender.direct.dropped


def test_a_broker_that_stops_sends_nothing_again() -> None:
    far = FarBroker()
    sender = Sender(far)
    sender.send(1)

    sender.direct.close()
    far.ends[0].break_off()
    sender.runtime.pass_s(10 * ACKNOWLEDGE_S)

    assert len(far.ends) == 1


def test_a_receiver_says_that_results_have_come_once_it_has_them() -> None:
    broker = LinkedBroker()
    peer = broker.peer()

    peer.say(m.Direct(m.PROTOCOL_VERSION, "peer", broker.ids.broker), results(1), m.Heartbeat(1))

    assert peer.taken(m.HeartbeatReply) == [m.HeartbeatReply(1)]
    counters = broker.discovery.tables()["counters"]
    assert counters["dropped"] == {"results for an unknown request": 1}  # type: ignore[index]


def test_no_more_bytes_wait_for_a_broker_that_reads_nothing_than_may_wait() -> None:
    far = FarBroker()
    sender = Sender(far)
    far.is_away = True

    for _ in range(500):
        sender.direct.send("far", ADDRESS, LARGE)
        sender.runtime.settle()

    assert 1 << 20 < far.ends[0].waiting <= direct.WAITING_BYTES_MAX
    assert sender.direct.dropped > 0
    assert sender.said("results are not delivered")

"""Control messages over links: what neighbours send and are sent, while their link is up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from link_peer import DEFAULTS, LinkedBroker, Peer, event

from tocsin.access.session import anonymous, internal
from tocsin.errors import NoSuchBroker
from tocsin.event.control_topic import NODES, RIGHTS, TOPICS, ControlGroup
from tocsin.services.control.bus import Sent
from tocsin.wire.api.control_request import ControlRequest
from tocsin.wire.link import messages as m

CLIENT = anonymous("http", "192.0.2.1:1")


def control(number: int = 1, **members: object) -> m.Control:
    found = m.Control(f"c{number}", TOPICS, "peer", "", 255, 1, "test", b"x")
    return m.Control(**{name: getattr(found, name) for name in found.__struct_fields__} | members)


def send(broker: LinkedBroker, topic: str = TOPICS, **members: object) -> Sent:
    asked = ControlRequest(topic=topic, kind="test", **members)  # type: ignore[arg-type]
    return broker.control.send(CLIENT, asked)


def said(peer: Peer) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.broker, each.tdns) for each in peer.taken(m.Serves)]


def test_a_neighbour_is_told_of_topic_discovery_nodes_when_its_link_comes_up() -> None:
    broker = LinkedBroker()
    stop = broker.control.serve("tdn1", lambda message: None)
    peer = broker.linked()
    broker.runtime.pass_s(1)

    assert said(peer) == [(broker.ids.broker, ("tdn1",))]

    broker.control.serve("tdn2", lambda message: None)
    stop()
    broker.runtime.pass_s(1)

    assert said(peer) == [(broker.ids.broker, ("tdn2",))]


def test_changes_at_once_are_told_together() -> None:
    broker = LinkedBroker()
    peer = broker.linked()
    for number in range(8):
        broker.control.serve(f"tdn{number}", lambda message: None)
    broker.runtime.pass_s(1)

    told = said(peer)

    assert len(told) <= 2
    assert told[-1] == (broker.ids.broker, tuple(f"tdn{number}" for number in range(8)))


def test_the_number_of_a_broker_is_larger_after_a_restart() -> None:
    broker = LinkedBroker()
    broker.control.serve("tdn", lambda message: None)
    before = broker.control.core.serving.at(broker.ids.broker)
    broker.runtime.pass_s(5)
    again = LinkedBroker()
    again.runtime.pass_s(6)
    again.control.serve("tdn", lambda message: None)
    after = again.control.core.serving.at(again.ids.broker)

    assert before is not None
    assert after is not None
    assert after.number > before.number


def test_what_a_neighbour_says_of_brokers_behind_it_is_passed_on_and_taken_back() -> None:
    broker = LinkedBroker()
    peer, other = broker.linked(), broker.linked(broker="other")
    peer.say(m.Behind({"far": "peer"}))
    peer.say(m.Serves("far", 7, ("tdn",)), m.Serves("nowhere", 7, ("tdn",)))
    broker.runtime.pass_s(1)

    assert said(other) == [("far", ("tdn",))]
    assert said(peer) == []
    assert send(broker, f"{NODES}/tdn").tdns == 1

    peer.say(m.Behind(removed=("far",)))
    broker.runtime.pass_s(1)

    assert said(other) == [("far", ())]
    assert send(broker, f"{NODES}/tdn").tdns == 0


def test_what_a_neighbour_said_ends_with_its_link() -> None:
    broker = LinkedBroker()
    peer, other = broker.linked(), broker.linked(broker="other")
    peer.say(m.Serves("peer", 7, ("tdn",)))
    broker.runtime.pass_s(1)
    assert said(other) == [("peer", ("tdn",))]

    peer.abort()
    broker.runtime.pass_s(1)

    assert said(other) == [("peer", ())]
    assert not len(broker.control.core.serving)


def test_a_control_message_comes_and_goes_on() -> None:
    broker = LinkedBroker()
    peer, other = broker.linked(), broker.linked(broker="other")
    other.say(m.Serves("other", 7, ("tdn",)))
    came: list[m.Control] = []
    broker.control.serve("own", came.append)

    peer.say(control(1), control(1), control(2, topic=f"{NODES}/own"))

    assert came == [control(1), control(2, topic=f"{NODES}/own")]
    assert other.taken(m.Control) == [control(1, ttl=254)]
    assert not peer.taken(m.Control)
    assert not peer.taken(m.Ignored)
    assert broker.control.core.counts.repeats == 1


def test_nothing_of_a_control_message_is_stored_or_matched() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    before = broker.runtime.broker.head

    peer.say(control(1, to="*", ttl=7), control(2, topic="Entity/e", to=broker.ids.broker))
    send(broker, to="*")
    broker.runtime.settle()

    assert broker.runtime.broker.head == before
    assert not broker.stored()
    assert peer.got() == []


def test_a_client_sends_to_a_broker_that_can_be_reached() -> None:
    broker = LinkedBroker()
    peer, other = broker.linked(), broker.linked(broker="other")
    peer.say(m.Behind({"far": "peer"}))

    sent = send(broker, "Entity/e", to="far", body=b"hello")

    assert (sent.neighbours, sent.dropped) == (1, 0)
    [message] = peer.taken(m.Control)
    assert (message.id, message.origin, message.to) == (sent.id, broker.ids.broker, "far")
    assert (message.topic, message.kind, message.body) == ("Entity/e", "test", b"hello")
    assert not other.taken(m.Control)
    with pytest.raises(NoSuchBroker):
        send(broker, "Entity/e", to="nowhere")


def test_a_neighbour_that_sends_too_much_is_told_and_stays() -> None:
    broker = LinkedBroker(control=replace(DEFAULTS, neighbour_rate=5))
    peer = broker.linked()

    for number in range(20):
        peer.say(control(number, to=broker.ids.broker))

    told = peer.taken(m.Ignored)
    assert [each.count for each in told] == [1, 2, 4, 8]
    assert {each.code for each in told} == {"T822"}
    assert not peer.is_over
    assert broker.neighbour().counts.ignored == 10
    error = broker.neighbour().error
    assert error is not None
    assert error.code == "T822"


def test_messages_for_a_neighbour_that_reads_nothing_are_dropped_and_their_sender_is_told() -> None:
    broker = LinkedBroker(control=replace(DEFAULTS, waiting_bytes_max=3_000))
    peer, slow = broker.linked(), broker.linked(broker="slow")
    connection = broker.neighbour("slow").connection
    assert connection is not None

    for number in range(5):
        slow.waiting = 10**6  # nothing of it is taken
        peer.say(control(number, to="slow", body=b"x" * 1_000))

    assert len(slow.taken(m.Control)) == 2
    assert broker.control.info().waiting_bytes <= 3_000
    assert [each.code for each in peer.taken(m.Ignored)] == ["T823", "T823"]
    assert broker.control.core.counts.dropped == {"waiting": 3}

    assert send(broker, "Entity/e", to="slow", body=b"x" * 1_000).dropped == 1

    slow.waiting = 0
    peer.say(control(9, to="slow", body=b"x" * 1_000))

    assert len(slow.taken(m.Control)) == 1
    slow.abort()
    broker.runtime.pass_s(1)
    assert broker.control.info().waiting_bytes == 0


def test_events_that_wait_for_a_neighbour_leave_room_for_control_messages() -> None:
    broker = LinkedBroker(control=replace(DEFAULTS, waiting_bytes_max=3_000))
    peer = broker.linked("")
    peer.waiting = 10**5
    broker.publish(event(1, size=10**5))
    broker.runtime.settle()

    assert send(broker, "Entity/e", to="peer", body=b"x" * 1_000).neighbours == 1


def test_control_messages_go_on_while_the_disk_is_full() -> None:
    broker = LinkedBroker()
    peer, other = broker.linked(), broker.linked(broker="other")
    broker.runtime.is_disk_full = True
    peer.say(m.Subscribe("peer", "held up", "a = 1"))
    broker.runtime.settle()

    peer.say(control(1, to="other"))

    assert other.taken(m.Control) == [control(1, to="other", ttl=254)]


def test_no_control_message_is_taken_before_the_link_is_up() -> None:
    broker = LinkedBroker()
    came: list[m.Control] = []
    broker.control.serve("own", came.append)
    peer = broker.peer()

    peer.say(peer.hello, control(1))

    assert peer.is_over
    assert [each.code for each in peer.taken(m.Refuse)] == ["T801"]
    assert came == []


def test_only_brokers_speak_of_rights_and_every_broker_hears_it() -> None:
    broker = LinkedBroker()
    peer, other = broker.linked(), broker.linked(broker="other")
    came: list[m.Control] = []
    stop = broker.control.listen(ControlGroup.RIGHTS, came.append)

    peer.say(control(1, topic=RIGHTS, to="*"))
    asked = ControlRequest(RIGHTS, "revoked", b"x", "*")
    with pytest.raises(Exception, match="by them alone"):
        broker.control.send(CLIENT, asked)
    broker.control.send(internal("topics"), asked)

    assert [each.origin for each in came] == ["peer", broker.ids.broker]
    assert [each.ttl for each in other.taken(m.Control)] == [254, 255]
    stop()
    peer.say(control(2, topic=RIGHTS, to="*"))
    assert len(came) == 2


def test_a_service_that_fails_costs_one_message_and_the_link_stays() -> None:
    broker = LinkedBroker()
    peer = broker.linked()

    def fail(message: m.Control) -> None:
        raise ZeroDivisionError

    came: list[m.Control] = []
    broker.control.serve("bad", fail)
    broker.control.serve("good", came.append)
    peer.say(control(1), control(2))

    assert len(came) == 2
    assert broker.said("a control message was not handled")
    assert not peer.is_over

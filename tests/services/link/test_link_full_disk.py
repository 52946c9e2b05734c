"""A disk that takes nothing: events are refused and sent again, and the rest of a link goes on."""

from __future__ import annotations

from link_peer import SESSION, LinkedBroker, Peer, event, options_with

from tocsin.event.filter_text import parse_filter
from tocsin.event.subscription import Kind, Subscription
from tocsin.wire.link import discovery_messages as d
from tocsin.wire.link import messages as m

DISCOVER = d.Discover(
    request_id="q",
    host="peer",
    region=(),
    model="dynamic",
    issued_ns=1,
    shared_until_ns=2,
    expires_ns=2**62,
    max_age_ns=1,
)


def test_events_that_cannot_be_stored_are_not_acknowledged_and_the_neighbour_is_told_why() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    broker.runtime.is_disk_full = True

    peer.relay(event(1), through=1)

    assert not peer.taken(m.Acknowledge)
    [told] = peer.taken(m.NotStored)
    assert (told.code, told.reason) == ("T403", "the disk is full")
    assert not peer.is_over
    error = broker.neighbour().error
    assert error is not None
    assert error.code == "T403"
    assert broker.said("events of a neighbour are not stored")


def test_nothing_is_kept_of_what_cannot_be_stored_until_the_neighbour_resumes() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    broker.runtime.is_disk_full = True
    peer.relay(event(1), through=1)
    broker.runtime.is_disk_full = False

    peer.relay(event(2), through=2, first=2)  # was on its way
    assert broker.stored() == []
    assert broker.links._backlog.bytes == 0

    peer.say(m.Resume())
    peer.relay(event(1), event(2), through=2)
    assert [each.id for each in broker.stored()] == ["1", "2"]
    assert peer.taken(m.Acknowledge) == [m.Acknowledge(2)]
    assert len(peer.taken(m.NotStored)) == 1


def test_what_a_neighbour_does_not_store_is_sent_again_later_each_time() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    broker.publish(event(1), event(2))
    pauses = []
    for _ in range(4):
        assert peer.got() == ["1", "2"]
        peer.say(m.NotStored("T403", "its disk is full"))
        pauses.append(until_resumed(broker, peer))

    assert pauses == [1, 2, 4, 8]
    assert peer.got() == ["1", "2"]
    error = broker.neighbour().error
    assert error is not None
    assert "its disk is full" in error.problem
    peer.say(m.Acknowledge(broker.runtime.port.head))
    assert broker.neighbour().in_flight == 0
    assert broker.neighbour().error is None, "it goes on"


def until_resumed(broker: LinkedBroker, peer: Peer) -> int:
    for second in range(60):
        if resumed := peer.taken(m.Resume):
            assert resumed == [m.Resume()]
            return second
        assert not peer.got(), "nothing comes before it resumes"
        peer.live_s(1)
    raise AssertionError("it never resumes")


def test_a_neighbour_that_says_that_it_cannot_store_is_not_overdue() -> None:
    broker = LinkedBroker(options_with(acknowledge_s=5.0))
    peer = broker.linked("")
    broker.publish(event(1))

    for _ in range(10):
        assert peer.got() == ["1"]
        peer.say(m.NotStored("T403", "its disk is full"))
        until_resumed(broker, peer)

    assert not peer.is_over


def test_while_tables_cannot_be_saved_discovery_and_acknowledgements_go_on() -> None:
    broker = LinkedBroker()
    peer, other = broker.linked(""), broker.linked(broker="other")
    broker.publish(event(1))
    broker.runtime.is_disk_full = True
    other.say(m.Subscribe("other", "s", "topic a"))
    assert broker.said("routing is held up")
    assert not peer.taken(m.Subscribe)

    peer.say(DISCOVER, m.Acknowledge(1))
    peer.say(m.Heartbeat(3))

    assert peer.taken(d.Done)
    assert broker.neighbour().in_flight == 0
    assert m.HeartbeatReply(3) in peer.heard
    broker.runtime.is_disk_full = False
    peer.live_s(10)
    assert [each.id for each in peer.taken(m.Subscribe)] == ["s"]
    assert broker.said("routing goes on")


def test_messages_that_came_before_the_disk_was_full_are_not_done_twice() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    broker.runtime.is_disk_full = True

    peer.say(m.Subscribe("peer", "s", "topic a"), DISCOVER)
    peer.live_s(5)
    broker.runtime.is_disk_full = False
    peer.live_s(20)

    assert len(peer.taken(d.Done)) == 1
    assert broker.links._backlog.messages == 0
    assert broker.links._backlog.bytes == 0
    assert broker.links._backlog.items == 0


def test_while_the_disk_takes_nothing_new_links_are_refused_with_the_reason() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    broker.runtime.is_disk_full = True
    peer.say(m.Subscribe("peer", "s", "topic a"))
    peer.live_s(8)

    late = broker.peer("late")

    assert late.taken(m.Refuse) == [m.Refuse("T403", "the disk is full")]
    broker.runtime.pass_s(1)
    assert late.is_over


def test_a_link_that_is_refused_while_the_disk_is_full_ends_at_once() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    broker.runtime.is_disk_full = True
    peer.say(m.Subscribe("peer", "s", "topic a"))

    peer.say(m.Hello(1, "peer", "log", 1, "test"))

    assert [each.code for each in peer.taken(m.Refuse)] == ["T801"]
    assert peer.is_over


def test_what_fails_in_a_list_of_effects_costs_nothing_else() -> None:
    broker = LinkedBroker()
    first, second = broker.linked(broker="first"), broker.linked(broker="second")

    def fail(data: bytes) -> None:
        raise ValueError("a bug")

    first.write = fail  # type: ignore[method-assign]
    asked = Subscription(id="", kind=Kind.BOX)
    broker.runtime.run(broker.runtime.port.subscribe(SESSION, asked, parse_filter("topic a"), None))
    broker.runtime.pass_s(1)

    assert [each.filter for each in second.taken(m.Subscribe)] == ["topic a"]
    assert broker.said("an internal action of the overlay failed")
    assert broker.links._backlog.items == 0


def test_a_failure_is_named_in_the_log() -> None:
    broker = LinkedBroker()
    peer = broker.linked()
    noted: list[dict[str, object]] = []
    broker.runtime.note = lambda level, message, **fields: noted.append(fields)  # type: ignore[method-assign]

    def fail(data: bytes) -> None:
        raise ValueError("a bug")

    peer.write = fail  # type: ignore[method-assign]
    asked = Subscription(id="", kind=Kind.BOX)
    broker.runtime.run(broker.runtime.port.subscribe(SESSION, asked, parse_filter("topic a"), None))
    broker.runtime.pass_s(1)

    failures = [each for each in noted if each.get("error") == "ValueError: a bug"]
    assert failures[0]["action"] == "Send Subscribe"

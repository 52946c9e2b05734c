"""What neighbours send, and what waits for them, is bounded in bytes: of each, and of all."""

from __future__ import annotations

from link_peer import LinkedBroker, event, options_with

from tocsin.wire.link import messages as m

BIG = 100_000


def wide(number: int) -> str:
    """A filter of some 8,000 bytes."""
    return f"text a = '{'x' * 8_000}{number}'"


def test_a_neighbour_is_not_read_while_too_many_bytes_of_it_are_not_handled() -> None:
    broker = LinkedBroker(options_with(received_bytes_max=40_000))
    peer, other = broker.linked(""), broker.linked(broker="other")
    broker.runtime.is_disk_full = True
    assert not peer.receiver.is_busy

    for number in range(6):
        peer.say(m.Subscribe("peer", f"s{number}", wide(number)))

    assert peer.receiver.is_busy
    assert not other.receiver.is_busy
    broker.runtime.is_disk_full = False
    peer.live_s(20)
    assert not peer.receiver.is_busy


def test_with_too_many_bytes_of_all_neighbours_none_is_read_that_has_many_of_them() -> None:
    broker = LinkedBroker(options_with(received_bytes_total_max=200_000))
    peers = [broker.linked("", broker=f"peer{number}") for number in range(4)]
    broker.runtime.is_disk_full = True

    for number, peer in enumerate(peers[:3]):
        for part in range(10):
            peer.say(m.Subscribe(peer.broker, f"s{part}", wide(100 * number + part)))

    assert [peer.receiver.is_busy for peer in peers] == [True, True, True, False]


def test_events_of_all_neighbours_that_wait_to_be_stored_are_bounded_and_sent_again() -> None:
    broker = LinkedBroker(options_with(received_bytes_total_max=250_000))
    peers = [broker.linked("", broker=f"peer{number}") for number in range(4)]
    broker.runtime.is_disk_slow = True

    for peer in peers:
        peer.relay(event(1, size=BIG), through=1)

    assert broker.links._backlog.bytes <= 250_000
    told = [[each.code for each in peer.taken(m.NotStored)] for peer in peers]
    assert told == [[], [], ["T207"], ["T207"]]
    broker.runtime.is_disk_slow = False
    for peer in peers[2:]:
        peer.say(m.Resume())
        peer.relay(event(1, size=BIG), through=1)
    broker.runtime.settle()
    assert len(broker.stored()) == 4
    assert broker.links._backlog.bytes == 0


def test_a_neighbour_that_does_not_wait_for_acknowledgements_is_refused_by_its_bytes() -> None:
    broker = LinkedBroker()
    peer = broker.linked("")
    broker.runtime.is_disk_slow = True

    for number in range(1, 10):
        if not peer.is_over:
            peer.relay(event(number, size=8 << 20), through=number, first=number)
    broker.runtime.is_disk_slow = False
    broker.runtime.settle()

    assert [each.code for each in peer.taken(m.Refuse)] == ["T801"]


def test_no_more_bytes_are_sent_than_may_be_without_an_acknowledgement() -> None:
    broker = LinkedBroker(options_with(batch_events_max=1))
    peer = broker.linked("")
    for number in range(1, 9):
        broker.publish(event(number, size=6 << 20))

    came = peer.got()
    assert 1 <= len(came) <= 3
    through = 0
    while through < 8:
        through += len(came)
        peer.say(m.Acknowledge(through))
        came = peer.got()
    assert broker.neighbour().in_flight == 0


def test_when_too_much_waits_for_all_neighbours_the_slowest_is_cut_off() -> None:
    broker = LinkedBroker(options_with(waiting_bytes_total_max=10_000))
    peers = [broker.linked(broker=f"peer{number}") for number in range(3)]
    for peer, waiting in zip(peers, (2_000, 7_000, 3_000), strict=True):
        peer.waiting = waiting

    broker.runtime.pass_s(2)

    assert [peer.is_over for peer in peers] == [False, True, False]
    error = broker.neighbour("peer1").error
    assert error is not None
    assert "reads too slowly" in error.problem

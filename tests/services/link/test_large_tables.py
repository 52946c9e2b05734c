"""Tables that are larger than what may wait for a neighbour are sent in pieces as it takes them."""

from __future__ import annotations

from dataclasses import replace

from link_peer import OPTIONS, LinkedBroker, Peer

from tocsin.event.filter_text import parse_filter
from tocsin.overlay.routing.options import PIECE_ENTRIES
from tocsin.wire.link import messages as m

WAITING_BYTES_MAX = 6 << 20
ENTRIES = 2_500  # with 8 kB each


class SlowPeer(Peer):
    """What was written waits until it takes it."""

    waiting_max = 0

    def write(self, data: bytes) -> None:
        super().write(data)
        self.waiting += len(data)
        self.waiting_max = max(self.waiting, self.waiting_max)

    def take_all(self) -> None:
        self.waiting = 0
        self.receiver.written()
        self.at.runtime.settle()


def broker_with_many_subscriptions() -> LinkedBroker:
    routing = replace(OPTIONS.routing, piece_entries_max=PIECE_ENTRIES)
    broker = LinkedBroker(replace(OPTIONS, waiting_bytes_max=WAITING_BYTES_MAX, routing=routing))
    for number in range(ENTRIES):
        wanted = parse_filter(text_of(number))
        broker.links.router.local_subscribe(f"{number:04}", wanted, 1)
    return broker


def text_of(number: int) -> str:
    return f"text a = '{number:04}{'x' * 8_000}'"


def test_a_table_larger_than_what_may_wait_is_sent_whole_and_the_link_comes_up() -> None:
    broker = broker_with_many_subscriptions()
    peer = SlowPeer(broker, "peer", "log")

    peer.say(peer.hello, m.Welcome(), m.Advertise("peer", "all", ""), m.Synced("advertisements"))
    peer.say(m.Synced("subscriptions"))
    for _ in range(60):
        peer.live_s(1)
        peer.take_all()

    assert not peer.is_over
    assert broker.neighbour().connection is not None
    assert {each.id for each in peer.taken(m.Subscribe)} == {f"{n:04}" for n in range(ENTRIES)}
    ends = [each.table for each in peer.taken(m.Synced)]
    assert ends == ["advertisements", "subscriptions"]
    assert peer.waiting_max < WAITING_BYTES_MAX


def test_what_changes_while_a_table_is_sent_comes_before_its_end_and_once() -> None:
    broker = broker_with_many_subscriptions()
    peer = SlowPeer(broker, "peer", "log")
    peer.say(peer.hello, m.Welcome(), m.Advertise("peer", "all", ""), m.Synced("advertisements"))
    first = {each.id for each in peer.taken(m.Subscribe)}
    assert 0 < len(first) < ENTRIES

    router = broker.links.router
    gone = [min(first), f"{ENTRIES - 1:04}"]
    for entry in gone:  # one was sent, one was not
        broker.links._perform(router.local_unsubscribe(entry, 2))
    wanted = parse_filter("topic new")
    broker.links._perform(router.local_subscribe("new", wanted, 2))
    for _ in range(60):
        peer.live_s(1)
        peer.take_all()

    came = [each.id for each in peer.taken(m.Subscribe)]
    assert len(came) == len(set(came))
    left = {f"{n:04}" for n in range(ENTRIES)} - set(gone)
    assert first | set(came) == left | {"new", gone[0]}
    assert [each.id for each in peer.taken(m.Unsubscribe)] == [gone[0]]
    assert isinstance(peer.heard[-1], m.Synced | m.Heartbeat | m.HeartbeatReply | m.Behind)


def test_a_link_that_ends_before_its_tables_are_sent_begins_again_from_the_start() -> None:
    broker = broker_with_many_subscriptions()
    peer = SlowPeer(broker, "peer", "log")
    peer.say(peer.hello, m.Welcome(), m.Advertise("peer", "all", ""), m.Synced("advertisements"))
    assert len(peer.taken(m.Subscribe)) < ENTRIES
    peer.abort()
    broker.runtime.pass_s(1)

    again = SlowPeer(broker, "peer", "log")
    again.say(again.hello, m.Welcome(), m.Advertise("peer", "all", ""), m.Synced("advertisements"))
    for _ in range(60):
        again.live_s(1)
        again.take_all()

    assert len(again.taken(m.Subscribe)) == ENTRIES

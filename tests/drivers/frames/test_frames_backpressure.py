"""Nobody's pace is anybody else's: readers that do not read, producers that flood, many who are
silent, and more who come than there is room for."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest
from frames_peer import (
    Peer,
    complaints,
    content,
    event,
    event_names,
    framed,
    metric,
    new_name,
    noted,
    options,
    producing,
    publish,
    query,
    resident_bytes,
    stored,
    subscribe,
)

from served import Served, served
from tocsin.wire.gma.names import EventName

MB = 1 << 20
IDLE = 1_000
ROOM = 20


@pytest.fixture(scope="module")
def impatient() -> Iterator[Served]:
    """A broker that soon cuts off who does not read, and has little room."""
    limits = {
        "TOCSIN_FRAMES__STALLED_READER_S": "1",
        "TOCSIN_FRAMES__CONNECTIONS_MAX": str(ROOM),
    }
    with served("--soap-tcp", "off", env=limits) as running:
        yield running
        assert complaints(running) == []


def large(name: str, number: int) -> str:
    return content(name, number).replace("<Load1>", f"<Note>{'x' * 100_000}</Note><Load1>")


def test_a_consumer_that_does_not_read_is_cut_off_and_others_get_everything(
    impatient: Served,
) -> None:
    broker, name = impatient, new_name()
    with Peer(broker.frames, room=8_192) as deaf, Peer(broker.frames) as good:
        deaf.open(subscribe(name))
        good.open(subscribe(name))
        received: list[str | None] = []
        reading = threading.Thread(
            target=lambda: received.extend(good.hears("Event").value("Load5") for _ in range(200))
        )
        reading.start()
        before = resident_bytes(broker)
        for begin in range(0, 200, 20):
            publish(broker, name, *(large(name, n) for n in range(begin, begin + 20)))
        grown = resident_bytes(broker) - before
        reading.join()

        assert received == [str(n) for n in range(200)]
        assert "frames.stalled_reader_s" in noted(broker, "the peer does not read", deaf)
        # 20 MB went by. What was committed last is remembered for all (16 MiB); nothing is for one.
        assert grown < 60 * MB
    assert metric(broker, "streams_open") == 0


def test_a_consumer_that_reads_late_but_in_time_gets_everything_in_order(broker: Served) -> None:
    name = new_name()
    with Peer(broker.frames, room=8_192) as late:
        late.open(subscribe(name))
        publish(broker, name, *(large(name, n) for n in range(40)))
        time.sleep(0.3)

        assert [late.hears("Event").value("Load5") for _ in range(40)] == [
            str(n) for n in range(40)
        ]


def test_a_peer_that_asks_and_asks_and_never_reads_is_cut_off(impatient: Served) -> None:
    broker, name = impatient, new_name()
    publish(broker, name, large(name, 1))
    before = resident_bytes(broker)
    with Peer(broker.frames, room=8_192) as deaf:
        for number in range(300):
            deaf.open(subscribe("Nothing", f"s{number}", f"s{number}"))
        with contextlib.suppress(ConnectionError):  # cut off before it has asked for all
            for number in range(2_000):
                deaf.send(query(name, str(number)))

        assert noted(broker, "the peer does not read", deaf)
        assert broker.said().count(f'peer="{deaf.name}"') == 1
    assert resident_bytes(broker) - before < 40 * MB


def test_who_asks_for_much_at_once_and_reads_it_later_gets_all_of_it(broker: Served) -> None:
    name = new_name()
    publish(broker, name, large(name, 1))
    before = resident_bytes(broker)
    with Peer(broker.frames, room=8_192) as patient:
        patient.send(*(query(name, str(number)) for number in range(300)))
        time.sleep(0.5)

        replies = [patient.hears("QueryReply") for _ in range(300)]  # 30 MB

    assert [said.request for said in replies] == [str(number) for number in range(300)]
    assert resident_bytes(broker) - before < 20 * MB


def test_a_producer_that_reads_its_answers_late_gets_all_of_them(broker: Served) -> None:
    name = new_name()
    peer, own = producing(broker, name, nonce=f"run-{name}")
    with peer:
        sending = threading.Thread(
            target=lambda: peer.send(*(event(own, content(name), f"e{n}") for n in range(20_000)))
        )
        sending.start()
        time.sleep(1)
        assert [peer.hears("EventReply").request for _ in range(20_000)] == [
            f"e{n}" for n in range(20_000)
        ]
        sending.join()


def test_a_flood_of_events_is_held_back_and_all_are_kept(broker: Served) -> None:
    name = new_name()
    count = 4_000
    before = resident_bytes(broker)
    peer, own = producing(broker, name)
    with peer:
        block = framed(event(own, content(name).replace("<Load1>", f"<N>{'x' * 2_000}</N><Load1>")))
        for _ in range(count // 100):
            peer.raw(block * 100)
        assert peer.ask(event_names()).returned == "Success"

    assert resident_bytes(broker) - before < 100 * MB
    assert len(stored(broker, name)) == count


def test_many_producers_at_once_are_all_taken(broker: Served) -> None:
    name = new_name()
    peers = [producing(broker, name) for _ in range(50)]
    for peer, own in peers:
        peer.raw(framed(event(own, content(name))) * 40)
    for peer, _ in peers:
        assert peer.ask(event_names()).returned == "Success"
        peer.socket.close()

    assert len(stored(broker, name)) == 50 * 40


def test_producers_that_flood_together_wait_for_the_disk_and_lose_nothing(broker: Served) -> None:
    """More than may wait for a commit (64 MiB) is sent at once, and nobody asks for answers."""
    name = new_name()
    before = resident_bytes(broker)
    peers = [producing(broker, name) for _ in range(250)]
    replies: list[str] = []

    def flood(peer: Peer, own: str) -> None:
        peer.raw(framed(event(own, large(name, 1))) * 6)
        said = peer.ask(event_names())
        replies.append(said.kind)
        peer.socket.close()

    threads = [threading.Thread(target=flood, args=each) for each in peers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert replies == ["EventNamesReply"] * 250
    assert resident_bytes(broker) - before < 600 * MB
    with Peer(broker.frames) as consumer:
        consumer.open(subscribe(name, extra=options(role="consumer", after="0")))
        assert sum(1 for _ in range(1_500) if consumer.hears("Event")) == 1_500


def test_a_consumer_of_large_events_that_reads_slowly_gets_all_of_them(broker: Served) -> None:
    """In XML a page of the log becomes more than the 8 MiB of replies that may be unread."""
    name = new_name()
    for _ in range(40):
        broker.publish(*[{"type": EventName(name).type, "data": {"Note": "<" * 100_000}}] * 8)

    with Peer(broker.frames, room=8_192) as consumer:
        consumer.open(subscribe(name, extra=options(role="consumer", after="0")))
        time.sleep(1)

        received = [consumer.hears("Event") for _ in range(320)]

    assert len(received) == 320


def test_a_thousand_silent_connections_cost_little_and_stop_nobody(broker: Served) -> None:
    before = resident_bytes(broker)
    idle = [Peer(broker.frames) for _ in range(IDLE)]
    try:
        name = new_name()
        with Peer(broker.frames) as consumer:
            consumer.open(subscribe(name))
            publish(broker, name, content(name))
            assert consumer.hears("Event").value("Load5") == "1.6"
        assert metric(broker, "frames_open") >= IDLE
        assert (resident_bytes(broker) - before) / IDLE < 20_000
        assert idle[0].ask(event_names()).returned == "Success"
        assert idle[-1].ask(event_names()).returned == "Success"
    finally:
        for peer in idle:
            peer.socket.close()


def test_more_connections_than_there_may_be_are_turned_away_and_that_is_told(
    impatient: Served,
) -> None:
    held = [Peer(impatient.frames) for _ in range(ROOM)]
    try:
        assert held[-1].ask(event_names()).returned == "Success"
        with Peer(impatient.frames) as late:
            assert late.is_hung_up_on()
        assert f"connections={ROOM}" in noted(impatient, "frames.connections_max")
    finally:
        for peer in held:
            peer.socket.close()

    deadline = time.monotonic() + 5
    while metric(impatient, "frames_open") and time.monotonic() < deadline:
        time.sleep(0.02)
    with Peer(impatient.frames) as peer:
        assert peer.ask(event_names()).returned == "Success"


def test_a_broker_stops_in_time_whatever_its_peers_do() -> None:
    with served("--soap-tcp", "off") as broker:
        name = new_name()
        deaf = Peer(broker.frames, room=8_192)
        deaf.open(subscribe(name))
        flooding, own = producing(broker, name)
        block = framed(event(own, large(name, 1)))
        flooding.raw(block * 100)
        half = Peer(broker.frames)
        half.raw(b"\0\0\x01\0<Event")
        idle = Peer(broker.frames)
        busy = Peer(broker.frames)
        busy.send(*(query("None", str(n)) for n in range(200)))
        began = time.monotonic()

        assert broker.stop() == 0

        assert time.monotonic() - began < 4
        assert complaints(broker) == []
        for peer in (deaf, flooding, half, idle, busy):
            peer.socket.close()


def test_who_sends_an_event_at_once_never_gets_one_though_it_did_not_tell_its_role(
    broker: Served,
) -> None:
    name = new_name()
    with Peer(broker.frames) as peer:
        own = peer.open(subscribe(name)).subscription
        publish(broker, name, content(name))

        peer.send(event(own, content(name)))

        assert peer.hears_nothing(0.5)
    assert len(stored(broker, name)) == 2


def test_a_role_that_is_not_told_costs_no_stream_once_events_come(broker: Served) -> None:
    name = new_name()
    before = metric(broker, "streams_open")
    with Peer(broker.frames) as open_both_ways, Peer(broker.frames) as reported:
        own = open_both_ways.open(subscribe(name)).subscription
        reported.open(subscribe(name, extra=options(role="producer")))
        deadline = time.monotonic() + 5.0
        while metric(broker, "streams_open") == before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert metric(broker, "streams_open") == before + 1

        open_both_ways.send(event(own, content(name)), event_names())
        assert open_both_ways.hears("EventNamesReply")

        assert metric(broker, "streams_open") == before

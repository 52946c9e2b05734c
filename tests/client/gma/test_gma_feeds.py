"""Feeds: a producer that begins the subscription, and an archive that takes what comes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from gma_peers import PROTOCOL, RawPeer, numbers, proxied, raw_listener

from tocsin.client.gma import Consumer, Producer
from tocsin.client.gma import feed as feed_module
from tocsin.errors import BadFilter, BadSetting
from waiting import wait_until

NUMBERED = '<Options xmlns="urn:tocsin:gma:1" acknowledge="{}"/>'


@pytest.fixture
def archive() -> Iterator[Consumer]:
    with Consumer(listen="127.0.0.1:0") as running:
        yield running


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(None, host="foo.gov") as running:
        running.offer("Alarm")
        yield running


def agree(peer: RawPeer, *, answers: bool) -> str:
    """Take what a producer offers; the name of its feed."""
    request = peer.hear()
    number = request.partition('requestID="')[2].partition('"')[0]
    nonce = request.partition('acknowledge="')[2].partition('"')[0]
    peer.say(
        f'<SubscribeReply xmlns="{PROTOCOL}" requestID="{number}"><Return>Success</Return>'
        f"<SubscriptionID>c1</SubscriptionID>{NUMBERED.format(nonce) if answers else ''}"
        "</SubscribeReply>"
    )
    return nonce


def answer(peer: RawPeer, message: str, said: str = "<Return>Success</Return>") -> None:
    number = message.partition('requestID="')[2].partition('"')[0]
    peer.say(f'<EventReply xmlns="{PROTOCOL}" requestID="{number}">{said}</EventReply>')


def test_an_archive_gets_what_is_made_at_its_period(archive: Consumer) -> None:
    with Producer(None) as producer:
        made = iter(range(1_000))
        producer.offer("Count", lambda _: {"N": next(made)})
        feed = producer.push_to(str(archive.address), "Count", period=0.02)

        assert numbers(archive, 5) == [0, 1, 2, 3, 4]
        assert feed.state == "open"
        wait_until(lambda: feed.acknowledged >= 5)


def test_each_event_of_a_feed_is_acknowledged_once_the_program_has_it(
    producer: Producer, archive: Consumer
) -> None:
    feed = producer.push_to(str(archive.address), "Alarm", filter="N != 1")
    for number in range(4):
        producer.emit("Alarm", {"N": number})

    assert not feed.flush(0.1)
    assert (feed.sent, feed.acknowledged, feed.waiting) == (3, 0, 3)
    assert numbers(archive, 3) == [0, 2, 3]
    assert feed.flush(5)
    assert (feed.sent, feed.acknowledged, feed.dropped) == (3, 3, 0)


@pytest.mark.parametrize("room", [{"keep_max": 3}, {"keep_bytes_max": 500}])
def test_a_feed_that_has_no_more_room_drops_the_oldest_and_counts_them(
    producer: Producer, archive: Consumer, room: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    with proxied(str(archive.address)) as proxy:
        feed = producer.push_to(proxy.address, "Alarm", **room)  # type: ignore[arg-type]
        wait_until(lambda: feed.state == "open")
        proxy.stop()
        wait_until(lambda: feed.state == "connecting")
        for number in range(8):
            producer.emit("Alarm", {"N": number})
        wait_until(lambda: feed.dropped == 5)

        proxy.start()

        assert numbers(archive, 3) == [5, 6, 7]
        assert feed.flush(5)
    assert (feed.acknowledged, feed.dropped) == (3, 5)
    assert "drops events" in caplog.text


def test_an_event_goes_out_again_under_the_same_number(producer: Producer) -> None:
    received: list[tuple[str, str]] = []

    def serve(peer: RawPeer) -> None:
        nonce = agree(peer, answers=True)
        for _ in range(2):
            received.append((nonce, peer.hear()))
        if len(received) == 2:
            answer(peer, received[0][1])
            peer.close()
        else:
            for _, message in received[2:]:
                answer(peer, message)
            peer.hear()

    with raw_listener(serve) as address:
        feed = producer.push_to(address, "Alarm")
        for number in range(3):
            producer.emit("Alarm", {"N": number})
        assert feed.flush(10)

    found = [
        (message.partition('requestID="')[2][:2], message.partition("<N>")[2][0])
        for _, message in received
    ]
    assert found == [("e1", "0"), ("e2", "1"), ("e2", "1"), ("e3", "2")]
    assert len({nonce for nonce, _ in received}) == 1
    assert (feed.sent, feed.acknowledged) == (3, 3)


def test_a_consumer_of_the_paper_gets_events_without_numbers(producer: Producer) -> None:
    received: list[str] = []

    def serve(peer: RawPeer) -> None:
        agree(peer, answers=False)
        received.append(peer.hear())
        peer.hear()

    with raw_listener(serve) as address:
        feed = producer.push_to(address, "Alarm", period="10min")
        producer.emit("Alarm", {"N": 1})
        assert feed.flush(5)
        wait_until(lambda: received)

    assert received[0].startswith(f'<Event xmlns="{PROTOCOL}" subscriptionID="c1"><Alarm ')
    assert (feed.sent, feed.acknowledged, feed.waiting) == (1, 0, 0)


def test_who_dies_at_the_first_request_is_asked_for_acknowledgements_again(
    producer: Producer,
) -> None:
    requests: list[str] = []

    def serve(peer: RawPeer) -> None:
        if len(requests) < 2:
            requests.append(peer.hear())
            peer.close()  # as a broker does that is killed at the wrong moment
            return
        requests.append(agree(peer, answers=True))
        answer(peer, peer.hear())
        peer.hear_end()

    with raw_listener(serve) as address:
        feed = producer.push_to(address, "Alarm", period=60)
        wait_until(lambda: feed.state == "open")
        producer.emit("Alarm", {"N": 1})
        assert feed.flush(5)

    assert [f'acknowledge="{requests[2]}"' in each for each in requests[:2]] == [True, True]
    assert "SubscriptionID>2<" in requests[1]  # no id is given twice
    assert (feed.sent, feed.acknowledged) == (1, 1)


def test_one_who_agreed_to_our_extensions_is_never_asked_without_them(producer: Producer) -> None:
    requests: list[str] = []

    def serve(peer: RawPeer) -> None:
        if len(requests) in (1, 2):
            requests.append(peer.hear())
            peer.close()  # as a broker does that is killed at the wrong moment
            return
        requests.append("")
        agree(peer, answers=True)
        if len(requests) == 1:
            peer.close()
        else:
            answer(peer, peer.hear())
            peer.hear_end()

    with raw_listener(serve) as address:
        feed = producer.push_to(address, "Alarm")
        wait_until(lambda: len(requests) == 4)
        producer.emit("Alarm", {"N": 1})
        assert feed.flush(5)

    assert all("acknowledge=" in request for request in requests[1:3])
    assert feed.acknowledged == 1


def test_an_event_that_is_refused_is_dropped_and_its_reason_kept(producer: Producer) -> None:
    def serve(peer: RawPeer) -> None:
        agree(peer, answers=True)
        failure = "<Return>Failure</Return><ReturnDetail>it is too large [T202]. x</ReturnDetail>"
        answer(peer, peer.hear(), failure)
        answer(peer, peer.hear())
        peer.hear()

    with raw_listener(serve) as address:
        feed = producer.push_to(address, "Alarm")
        for number in range(2):
            producer.emit("Alarm", {"N": number})
        assert feed.flush(5)

    assert (feed.acknowledged, feed.dropped) == (1, 1)


def test_events_that_a_full_disk_refuses_are_sent_again_in_their_order(producer: Producer) -> None:
    received: list[str] = []
    states: list[tuple[str, str | None]] = []

    def serve(peer: RawPeer) -> None:
        agree(peer, answers=True)
        received.extend(peer.hear() for _ in range(2))
        failure = "<Return>Failure</Return><ReturnDetail>no room [T403]. Wait.</ReturnDetail>"
        answer(peer, received[0], failure)
        wait_until(lambda: feed.state == "busy")
        states.append((feed.state, feed.error))
        answer(peer, received[1], failure)
        for _ in range(2):
            received.append(peer.hear())
            answer(peer, received[-1])
        peer.hear_end()

    with raw_listener(serve) as address:
        feed = producer.push_to(address, "Alarm")
        for number in range(2):
            producer.emit("Alarm", {"N": number})
        assert feed.flush(10)

    assert [message.partition("<N>")[2][0] for message in received] == ["0", "1", "0", "1"]
    assert states == [("busy", "no room [T403]. Wait.")]
    assert (feed.acknowledged, feed.dropped) == (2, 0)


def test_a_consumer_that_agrees_and_never_answers_is_called_again(
    producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "ANSWER_S_MAX", 0.2)
    calls: list[int] = []

    def serve(peer: RawPeer) -> None:
        calls.append(1)
        agree(peer, answers=True)
        peer.hear_end()

    with raw_listener(serve) as address:
        feed = producer.push_to(address, "Alarm")
        producer.emit("Alarm", {"N": 1})
        wait_until(lambda: len(calls) >= 2)

    assert feed.waiting == 1


def test_a_refused_feed_says_why_makes_nothing_and_asks_again() -> None:
    made: list[int] = []
    asked: list[int] = []

    def serve(peer: RawPeer) -> None:
        asked.append(1)
        if len(asked) < 5:
            number = peer.hear().partition('requestID="')[2].partition('"')[0]
            peer.say(
                f'<SubscribeReply xmlns="{PROTOCOL}" requestID="{number}"><Return>Failure</Return>'
                "<ReturnDetail>not today</ReturnDetail></SubscribeReply>"
            )
        else:
            agree(peer, answers=False)
        peer.hear_end()

    def make(parameters: object) -> dict[str, int]:
        made.append(1)
        return {}

    with raw_listener(serve) as address, Producer(None) as producer:
        producer.offer("Count", make, period_s=0.01)
        feed = producer.push_to(address, "Count")
        wait_until(lambda: feed.state == "refused")
        assert "not today" in (feed.error or "")
        count = len(made)
        time.sleep(0.05)
        assert len(made) <= count + 1

        wait_until(lambda: feed.state == "open")
        wait_until(lambda: len(made) > count + 2)


def test_a_consumer_of_the_paper_that_ends_the_subscription_is_left_alone(
    producer: Producer,
) -> None:
    calls: list[int] = []
    replies: list[str] = []

    def serve(peer: RawPeer) -> None:
        calls.append(1)
        agree(peer, answers=False)
        peer.say(
            f'<UnsubscribeRequest xmlns="{PROTOCOL}" requestID="9">'
            "<SubscriptionID>1</SubscriptionID></UnsubscribeRequest>"
        )
        replies.append(peer.hear())

    with raw_listener(serve) as address:
        feed = producer.push_to(address, "Alarm")
        wait_until(lambda: feed.state == "ended")
        time.sleep(0.3)

    assert len(calls) == 1
    assert 'requestID="9"' in replies[0]
    assert "ended the subscription" in (feed.error or "")
    assert not feed.flush(0.1) or feed.waiting == 0


def test_closing_a_feed_ends_its_subscription_and_leaves_the_others(
    producer: Producer, archive: Consumer
) -> None:
    one = producer.push_to(str(archive.address), "Alarm")
    other = producer.push_to(str(archive.address), "Alarm")
    wait_until(lambda: one.state == other.state == "open")

    one.close()
    producer.emit("Alarm", {"N": 1})

    assert numbers(archive, 1) == [1]
    assert archive.take(0.1) is None
    assert (one.state, other.state) == ("ended", "open")


def test_what_cannot_be_pushed_is_reported_at_once(producer: Producer) -> None:
    with pytest.raises(BadSetting, match=r"no events Nope.*There are: Alarm"):
        producer.push_to("127.0.0.1:1", "Nope")
    with pytest.raises(BadSetting, match="no parameter"):
        producer.push_to("127.0.0.1:1", "Alarm", parameters={"Disk": "sda"})
    with pytest.raises(BadSetting, match="Period"):
        producer.push_to("127.0.0.1:1", "Alarm", period=0)
    with pytest.raises(BadFilter):
        producer.push_to("127.0.0.1:1", "Alarm", filter="N >= =")
    with pytest.raises(BadSetting, match="host:port"):
        producer.push_to("nowhere", "Alarm")
    with pytest.raises(BadSetting, match="keep_max is 0"):
        producer.push_to("127.0.0.1:1", "Alarm", keep_max=0)


def test_a_producer_that_closes_leaves_nothing_of_what_it_made_unsent(archive: Consumer) -> None:
    takes = threading.Thread(target=lambda: [None for _ in archive], daemon=True)
    takes.start()
    for _ in range(20):
        with Producer(None) as producer:
            producer.offer("Count", lambda _: {"N": 1}, period_s=0.01)
            feed = producer.push_to(str(archive.address), "Count")
            wait_until(lambda: feed.acknowledged)  # noqa: B023
        assert feed.waiting == 0


def test_only_feeds_that_live_count(
    producer: Producer, archive: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.client.gma.producer.FEEDS_MAX", 2)
    for _ in range(4):
        producer.push_to(str(archive.address), "Alarm").close()
    kept = [producer.push_to(str(archive.address), "Alarm") for _ in range(2)]

    with pytest.raises(BadSetting, match="there are 2 feeds"):
        producer.push_to(str(archive.address), "Alarm")
    assert all(feed.state != "ended" for feed in kept)

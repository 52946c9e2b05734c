"""What a peer says cannot steer the terminal or forge the log of who reads it."""

from __future__ import annotations

import pytest
from gma_peers import PROTOCOL, RawPeer, event, raw_listener
from hypothesis import given
from hypothesis import strategies as st

from tocsin.client.gma import Consumer, Producer
from tocsin.client.gma.peer_errors import CHARS_MAX, error_text, one_line
from tocsin.errors import BrokerRefused, CannotReachBroker
from waiting import wait_until

# ESC cannot be in XML 1.0; a C1 control and the direction marks can.
EVIL = "ha\nWARNING all is well\u009b31m\u202egnp.exe\u2066"
SHOWN = "ha WARNING all is well\\u009b31m\\u202egnp.exe\\u2066"


@given(st.text(max_size=1_200))
def test_any_text_becomes_one_line_that_can_be_seen(text: str) -> None:
    line = one_line(text)

    assert line.isprintable()
    assert one_line(line[:CHARS_MAX]) == " ".join(line[:CHARS_MAX].split())


def test_what_can_be_seen_stays_as_it_is() -> None:
    assert one_line("La température est trop élevée: 30 °C") == (
        "La température est trop élevée: 30 °C"
    )
    assert one_line("\x1b[2J\U000e0001") == "\\u001b[2J\\U000e0001"
    assert len(one_line("x" * 5_000)) < CHARS_MAX + 10
    assert error_text("Busy", None) == "Busy"
    assert error_text("Busy", "later") == "Busy: later"


def reply(request: str, said: str, kind: str = "SubscribeReply") -> str:
    number = request.partition('requestID="')[2].partition('"')[0]
    return f'<{kind} xmlns="{PROTOCOL}" requestID="{number}">{said}</{kind}>'


def failure(detail: str) -> str:
    return f"<Return>Failure</Return><ReturnDetail>{detail}</ReturnDetail>"


@pytest.mark.parametrize("detail", [EVIL, f"{EVIL} [T104]. {EVIL}"])
def test_a_refusal_is_reported_in_one_line(detail: str) -> None:
    def serve(peer: RawPeer) -> None:
        peer.say(reply(peer.hear(), failure(detail), "QueryReply"))
        peer.hear()

    with (
        raw_listener(serve) as address,
        Consumer(address) as consumer,
        pytest.raises(BrokerRefused) as caught,
    ):
        consumer.query("Load")

    assert SHOWN in caught.value.problem
    assert str(caught.value).isprintable()


def test_an_error_in_place_of_an_event_is_logged_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def serve(peer: RawPeer) -> None:
        request = peer.hear()
        identity = request.partition("<SubscriptionID>")[2].partition("<")[0]
        agreed = f"<Return>Success</Return><ReturnDetail>{EVIL}</ReturnDetail>"
        peer.say(reply(request, f"{agreed}<SubscriptionID>p1</SubscriptionID>"))
        peer.say(
            f'<Event xmlns="{PROTOCOL}" subscriptionID="{identity}"><Error>{EVIL}</Error>'
            f"<ErrorDetail>{EVIL}</ErrorDetail></Event>"
        )
        peer.say(event(identity, "Load", "<N>1</N>"))
        peer.hear()

    with raw_listener(serve) as address, Consumer(address) as consumer:
        subscription = consumer.subscribe("Load")
        assert subscription.take(5) is not None

    assert subscription.detail == SHOWN
    assert subscription.error == f"{SHOWN}: {SHOWN}"
    assert all(record.getMessage().isprintable() for record in caplog.records)


def test_a_feed_tells_a_refusal_of_an_event_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def serve(peer: RawPeer) -> None:
        request = peer.hear()
        nonce = request.partition('acknowledge="')[2].partition('"')[0]
        agreed = "<Return>Success</Return><SubscriptionID>c1</SubscriptionID>"
        options = f'<Options xmlns="urn:tocsin:gma:1" acknowledge="{nonce}"/>'
        peer.say(reply(request, agreed + options))
        peer.say(reply(peer.hear(), failure(EVIL), "EventReply"))
        peer.hear_end()

    with raw_listener(serve) as address, Producer(None) as producer:
        producer.offer("Alarm")
        feed = producer.push_to(address, "Alarm")
        producer.emit("Alarm", {})
        wait_until(lambda: feed.dropped)

        assert feed.error == SHOWN
    assert all(record.getMessage().isprintable() for record in caplog.records)


def test_a_message_that_cannot_be_read_is_logged_in_one_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Producer() as producer:
        peer = RawPeer.call(str(producer.address))
        peer.say(event(EVIL.replace("\n", "&#10;"), "Load", "<N>1</N>"))
        peer.hear_end()
        peer.close()

    assert "closed the connection" in caplog.text
    assert all(record.getMessage().isprintable() for record in caplog.records)


def test_who_hangs_up_without_a_word_may_speak_tls() -> None:
    def serve(peer: RawPeer) -> None:
        peer.hear()
        peer.close()

    with (
        raw_listener(serve) as address,
        Consumer(address) as consumer,
        pytest.raises(CannotReachBroker, match="gmas://"),
    ):
        consumer.query("Load")

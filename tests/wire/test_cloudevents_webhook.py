"""Signed pushes, and the handshake by which a sink agrees to them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from tocsin.errors import BadSubscription
from tocsin.wire.cloudevents.webhook import (
    Allowed,
    Refused,
    handshake_headers,
    parse_secret,
    read_handshake,
    sign,
)


def header_map(block: bytes) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in block.decode().split("\r\n")[:-1])


@given(
    key=st.binary(min_size=24, max_size=64),
    message_id=st.from_regex(r"\A[a-z0-9-]{1,20}\Z"),
    body=st.text(max_size=40),
)
def test_the_signature_is_the_one_that_standard_webhooks_computes(
    key: bytes, message_id: str, body: str
) -> None:
    text = "whsec_" + base64.b64encode(key).decode()
    when = datetime.fromtimestamp(1_714_564_800, tz=UTC)

    headers = header_map(sign(parse_secret(text), message_id, 1_714_564_800, body.encode()))

    assert headers == {
        "webhook-id": message_id,
        "webhook-timestamp": "1714564800",
        "webhook-signature": Webhook(text).sign(message_id, when, body),
    }


def test_their_receiver_accepts_our_signature_and_no_other_body() -> None:
    key = bytes(range(32))
    now_s = int(datetime.now(tz=UTC).timestamp())
    theirs = Webhook(base64.b64encode(key).decode())
    headers = header_map(sign(key, "7", now_s, b'{"load5": 1.5}'))

    assert theirs.verify('{"load5": 1.5}', headers) == {"load5": 1.5}
    with pytest.raises(WebhookVerificationError):
        theirs.verify('{"load5": 9.9}', headers)


def test_a_message_id_cannot_break_out_of_its_header_line() -> None:
    block = sign(b"k" * 32, "a\r\nset-cookie: b", 1, b"")

    assert len(block.split(b"\r\n")) == 4
    assert block.startswith(b"webhook-id: a%0D%0Aset-cookie:%20b\r\n")


@pytest.mark.parametrize(
    "text",
    ["", "whsec_", "whsec_!!!!", base64.b64encode(b"k" * 32).decode()]
    + ["whsec_" + base64.b64encode(b"k" * size).decode() for size in (23, 65)],
)
def test_a_secret_that_is_no_good_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(BadSubscription) as caught:
        parse_secret(text)

    assert not text or text.removeprefix("whsec_") not in str(caught.value) or text == "whsec_"


def test_a_handshake_asks_in_the_words_of_the_specification() -> None:
    block = handshake_headers(
        "broker.example.org", callback_url="https://b.example.org/ok?k=%20", rate_per_minute=120
    )

    assert block == (
        b"webhook-request-origin: broker.example.org\r\n"
        b"webhook-request-callback: https://b.example.org/ok?k=%20\r\n"
        b"webhook-request-rate: 120\r\n"
    )
    assert handshake_headers("a\r\nb: c") == b"webhook-request-origin: a%0D%0Ab:%20c\r\n"


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({"webhook-allowed-origin": "*", "webhook-allowed-rate": "*"}, Allowed(None)),
        ({"webhook-allowed-origin": "Broker.Example.org "}, Allowed(None)),
        ({"webhook-allowed-origin": "*", "webhook-allowed-rate": " 100 "}, Allowed(100)),
    ],
)
def test_a_sink_that_agrees_may_say_how_much_it_takes(
    headers: dict[str, str], answer: Allowed
) -> None:
    assert read_handshake(200, headers, "broker.example.org") == answer


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {}),
        (204, {"allow": "POST"}),
        (200, {"webhook-allowed-origin": "other.example.org"}),
        (405, {"webhook-allowed-origin": "*"}),
        (301, {"webhook-allowed-origin": "*"}),
        (200, {"webhook-allowed-origin": "*", "webhook-allowed-rate": "0"}),
        (200, {"webhook-allowed-origin": "*", "webhook-allowed-rate": "-5"}),
        (200, {"webhook-allowed-origin": "*", "webhook-allowed-rate": "٣"}),
        (200, {"webhook-allowed-origin": "*", "webhook-allowed-rate": "9" * 5000}),
    ],
)
def test_anything_but_plain_consent_is_a_refusal(status: int, headers: dict[str, str]) -> None:
    answer = read_handshake(status, headers, "broker.example.org")

    assert isinstance(answer, Refused)
    assert answer.reason

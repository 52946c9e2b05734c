"""`config.credential` as it is asked for: read, sealed at once, and never repeated."""

from __future__ import annotations

import base64
import json

import pytest

from tocsin.errors import BadSubscription
from tocsin.event.subscription import Config, SinkCredential
from tocsin.wire.api.subscription_request import read_change, read_subscription

SINK = "https://sink.example/hook"
NOW_NS = 10**18


def seal(text: str, about: str) -> str:
    return f"<{text}> for <{about}>"


def asked(credential: object) -> SinkCredential | None:
    body = json.dumps({"sink": SINK, "config": {"credential": credential}}).encode()
    return read_subscription(body, NOW_NS, seal).config.credential


def test_each_kind_becomes_a_line_that_is_sealed_for_the_sink() -> None:
    basic = base64.b64encode("ann:pä:ss".encode()).decode()

    assert asked({"bearer": "t0k.en"}) == SinkCredential(
        "bearer", f"<authorization: Bearer t0k.en> for <{SINK}>"
    )
    assert asked({"basic": {"user": "ann", "password": "pä:ss"}}) == SinkCredential(
        "basic", f"<authorization: Basic {basic}> for <{SINK}>"
    )
    assert asked({"header": {"name": "X-Api-Key", "value": "a b"}}) == SinkCredential(
        "header", f"<x-api-key: a b> for <{SINK}>"
    )
    assert asked(None) is None


@pytest.mark.parametrize(
    "credential",
    [
        "verysecret",
        ["verysecret"],
        {},
        {"bearer": "verysecret", "basic": {}},
        {"berer": "verysecret"},
        {"bearer": ""},
        {"bearer": "verysecret\r\nX-Other: 1"},
        {"bearer": "very secret"},
        {"bearer": {"token": "verysecret"}},
        {"bearer": "verysecret" * 1_000},
        {"basic": "verysecret"},
        {"basic": {"user": "a:b", "password": "verysecret"}},
        {"basic": {"user": "a", "password": "verysecret\n"}},
        {"basic": {"user": "a", "pasword": "verysecret"}},
        {"header": {"name": "X", "value": "verysecret\r\n"}},
        {"header": {"name": "X", "value": "  verysecret"}},
        {"header": {"name": "X: y", "value": "verysecret"}},
        {"header": {"name": "Host", "value": "verysecret"}},
        {"header": {"name": "Content-Length", "value": "verysecret"}},
        {"header": {"name": "ce-id", "value": "verysecret"}},
        {"header": {"name": "Webhook-Signature", "value": "verysecret"}},
    ],
)
def test_what_cannot_be_sent_is_refused_and_not_repeated(credential: object) -> None:
    with pytest.raises(BadSubscription) as refused:
        asked(credential)

    assert "secret" not in str(refused.value)
    assert "config.credential" in refused.value.problem


@pytest.mark.parametrize("secret", ["verysecret", ["verysecret"], {"verysecret": 1}, "x" * 9_999])
def test_neither_is_a_signing_secret(secret: object) -> None:
    body = json.dumps({"sink": SINK, "config": {"secret": secret}}).encode()

    with pytest.raises(BadSubscription) as refused:
        read_subscription(body, NOW_NS, seal)

    assert "verysecret" not in str(refused.value)
    assert "xxx" not in str(refused.value)


WAS = Config(credential=SinkCredential("bearer", "sealed"), secret="sealed too")


def changed(**members: object) -> Config | None:
    body = json.dumps(members).encode()
    return read_change(body, NOW_NS, WAS, of_box=False, sink_was=SINK, seal=seal).config


def test_another_sink_does_not_get_it_unless_it_is_given_again() -> None:
    elsewhere = changed(sink="https://other.example/hook")
    assert elsewhere is not None
    assert elsewhere.credential is None
    assert elsewhere.secret == "sealed too"

    again = changed(sink="https://other.example/", config={"credential": {"bearer": "b"}})
    assert again is not None
    assert again.credential == SinkCredential(
        "bearer", "<authorization: Bearer b> for <https://other.example/>"
    )


def test_the_same_sink_and_other_changes_leave_it() -> None:
    assert changed(sink=SINK) is None
    kept = changed(config={"batch": 3})
    assert kept is not None
    assert kept.credential == WAS.credential
    gone = changed(config={"credential": None})
    assert gone is not None
    assert gone.credential is None

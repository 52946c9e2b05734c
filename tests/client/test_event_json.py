"""Events on their way out keep the bytes of their payload."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.client.batch_sender import Batch, halves
from tocsin.client.event_json import event_json, new_id, payload
from tocsin.client.incoming.consumed_event import from_structured
from tocsin.client.incoming.push import pushed_events
from tocsin.client.requests import filter_text, filters_json, looks_like_topic
from tocsin.client.transport.retry import pauses_s
from tocsin.errors import BadEvent
from tocsin.event.filter_text import parse_filter

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(data=JSON | st.binary(max_size=20))
def test_what_was_given_as_data_is_what_a_consumer_sees(data) -> None:
    body, content_type = payload(data, None)
    named = {"id": "1", "source": "/t", "type": "t", "datacontenttype": content_type}

    consumed = from_structured(event_json(named, body))

    assert consumed.data == data


def test_the_json_of_a_payload_is_not_rewritten() -> None:
    raw = b'{"a": 1.50,   "b":[ ]}'

    assert raw in event_json({"id": "1"}, raw)


def test_text_of_a_named_type_is_sent_as_it_is() -> None:
    body, content_type = payload("<a/>", "text/xml")

    assert (body, content_type) == (b"<a/>", "text/xml")


@pytest.mark.parametrize("data", [{1, 2}, float("nan"), object()])
def test_what_cannot_be_json_is_refused(data: object) -> None:
    with pytest.raises(BadEvent):
        payload(data, None)


def test_ids_are_never_the_same_also_in_a_forked_child() -> None:
    mine = [new_id() for _ in range(100)]
    receiving, sending = os.pipe()
    child = os.fork()
    if not child:
        os.write(sending, new_id().encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(receiving, 1000).decode()
    os.close(receiving)
    os.close(sending)

    assert len({*mine, new_id(), theirs}) == 102
    assert theirs.rpartition(".")[0] != mine[0].rpartition(".")[0]


@pytest.mark.parametrize("mode", ["binary", "structured", "batch"])
def test_a_pushed_event_is_the_same_in_every_mode(mode: str) -> None:
    named = {"id": "7", "source": "/t", "type": "t", "topic": "a/b", "run": "42"}
    event = event_json({**named, "datacontenttype": "application/json"}, b'{"x":1}')
    requests = {
        "binary": (
            {f"ce-{name}": value for name, value in named.items()}
            | {"content-type": "application/json", "ce-specversion": "1.0"},
            b'{"x":1}',
        ),
        "structured": ({"content-type": "application/cloudevents+json; charset=utf-8"}, event),
        "batch": ({"content-type": "application/cloudevents-batch+json"}, b"[" + event + b"]"),
    }

    (got,) = pushed_events(*requests[mode])

    assert (got.id, got.source, got.topic, got.data) == ("7", "/t", "a/b", {"x": 1})
    assert got.attributes == {"run": "42"}


@pytest.mark.parametrize(
    "body", [b"", b"[", b"[1]", b"{}", b'{"data_base64":"*"}', b'{"data_base64":7}']
)
def test_a_pushed_request_that_is_no_event_is_refused(body: bytes) -> None:
    kind = "application/cloudevents-batch+json"
    if body.startswith(b"{"):
        with pytest.raises(BadEvent):
            pushed_events({"content-type": "application/cloudevents+json"}, body[:1] + b"x")
    with pytest.raises(BadEvent):
        pushed_events({"content-type": kind}, body)


def test_a_bare_topic_pattern_is_a_filter_and_several_are_joined() -> None:
    assert filter_text("lead/**") == "topic lead/**"
    assert filter_text("everything") == "everything"
    assert filter_text() == ""
    assert filters_json("") == []
    joined = filter_text("lead/*/radar", "load5 >= 5 or system = Linux")
    assert parse_filter(joined) == parse_filter(
        "topic lead/*/radar and (load5 >= 5 or system = Linux)"
    )


@pytest.mark.parametrize("text", ["load5 >= 5", "[system,=,Linux]", "a='b'", "", "(x)", "not x"])
def test_a_filter_is_not_taken_for_a_topic(text: str) -> None:
    assert not looks_like_topic(text)


@given(count=st.integers(2, 500))
def test_a_refused_batch_is_halved_without_losing_or_moving_an_event(count: int) -> None:
    batch = Batch([b"%d" % number for number in range(count)], list(range(count)))

    left, right = halves(batch)

    assert left.events
    assert right.events
    assert left.events + right.events == batch.events
    assert left.numbers + right.numbers == batch.numbers


@given(patience_s=st.floats(0, 1000))
def test_waiting_between_attempts_never_exceeds_the_patience(patience_s: float) -> None:
    pauses = list(pauses_s(patience_s))

    assert sum(pauses) <= patience_s + 1e-6
    assert (patience_s > 0) == bool(pauses)


def test_an_event_without_data_has_no_data_member() -> None:
    assert "data" not in json.loads(event_json({"id": "1", "subject": None}, None))

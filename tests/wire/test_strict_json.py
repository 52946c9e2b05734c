"""JSON that readers could disagree on is refused on every route that takes JSON."""

from __future__ import annotations

import json

import pytest

from tocsin.errors import BadEvent, BadRequest, TocsinError
from tocsin.ontology import in_use
from tocsin.wire.api.members import read_object
from tocsin.wire.blackboard.read import read_messages
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events
from tocsin.wire.strict_json import Ambiguous, check

BAD = {
    "a name twice": '{"a": 1, "b": [], "a": 2}',
    "a name twice, once escaped": '{"a": 1, "\\u0061": 2}',
    "a name twice, deep inside": '{"x": [{"k": {"b": 1, "b": 1}}]}',
    "an integer of 5,000 digits": '{"n": ' + "9" * 5_000 + "}",
    "a number without bounds": '{"n": 1e999}',
    "a negative one": '{"n": -1E+400}',
    "many digits and an exponent": '{"n": ' + "9" * 299 + "e99}",
}
GOOD = [
    "{}",
    '{"a": 1.5e300, "b": {"a": 2}, "c": [{"d": 1}, {"d": 2}]}',
    '{"n": 12345678901234567890123456789, "tiny": 1e-999}',
    '{"a": "\\"a\\":", "b": "x", ":": 1, "c": "x",  "::": 2}',
    '{"text": "1e999 and ' + "9" * 5_000 + '"}',
]


def sent(data: str) -> bytes:
    return f'{{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{data}}}'.encode()


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_readers_could_disagree_on_is_refused_by_every_route(text: str) -> None:
    with pytest.raises(Ambiguous):
        check(text.encode())
    with pytest.raises(BadEvent):
        read_events("application/cloudevents+json", {}, sent(text), Limits())
    batch = b"[" + sent("{}") + b"," + sent(text) + b"]"
    with pytest.raises(BadEvent, match="event 1 of the batch"):
        read_events("application/cloudevents-batch+json", {}, batch, Limits())
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}
    with pytest.raises(BadEvent):
        read_events("application/json", headers, text.encode(), Limits())
    with pytest.raises(BadRequest):
        read_object(text.encode())
    with pytest.raises(TocsinError):
        read_messages(f'{{"pairs": {text}}}'.encode(), in_use(), 10)


def test_an_attribute_of_an_event_may_not_come_twice() -> None:
    twice = b'{"specversion":"1.0","id":"1","id":"2","source":"/s","type":"t"}'

    with pytest.raises(BadEvent, match="'id' comes twice"):
        read_events("application/cloudevents+json", {}, twice, Limits())


@pytest.mark.parametrize("text", GOOD)
def test_what_everybody_reads_alike_is_taken(text: str) -> None:
    (event,) = read_events("application/cloudevents+json", {}, sent(text), Limits())

    assert event.data == text.encode()
    json.loads(text)
    assert read_object(text.encode()) is not None

"""JSON that readers could disagree on is refused on every route that takes JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from math import inf, nan
from time import perf_counter

import pytest

from tocsin.errors import BadEvent, BadMessage, BadRequest, TocsinError
from tocsin.event.event import Event
from tocsin.event.value import Quantity
from tocsin.event.xml_form import escaped, event_from_xml, event_xml
from tocsin.ontology import in_use
from tocsin.safexml import parse
from tocsin.wire.api.estimate_request import read_estimate_request
from tocsin.wire.api.members import read_object
from tocsin.wire.blackboard.read import read_messages
from tocsin.wire.cloudevents.attributes import check_event
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.read import read_events
from tocsin.wire.cloudevents.write import binary_headers, structured
from tocsin.wire.nextflow import Names, read_weblog
from tocsin.wire.openlineage import read_batch, read_event
from tocsin.wire.pegasus.framing import read_record
from tocsin.wire.strict_json import Ambiguous, check

RECEIVED = "2026-01-01T00:00:00Z"

BAD = {
    "a name twice": '{"a": 1, "b": [], "a": 2}',
    "a name twice, once escaped": '{"a": 1, "\\u0061": 2}',
    "a name twice, deep inside": '{"x": [{"k": {"b": 1, "b": 1}}]}',
    "an integer of 5,000 digits": '{"n": ' + "9" * 5_000 + "}",
    "a name twice, behind escaped quotes": '{"t": "\\\\\\"", "b": 1, "b": "\\\\"}',
    "a number behind escaped quotes": '{"t": "\\\\\\"", "n": 1e999, "u": "\\\\"}',
    "a number without bounds": '{"n": 1e999}',
    "a negative one": '{"n": -1E+400}',
    "many digits and an exponent": '{"n": ' + "9" * 299 + "e99}",
}
TOO_LARGE = {name: text for name, text in BAD.items() if "twice" not in name}
GOOD = [
    "{}",
    '{"a": 1.5e300, "b": {"a": 2}, "c": [{"d": 1}, {"d": 2}]}',
    '{"n": 12345678901234567890123456789, "tiny": 1e-999}',
    '{"a": "\\"a\\":", "b": "x", ":": 1, "c": "x",  "::": 2}',
    '{"text": "1e999 and ' + "9" * 5_000 + '"}',
    '{"text": "\\\\", "a\\\\": 1, "a\\"": 2, "n": "\\"1e999\\"", "more": "\\\\\\"a:"}',
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


@pytest.mark.parametrize("declared", ["application/json", "application/x+json", None])
@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_json_data_sent_as_base64_is_held_to_the_same(text: str, declared: str | None) -> None:
    """A page shows it as JSON, so that it would break the page."""
    encoded = b64encode(text.encode()).decode()
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data_base64": encoded}
    event |= {} if declared is None else {"datacontenttype": declared}

    with pytest.raises(BadEvent):
        read_events("application/cloudevents+json", {}, json.dumps(event).encode(), Limits())


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_json_data_that_came_as_xml_is_held_to_the_same(text: str) -> None:
    event = Event("1", "/s", "t", datacontenttype="application/json", data=text.encode())

    with pytest.raises(BadEvent):
        check_event(event, Limits())


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_an_attribute_without_a_finite_value_is_refused(value: float) -> None:
    """JSON has no such number: pages and archives would show the attribute without a value."""
    for event in (
        Event("1", "/s", "t", extensions={"load": value}),
        Event("1", "/s", "t", attributes={"load": value}),
        Event("1", "/s", "t", attributes={"wait": Quantity(value, "min")}),
    ):
        with pytest.raises(BadEvent, match="is not a finite number"):
            check_event(event, Limits())


@pytest.mark.parametrize(
    "exact",
    ['{"extensions": {"load": Infinity}}', '{"extensions": {"load": 1, "load": 2}}'],
    ids=["no number of JSON", "a name twice"],
)
def test_exact_values_in_xml_are_held_to_the_same(exact: str) -> None:
    reported = event_xml(Event("1", "/s", "t", extensions={"load": 1.5})).decode()
    element = parse(
        reported.replace(escaped('{"extensions": {"load": 1.5}}'), escaped(exact)).encode()
    )

    with pytest.raises(BadEvent, match="exact values"):
        event_from_xml(element)


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_workflow_engines_send_is_held_to_the_same(text: str) -> None:
    weblog = f'{{"runName":"r","runId":"s","event":"started","metadata":{text}}}'.encode()
    lineage = f'{{"eventType":"START","run":{{"runId":"r"}},"job":{text}}}'.encode()
    record = f'{{"event":"stampede.wf.plan","xwf__id":"w","argv":{text}}}'.encode()
    planned = f'{{"workflow":"w","tasks":[{text}]}}'.encode()

    with pytest.raises(BadRequest):
        read_weblog(weblog, Names(), RECEIVED)
    with pytest.raises(BadRequest):
        read_event(lineage, RECEIVED)
    with pytest.raises(BadMessage):
        read_record(record)
    with pytest.raises(BadRequest):
        read_estimate_request(planned)


def test_a_member_of_an_estimate_request_may_not_come_twice() -> None:
    with pytest.raises(BadRequest, match="'cores' comes twice"):
        read_estimate_request(b'{"workflow": "w", "cores": 1, "cores": 2}')


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_a_batch_of_lineage_events_is_refused_with_the_reason(text: str) -> None:
    good = '{"eventType":"START","run":{"runId":"r"},"job":{"namespace":"n","name":"j"}}'
    bad = f'{{"eventType":"START","run":{{"runId":"q"}},"job":{text}}}'

    with pytest.raises(BadRequest, match=r"comes twice|digits|too large|out of range"):
        read_batch(f"[{good},{bad}]".encode(), RECEIVED)
    assert len(read_batch(f"[{good},{good}]".encode(), RECEIVED)) == 2


@pytest.mark.parametrize("declared", ["application/json", None])
@pytest.mark.parametrize("text", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_in_an_older_log_is_shown_as_base64(text: str, declared: str | None) -> None:
    """Logs written before this rule may hold such data, and a page with it must be readable."""
    event = Event("1", "/s", "t", datacontenttype=declared, data=text.encode())

    shown = json.loads(structured(event))

    assert shown["data_base64"] == b64encode(text.encode()).decode()
    assert "data" not in shown
    if declared is None:
        assert b"content-type: application/json" not in binary_headers(event)


@pytest.mark.parametrize(
    "text",
    [b'["' + b'\\"' * 500_000, b'{"a' + b"\\" * 999_999, b'"\\""' * 250_000, b'\\"' * 500_000],
    ids=["a text without an end", "backslashes without an end", "many short ones", "no JSON"],
)
def test_a_megabyte_that_is_no_json_is_looked_at_in_no_time(text: bytes) -> None:
    """One post must not stop the broker."""
    began = perf_counter()

    check(text)

    assert perf_counter() - began < 2


def test_an_attribute_of_an_event_may_not_come_twice() -> None:
    twice = b'{"specversion":"1.0","id":"1","id":"2","source":"/s","type":"t"}'

    with pytest.raises(BadEvent, match="'id' comes twice"):
        read_events("application/cloudevents+json", {}, twice, Limits())


@pytest.mark.parametrize("text", GOOD)
def test_what_everybody_reads_alike_is_taken(text: str) -> None:
    (event,) = read_events("application/cloudevents+json", {}, sent(text), Limits())

    assert event.data == text.encode()
    assert json.loads(structured(event))["data"] == json.loads(text)
    json.loads(text)
    assert read_object(text.encode()) is not None

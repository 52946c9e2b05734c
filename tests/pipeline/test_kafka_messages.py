"""Messages of Kafka: which are new, which numbers they get, and which events they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from tocsin.archive.record import SCHEMA, to_events
from tocsin.drivers.site_ontology import use_ontology
from tocsin.errors import ConnectorMissing, TocsinError
from tocsin.errors.spark import EventsGone
from tocsin.ontology import built_in
from tocsin.pipeline.kafka.client import require_connector
from tocsin.pipeline.kafka.offsets import Lost, OffsetRange, plan
from tocsin.pipeline.kafka.records import LANDED, as_records
from tocsin.pipeline.read.archive import new_records
from tocsin.pipeline.state import Window
from tocsin.wire.cloudevents.kafka import read_message
from tocsin.wire.cloudevents.limits import Limits

BINARY = {
    "ce_specversion": b"1.0",
    "ce_id": b"1",
    "ce_source": b"/engine",
    "ce_type": b"bb.ActivitySucceeded",
    "ce_topic": b"workflow/run-1",
    "ce_mood": "fröhlich 100%".encode(),
    "content-type": b"application/json",
}
STRUCTURED = {
    "specversion": "1.0",
    "id": "2",
    "source": "/engine",
    "type": "bb.ActivitySucceeded",
    "data": {"RunId": "run-1"},
}


def test_a_run_goes_on_in_each_partition_where_the_last_one_ended() -> None:
    first = plan({}, {0: 0, 1: 5}, {0: 3, 1: 9}, 0, None)
    second = plan(first.positions, {0: 0, 1: 5}, {0: 3, 1: 10}, 7, None)
    third = plan(second.positions, {0: 0, 1: 5, 2: 0}, {0: 4, 1: 10, 2: 1}, 8, None)

    assert first.ranges == (OffsetRange(0, 0, 3, 1), OffsetRange(1, 5, 9, 4))
    assert second.ranges == (OffsetRange(1, 9, 10, 8),)
    assert third.ranges == (OffsetRange(0, 3, 4, 9), OffsetRange(2, 0, 1, 10))
    assert third.positions == {"0": 4, "1": 10, "2": 1}
    assert not plan(third.positions, {0: 0, 1: 5, 2: 0}, {0: 4, 1: 10, 2: 1}, 10, None).messages


def test_what_kafka_let_go_before_it_was_read_is_told() -> None:
    planned = plan({"0": 4}, {0: 10}, {0: 12}, 4, None)

    assert planned.lost == (Lost(0, 4, 10),)
    assert planned.ranges == (OffsetRange(0, 10, 12, 5),)


def test_a_topic_that_ends_before_what_was_read_is_another_topic() -> None:
    with pytest.raises(EventsGone, match=r"ends at offset 2, .* read up to 4.*--rebuild"):
        plan({"0": 4}, {0: 0}, {0: 2}, 4, None)
    with pytest.raises(EventsGone, match="there is no partition 1"):
        plan({"0": 4, "1": 1}, {0: 0}, {0: 5}, 5, None)


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    at_once=st.none() | st.integers(1, 25),
)
def test_every_message_gets_one_number_however_much_is_taken_at_a_time(
    counts: list[int], at_once: int | None
) -> None:
    begins, ends = dict.fromkeys(range(len(counts)), 0), dict(enumerate(counts))
    taken: dict[str, int] = {}
    seen: dict[int, tuple[int, int]] = {}
    after = 0
    while (planned := plan(taken, begins, ends, after, at_once)).messages:
        for each in planned.ranges:
            for offset in range(each.start, each.end):
                number = each.seq + offset - each.start
                assert after < number <= after + planned.messages
                assert number not in seen
                seen[number] = (each.partition, offset)
        taken, after = planned.positions, after + planned.messages

    assert sorted(seen) == list(range(1, sum(counts) + 1))
    assert set(seen.values()) == {(p, o) for p, count in ends.items() for o in range(count)}


def test_headers_carry_an_event_in_binary_mode_as_they_are() -> None:
    event = read_message(BINARY, b'{"RunId": "run-1"}', Limits())

    assert (event.id, event.source, event.topic) == ("1", "/engine", "workflow/run-1")
    assert event.extensions == {"mood": "fröhlich 100%"}  # Kafka's binding escapes nothing
    assert event.datacontenttype == "application/json"
    assert event.data == b'{"RunId": "run-1"}'
    assert read_message(BINARY, None, Limits()).data is None


@pytest.mark.parametrize("headers", [{"content-type": b"application/cloudevents+json"}, {}])
def test_a_value_carries_an_event_in_structured_mode(headers: dict[str, bytes]) -> None:
    event = read_message(headers, json.dumps(STRUCTURED).encode(), Limits())

    assert (event.id, event.data) == ("2", b'{"RunId": "run-1"}')


@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ({}, b"hello"),
        ({}, None),
        ({}, b"{"),
        ({"content-type": b"text/plain"}, b"{}"),
        ({"content-type": b"application/cloudevents+json"}, None),
        ({"content-type": b"application/cloudevents-batch+json"}, b"[]"),
        ({"content-type": b"application/cloudevents+avro"}, b"x"),
        ({**BINARY, "ce_id": b""}, b"x"),
        ({**BINARY, "ce_type": b"\xff"}, b"x"),
        ({**BINARY, "ce_time": b"noon"}, b"x"),
        ({**BINARY, "ce_datacontenttype": b"text/plain"}, b"x"),
        (BINARY, b"x" * 100),
    ],
)
def test_what_is_no_event_is_refused_and_said_why(
    headers: dict[str, bytes], value: bytes | None
) -> None:
    with pytest.raises(TocsinError) as caught:
        read_message(headers, value, Limits(event_bytes_max=99))

    assert caught.value.problem


def message(offset: int, headers: dict[str, bytes], value: bytes | None) -> dict[str, Any]:
    pairs = [{"key": name, "value": text} for name, text in headers.items()]
    return {
        "partition": 2,
        "offset": offset,
        "timestamp": 1_790_000_000_000_000,
        "headers": pairs or None,
        "value": value,
    }


CAME = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("value", pa.binary()),
    ]
)
SITE = f"""
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix bb: <{built_in().prefixes["bb"]}> .
@prefix lab: <http://example.org/lab#> .
lab:Molten rdfs:subClassOf bb:ActivityFailed .
"""


def test_messages_become_records_and_those_that_are_no_events_keep_their_place() -> None:
    came = pa.RecordBatch.from_pylist(
        [
            message(7, BINARY, b'{"RunId": "run-1", "ActivityId": "a"}'),
            message(8, {}, b"hello"),
            message(9, {}, json.dumps(STRUCTURED).encode()),
        ],
        CAME,
    )

    events, refused = as_records({2: 100})([came])

    assert events.schema == refused.schema == LANDED
    kept = pa.RecordBatch.from_arrays(events.columns[: len(SCHEMA)], schema=SCHEMA)
    assert [(each.seq, each.event.id) for each in to_events(kept)] == [(107, "1"), (109, "2")]
    assert events.column("run").to_pylist() == ["run-1", "run-1"]
    assert refused.column("seq").to_pylist() == [108]
    assert refused.column("kafka_offset").to_pylist() == [8]
    assert refused.column("data").to_pylist() == [b"hello"]
    assert "it is not a CloudEvent: the message has no ce_" in refused.column("refused")[0].as_py()


def test_workers_read_messages_by_the_concepts_of_the_site(tmp_path: Path) -> None:
    file = tmp_path / "lab.ttl"
    file.write_text(SITE)
    text = b'{"RunId": "run-1", "ActivityId": "a", "lab:Molten": "2026-02-01T12:00:00Z"}'
    came = pa.RecordBatch.from_pylist([message(7, BINARY, text)], CAME)
    use_ontology([str(file)])
    try:
        sent = cloudpickle.dumps(as_records({2: 100}))
    finally:
        use_ontology([])

    (events,) = cloudpickle.loads(sent)([came])
    (plain,) = as_records({2: 100})([came])

    assert events.column("facts")[0].as_py()["ActivityFailed"] is not None
    assert plain.column("facts")[0].as_py()["ActivityFailed"] is None


def test_without_the_connector_it_is_said_how_to_have_it(ready: SparkSession) -> None:
    package = (
        rf"spark\.jars\.packages=org\.apache\.spark:spark-sql-kafka-0-10_2\.13:{ready.version}"
    )

    with pytest.raises(ConnectorMissing, match=package):
        require_connector(ready)
    with pytest.raises(ConnectorMissing):
        new_records(ready, "kafka://127.0.0.1:1/none", 0, Window())

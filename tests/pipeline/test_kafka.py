"""A real Kafka as the archive: the same tables, each message once, and nothing lost in silence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("kafka")

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from pipeline.archives import FACTS_READER
from pipeline.damage import pipeline
from pipeline.kafka_broker import connector, kafka, new_topic
from pipeline.sameness import assert_same, rows
from tocsin.archive.archive_writer import ArchiveWriter, SealLimits, segments
from tocsin.archive.parquet_reader import read_range
from tocsin.archive.record import to_batch, to_events
from tocsin.event.instant import NS_PER_MS
from tocsin.event.stored import Stored
from tocsin.pipeline.publish.kafka import KEYS
from tocsin.pipeline.state import State
from tocsin.synth.archive import synthesize
from tocsin.synth.plan import Plan
from tocsin.tables.published import require
from tocsin.tables.schemas import TABLES
from tocsin.wire.cloudevents import structured_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PARTITIONS = 3
NO_EVENTS = (b"hello", b'{"id": 1}', b"")
COMPARED = (
    *("activities", "runs", "activity_stats", "cost_models", "estimates", "evolution"),
    *("host_usage", "activity_usage"),
)


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> str:
    return connector(tmp_path_factory.mktemp("connector"))


@pytest.fixture(scope="module")
def address(jars: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with kafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Stored]:
    """Events of runs, received at times that Kafka can tell: it counts milliseconds."""
    made = tmp_path_factory.mktemp("made")
    synthesize(Plan(events=1_200, seed=7), made, lambda done: None)
    found = [each for batch in read_range(made, through=10_000) for each in to_events(batch)]
    return [
        Stored(number, each.received_ns // NS_PER_MS * NS_PER_MS, each.event)
        for number, each in enumerate(found, 1)
    ]


def archived(events: Sequence[Stored], directory: Path) -> Path:
    writer = ArchiveWriter(str(directory), SealLimits())
    for segment in segments([to_batch(events, FACTS_READER)], 1, len(events)):
        writer.write_fresh(segment)
    return directory


def as_header(value: object) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def binary(stored: Stored) -> tuple[list[tuple[str, bytes]], bytes | None]:
    """As a client of Kafka sends it in binary mode."""
    members = json.loads(structured_of(stored))
    for name in ("data", "data_base64", "datacontenttype"):
        members.pop(name, None)
    headers = [(f"ce_{name}", as_header(value)) for name, value in members.items()]
    if stored.event.datacontenttype:
        headers.append(("content-type", stored.event.datacontenttype.encode()))
    return headers, stored.event.data


def send(address: str, topic: str, events: Sequence[Stored], *others: bytes) -> None:
    """Events in both modes, and messages that are none, over all partitions."""
    with closing(KafkaProducer(bootstrap_servers=address)) as producer:
        for number, each in enumerate(events):
            headers, value = binary(each)
            # What a door made of XML travels in its own way.
            if number % 2 or each.event.attributes:
                headers = [("content-type", b"application/cloudevents+json")]
                value = structured_of(each)
            producer.send(
                topic,
                key=each.event.id.encode(),
                value=value,
                headers=headers,
                partition=number % PARTITIONS,
                timestamp_ms=each.received_ns // NS_PER_MS,
            )
        for value in others:
            producer.send(topic, value=value, partition=1)
        producer.flush()


def reported(*arguments: str, errors: Path) -> dict[str, Any]:
    """What a command of the pipeline says at its end."""
    with pipeline(*arguments, errors=errors) as command:
        complaints = command.errors()
    assert command.lines, complaints[-3000:]
    return command.lines[-1]


def but_numbers(tables: Path, name: str) -> pa.Table:
    """The rows of a table without sequence numbers, which are the tables' own."""
    found = rows(tables, name)
    return found.drop_columns([each for each in found.column_names if each.endswith("seq")])


def assert_sent(address: str, prefix: str, tables: Path) -> None:
    """Each row of each summary is in its topic, once, and the manifest came last."""
    found = require(tables)
    topics = {f"{prefix}.{name}": name for name in KEYS if found.tables[name].rows}
    with closing(
        KafkaConsumer(
            *topics,
            f"{prefix}.manifest",
            bootstrap_servers=address,
            auto_offset_reset="earliest",
            consumer_timeout_ms=10_000,
        )
    ) as consumer:
        came = list(consumer)
    assert {bytes(dict(each.headers)["tocsin_version"]) for each in came} == {
        str(found.version).encode()
    }
    (last,) = (each for each in came if each.topic == f"{prefix}.manifest")
    assert json.loads(last.value)["through"] == found.through
    for topic, name in topics.items():
        rows_sent = [json.loads(each.value) for each in came if each.topic == topic]
        assert len(rows_sent) == found.tables[name].rows, name
        assert all(list(row) == TABLES[name].names for row in rows_sent)
    runs = {json.loads(each.key)["run"] for each in came if each.topic == f"{prefix}.runs"}
    assert runs == set(rows(tables, "runs").column("run").to_pylist())


def test_a_stream_takes_a_topic_in_batches_and_goes_on_where_it_was(
    address: str, jars: str, events: list[Stored], tmp_path: Path
) -> None:
    url, errors = f"kafka://{address}/streamed", tmp_path / "errors"
    options = ("--archive", url, "--tables", str(tmp_path / "tables"))
    settings = ("--conf", f"spark.jars={jars}")
    pace = ("--once", "--rows", "250", "--refresh", "600")
    new_topic(address, "streamed", PARTITIONS)
    send(address, "streamed", events[:600])
    reported("run", *options, *settings, errors=errors)
    send(address, "streamed", events[600:])

    with pipeline("stream", *options, *settings, *pace, errors=errors) as command:
        complaints = command.errors()

    kinds = [each["kind"] for each in command.lines]
    assert kinds == ["batch", "batch", "batch", "tables"], complaints[-3000:]
    assert command.lines[-1]["through"] == len(events)
    assert sum(State(tmp_path / "tables").positions().values()) == len(events)


def test_a_topic_makes_the_tables_that_an_archive_makes_in_parts_and_each_message_once(
    address: str, jars: str, events: list[Stored], tmp_path: Path
) -> None:
    url, errors = f"kafka://{address}/runs", tmp_path / "errors"
    tables = ("--tables", str(tmp_path / "there"))
    command = ("run", "--archive", url, *tables, "--conf", f"spark.jars={jars}")
    new_topic(address, "runs", PARTITIONS)

    send(address, "runs", events[:1000], *NO_EVENTS)
    first = reported(*command, errors=errors)
    send(address, "runs", events[1000:])
    second = reported(*command, "--publish", f"kafka://{address}/out", errors=errors)
    third = reported(*command, "--publish", f"kafka://{address}/out", errors=errors)

    assert first["counts"]["set_aside"] >= len(NO_EVENTS)
    met = (second["counts"][name] for name in ("events", "duplicates", "set_aside"))
    assert sum(met) == len(events) + len(NO_EVENTS)
    assert (second["new"], third["new"]) == (True, False)
    assert second["through"] == third["through"] == len(events) + len(NO_EVENTS)
    found = rows(tmp_path / "there", "quarantine").to_pylist()
    aside = [each for each in found if "it is not a CloudEvent" in each["reason"]]
    assert {each["file"] for each in aside} == {f"{url}/1/{333 + n}" for n in range(3)}
    assert "hello" in {each["excerpt"] for each in aside}
    assert sum(State(tmp_path / "there").positions().values()) == len(events) + len(NO_EVENTS)
    assert (second["published"]["new"], third["published"]["new"]) == (True, False)
    assert_sent(address, "out", tmp_path / "there")
    archive = archived(events, tmp_path / "archive")
    reported("run", "--archive", str(archive), "--tables", str(tmp_path / "here"), errors=errors)
    for name in COMPARED:
        assert_same(
            but_numbers(tmp_path / "here", name), but_numbers(tmp_path / "there", name), name
        )


def test_what_was_given_up_is_not_read_and_what_kafka_let_go_is_told(
    address: str, jars: str, events: list[Stored], tmp_path: Path
) -> None:
    url, errors = f"kafka://{address}/let-go", tmp_path / "errors"
    options = ("--archive", url, "--tables", str(tmp_path / "tables"))
    command = ("run", *options, "--conf", f"spark.jars={jars}")
    new_topic(address, "let-go", PARTITIONS)
    give_up(address, "let-go", events[:3])
    send(address, "let-go", events[:30])

    first = reported(*command, errors=errors)
    send(address, "let-go", events[30:60])
    end = State(tmp_path / "tables").positions()["0"] + 4
    with closing(KafkaAdminClient(bootstrap_servers=address)) as admin:
        admin.delete_records({TopicPartition("let-go", 0): end})
    second = reported(*command, errors=errors)

    assert first["counts"]["events"] + first["counts"]["duplicates"] == 30
    assert second["counts"]["events"] + second["counts"]["duplicates"] == 60 - 4
    (lost,) = second["bad_files"]
    assert lost["file"] == f"{url}/0/{end - 4}"
    assert "were gone from Kafka before they were read" in lost["reason"]


def give_up(address: str, topic: str, events: Sequence[Stored]) -> None:
    """Send in a transaction, and then take it all back."""
    with closing(KafkaProducer(bootstrap_servers=address, transactional_id="t")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for each in events:
            producer.send(topic, key=b"k", value=structured_of(each), partition=0)
        producer.flush()
        producer.abort_transaction()


def test_what_is_not_there_is_said_and_what_could_not_be_sent_is_sent_by_the_next_run(
    address: str, jars: str, events: list[Stored], tmp_path: Path
) -> None:
    errors, tables = tmp_path / "errors", tmp_path / "tables"
    archive = archived(events[:100], tmp_path / "archive")
    settings = ("--conf", f"spark.jars={jars}", "--conf", "spark.tocsin.kafka.max.block.ms=3000")
    command = ("run", "--archive", str(archive), "--tables", str(tables), *settings)

    with pipeline(*command, "--publish", "kafka://127.0.0.1:1/sent", errors=errors) as failing:
        complaints = failing.errors()
    assert failing.process.returncode == 1
    assert "T767" in complaints
    assert require(tables).version == 1
    again = reported(*command, "--publish", f"kafka://{address}/sent", errors=errors)
    missing = ("run", "--archive", f"kafka://{address}/none", "--tables", str(tmp_path / "none"))
    with pipeline(*missing, *settings, errors=errors) as failing:
        complaints = failing.errors()

    assert (again["new"], again["published"]["new"]) == (False, True)
    assert_sent(address, "sent", tables)
    assert "T412" in complaints
    assert "has no topic none" in complaints


def test_a_row_that_is_no_longer_there_is_taken_back(
    address: str, jars: str, events: list[Stored], tmp_path: Path
) -> None:
    errors, tables = tmp_path / "errors", tmp_path / "tables"
    archive = archived(events, tmp_path / "archive")
    middle = datetime.fromtimestamp(events[len(events) // 2].received_ns / 1e9, UTC)
    settings = ("--conf", f"spark.jars={jars}", "--publish", f"kafka://{address}/back")
    command = ("run", "--archive", str(archive), "--tables", str(tables), *settings)

    reported(*command, errors=errors)
    before = set(rows(tables, "runs").column("run").to_pylist())
    reported(*command, "--rebuild", "--until", middle.isoformat(), errors=errors)
    after = set(rows(tables, "runs").column("run").to_pylist())

    with closing(
        KafkaConsumer(
            "back.runs",
            bootstrap_servers=address,
            auto_offset_reset="earliest",
            consumer_timeout_ms=10_000,
        )
    ) as consumer:
        last = {json.loads(each.key)["run"]: each.value for each in consumer}
    assert after < before == set(last)
    assert {run for run, value in last.items() if value is not None} == after

"""One fold: the live monitor and the pipeline say the same of the same events, in any order."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from engine_streams import RECEIVED_NS
from integrations import test_dask_records as dask
from integrations import test_parsl_records as parsl
from integrations.engine_room import recording
from monitor.runs import at
from monitor.test_generations import one_run
from pipeline.accounts import compare, in_the_monitor
from tocsin.archive.facts import FactsReader
from tocsin.archive.record import to_batch
from tocsin.cli.demo.history import recorded
from tocsin.event.instant import NS_PER_S, iso8601_ns
from tocsin.event.stored import Stored
from tocsin.monitor.rules import FIELD_RULES, STATE_RULES
from tocsin.ontology import built_in
from tocsin.pipeline.fold.attempts import attempt_rows
from tocsin.pipeline.fold.generations import split_generations, turns_of
from tocsin.pipeline.fold.rules import cells_of, folded, with_all_cells
from tocsin.pipeline.fold.runs import run_rows, with_activities, with_runs
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event

WORDS = built_in()
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
NOW_NS = int(NOW.timestamp()) * NS_PER_S
SILENCE_S = 6 * 3600.0

_MOMENTS = ("", "x", "2026-09-21", at(3), at(7.25), at(8 * 3600 + 7), at(10**8))
_VALUES = (
    *("", "7", "3", "0", "1", "-1.5", "1e3", "nan", "x", "é", "12.25", "99999999999999999999"),
    *('["a","b"]', '[{"path":"f","sha256":"1"}]', "[", '{"a":2,"b":1}', "Error 7 in /tmp/x9\nline"),
)


def stored_of(pairs: dict[str, str], seq: int, time: str | None, received_s: float) -> Stored:
    message = Message(pairs, id=f"m{seq}", source="/test", time=time)
    event = to_event(message, id="", source="", vocabulary=built_in())
    received_ns = iso8601_ns(at(received_s))
    assert received_ns is not None
    return Stored(seq, received_ns + 123_456, event)


def random_events(seed: int, count: int) -> list[Stored]:
    """Messages of a few runs that say anything that a rule listens to, sensible or not."""
    chance = random.Random(seed)
    events = sorted({rule.concept for rule in STATE_RULES} | {"ActivityQueued", "ActivityTimedOut"})
    others = sorted({rule.concept for rule in FIELD_RULES} - set(events) - {"*"})
    found: list[Stored] = []
    for seq in range(1, count + 1):
        pairs = {"RunId": f"r{chance.randrange(12)}"}
        if chance.random() < 0.8:
            pairs["ActivityId"] = f"a{chance.randrange(4)}"
            if chance.random() < 0.5:
                pairs["Attempt"] = chance.choice(("1", "2", "3", "x", "0"))
        for _ in range(chance.randrange(3)):
            odd = chance.random() < 0.2
            pairs[chance.choice(events)] = (
                chance.choice(_MOMENTS) if odd else at(chance.randrange(40_000) / 4)
            )
        for _ in range(chance.randrange(5)):
            pairs[chance.choice(others)] = chance.choice(_VALUES)
        if chance.random() < 0.1:
            pairs["ExitCode"] = chance.choice(("0", "1"))
        if chance.random() < 0.02:
            tasks = [
                {"id": "a1", "type": "t", "parents": ["a0"], "external_bytes": 5},
                {"id": chance.choice(("a9", "")), "checkpoint": True},
            ]
            pairs["ActivityPlan"] = json.dumps(tasks)
        time = chance.choice((None, "x", at(chance.randrange(10_000))))
        found.append(stored_of(pairs, seq, time, 10_000 + chance.randrange(1_000)))
    return found


def only_present(table: pa.Table) -> pa.Table:
    """Without the members of `facts` that no event has."""
    reported = table["facts"].combine_chunks()
    has = [
        number
        for number in range(reported.type.num_fields)
        if reported.field(number).null_count < len(reported)
    ]
    members = pa.StructArray.from_arrays(
        [reported.field(number) for number in has],
        fields=[reported.type.field(number) for number in has],
        mask=reported.is_null(),
    )
    return table.set_column(table.column_names.index("facts"), "facts", members)


def in_spark(spark: SparkSession, events: list[Stored]) -> tuple[DataFrame, DataFrame]:
    """The tables of activities and runs: two halves folded apart, each with no more columns than
    somebody told something for, and their cells then merged."""
    facts_reader = FactsReader(built_in())
    half = len(events) // 2
    tables = [
        pa.Table.from_batches([to_batch(part, facts_reader)])
        for part in (events[:half], events[half:])
    ]
    messages = [spark.createDataFrame(only_present(each)) for each in tables]
    turns = [turns_of(each) for each in messages]
    messages = [split_generations(each, turns) for each in messages]
    folds = {}
    for entity in ("activity", "run"):
        parts = [
            with_all_cells(folded(cells_of(each, entity), entity, 2), entity) for each in messages
        ]
        # Kept in memory: both tables are made of each, and are looked at one after the other.
        folds[entity] = folded(parts[0].unionByName(parts[1]), entity, 2).persist()
    runs = run_rows(folds["run"], NOW, SILENCE_S)
    activities = with_runs(attempt_rows(folds["activity"]), runs).persist()
    return activities, with_activities(runs, activities)


def _some_twice(events: list[Stored], chance: random.Random) -> list[Stored]:
    again = events + chance.sample(events, len(events) // 10)
    chance.shuffle(again)
    return again


def both_say_the_same(
    spark: SparkSession, directory: Path, events: list[Stored], *, seed: int
) -> int:
    """Both get some twice; the monitor in the order of the log, as it always does, and Spark in
    any. Returns how many activities there are."""
    chance = random.Random(seed)
    activities, runs = in_spark(spark, _some_twice(events, chance))
    in_order = sorted(_some_twice(events, chance), key=lambda each: each.seq)
    kept = in_the_monitor(directory, in_order)
    try:
        rows = ([each.asDict() for each in frame.collect()] for frame in (runs, activities))
        return compare(kept, *rows, NOW_NS)
    finally:
        kept.close()


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))]
)
def test_whatever_is_said_in_whatever_order_both_say_the_same(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    assert both_say_the_same(spark, tmp_path, random_events(seed, 700), seed=seed) > 40


def test_an_id_that_was_used_again_is_the_same_runs_live_and_here(
    spark: SparkSession, tmp_path: Path
) -> None:
    pairs = [each for start_s in (0, 60, 4_000) for each in one_run(start_s)]
    late = {"RunId": "r", "ActivityId": "b", "ActivitySucceeded": at(8)}
    events = [stored_of(each, seq, None, 9_000) for seq, each in enumerate([*pairs, late], 1)]

    assert both_say_the_same(spark, tmp_path, events, seed=3) == 4

    _, runs = in_spark(spark, events)
    assert {row.run: row.duration_s for row in runs.collect()} == dict.fromkeys(
        ("r", "r~2", "r~3"), 10.0
    )


def test_what_engines_told_of_their_runs_is_the_same_live_and_here(
    spark: SparkSession, tmp_path: Path
) -> None:
    messages = [
        *recorded(),
        *parsl.replayed(recording("parsl_monitoring.jsonl")),
        *dask.replayed(),
    ]
    events = [
        Stored(seq, RECEIVED_NS + seq * 1_000, to_event(each, id="", source="", vocabulary=WORDS))
        for seq, each in enumerate(messages, 1)
    ]

    assert both_say_the_same(spark, tmp_path, events, seed=1) > 550

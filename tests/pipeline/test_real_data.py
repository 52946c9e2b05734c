"""Real runs of real engines, through the archive and Spark: what is told of them is true.

All of it goes into one archive and is folded once. Data that the project does not carry is left
out where it is not there, and what is said of it is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from engine_streams import RECEIVED_NS, trace_rows
from monitor.kept import Kept
from pipeline import real_runs
from pipeline.accounts import compare, in_the_monitor
from tocsin.archive.archive_writer import ArchiveWriter, SealLimits, segments
from tocsin.archive.facts import FactsReader
from tocsin.archive.record import to_batch
from tocsin.event.stored import Stored
from tocsin.monitor.estimate.types import PastRun
from tocsin.ontology import built_in
from tocsin.pipeline.job import Done, Job, run
from tocsin.tables.published import read_table
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event
from tocsin.wire.pegasus import RecordSplitter
from tocsin.wire.pegasus.framing import read_record

pytestmark = pytest.mark.slow  # a minute of Spark; what the project carries is in every run

WORDS = built_in()
FILE_EVENTS = 20_000
NEIGHBOURS = 2_000  # messages overtake each other, and the monitor's are in memory together
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reported:
    """Everything that was told, and what both made of it."""

    instances: dict[str, PastRun]
    messages: dict[str, dict[str, list[Message]]]
    done: Done
    kept: Kept
    now_ns: int
    runs: list[Row]
    activities: list[Row]
    stats: list[Row]

    def of(self, what: str) -> dict[str, list[Message]]:
        if what not in self.messages:
            pytest.skip(f"the data of {what} is not here")
        return self.messages[what]


@pytest.fixture(scope="module")
def reported(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    place = tmp_path_factory.mktemp("real")
    instances = real_runs.instances() if real_runs.INSTANCES.exists() else {}
    messages = _all_messages(instances)
    events = [
        Stored(seq, RECEIVED_NS + seq * 1_000, to_event(each, id="", source="", vocabulary=WORDS))
        for seq, each in enumerate(
            (each for runs in messages.values() for run in runs.values() for each in run), 1
        )
    ]
    _archive(place / "archive", events)
    done = run(spark, Job(str(place / "archive"), place / "tables"))
    kept = in_the_monitor(place, _in_disorder(events), batch=NEIGHBOURS)
    runs, activities, stats = (
        read_table(place / "tables", name).to_pylist()
        for name in ("runs", "activities", "activity_stats")
    )
    yield Reported(instances, messages, done, kept, events[-1].received_ns, runs, activities, stats)
    kept.close()


def _all_messages(instances: dict[str, PastRun]) -> dict[str, dict[str, list[Message]]]:
    messages = {"snakemake": real_runs.snakemake()}
    if instances:
        messages["instances"] = {
            name: list(real_runs.reported_of_instance(name, each))
            for name, each in instances.items()
        }
    if all(path.exists() for path in real_runs.STAMPEDE):
        messages["stampede"] = real_runs.pegasus(*real_runs.STAMPEDE)
    if all(path.exists() for path in real_runs.MONITORD):
        messages["monitord"] = real_runs.pegasus(*real_runs.MONITORD)
    if all(path.exists() for path in real_runs.OPENPROBLEMS):
        messages["openproblems"] = real_runs.openproblems()
    return messages


def _archive(directory: Path, events: list[Stored]) -> None:
    writer, facts_reader = ArchiveWriter(str(directory), SealLimits()), FactsReader(WORDS)
    for start in range(0, len(events), FILE_EVENTS):
        some = events[start : start + FILE_EVENTS]
        for segment in segments([to_batch(some, facts_reader)], some[0].seq, some[-1].seq):
            writer.write_fresh(segment)


def _in_disorder(events: list[Stored]) -> list[Stored]:
    """As they may come by another way: neighbours in any order, and each tenth twice."""
    chance = Random(5)
    found: list[Stored] = []
    for start in range(0, len(events), NEIGHBOURS):
        some = events[start : start + NEIGHBOURS]
        some += chance.sample(some, len(some) // 10)
        chance.shuffle(some)
        found += some
    return found


def run_ids(messages: Iterable[list[Message]]) -> set[str]:
    return {each.pairs["RunId"] for some in messages for each in some}


def test_live_and_here_every_column_is_the_same(reported: Reported) -> None:
    assert compare(reported.kept, reported.runs, reported.activities, reported.now_ns) > 500
    everything = [run for runs in reported.messages.values() for run in runs.values()]
    assert {row["run"] for row in reported.runs} == run_ids(everything)
    assert reported.done.manifest.counts["events"] == sum(map(len, everything))
    assert not reported.done.manifest.counts["set_aside"]


def test_quantiles_are_those_of_the_durations_that_the_monitor_has(reported: Reported) -> None:
    found = reported.kept.asked.index.rows(
        "SELECT r.workflow, CASE WHEN a.type = '' THEN a.activity ELSE a.type END, "
        "CASE WHEN a.version = '' THEN r.version ELSE a.version END, a.state, a.duration_s "
        "FROM attempts AS a JOIN runs AS r ON r.no = a.run "
        "WHERE a.state IN ('succeeded', 'failed', 'retrying', 'cancelled')"
    )
    durations: dict[tuple[str, str, str], list[tuple[str, float | None]]] = {}
    for workflow, activity, version, state, duration_s in found:
        durations.setdefault((workflow, activity, version), []).append((state, duration_s))
    stats = {(row["workflow"], row["activity"], row["version"]): row for row in reported.stats}

    assert stats.keys() == durations.keys()
    for key, row in stats.items():
        ended = durations[key]
        good = [s for state, s in ended if state == "succeeded" and s is not None]
        assert row["count"] == len(ended)
        assert row["failed"] == sum(state in ("failed", "retrying") for state, _ in ended)
        if good:
            wanted = np.quantile(good, (0.1, 0.5, 0.9, 0.99)).tolist()
            given = [row[name] for name in ("p10_s", "p50_s", "p90_s", "p99_s")]
            assert given == pytest.approx(wanted)
            assert row["mean_s"] == pytest.approx(np.mean(good))


def test_every_run_of_the_instances_took_as_long_as_it_was_recorded(reported: Reported) -> None:
    reported.of("instances")
    runs = {row["run"]: row for row in reported.runs}
    attempts = {(row["run"], row["id"]): row for row in reported.activities}

    for name, past in reported.instances.items():
        row = runs[name]
        assert row["state"] == "completed"
        assert row["duration_s"] == pytest.approx(past.makespan_s, abs=0.002)
        assert row["n_succeeded"] == row["planned"] == len(past.plan.tasks)
        for number, done in past.done.items():
            assert done.started_s is not None
            assert done.ended_s is not None
            attempt = attempts[name, str(number)]
            assert attempt["duration_s"] == pytest.approx(done.ended_s - done.started_s, abs=0.002)
            assert attempt["input_bytes"] == done.in_bytes
            assert set(attempt["parents"] or ()) == set(map(str, past.plan.tasks[number].parents))


@pytest.mark.parametrize(
    "path", [*real_runs.STAMPEDE, *real_runs.MONITORD], ids=lambda path: path.name
)
def test_every_job_of_pegasus_ended_as_its_own_log_says(path: Path, reported: Reported) -> None:
    reported.of("stampede" if path in real_runs.STAMPEDE else "monitord")
    stream = [read_record(record) for record in RecordSplitter().receive(path.read_bytes())]
    states = {e["job_id"]: "planned" for e in stream if e["event"] == "stampede.job.info"}
    tries: Counter[str] = Counter()
    for each in stream:
        if each["event"] in ("stampede.job_inst.main.end", "stampede.job_inst.post.end"):
            failed = int(each["status"]) != 0 or int(each["exitcode"]) != 0
            states[each["job_id"]] = "failed" if failed else "succeeded"
    for job, _ in {
        (e["job_id"], e["job_inst_id"]) for e in stream if e["event"].endswith("main.end")
    }:
        tries[job] += 1

    of_run = [row for row in reported.activities if row["run"].startswith(f"{path.stem}/")]

    assert {row["id"]: row["state"] for row in of_run if row["last"]} == states
    assert Counter(row["id"] for row in of_run if row["state"] != "planned") == tries


@pytest.mark.parametrize("path", real_runs.OPENPROBLEMS, ids=lambda path: path.name)
def test_every_task_of_nextflow_is_there_as_often_as_its_trace_has_it(
    path: Path, reported: Reported
) -> None:
    (run_id,) = run_ids([reported.of("openproblems")[path.name]])
    trace = trace_rows(path)

    of_run = [row for row in reported.activities if row["run"] == run_id]

    assert Counter(row["id"] for row in of_run) == Counter(row["name"] for row in trace)
    states = Counter("succeeded" if row["state"] == "succeeded" else "FAILED" for row in of_run)
    assert states == Counter(
        "succeeded" if row["status"] == "COMPLETED" else row["status"] for row in trace
    )


def test_a_job_of_snakemake_that_was_tried_again_is_one_failure_seen_four_times(
    reported: Reported,
) -> None:
    names = run_ids(reported.of("snakemake").values())
    of_bad = [
        row for row in reported.activities if row["run"] in names and row["activity"] == "bad"
    ]

    assert Counter(row["state"] for row in of_bad) == {"retrying": 2, "failed": 2}
    assert len({row["fault"] for row in of_bad}) == 1
    assert {row["exit_code"] for row in of_bad} == {3}

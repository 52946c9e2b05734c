"""A run of very many activities: folded within bounded memory, asked about by index."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.runs import ns
from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.queries import open_queries
from tocsin.event.instant import rfc3339
from tocsin.monitor.fold import RunMessage
from tocsin.ontology import built_in

BATCH = 2_000
GROWTH_MIB_MAX = 400  # the cache of the tables is 64 of them


def messages(activities: int) -> Iterator[RunMessage]:
    """Each begins and succeeds, in no order that an index would like; every 100,000th fails."""
    seq = 0
    for number in range(activities):
        name = f"task-{number * 7_919 % activities}"
        end = "ActivityFailed" if number % 100_000 == 7 else "ActivitySucceeded"
        for concept, later_s in (("ActivityExecuting", 0), (end, 5)):
            seq += 1
            time_text = rfc3339(ns(number * 0.01 + later_s))
            pairs = {"RunId": "r", "ActivityId": name, "ActivityType": f"type-{number % 7}"}
            pairs |= {concept: time_text, "CpuSeconds": "1"}
            yield RunMessage(pairs, seq, ns(number * 0.01 + 6), time_text)


def fold_and_ask(directory: Path, activities: int) -> None:
    store = RunWriter(directory, MonitorOptions(), built_in())
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun_s = time.perf_counter()
    batch: list[RunMessage] = []
    for received in messages(activities):
        batch.append(received)
        if len(batch) == BATCH:
            store.write(batch, received.seq)
            batch = []
    store.write(batch, 2 * activities)
    took_s = time.perf_counter() - begun_s
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) / 1_024

    asked = open_queries(directory, MonitorOptions())
    begun_s = time.perf_counter()
    now_ns = ns(activities)
    run = asked.runs.run("r", ns(activities * 0.01 + 10))
    failed, _ = asked.runs.activities("r", now_ns, state="failed")
    page, _ = asked.runs.activities("r", now_ns, kind="type-3", after="task-5", limit=100)
    failures = asked.runs.failures("r", now_ns, last=20)
    answered_s = time.perf_counter() - begun_s
    asked.close()
    store.close()
    print(f"{activities:,} in {took_s:.0f} s, +{grown_mib:.0f} MiB, asked in {answered_s:.3f} s")

    fails = len(range(7, activities, 100_000))
    assert (run.activities.known, run.activities.failed) == (activities, fails)
    assert run.resources["CpuSeconds"] == activities
    assert (len(failed), len(page)) == (fails, 100)
    assert [len(each.before) for each in failures[1:]] == [20] * (fails - 1)
    assert len(failures[0].before) > 10  # it is among the first of all
    assert grown_mib < GROWTH_MIB_MAX
    plans = ("state = 'failed'", "type = 'type-3' AND activity > 'x'")
    _check_indexed(directory, plans)


def _check_indexed(directory: Path, conditions: tuple[str, ...]) -> None:
    asked = open_queries(directory, MonitorOptions())
    for condition in conditions:
        plan = asked.index.rows(
            "EXPLAIN QUERY PLAN SELECT activity FROM attempts WHERE run = 1 AND last "
            f"AND {condition} ORDER BY activity LIMIT 10"
        )
        assert all("SCAN" not in row[3] for row in plan), plan
    asked.close()


def test_ten_thousand_activities_in_one_run(tmp_path: Path) -> None:
    fold_and_ask(tmp_path, 10_000)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_million_activities_in_one_run(tmp_path: Path) -> None:
    fold_and_ask(tmp_path, 1_000_000)


if __name__ == "__main__":
    fold_and_ask(Path(sys.argv[1]), int(sys.argv[2]))

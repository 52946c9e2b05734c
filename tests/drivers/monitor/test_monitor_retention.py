"""What is too old or too much goes, some at a time, and nobody waits for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from monitor.beside_a_node import say, watch
from monitor.kept import OPTIONS, Kept
from monitor.runs import activity_pairs, at, ns, received, run_pairs
from tocsin.drivers.monitor import follower
from tocsin.drivers.monitor.database import retention
from tocsin.drivers.monitor.database.schema import FILE_NAME, SCHEMA_VERSION
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.drivers.node import Node
from tocsin.monitor.fold import RunMessage

NOW_NS = ns(10_000)


def ended(count: int) -> list[RunMessage]:
    return received(
        *(run_pairs("WorkflowCompleted", n, run=f"r{n}") for n in range(count)), received_ns=ns(0)
    )


def test_many_small_runs_go_at_once(tmp_path: Path) -> None:
    kept = Kept(tmp_path, replace(OPTIONS, runs_max=100))
    kept.fold(ended(1_100))

    calls = 1
    while kept.store.prune(NOW_NS):
        calls += 1

    assert kept.asked.index.rows("SELECT count(*) FROM runs") == [(100,)]
    assert calls == 1 + 1_000 // retention.RUNS_AT_ONCE
    kept.close()


def test_one_call_takes_only_so_many_rows_and_stops_when_it_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS_AT_ONCE", 50)
    kept = Kept(tmp_path, replace(OPTIONS, runs_max=1))
    activities = [activity_pairs(f"a-{n}", "ActivitySucceeded", 1, run="r0") for n in range(120)]
    kept.fold(received(run_pairs("WorkflowCompleted", 1, run="r0"), *activities, received_ns=ns(0)))
    kept.fold([RunMessage(each.pairs, each.seq + 200, ns(1)) for each in ended(5)[1:]])

    gone = []
    while gone[-1:] != [0]:
        gone.append(kept.store.prune(NOW_NS, lambda: True))

    # r0 has 120 attempts, 121 events and itself; of the three others one goes a call.
    assert max(gone) == 50
    assert (sum(gone[:5]), gone[5:]) == (242, [2, 2, 2, 0])
    kept.close()


def test_new_runs_are_seen_at_once_while_thousands_of_old_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "PRUNE_EVERY_S", 0.0)
    monkeypatch.setattr(follower, "PRUNE_S_MAX", 0.0)  # one run at a time: the slowest there is
    monkeypatch.setattr(follower, "PAUSE_S", 0.01)
    options = replace(OPTIONS, runs_max=10, look_every_s=0.01)
    kept = Kept(tmp_path, options)
    kept.fold(ended(3_000))
    kept.store.restart()
    kept.close()

    async def script(node: Node, monitor: Monitor) -> None:
        def count() -> int:
            return int(monitor.recorder.queries.index.rows("SELECT count(*) FROM runs")[0][0])

        while count() == 3_000:
            await asyncio.sleep(0.01)
        await say(node, run_pairs("WorkflowStarted", 0, run="new"))
        run = await monitor.ask(lambda past, now_ns: past.runs.run("new", now_ns))
        assert run.id == "new"
        assert monitor.behind == 0
        assert count() > 1_000  # there was much left to do

    watch(tmp_path, script, options)


def version(workflow: str, number: int, seq: int, received_ns: int) -> RunMessage:
    pairs = {"WorkflowName": workflow, "WorkflowVersion": f"v{number}", "VersionSaved": at(0)}
    return RunMessage(pairs, seq, received_ns)


def kept_versions(kept: Kept) -> list[tuple[str, str]]:
    while kept.store.prune(NOW_NS):
        pass
    return kept.asked.index.rows("SELECT workflow, version FROM versions ORDER BY seq")


def test_versions_of_ever_new_names_go_before_those_of_workflows_that_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "VERSIONS_IN_ALL_MAX", 4)
    monkeypatch.setattr(retention, "VERSIONS_MAX", 2)
    kept = Kept(tmp_path)
    kept.fold(received(run_pairs("WorkflowStarted", 0, WorkflowName="ran")))
    kept.fold([version("ran", n, 10 + n, ns(0)) for n in range(3)])
    kept.fold([version(f"new{n}", 1, 20 + n, ns(0)) for n in range(9)])

    assert kept_versions(kept) == [("ran", "v1"), ("ran", "v2"), ("new7", "v1"), ("new8", "v1")]
    kept.close()


def test_old_versions_go_with_the_last_run_and_changes_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHANGES_IN_ALL_MAX", 5)
    kept = Kept(tmp_path, replace(OPTIONS, retain_age_s=5_000))
    kept.fold(received(run_pairs("WorkflowStarted", 0, WorkflowName="ran")))
    kept.fold([version("ran", 1, 10, ns(0)), version("old", 1, 11, ns(0))])
    kept.fold([version("young", 1, 12, ns(9_000))])
    change = {"WorkflowName": "x", "WorkflowVersion": "v", "ActivityAdded": at(0)}
    kept.fold([RunMessage(change, 20 + n, ns(9_000)) for n in range(9)])

    assert kept_versions(kept) == [("ran", "v1"), ("young", "v1")]
    assert [each.seq for each in kept.asked.changes.changes_of("x")] == [24, 25, 26, 27, 28]
    kept.close()


def test_tables_of_the_version_before_are_brought_up_to_date(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.fold(ended(3))
    kept.close()
    old = apsw.Connection(str(tmp_path / FILE_NAME))
    old.execute("DROP INDEX versions_in_order; DROP INDEX changes_in_order; PRAGMA user_version=2")
    old.close()

    kept = Kept(tmp_path)

    assert kept.asked.index.rows("PRAGMA user_version") == [(SCHEMA_VERSION,)]
    assert len(kept.asked.runs.runs(NOW_NS)[0]) == 3
    assert "versions_in_order" in str(kept.asked.index.rows("SELECT name FROM sqlite_schema"))
    kept.close()

"""The monitoring service beside a running node: it follows, resumes, and harms nobody."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import msgspec

from monitor.beside_a_node import PATIENCE_S, publish, say, watch
from monitor.runs import activity_pairs, at, run_pairs
from tocsin.drivers.monitor.database.schema import FILE_NAME
from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.queries import open_queries
from tocsin.drivers.node import Node
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.monitor.fold import RunMessage
from tocsin.ontology import built_in
from tocsin.store.store import Store
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event


def small_run(run: str = "r") -> list[dict[str, str]]:
    return [
        run_pairs("WorkflowStarted", 0, run=run, WorkflowName="w"),
        activity_pairs("a-1", "ActivityExecuting", 1, run=run),
        activity_pairs("a-1", "ActivitySucceeded", 3, run=run),
        run_pairs("WorkflowCompleted", 4, run=run),
    ]


def test_what_was_published_is_known_to_the_question_that_follows(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        await say(node, *small_run())
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert (run.state, run.activities.succeeded) == ("completed", 1)
        assert monitor.behind == 0

    watch(tmp_path, script)


def test_every_door_counts_and_what_says_nothing_of_runs_does_not(tmp_path: Path) -> None:
    frames = Event("1", "/frames", "t", attributes={"RunId": "f", "WorkflowStarted": at(0)})
    cloud = Event("2", "/ce", "t", data=msgspec.json.encode({"RunId": "c", "ExitCode": 3}))
    others = [
        Event("3", "/ce", "t", data=b'{"load": 5}'),
        Event("4", "/ce", "t", data=b'{"RunId": '),
        Event("5", "/ce", "t", data=b"\xff RunId"),
        Event("6", "/ce", "bb.Message", data=b'{"RunId": 7}'),
    ]

    async def script(node: Node, monitor: Monitor) -> None:
        await publish(node, [frames, cloud, *others])
        records, _ = await monitor.ask(lambda past, now_ns: past.runs.runs(now_ns))
        assert {run.id for run in records} == {"f", "c", "7"}

    watch(tmp_path, script)


def test_a_restart_goes_on_where_the_last_fold_was(tmp_path: Path) -> None:
    first, second = small_run()[:2], small_run()[2:]

    async def begin(node: Node, monitor: Monitor) -> None:
        await say(node, *first)
        await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))

    async def go_on(node: Node, monitor: Monitor) -> None:
        assert monitor.recorder.follower.through == 2
        await say(node, *second, first=10)
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert run.state == "completed"
        assert len(await monitor.ask(lambda past, _: past.runs.events("r"))) == 4

    watch(tmp_path, begin)
    watch(tmp_path, go_on)


def test_a_monitor_that_lost_its_tables_reads_the_log_again(tmp_path: Path) -> None:
    async def begin(node: Node, monitor: Monitor) -> None:
        await say(node, *small_run())

    async def look(node: Node, monitor: Monitor) -> None:
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert run.state == "completed"

    watch(tmp_path, begin)
    for file in tmp_path.glob(f"{FILE_NAME}*"):
        file.unlink()
    watch(tmp_path, look)


def test_tables_of_another_log_are_told_of_and_the_log_is_read_from_its_start(
    tmp_path: Path,
) -> None:
    store = RunWriter(tmp_path, MonitorOptions(), built_in())
    store.write([RunMessage(run_pairs("WorkflowStarted", 0, run="old"), 99, 1)], 99)
    store.close()

    async def script(node: Node, monitor: Monitor) -> None:
        await say(node, *small_run())
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert run.state == "completed"

    watch(tmp_path, script)


def test_what_the_log_no_longer_has_is_told_and_the_rest_is_folded(tmp_path: Path) -> None:
    messages = [*small_run("gone"), *small_run("kept")]
    log = Store.open(tmp_path)
    events = [
        Stored(seq, 1, to_event(Message(pairs), id=str(seq), source="/s", vocabulary=built_in()))
        for seq, pairs in enumerate(messages, 1)
    ]
    log.write(Batch(events=events))
    log.write(Batch(trim_to=len(small_run())))
    log.close()

    async def script(node: Node, monitor: Monitor) -> None:
        records, _ = await monitor.ask(lambda past, now_ns: past.runs.runs(now_ns))
        assert [(run.id, run.state) for run in records] == [("kept", "completed")]
        assert monitor.missed == len(small_run())

    watch(tmp_path, script)


def test_a_monitor_slower_than_the_publishers_holds_nobody_up_and_misses_nothing(
    tmp_path: Path,
) -> None:
    runs, each = 12, 500  # more than may wait
    gate = threading.Event()

    async def script(node: Node, monitor: Monitor) -> None:
        fold = monitor.recorder.writer.write

        def slowly(messages: list[RunMessage], through: int, **more: int) -> None:
            gate.wait(PATIENCE_S)
            fold(messages, through, **more)

        monitor.recorder.writer.write = slowly  # type: ignore[method-assign,assignment]
        for n in range(runs):
            pairs = [
                activity_pairs(f"a-{k}", "ActivitySucceeded", k, run=f"r{n}") for k in range(each)
            ]
            await say(node, *pairs, first=n * each)
        assert (
            monitor.recorder.follower.through < runs * each
        )  # everybody was answered before it folded
        gate.set()
        while monitor.behind:
            await asyncio.sleep(0.01)
        records, _ = await monitor.ask(lambda past, now_ns: past.runs.runs(now_ns, limit=1_000))
        assert [run.activities.succeeded for run in records] == [each] * runs

    watch(tmp_path, script)


def test_a_message_that_cannot_be_folded_is_left_out_alone(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        fold = monitor.recorder.writer.write

        def picky(messages: list[RunMessage], through: int, **more: int) -> None:
            if any(each.pairs["RunId"] == "bad" for each in messages):
                raise ValueError("a bug in the fold")
            fold(messages, through, **more)

        monitor.recorder.writer.write = picky  # type: ignore[method-assign,assignment]
        await say(
            node, *small_run("one"), run_pairs("WorkflowStarted", 0, run="bad"), *small_run("two")
        )
        records, _ = await monitor.ask(lambda past, now_ns: past.runs.runs(now_ns))
        assert {run.id for run in records} == {"one", "two"}

    watch(tmp_path, script)


_FOLD_FOR_EVER = """
import sys
from pathlib import Path
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.monitor.fold import RunMessage
from tocsin.ontology import built_in

store = RunWriter(Path(sys.argv[1]), MonitorOptions(), built_in())
print(store.place, flush=True)
seq = store.place
while True:
    batch = []
    for _ in range(50):
        seq += 1
        pairs = {"RunId": "r", "ActivityId": f"a-{seq // 2}", "CpuSeconds": "1"}
        pairs["ActivityExecuting" if seq % 2 else "ActivitySucceeded"] = "2026-11-16T06:40:00Z"
        batch.append(RunMessage(pairs, seq, 1_790_000_000_000_000_000 + seq))
    store.write(batch, seq)
"""


def test_killed_in_the_middle_nothing_is_folded_twice_and_nothing_is_lost(tmp_path: Path) -> None:
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", _FOLD_FOR_EVER, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        begun = int(process.stdout.readline())
        deadline = time.monotonic() + PATIENCE_S
        place = begun
        while place < begun + 500 and time.monotonic() < deadline:
            asked = open_queries(tmp_path, MonitorOptions())
            ((place,),) = asked.index.rows("SELECT seq FROM place")
            asked.close()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

    store = RunWriter(tmp_path, MonitorOptions(), built_in())
    asked = open_queries(tmp_path, MonitorOptions())
    run = asked.runs.run("r", 0)
    ((count,),) = asked.index.rows("SELECT count(*) FROM attempts")
    asked.close()
    store.close()

    activities = {seq // 2 for seq in range(1, store.place + 1)}
    assert store.place > 1_000
    assert run.activities.known == count == len(activities)
    assert run.resources["CpuSeconds"] == len(activities)  # the sum is of each once


def test_a_broker_starts_without_what_only_answers_need() -> None:
    script = (
        "import sys, tocsin.drivers.serve; "
        "print(*(name for name in sys.modules if name.startswith('tocsin.monitor.')))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    loaded = found.stdout.decode().split()

    assert "tocsin.monitor.fold" in loaded
    costly = ("estimate", "provenance", "hints", "slower", "moments")
    assert [name for name in loaded if name.split(".")[2] in costly] == []


def test_the_options_say_how_many_events_of_a_run_are_kept(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        pairs = [activity_pairs(f"a-{k}", "ActivitySucceeded", k) for k in range(500)]
        await say(node, *pairs)
        events = await monitor.ask(lambda past, _: past.runs.events("r", last=1_000))
        assert len(events) <= 100
        assert events[-1].pairs["ActivityId"] == "a-499"

    watch(tmp_path, script, replace(MonitorOptions(), events_per_run=100))


def test_a_monitor_that_fails_lets_go_of_the_log_and_of_those_who_ask(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("a bug in the monitor")

        monitor.recorder.writer.write = fail  # type: ignore[method-assign]
        await say(node, *small_run())
        while node.broker.streams_open:
            await asyncio.sleep(0.01)
        assert await monitor.ask(lambda past, now_ns: past.runs.runs(now_ns)) == ([], None)

    watch(tmp_path, script)

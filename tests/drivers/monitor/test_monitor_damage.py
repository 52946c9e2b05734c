"""Whatever becomes of the monitor's database, the broker serves and says what happened."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import threading
import urllib.request
from pathlib import Path

import apsw
import pytest
import uvloop

from monitor.beside_a_node import PATIENCE_S, Script, say
from monitor.runs import activity_pairs, run_pairs
from served import served
from small_disk import small_disk
from tocsin.config import load
from tocsin.drivers.listeners.own_address import OwnAddresses
from tocsin.drivers.logger import Logger
from tocsin.drivers.monitor import follower
from tocsin.drivers.monitor.database import damage
from tocsin.drivers.monitor.database.schema import FILE_NAME
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.drivers.node import Node
from tocsin.errors import MonitorOff, NoSuchRun
from tocsin.store.store import Store


def watch(directory: Path, script: Script, tables: Path | None = None) -> str:
    """A node and its monitor, whose tables may be elsewhere. Returns what was noted."""
    said = io.StringIO()

    async def main() -> None:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})
        node = Node(settings, Store.open(directory), Logger(stream=said), OwnAddresses(settings))
        monitor = Monitor(node.port, node.loop, tables or directory)
        monitor.start()
        try:
            await asyncio.wait_for(script(node, monitor), PATIENCE_S)
        finally:
            await monitor.close()
            await node.close()

    uvloop.run(main())
    return said.getvalue()


async def make_a_run(node: Node, monitor: Monitor) -> None:
    await say(node, run_pairs("WorkflowStarted", 0), run_pairs("WorkflowCompleted", 1))
    await see_the_run(node, monitor)


async def see_the_run(node: Node, monitor: Monitor) -> None:
    run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
    assert run.state == "completed"


async def see_that_it_is_off(node: Node, monitor: Monitor) -> None:
    await say(node, run_pairs("WorkflowStarted", 0, run="late"), first=50)
    with pytest.raises(MonitorOff):
        await monitor.ask(lambda past, now_ns: past.runs.runs(now_ns))


def garble(path: Path) -> None:
    """Write over all pages but the first, in place."""
    page = 8_192
    with path.open("r+b") as file:
        file.seek(page)
        file.write(os.urandom(path.stat().st_size - page))


def set_aside(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.glob(f"{FILE_NAME}.damaged-*"))


def test_a_database_of_garbage_is_set_aside_and_the_log_is_folded_again(tmp_path: Path) -> None:
    watch(tmp_path, make_a_run)
    garbage = b"no database at all " * 1_000
    (tmp_path / FILE_NAME).write_bytes(garbage)

    said = watch(tmp_path, see_the_run)

    assert (tmp_path / f"{FILE_NAME}.damaged-1").read_bytes() == garbage
    assert "damaged-1" in said
    assert "delete" in said


def test_damaged_pages_are_met_by_the_writer_or_a_question_and_all_is_folded_again(
    tmp_path: Path,
) -> None:
    watch(tmp_path, make_a_run)
    garble(tmp_path / FILE_NAME)

    said = watch(tmp_path, see_the_run)

    assert set_aside(tmp_path)[0] == f"{FILE_NAME}.damaged-1"
    assert "damaged" in said


def test_a_database_that_breaks_while_it_is_used_is_made_anew_once(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        await make_a_run(node, monitor)
        _break(monitor)
        await say(node, activity_pairs("a", "ActivitySucceeded", 1), first=10)
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert (run.state, run.activities.succeeded) == ("completed", 1)
        _break(monitor)
        await see_that_it_is_off(node, monitor)
        assert node.broker.streams_open == 0  # nobody holds on to the log

    def _break(monitor: Monitor) -> None:
        def broken(*_: object, **__: object) -> None:
            raise apsw.CorruptError("the page is not what it should be")

        monitor.recorder.writer.write = broken  # type: ignore[method-assign,assignment]

    said = watch(tmp_path, script)

    assert set_aside(tmp_path)[0] == f"{FILE_NAME}.damaged-1"
    assert f"{FILE_NAME}.damaged-2" not in set_aside(tmp_path)
    assert "a second time" in said


def test_a_question_that_meets_damage_is_answered_from_new_tables(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        await make_a_run(node, monitor)
        (row,) = monitor.recorder.queries.index.rows("SELECT no FROM runs")
        other = apsw.Connection(str(tmp_path / FILE_NAME))
        other.execute("UPDATE runs SET row = x'c1c1c1' WHERE no = ?", row)
        other.close()
        await asyncio.gather(*(see_the_run(node, monitor) for _ in range(8)))

    watch(tmp_path, script)

    assert f"{FILE_NAME}.damaged-1" in set_aside(tmp_path)


def test_no_more_than_so_many_databases_are_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damage, "SET_ASIDE_MAX", 2)
    for _ in range(2):
        (tmp_path / FILE_NAME).write_bytes(b"garbage " * 1_000)
        watch(tmp_path, make_a_run if not set_aside(tmp_path) else see_the_run)
    (tmp_path / FILE_NAME).write_bytes(b"garbage " * 1_000)

    said = watch(tmp_path, see_that_it_is_off)

    assert "2 are there already" in said


def _a_directory(path: Path) -> None:
    path.mkdir()


def _somebody_elses(path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE theirs (a)")
    other.close()


@pytest.mark.parametrize("put", [_a_directory, _somebody_elses])
def test_what_cannot_be_opened_leaves_the_broker_without_a_monitor(
    put: object, tmp_path: Path
) -> None:
    assert callable(put)
    put(tmp_path / FILE_NAME)

    said = watch(tmp_path, see_that_it_is_off)

    assert "warning" in said
    assert FILE_NAME in said
    assert set_aside(tmp_path) == []


def test_a_broker_without_its_monitor_serves_and_says_why() -> None:
    with served() as broker:
        broker.stop()
        for file in broker.directory.glob(f"{FILE_NAME}*"):
            file.unlink()
        (broker.directory / FILE_NAME).mkdir()
        broker.start()

        broker.publish({"data": {"RunId": "r"}})
        for path in ("/runs", "/runs/r/events", "/activities", "/workflows/w/versions"):
            status, problem = broker.call("GET", path)
            assert (status, problem["code"]) == (409, "T325")
            assert FILE_NAME in str(problem)
        assert broker.call("GET", "/readyz")[0] == 200
        with urllib.request.urlopen(f"{broker.url}/metrics") as page:
            assert b"tocsin_monitor_on 0.0" in page.read()
        assert "Traceback" not in broker.said()


def test_a_full_disk_is_told_once_and_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "TRY_AGAIN_S", 0.02)
    tries = threading.Semaphore(0)

    async def script(node: Node, monitor: Monitor) -> None:
        await make_a_run(node, monitor)
        write = monitor.recorder.writer.write

        def counted(*given: object, **more: object) -> None:
            tries.release()
            write(*given, **more)  # type: ignore[arg-type]

        monitor.recorder.writer.write = counted  # type: ignore[method-assign,assignment]
        _fill(place / "ballast")
        for n in range(40):
            pairs = [
                activity_pairs(f"a-{n}-{k}", "ActivitySucceeded", 1, ErrorMessage="x" * 500)
                for k in range(100)
            ]
            await say(node, *pairs, first=1_000 + n * 100)  # everybody is answered
        for _ in range(60):
            await asyncio.to_thread(tries.acquire)
        assert monitor.behind
        (place / "ballast").unlink()
        while monitor.behind:
            await asyncio.sleep(0.01)
        run = await monitor.ask(lambda past, now_ns: past.runs.run("r", now_ns))
        assert run.activities.succeeded == 4_000

    with small_disk(32) as place:
        said = watch(tmp_path, script, place)

    assert said.count("the disk is full") == 1
    assert said.count("can write again") == 1


def _fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4_096)):
            pass


def test_a_message_too_big_for_the_tables_is_left_out_alone_and_counted(tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        write = monitor.recorder.writer.write

        def picky(messages: list[follower.RunMessage], through: int, **more: int) -> None:
            if any(each.pairs["RunId"] == "big" for each in messages):
                raise apsw.TooBigError("string or blob too big")
            write(messages, through, **more)

        monitor.recorder.writer.write = picky  # type: ignore[method-assign,assignment]
        await say(node, *(run_pairs("WorkflowStarted", 0, run=each) for each in ("a", "big", "b")))
        records, _ = await monitor.ask(lambda past, now_ns: past.runs.runs(now_ns))
        assert {run.id for run in records} == {"a", "b"}
        assert monitor.left_out == 1

    assert "skipped a message" in watch(tmp_path, script)


@pytest.mark.parametrize("name", ["x" * 513, "two\nlines", "nul\x00", "\x7f"])
def test_a_run_that_nobody_could_ask_for_is_left_out_and_told_of(name: str, tmp_path: Path) -> None:
    async def script(node: Node, monitor: Monitor) -> None:
        await say(node, *(run_pairs("WorkflowStarted", 0, run=each) for each in (name, "good")))
        records, _ = await monitor.ask(lambda past, now_ns: past.runs.runs(now_ns))
        assert [run.id for run in records] == ["good"]
        assert monitor.left_out == 1
        with pytest.raises(NoSuchRun):
            await monitor.ask(lambda past, now_ns: past.runs.run(name, now_ns))

    said = watch(tmp_path, script)

    assert "RunId" in said
    assert "skipped a message" in said

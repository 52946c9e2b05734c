"""The logging service: a file or a database, at least once, on from where it was."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from served import Served, served
from tocsin.client.blackboard import HttpLink, InProcessBlackboard, Message
from tocsin.client.blackboard.link import Delivered
from tocsin.client.blackboard.logging_service import (
    DatabaseJournal,
    FileJournal,
    open_journal,
    write_log,
)
from tocsin.errors import BadSetting


def delivered(*numbers: int) -> list[Delivered]:
    return [Delivered(n, Message({"RunId": f"r{n}"}, id=str(n), source="/t")) for n in numbers]


def lines(path: Path) -> list[int]:
    return [json.loads(line)["seq"] for line in path.read_text().splitlines()]


def test_a_file_has_a_line_for_each_message_and_knows_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    journal = FileJournal(path)
    journal.write(delivered(1, 2))
    journal.close()

    again = FileJournal(path)
    again.write(delivered(2, 3))

    assert again.place == 3
    assert lines(path) == [1, 2, 3]
    assert json.loads(path.read_text().splitlines()[0])["pairs"] == {"RunId": "r1"}


def test_a_line_that_a_crash_cut_is_left_and_its_message_written_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    journal = FileJournal(path)
    journal.write(delivered(1))
    journal.close()
    path.write_bytes(path.read_bytes() + b'{"seq":2,"id":"2","pa')

    again = FileJournal(path)
    again.write(delivered(2))

    assert again.place == 2
    whole = [line for line in path.read_text().splitlines() if line.endswith("}")]
    assert [json.loads(line)["seq"] for line in whole] == [1, 2]


def test_a_full_file_makes_room_and_only_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    journal = FileJournal(path, bytes_max=1, files_max=3)
    for number in range(1, 6):
        journal.write(delivered(number))
    journal.close()

    assert [lines(tmp_path / name) for name in ("log.jsonl", "log.jsonl.1", "log.jsonl.2")] == [
        [5],
        [4],
        [3],
    ]
    assert len(list(tmp_path.iterdir())) == 3


def test_a_database_can_be_asked_by_concept_and_value(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    journal = open_journal(path)
    journal.write(delivered(1, 2))
    journal.write(delivered(2, 3))
    journal.close()

    asked = "SELECT seq FROM pair WHERE concept = 'RunId' AND value = 'r2'"
    assert sqlite3.connect(path).execute(asked).fetchall() == [(2,)]
    assert DatabaseJournal(path).place == 3


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"no database at all, and longer than a header" * 10)

    with pytest.raises(BadSetting, match=r"log\.db"):
        open_journal(tmp_path / "log.db")
    with pytest.raises(BadSetting):
        open_journal(tmp_path / "log.db" / "under" / "a.jsonl")


def test_it_writes_what_an_in_process_blackboard_has(tmp_path: Path) -> None:
    board = InProcessBlackboard()
    journal = FileJournal(tmp_path / "log.jsonl")
    published = iter([True, False, False])

    def publish_once() -> bool:
        if next(published):
            board.publish([Message({"RunId": "r1", "Host": "h"})])
        return False

    assert write_log(board, ["RunId"], journal, is_over=publish_once, count_max=1) == 1
    assert lines(tmp_path / "log.jsonl") == [1]


def test_it_waits_for_a_broker_that_is_not_there_yet(tmp_path: Path) -> None:
    waits = threading.Event()
    journal = FileJournal(tmp_path / "log.jsonl")
    with served() as broker:
        broker.stop()
        link = HttpLink(broker.url)
        writer = threading.Thread(
            target=write_log,
            args=(link, ["RunId"], journal),
            kwargs={"after": 0, "count_max": 1, "on_unreachable": lambda error: waits.set()},
        )
        writer.start()
        assert waits.wait(30)
        broker.start()
        link.publish([Message({"RunId": "r1"})])
        writer.join(30)
        link.close()

    assert lines(tmp_path / "log.jsonl") == [1]


def test_it_stops_waiting_when_it_is_over(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "log.jsonl")

    assert write_log(HttpLink("127.0.0.1:9"), ["RunId"], journal, is_over=lambda: True) == 0


@pytest.mark.parametrize("name", ["log.jsonl", "log.db"])
def test_after_a_stop_it_goes_on_with_what_it_missed(
    broker: Served, tmp_path: Path, name: str
) -> None:
    link = HttpLink(broker.url)
    source = f"/logging/{time.time_ns()}"

    def publish(*numbers: int) -> None:
        reported = [Message({"WorkflowUnloaded": "now"}, id=str(n), source=source) for n in numbers]
        link.publish(reported)

    before = int(broker.publish({"topic": "here"})["last"])
    publish(1, 2)
    journal = open_journal(tmp_path / name)
    assert write_log(link, ["WorkflowUnloaded"], journal, after=before, count_max=2) == 2
    journal.close()
    publish(3, 4)

    again = open_journal(tmp_path / name)
    assert write_log(link, ["WorkflowUnloaded"], again, count_max=2) == 2
    again.close()

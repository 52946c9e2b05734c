"""`tocsin wf log` writes messages down, and goes on where it was."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from served import Served, served


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as broker:
        yield broker


def log(broker: Served, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tocsin", "wf", "log", *words, "--broker", broker.url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def post(broker: Served, *codes: int) -> None:
    messages = [{"pairs": {"ExitCode": str(code), "Host": "h"}} for code in codes]
    assert broker.call("POST", "/blackboard/messages", messages)[0] == 202


def test_a_file_gets_the_asked_for_pairs_and_goes_on_where_it_was(
    broker: Served, tmp_path: Path
) -> None:
    file = tmp_path / "codes.jsonl"
    post(broker, 1, 2)

    first = log(broker, str(file), "--concepts", "ExitCode", "--all", "--count", "2")
    post(broker, 3)
    again = log(broker, str(file), "--concepts", "ExitCode", "--count", "1", "--json")

    assert first.returncode == 0, first.stderr
    assert json.loads(again.stdout)["written"] == 1
    pairs = [json.loads(line)["pairs"] for line in file.read_text().splitlines()]
    assert pairs == [{"ExitCode": "1"}, {"ExitCode": "2"}, {"ExitCode": "3"}]


def test_a_name_that_ends_so_is_a_database(broker: Served, tmp_path: Path) -> None:
    post(broker, 4)
    reported = log(broker, str(tmp_path / "all.db"), "--all", "--count", "4")

    assert reported.returncode == 0, reported.stderr
    with sqlite3.connect(tmp_path / "all.db") as database:
        tables = database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'")
        assert tables.fetchone()[0] >= 1


def test_an_unknown_concept_is_named_with_the_nearest(broker: Served, tmp_path: Path) -> None:
    reported = log(broker, str(tmp_path / "x.jsonl"), "--concepts", "ExitCod")

    assert reported.returncode != 0
    assert "ExitCode" in reported.stderr

"""Long work shows that it goes on, also where there is no terminal."""

from __future__ import annotations

import io
import re
import sys

import pytest

from tocsin.cli import progress
from tocsin.cli.progress import Progress


def test_without_a_terminal_each_step_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("tables", 2) as bar:
        bar.step("activities")
        bar.step("runs")

    lines = capsys.readouterr().err.splitlines()
    assert [re.sub(r"^ *\d+\.\d s  ", "", line) for line in lines] == ["activities", "runs"]


def test_without_a_terminal_counts_are_said_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter(range(0, 1_000, 4))
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(seconds)))

    with Progress("events", 9_000) as bar:
        for _ in range(9):
            bar.advance(1_000)

    lines = capsys.readouterr().err.splitlines()
    assert 1 < len(lines) < 9
    assert all(re.search(r"events: \d,000 of 9,000$", line) for line in lines)


def test_who_asked_for_quiet_reads_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("events", 2, quiet=True) as bar:
        bar.step("one")
        bar.advance()

    assert capsys.readouterr().err == ""


def test_a_line_is_written_at_once_so_that_steps_of_two_threads_do_not_mix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[str] = []

    class Log(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    monkeypatch.setattr(sys, "stderr", Log())
    with Progress("tables") as progress:
        progress.step("runs")

    [line] = written
    assert line.endswith("runs\n")

"""The examples run, each against a real broker, as their readers will run them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from served import Served, served

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def start(broker: Served, name: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOCSIN_BROKER": broker.url}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / name), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def output(running: subprocess.Popen[str]) -> list[str]:
    out, err = running.communicate(timeout=60)
    assert running.returncode == 0, err
    return out.splitlines()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_fits_on_a_screen(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 40


def test_events_published_by_one_example_are_consumed_by_the_others() -> None:
    with served() as broker:
        sink = start(broker, "webhook_sink.py", "3")
        assert sink.stderr is not None
        assert sink.stderr.readline().startswith("subscribed as")

        assert output(start(broker, "publish.py")) == ["stored as 1", "and 1000 more"]

        consumed = output(start(broker, "consume.py", "3", "lead/ohio/*"))
        assert consumed[0] == "1 lead/ohio/radar {'load5': 7, 'system': 'Linux'}"
        assert consumed[2].startswith("3 lead/ohio/station")
        pushed = output(sink)
        assert pushed[0] == 'lead/ohio/radar {"load5":7,"system":"Linux"}'
        assert len(pushed) == 3


def test_the_async_example_hears_itself(broker: Served) -> None:
    assert output(start(broker, "async_consume.py"))[-1] == "examples/ticks {'number': 4}"


def test_the_example_finds_the_resources_that_it_registers_and_watches_them(broker: Served) -> None:
    assert output(start(broker, "resources.py")) == [
        "found ['node7'] shared: False",
        "added node7",
        "added node8",
    ]
    assert broker.call("GET", "/resources")[1]["resources"] == []

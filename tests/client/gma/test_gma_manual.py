"""Every block of the manual runs, and so do the examples, as their readers will run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "gma-client.md").read_text(), re.DOTALL
)
SAYS = ["consumers find it at", "34.0 degC", "5.5", "42\nTrue 1 1 0"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "src")}


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_manual_of_performance_events_runs(number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[number]],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert SAYS[number] in done.stdout
    assert not done.stderr


def test_every_block_is_known_to_this_test() -> None:
    assert len(BLOCKS) == len(SAYS)


def test_the_example_consumer_hears_the_example_producer() -> None:
    producer = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / "gma_producer.py"), "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        assert producer.stdout is not None
        address = producer.stdout.readline().split()[-1]
        consumer = [sys.executable, str(ROOT / "examples" / "gma_consumer.py")]
        done = subprocess.run(
            [*consumer, address, "UptimeCPULoad", "50ms", "3"],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        producer.terminate()
        producer.communicate(timeout=10)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "it has UptimeCPULoad"
    assert len(lines) == 5


def test_a_custom_producer_takes_fifteen_lines() -> None:
    text = (ROOT / "examples" / "gma_producer.py").read_text()
    program = [
        line
        for line in text.partition('"""\n')[2].splitlines()
        if line.strip() and not line.lstrip().startswith("#")
    ]

    assert len(program) <= 15


def test_a_program_that_forgets_to_close_ends_without_a_word() -> None:
    program = (
        "from tocsin.client.gma import Consumer, Producer\n"
        "producer = Producer()\n"
        "producer.offer('Count', lambda _: {'N': 1}, period_s=0.01)\n"
        "archive = Consumer(listen='127.0.0.1:0')\n"
        "feed = producer.push_to(archive.address, 'Count')\n"
        "events = Consumer(producer.address).subscribe('Count')\n"
        "print(next(events)['N'], archive.take(5)['N'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::ResourceWarning", "-c", program],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "1 1\n", "")

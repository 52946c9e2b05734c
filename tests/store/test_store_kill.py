"""A broker killed in the middle of its work has kept what it acknowledged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from store_samples import CHILD_ENVIRONMENT, make_event

from tocsin.store.store import Store

WRITER = """
import sys
from random import Random
from store_samples import CHILD_ENVIRONMENT, make_events
from tocsin.event.stored import Batch
from tocsin.store.store import Store

random = Random(int(sys.argv[2]))
store = Store.open(sys.argv[1])
while True:
    events = make_events(store.last_seq + 1, random.randrange(1, 90), random.randrange(2000))
    last = events[-1].seq
    store.write(Batch(events, cursors={"cursor": last}, trim_to=last - 400))
    print(last, flush=True)
"""


def killed_after(directory: Path, acknowledgements: int, seed: int) -> int:
    """Run a writer, kill it some time after so many acknowledgements; returns the last one."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), str(seed)],
        stdout=subprocess.PIPE,
        text=True,
        env=CHILD_ENVIRONMENT,
    )
    assert writer.stdout is not None
    lines = [writer.stdout.readline() for _ in range(acknowledgements)]
    os.kill(writer.pid, signal.SIGKILL)
    lines += writer.stdout.readlines()
    writer.wait()
    writer.stdout.close()
    return int([line for line in lines if line.endswith("\n")][-1])


def kill_again_and_again(directory: Path, kills: int) -> None:
    random = Random(kills)
    for seed in range(kills):
        acknowledged = killed_after(directory, random.randrange(1, 25), seed)

        store = Store.open(directory)
        reader = store.reader()
        page = reader.read(0, 1000)

        assert store.last_seq >= acknowledged
        assert [stored.seq for stored in page.events] == [*range(store.first_seq, page.next + 1)]
        assert page.next == store.last_seq
        assert reader.cursors() == {"cursor": store.last_seq}
        assert all(
            stored == make_event(stored.seq, len(stored.event.data or b""))
            for stored in page.events
        )
        reader.close()
        store.close()


def test_what_was_acknowledged_before_a_kill_is_there(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, kills=6)


@pytest.mark.slow
def test_what_was_acknowledged_before_each_of_100_kills_is_there(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, kills=100)

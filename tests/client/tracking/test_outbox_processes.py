"""The outbox in processes that fork, have no threads, or forget to close it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from outboxes import NOBODY, arrived, reported

from served import Served
from tocsin.client.blackboard import Message
from tocsin.client.tracking import Outbox


def test_a_process_that_may_have_no_more_threads_keeps_its_events_all_the_same(
    tmp_path: Path, run: str
) -> None:
    script = f"""
import threading
from pathlib import Path
from tocsin.client.tracking import Outbox
from tocsin.wire.blackboard.messages import Message
def refuse(self):
    raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
outbox = Outbox({NOBODY!r}, source="/t", spool=Path({str(tmp_path)!r}))
outbox.put(Message({{"RunId": {run!r}, "ActivityExecuting": "now"}}))
"""
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)

    [file] = tmp_path.glob("*.spool")
    assert file.read_text().count(run) == 1


def test_a_forked_child_starts_empty_and_speaks_for_itself(
    asked: Served, tmp_path: Path, run: str
) -> None:
    with Outbox(asked.url, source="/t", spool=tmp_path) as outbox:
        outbox.put(reported(run, 1))
        child = os.fork()
        if child == 0:
            try:
                good = outbox.counts.put == 0 and outbox.source == f"/t/{os.getpid()}"
                outbox.put(reported(run, 2))
                outbox.close()
                os._exit(0 if good and outbox.counts.put == 1 else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        outbox.put(reported(run, 3))

    assert os.waitstatus_to_exitcode(status) == 0
    assert outbox.source == "/t"
    assert sorted(arrived(asked, run, 3)) == ["1", "2", "3"]


def _in_child(outbox: Outbox, message: Message) -> None:
    outbox.put(message)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_of_multiprocessing_sends_its_reports_before_it_ends(
    asked: Served, tmp_path: Path, run: str
) -> None:
    with Outbox(asked.url, source="/t", spool=tmp_path) as outbox:
        context = multiprocessing.get_context("fork")
        child = context.Process(target=_in_child, args=(outbox, reported(run, 7)))
        child.start()
        child.join()

    assert child.exitcode == 0
    assert arrived(asked, run, 1) == ["7"]


def test_forks_in_the_middle_of_everything_hang_nobody(tmp_path: Path, run: str) -> None:
    busy = threading.Event()
    with Outbox(NOBODY, source="/t", spool=tmp_path) as outbox:

        def tell() -> None:
            number = 0
            while not busy.is_set():
                outbox.put(reported(run, number))
                number += 1
                time.sleep(0.0005)

        threads = [threading.Thread(target=tell) for _ in range(2)]
        for thread in threads:
            thread.start()
        codes = []
        for _ in range(10):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                outbox.put(reported(run, -1))
                outbox.close()
                os._exit(0 if outbox.counts.spooled == 1 else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        busy.set()
        for thread in threads:
            thread.join()

    assert codes == [0] * 10


def test_a_program_that_forgets_to_close_sends_all_the_same(
    asked: Served, tmp_path: Path, run: str
) -> None:
    script = f"""
from pathlib import Path
from tocsin.client.tracking import Workflow
spool = Path({str(tmp_path)!r})
workflow = Workflow("forgetful", run_id={run!r}, broker={asked.url!r}, spool=spool)
workflow.activity("align", id="1").executing()
"""
    subprocess.run([sys.executable, "-c", script], check=True)

    assert arrived(asked, run, 1) == ["1"]

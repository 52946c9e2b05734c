"""The outbox: nobody waits for it, and what cannot be sent now is sent later, once."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from outboxes import NOBODY, arrived, reported
from tracked import eventually

from served import Served, served
from tocsin.client.blackboard import HttpLink, InProcessBlackboard, Message
from tocsin.client.tracking import Outbox, Workflow
from tocsin.client.tracking.spool import send_all


@pytest.fixture
def hanging() -> Iterator[str]:
    """Somebody who takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        yield f"http://{host}:{port}"


def test_messages_go_to_the_broker_in_batches_and_in_order(
    asked: Served, tmp_path: Path, run: str
) -> None:
    with Outbox(asked.url, source="/t", spool=tmp_path) as outbox:
        for number in range(2_500):
            outbox.put(reported(run, number))

    assert outbox.counts.sent == 2_500
    assert arrived(asked, run, 2_500) == [str(n) for n in range(2_500)]
    assert not list(tmp_path.glob("*.spool"))


def test_the_same_goes_over_a_socket(asked: Served, tmp_path: Path, run: str) -> None:
    address = asked.url.replace("http:", "ws:")
    with Outbox(address, source="/t", spool=tmp_path) as outbox:
        for number in range(1_200):
            outbox.put(reported(run, number))

    assert outbox.counts.sent == 1_200
    assert arrived(asked, run, 1_200) == [str(n) for n in range(1_200)]


def test_large_messages_go_in_requests_that_a_broker_takes(
    asked: Served, tmp_path: Path, run: str
) -> None:
    text = "x" * 900_000
    with Outbox(asked.url, source="/t", spool=tmp_path) as outbox:
        for number in range(25):
            pairs = {**reported(run, number).pairs, "WorkflowName": text}
            outbox.put(Message(pairs, id=f"{run}/{number}"))
        outbox.put(Message({**reported(run, 25).pairs, "WorkflowName": text * 2}, id=f"{run}/25"))

    assert (outbox.counts.sent, outbox.counts.dropped, outbox.counts.spooled) == (25, 1, 0)


def test_what_a_slow_broker_leaves_in_the_queue_goes_to_the_disk_before_it_is_full(
    tmp_path: Path, run: str
) -> None:
    board = InProcessBlackboard()
    with board.subscribe(["Event", "Identity"]) as events:
        outbox = Outbox(link=board, source="/t", spool=tmp_path, queue_max=3_000)
        with board._changed:  # for as long, publishing takes
            for number in range(2_900):
                outbox.put(reported(run, number))
            deadline_s = time.monotonic() + 10.0
            while outbox.counts.spooled < 1_000 and time.monotonic() < deadline_s:
                time.sleep(0.01)
            for number in range(2_900, 3_500):
                outbox.put(reported(run, number))
        outbox.close()

        came = [each.message.pairs["ActivityId"] for each in events.take(0)]
    assert came == [str(n) for n in range(3_500)]
    assert outbox.counts.spooled > 0
    assert outbox.counts.dropped == 0


def test_a_message_without_id_source_and_time_gets_them(tmp_path: Path) -> None:
    board = InProcessBlackboard()
    with board.subscribe(["Event"]) as events:
        with Outbox(link=board, source="/t", spool=tmp_path) as outbox:
            outbox.put(Message({"WorkflowIdle": "now"}))
        [came] = events.take(0)

    assert came.message.id
    assert came.message.source == "/t"
    assert came.message.time is not None
    assert came.message.time.endswith("Z")


def test_a_run_whose_broker_was_never_there_finishes_and_its_events_arrive_later_and_once(
    asked: Served, tmp_path: Path, run: str
) -> None:
    with Workflow("forecast", run_id=run, broker=NOBODY, spool=tmp_path) as workflow:
        for number in range(20):
            with workflow.activity("align", id=str(number)):
                pass
    counts = workflow.outbox.counts
    assert (counts.sent, counts.dropped, counts.spooled) == (0, 0, counts.put)

    first = send_all(asked.url, tmp_path)
    again = send_all(asked.url, tmp_path)

    assert (first.files, first.sent, first.refused) == (1, counts.put, 0)
    assert again.files == 0
    assert sorted(arrived(asked, run, 40), key=int) == [str(n) for n in range(20) for _ in range(2)]


@pytest.mark.parametrize("scheme", ["http:", pytest.param("ws:", marks=pytest.mark.slow)])
def test_a_broker_that_goes_and_comes_back_costs_no_event_and_none_comes_twice(
    tmp_path: Path, run: str, scheme: str
) -> None:
    with served() as broker, HttpLink(broker.url).subscribe(["Event", "Identity"]) as live:
        live.take(0.1)
        address = broker.url.replace("http:", scheme)
        outbox = Outbox(address, source="/t", spool=tmp_path)
        for number in range(300):
            outbox.put(reported(run, number))
            if number == 100:
                assert outbox.flush()
                broker.kill()
            if number == 200:
                assert eventually(lambda: outbox.counts.spooled > 0)
                broker.start()
        live.take(0.5)
        assert eventually(lambda: outbox.counts.sent >= 300)
        outbox.close()

        assert arrived(broker, run, 300) == [str(n) for n in range(300)]
    assert not list(tmp_path.glob("*.spool"))


def test_what_one_process_could_not_send_the_next_one_does(
    asked: Served, tmp_path: Path, run: str
) -> None:
    # As if the broker had been away: the file names it as the one it is for.
    with Outbox(NOBODY, source="/t", spool=tmp_path) as outbox:
        outbox.put(reported(run, 1))
    [file] = tmp_path.glob("*.spool")
    file.write_text(file.read_text().replace(NOBODY, asked.url))

    with Outbox(asked.url, source="/next", spool=tmp_path):
        assert eventually(lambda: not file.exists())

    assert arrived(asked, run, 1) == ["1"]


def test_a_workflow_that_is_killed_loses_nothing_that_was_written(
    asked: Served, tmp_path: Path, run: str
) -> None:
    script = f"""
import time
from pathlib import Path
from tocsin.client.tracking import Outbox
from tocsin.wire.blackboard.messages import Message
outbox = Outbox({NOBODY!r}, source="/t", spool=Path({str(tmp_path)!r}))
for number in range(50):
    pairs = {{"RunId": {run!r}, "ActivityId": str(number), "ActivityExecuting": "now"}}
    outbox.put(Message(pairs, id=str(number)))
while outbox.counts.spooled < 50:
    time.sleep(0.01)
print("written", flush=True)
time.sleep(600)
"""
    victim = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert victim.stdout is not None
    assert victim.stdout.readline() == b"written\n"
    assert send_all(asked.url, tmp_path).busy == 1
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    victim.stdout.close()

    assert send_all(asked.url, tmp_path).sent == 50
    assert arrived(asked, run, 50) == [str(n) for n in range(50)]


def test_a_broker_that_hangs_holds_nobody_up_and_the_events_are_kept(
    hanging: str, tmp_path: Path, run: str
) -> None:
    outbox = Outbox(hanging, source="/t", spool=tmp_path, drain_s=0.2)
    for number in range(500):
        outbox.put(reported(run, number))
    outbox.close()

    assert outbox.counts.spooled == 500
    assert outbox.counts.dropped == 0
    [file] = tmp_path.glob("*.spool")
    assert file.read_text().count("\n") == 501


def test_what_does_not_fit_the_queue_is_counted_and_reported_once(
    hanging: str, tmp_path: Path, run: str, caplog: pytest.LogCaptureFixture
) -> None:
    outbox = Outbox(hanging, source="/t", spool=tmp_path, queue_max=10, drain_s=0.1)
    for number in range(25):
        outbox.put(reported(run, number))
    outbox.close()
    outbox.put(reported(run, 99))

    assert outbox.counts.dropped == 16
    assert outbox.counts.put == 26
    assert [r.message for r in caplog.records if "lost" in r.message] == [
        "Workflow events are lost: 10 of them wait already."
    ]


def test_one_message_that_is_refused_does_not_keep_the_others_back(
    asked: Served, tmp_path: Path, run: str, caplog: pytest.LogCaptureFixture
) -> None:
    everything = HttpLink(asked.url)
    whole = asked.call("POST", "/boxes", {"filters": [{"filter": "everything"}]})
    assert whole[0] in (200, 201), whole
    assert eventually(lambda: everything.profile().everything)
    with Outbox(asked.url, source="/t", spool=tmp_path) as outbox:
        for number in range(50):
            outbox.put(reported(run, number))
            if number == 25:
                outbox.put(Message({"RunId": run, "ActivityExecutin": "now"}, id=f"{run}/bad"))
    asked.call("DELETE", f"/boxes/{whole[1]['id']}")

    assert arrived(asked, run, 50) == [str(n) for n in range(50)]
    assert (outbox.counts.sent, outbox.counts.dropped) == (50, 1)
    assert "ActivityExecuting" in "".join(r.message for r in caplog.records)


def test_while_nothing_is_known_everything_is_wanted_and_then_what_was_last_asked_for(
    asked: Served, tmp_path: Path
) -> None:
    with Outbox(NOBODY, source="/t", spool=tmp_path) as unknown:
        assert eventually(lambda: unknown.is_settled)
        assert unknown.wants("CarbonEmitted")
    with Outbox(asked.url, source="/t", spool=tmp_path) as known:
        assert eventually(lambda: known.is_settled)
        assert known.wants("ActivityExecuting")
        assert not known.wants("CarbonEmitted")
    [profile] = tmp_path.glob("profile-*.json")
    profile.rename(tmp_path / "profile-http___127.0.0.1_9.json")

    with Outbox(NOBODY, source="/t", spool=tmp_path) as remembered:
        assert eventually(lambda: remembered.is_settled)
        assert remembered.wants("ActivityExecuting")
        assert not remembered.wants("CarbonEmitted")


def test_an_address_that_is_none_is_reported_and_nothing_raises(
    tmp_path: Path, run: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Outbox("gopher://node", source="/t", spool=tmp_path) as outbox:
        outbox.put(reported(run, 1))

    assert outbox.counts.spooled == 1
    assert "gopher://node" in caplog.text


def test_a_spool_that_cannot_be_written_is_reported_and_nothing_raises(
    tmp_path: Path, run: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with Outbox(NOBODY, source="/t", spool=tmp_path / "file" / "spool") as outbox:
        outbox.put(reported(run, 1))

    assert outbox.counts.dropped == 1
    assert "the spool cannot take them" in caplog.text

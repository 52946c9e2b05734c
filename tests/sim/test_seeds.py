"""Some hundred simulated runs: nothing is violated, and everything that can go wrong did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.mutations import reorder_on_retry
from tocsin.sim.faults.crashes import CrashPoint
from tocsin.sim.run import Report, run_seed, run_seeds

SEEDS = 100
MANY_SEEDS = 300  # within which everything happens that can go wrong

# Not mere names: each is counted where the thing happens.
MUST_HAPPEN = {
    "kill",
    "power cut",
    "stop",
    *(f"crash: {point.value}" for point in CrashPoint),
    "crash: the disk failed",
    "unsynced writes kept",
    "unsynced writes lost",
    "unsynced writes torn",
    "disk full",
    "disk full at start",
    "sync failed",
    "clock set",
    "clock jumped",
    "clock right again",
    "clock in doubt: ahead",
    "clock in doubt: behind",
    "clock in doubt: set",
    "message lost",
    "message duplicated",
    "message overtaken",
    "publish refused: Busy",
    "publish refused: Disk failed",
    "publish refused: Disk full",
    "repeat acknowledged",
    "sink answers garbage",
    "sink asks for patience",
    "sink down",
    "sink fails",
    "sink is gone",
    "sink refuses an event",
    "sink slow",
    "handshake allowed",
    "handshake declined",
    "handshake by call back",
    "event delivered again",
    "subscriber behind with a full window",
    "log read back",
    "log trimmed",
    "note: a subscription expired",
    "note: a subscription was paused; `tocsin subs resume` starts it again",
    "note: an event became a dead letter; see `tocsin dlq show`",
    "note: events waited longer than the subscription may hold them, and were dropped",
    "redrive: Redriven",
    "redrive: RedriveFailed",
    "dead letter dropped",
    "pull answer lost",
    "stream says what it lost",
    "event stream resumed",
    "created by REST: box",
    "created by REST: push",
    "changed by REST: box",
    "changed by REST: push",
    "deleted by REST: box",
    "deleted by REST: push",
    "subscription changed",
    "subscription deleted",
    "subscription found after a crash",
    "kept",
    "kept no longer",
    "kept over a crash",
    "too much to keep",
    "end announced: DeliveryFailure",
    "acknowledged by SOAP: eventing",
    "acknowledged by SOAP: message box",
    "acknowledged by SOAP: notification",
    "acknowledged by SOAP: reliable",
    "answer of a box arrived",
    "answer of a box lost",
    "box says what it dropped",
    "acknowledged by event socket",
    "acknowledged by blackboard socket",
    "aggregate profile received",
    "blackboard message received",
    "blackboard profile exchanged",
    "blackboard socket closed by the broker",
    "refused by blackboard socket",
    "taken by a broker: webhook",
    "taken by a broker: wse04",
    "taken by a broker: wsn13",
    "connection blocked",
    "connection cut",
    "performance event acknowledged",
    "performance event received",
    "performance event refused",
    "event socket closed by the broker",
    "refused by event socket",
    "socket says what it dropped",
    "damage: a reader came across it",
    "damage: events are named as unreadable",
    "damage: the broker runs on with it",
    "damage: it hits nothing in use",
    "damage: the start is refused",
    "reliable message held",
    "sequence refused",
    "subscribed by WSE",
    "subscribed by WSN",
    "Renew by SOAP",
    "Unsubscribe by SOAP",
    "end announced: SourceCancelling",
}


@pytest.fixture(scope="module")
def reports() -> list[Report]:
    return list(run_seeds(0, SEEDS))


def test_no_seed_violates_anything(reports: list[Report]) -> None:
    failures = [each.failure for each in reports if not each.ok]

    assert not failures, "\n\n".join(map(str, failures))


def test_the_runs_publish_deliver_and_crash(reports: list[Report]) -> None:
    assert sum(report.acknowledged for report in reports) > 20 * SEEDS
    assert sum(report.delivered for report in reports) > 20 * SEEDS
    assert sum(report.crashes for report in reports) > SEEDS / 2


@pytest.mark.slow
def test_every_kind_of_fault_and_every_odd_path_is_taken(reports: list[Report]) -> None:
    reports = [*reports, *run_seeds(SEEDS, MANY_SEEDS - SEEDS)]
    assert not [each.failure for each in reports if not each.ok]
    happened = {name for report in reports for name in report.counters}

    missing = MUST_HAPPEN - happened

    assert not missing


def test_one_seed_is_one_run() -> None:
    for seed in range(5):
        assert run_seed(seed) == run_seed(seed)


def test_one_seed_is_one_run_in_another_process_too() -> None:
    program = "from tocsin.sim.run import run_seed; print(run_seed(11).trace_hash)"
    source = Path(__file__).parents[2] / "src"
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": str(source)}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )

    assert int(result.stdout) == run_seed(11).trace_hash


def test_two_seeds_are_two_runs() -> None:
    assert len({run_seed(seed).trace_hash for seed in range(10)}) == 10


def test_a_failure_names_its_seed_what_was_violated_and_what_happened_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reorder_on_retry(monkeypatch)
    report = next(r for r in run_seeds(0, MANY_SEEDS) if "before event" in str(r.failure))

    first, second, *last = str(report.failure).splitlines()

    assert first.startswith(f"seed {report.seed}: ")
    assert second == "the last that happened:"
    assert 10 < len(last) <= 30


def test_progress_hears_of_every_seed() -> None:
    received: list[int] = []

    list(run_seeds(40, 3, lambda report: received.append(report.seed)))

    assert received == [40, 41, 42]

"""`tocsin evaluate discovery --processes`: brokers over TCP count what the simulator counts."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tocsin.cli.broker_process import BrokerProcess
from tocsin.cli.evaluate.discovery import processes
from tocsin.cli.evaluate.discovery.overlay_processes import levels, overlay_of
from tocsin.cli.evaluate.discovery.plots import can_plot
from tocsin.cli.main import run
from tocsin.sim.discovery.topology import central_topology, path_topology


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BrokerProcess]]:
    """Every broker that a test starts; none may be left."""
    brokers: list[BrokerProcess] = []
    start = BrokerProcess.start

    def noted(broker: BrokerProcess, wait_s: float) -> float:
        brokers.append(broker)
        return start(broker, wait_s)

    monkeypatch.setattr(BrokerProcess, "start", noted)
    yield brokers
    assert brokers
    assert not any(broker.is_running for broker in brokers)
    commands = [command_of(child) for child in psutil.Process().children(recursive=True)]
    assert not [words for words in commands if any(str(b.directory) in words for b in brokers)]


def command_of(child: psutil.Process) -> list[str]:
    try:
        return child.cmdline()
    except psutil.NoSuchProcess:  # or it has ended, and nobody has asked yet how
        return []


def check(out: Path, brokers: int) -> None:
    report = json.loads((out / "processes.json").read_text())
    counts = report["counts"]
    assert report["brokers"] == brokers
    assert report["differences"] == []
    assert counts == report["simulated"]
    assert list(counts) == ["registration", "Normal", "Similarity"]
    resources, requests = report["sizes"]["resources"], report["sizes"]["requests"]
    assert counts["registration"]["advertisements"] == resources * (brokers - 1)
    assert 0 < counts["Similarity"]["subscriptions"] < counts["Normal"]["subscriptions"]
    assert 0 < counts["Normal"]["end_markers"] == counts["Normal"]["subscriptions"]
    assert counts["Normal"]["dropped"] == counts["Similarity"]["dropped"] == 0
    assert report["shared"]["Normal"] == 0 < report["shared"]["Similarity"]
    of_all = [row for row in report["times"] if row["found"] == "all"]
    assert [row["run"] for row in of_all] == ["Normal", "Similarity", "one broker"]
    assert all(row["requests"] == requests and 0 < row["p50"] <= row["p99"] for row in of_all)
    processor_ms = report["processor_ms"]
    assert 0 < processor_ms["one broker"] < processor_ms["Normal"]
    if can_plot():
        assert (out / "processes.png").stat().st_size > 10_000


@pytest.mark.timeout(300)
def test_five_brokers_over_tcp_count_what_the_simulator_counts(
    tmp_path: Path, started: list[BrokerProcess], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["evaluate", "discovery", "--processes", "--quick", "--out", str(tmp_path)]) == 0

    assert len(started) == 6
    assert "5 brokers as processes" in capsys.readouterr().out
    check(tmp_path, 5)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_twenty_four_brokers_over_tcp_count_what_the_simulator_counts(
    tmp_path: Path, started: list[BrokerProcess]
) -> None:
    assert run(["evaluate", "discovery", "--processes", "--json", "--out", str(tmp_path)]) == 0

    assert len(started) == 25
    check(tmp_path, 24)


@pytest.mark.timeout(180)
def test_brokers_end_with_the_command_that_is_terminated(started: list[BrokerProcess]) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def be_terminated() -> None:
        with overlay_of(central_topology(), lambda: None):
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()

    with pytest.raises(SystemExit):
        be_terminated()

    assert len(started) == 1
    assert signal.getsignal(signal.SIGTERM) is before


def test_counts_that_differ_are_an_error_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = {"differences": ["Normal, e01, subscriptions: 9, not 8"]}
    monkeypatch.setattr(processes, "measure_processes", lambda *_: report)

    code = run(["evaluate", "discovery", "--processes", "--json", "--out", str(tmp_path)])

    assert code == 7
    shown = capsys.readouterr().err
    assert "1 count differs" in shown
    assert "Normal, e01, subscriptions: 9, not 8" in shown
    assert "T604" in shown


def test_every_broker_starts_after_the_one_that_it_connects_to() -> None:
    topology = path_topology()
    begun: dict[str, str] = {}

    for level in levels(topology):
        assert all(parent in begun or not begun for parent in level.values())
        begun |= level

    links = {frozenset(pair) for pair in begun.items() if pair[1]}
    assert set(begun) == set(topology.brokers)
    assert links == {frozenset(link) for link in topology.links}
    assert len(levels(topology)) == 4

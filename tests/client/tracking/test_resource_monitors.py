"""Resource monitors run for what somebody asked for, and hang or fail for themselves."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tracked import Received, eventually

from tocsin.client.tracking import (
    Aggregation,
    BeforeAfter,
    Periodic,
    register_monitor,
    unregister_monitor,
)
from tocsin.client.tracking.monitors import built_in as built_in_module
from tocsin.client.tracking.monitors import gpu
from tocsin.client.tracking.monitors.built_in import built_in_monitors, counted_uj, used_uj
from tocsin.client.tracking.monitors.kinds import Monitor
from tocsin.client.tracking.run import value_text
from tocsin.errors import CannotMeasure, UnknownConcept
from tocsin.ontology import built_in


@pytest.fixture(autouse=True)
def _no_monitors_left() -> Iterator[None]:
    yield
    for concept in ("GpuPercent", "Cost", "MemoryRss", "NetLatency"):
        unregister_monitor(concept)


def test_a_monitor_is_called_before_and_after_and_its_value_reported(tmp_path: Path) -> None:
    register_monitor("Cost", BeforeAfter(lambda: 5, lambda before: before + 2))
    received = Received("Cost", "Identity")
    with received.workflow(tmp_path) as run, run.activity("align", id="a", attempt=2):
        pass

    [reported] = received.of("Cost")
    assert reported["Cost"] == "7"
    assert (reported["ActivityId"], reported["Attempt"]) == ("a", "2")


def test_a_plain_function_is_read_when_an_activity_begins_and_when_it_ends(tmp_path: Path) -> None:
    values = iter([1.5, 2.5])
    register_monitor("Cost", lambda: next(values))
    received = Received("Cost")
    with received.workflow(tmp_path) as run, run.activity("align"):
        pass

    assert [pairs["Cost"] for pairs in received.of("Cost")] == ["1.5", "2.5"]


def test_a_monitor_whose_concept_nobody_asked_for_is_not_run_at_all(tmp_path: Path) -> None:
    called: list[str] = []

    def monitor() -> float:
        called.append("read")
        return 1.0

    register_monitor("Cost", Periodic(monitor, every_s=0.001))
    register_monitor("NetLatency", BeforeAfter(lambda: called.append("before"), lambda _: 1))
    received = Received("Event", "Memory")
    with received.workflow(tmp_path) as run, run.activity("align") as step:
        step.measure("Cost")

    assert called == []


def test_a_monitor_runs_from_when_somebody_asks_until_nobody_does(tmp_path: Path) -> None:
    called: list[int] = []
    register_monitor("Cost", BeforeAfter(lambda: 0, lambda _: called.append(1)))
    received = Received("Event")
    with received.workflow(tmp_path) as run:
        with run.activity("align"):
            pass
        assert called == []
        curious = received.board.subscribe(["Cost"])
        assert eventually(lambda: run.outbox.wants("Cost"))
        with run.activity("align"):
            pass
        assert eventually(lambda: called == [1])
        curious.close()
        assert eventually(lambda: not run.outbox.wants("Cost"))
        with run.activity("align"):
            pass

    assert called == [1]


def test_a_periodic_monitor_runs_beside_the_activity_in_a_thread_of_its_own(tmp_path: Path) -> None:
    threads: set[str] = set()
    read_thrice = threading.Event()
    reads: list[int] = []

    def monitor() -> int:
        threads.add(threading.current_thread().name)
        reads.append(1)
        if len(reads) >= 3:
            read_thrice.set()
        return len(reads)

    register_monitor("Cost", Periodic(monitor, every_s=0.01))
    received = Received("Cost")
    with received.workflow(tmp_path) as run, run.activity("align"):
        assert read_thrice.wait(30)

    reported = [int(pairs["Cost"]) for pairs in received.of("Cost")]
    assert reported == list(range(1, len(reported) + 1))
    assert len(reported) >= 3
    assert threads == {"tocsin-Cost"}


@pytest.mark.parametrize(
    ("aggregation", "value"), [(Aggregation.AVERAGE, "2"), (Aggregation.PEAK, "3")]
)
def test_a_periodic_monitor_may_tell_one_value_at_the_end(
    tmp_path: Path, aggregation: Aggregation, value: str
) -> None:
    values = iter([1, 3])
    register_monitor("Cost", Periodic(lambda: next(values), every_s=100, aggregation=aggregation))
    received = Received("Cost")
    with received.workflow(tmp_path) as run, run.activity("align"):
        pass

    assert [pairs["Cost"] for pairs in received.of("Cost")] == [value]


def test_a_monitor_that_raises_is_reported_once_and_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> float:
        raise OSError("no such counter")

    register_monitor("Cost", Periodic(broken, every_s=0.001))
    register_monitor("NetLatency", lambda: 0.25)
    received = Received("Event", "Cost", "NetLatency")
    with received.workflow(tmp_path) as run:
        for _ in range(3):
            with run.activity("align"):
                pass

    assert len(received.of("ActivitySucceeded")) == 3
    assert len(received.of("NetLatency")) == 6
    assert [r.message for r in caplog.records if "Cost" in r.message] == [
        "The monitor of Cost failed: OSError('no such counter')."
    ]


def test_a_monitor_that_hangs_is_given_up_and_the_workflow_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()
    calls: list[int] = []

    def hangs() -> float:
        calls.append(1)
        released.wait()
        return 1.0

    register_monitor("Cost", hangs)
    register_monitor("NetLatency", lambda: 0.25)
    received = Received("Event", "Cost", "NetLatency")
    with received.workflow(tmp_path) as run:
        run.monitors._deadline_s = 0.05
        with run.activity("align"):
            assert eventually(lambda: calls == [1])
            time.sleep(0.1)
        for _ in range(5):
            with run.activity("align"):
                pass
    released.set()

    assert calls == [1]
    assert not received.of("Cost")
    assert len(received.of("NetLatency")) == 12
    assert len(received.of("ActivitySucceeded")) == 6
    assert [r.message for r in caplog.records if "Cost" in r.message] == [
        "The monitor of Cost hangs and is not called again."
    ]


def test_an_activity_can_have_a_resource_measured_now(tmp_path: Path) -> None:
    register_monitor("Cost", lambda: 7)
    received = Received("UserResourceRequest", "MemoryRss", "Cost", "ActivityId")
    with received.workflow(tmp_path) as run, run.activity("align", id="a") as step:
        step.measure("MemoryRss")
        step.measure("Cost")

    asked = received.of("UserResourceRequest")
    assert all(pairs["ActivityId"] == "a" for pairs in asked)
    assert {c for pairs in asked for c in pairs} >= {"MemoryRss", "Cost"}
    assert int(next(p["MemoryRss"] for p in asked if "MemoryRss" in p)) > 1_000_000


def test_only_concepts_can_have_monitors() -> None:
    with pytest.raises(UnknownConcept, match="CpuPercent"):
        register_monitor("CpuPercents", lambda: 1)


def test_what_an_activity_uses_of_processor_memory_and_disk_is_reported(tmp_path: Path) -> None:
    received = Received("Event", "Resource")
    with received.workflow(tmp_path) as run, run.activity("align"):
        began = time.process_time()
        while time.process_time() - began < 0.2:
            sum(range(1000))

    [ended] = received.of("ActivitySucceeded")
    assert float(ended["CpuSeconds"]) >= 0.19
    assert int(ended["MemoryRss"]) > 1_000_000
    assert int(ended["IoWriteBytes"]) >= 0
    for concept in ("CpuPercent", "MemoryPeak", "DiskFree", "NetRxBytes", "NetTxBytes"):
        assert received.of(concept), concept
    assert all(0 <= float(pairs["CpuPercent"]) <= 101 for pairs in received.of("CpuPercent"))


def test_what_the_children_of_an_activity_use_counts_for_it(tmp_path: Path) -> None:
    received = Received("Event", "CpuSeconds", "MemoryPeak")
    script = (
        "import time\nkept = bytearray(80_000_000)\n"
        "while time.process_time() < 0.3: pass\ntime.sleep(0.6)"
    )
    with received.workflow(tmp_path) as run, run.activity("align"):
        subprocess.run([sys.executable, "-c", script], check=True)

    [ended] = received.of("ActivitySucceeded")
    assert float(ended["CpuSeconds"]) >= 0.3
    [peak] = received.of("MemoryPeak")
    assert int(peak["MemoryPeak"]) >= 80_000_000


def test_energy_is_counted_over_the_packages_and_over_the_end_of_a_counter(tmp_path: Path) -> None:
    def write(package_uj: int, part_uj: int) -> None:
        for zone, name, counted in (
            ("intel-rapl:0", "package-0", package_uj),
            ("intel-rapl:0:0", "core", part_uj),
        ):
            directory = tmp_path / "class" / "powercap" / zone
            directory.mkdir(parents=True, exist_ok=True)
            (directory / "name").write_text(name)
            (directory / "energy_uj").write_text(str(counted))
            (directory / "max_energy_range_uj").write_text("1000")

    write(900, 100)
    before = counted_uj(str(tmp_path))
    write(100, 200)

    assert used_uj(before, counted_uj(str(tmp_path))) == 200
    with pytest.raises(CannotMeasure):
        counted_uj(str(tmp_path / "nothing"))


def test_what_the_tool_for_graphics_processors_says_is_read() -> None:
    reported = gpu.parse("40, 1000, 75.5\n60, 500, [N/A]\nnonsense\n")

    assert reported == gpu.GpuUse(50.0, 1500 * gpu.MEBIBYTE, 75.5)
    assert gpu.parse("") is None


def test_every_monitor_that_comes_along_measures_a_resource(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu, "can_read", lambda: True)
    monkeypatch.setattr(built_in_module, "counted_uj", lambda: {"package-0": (1, None)})
    monitors: dict[str, Monitor] = built_in_monitors()

    assert monitors.keys() <= built_in().below("Resource")
    groups = ("Cpu", "Memory", "Disk", "Io", "Network", "Gpu", "Energy")
    assert all(built_in().below(group) & monitors.keys() for group in groups)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "3"), (0.5, "0.5"), (1e-7, "0.0000001"), (2.0, "2"), (-0.0, "0"), (float("nan"), None)],
)
def test_numbers_are_reported_plain_and_decimal(value: float, text: str | None) -> None:
    assert value_text(value) == text

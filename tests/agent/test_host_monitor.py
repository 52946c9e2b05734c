"""The monitor: shares readings, serves every period, and survives a machine that says nonsense."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from tocsin.agent import Monitor, Probe
from tocsin.agent.elements import disk_elements, load_elements
from tocsin.agent.monitor import COST_RATIO
from tocsin.client.host_readings import readings as r
from tocsin.errors import BadMessage, CannotMeasure
from tocsin.event.value import Quantity
from tocsin.wire.gma.messages import PerformanceEvent
from tocsin.wire.gma.names import EventName

DISKS = EventName("DiskIO", "urn:x")
LOAD = EventName("UptimeCPULoad")


@dataclass
class Machine:
    """A machine whose clock and disks do as they are told: a byte is read every millisecond."""

    now_s: float = 0.0
    readings: int = 0
    fails: Exception | None = None
    burns: Callable[[], None] = lambda: None
    disks: tuple[str, ...] = ("sda", "sdb")
    lock: threading.Lock = field(default_factory=threading.Lock)

    def clock(self) -> float:
        return self.now_s

    def stamp(self) -> str:
        return f"2026-01-01T00:00:{int(self.now_s) % 60:02}Z"

    def read(self) -> Mapping[str, r.DiskCounters]:
        with self.lock:
            self.readings += 1
        if self.fails is not None:
            raise self.fails
        self.burns()
        count = int(self.now_s * 1000)
        return {name: r.DiskCounters(count, 0, count, 0) for name in self.disks}

    def monitor(self) -> Monitor:
        probe = Probe(DISKS, "disks", self.read, disk_elements, choice="Device")
        return Monitor("node7", [probe], clock=self.clock, stamp=self.stamp)


def test_an_event_says_when_and_where() -> None:
    machine = Machine(now_s=7.0)

    [first, second] = machine.monitor().sample(DISKS)

    assert (first["Device"], second["Device"]) == ("sda", "sdb")
    assert first["HostName"] == "node7"
    assert first.time == "2026-01-01T00:00:07Z"
    assert first.name == DISKS


def test_those_who_ask_at_the_same_time_share_a_reading() -> None:
    machine = Machine()
    monitor = machine.monitor()
    machine.now_s = 100.0
    before = machine.readings

    threads = [threading.Thread(target=monitor.sample, args=(DISKS,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert machine.readings == before + 1


def test_consumers_of_two_periods_get_each_its_own_past() -> None:
    machine = Machine()
    monitor = machine.monitor()
    seconds, minutes = [], []
    for second in range(1, 601):
        machine.now_s = float(second)
        seconds.append(monitor.sample(DISKS, {"Period": 1})[0]["Interval"])
        if second % 60 == 0:
            [minute, _] = monitor.sample(DISKS, {"Period": Quantity(1, "min")})
            minutes.append(minute["Interval"])
            assert minute["ReadRate"] == 1_000.0

    assert set(seconds) == {1.0}
    assert all(40.0 <= float(str(interval)) <= 90.0 for interval in minutes)


def test_one_of_several_may_be_asked_for() -> None:
    [only] = Machine().monitor().sample(DISKS, {"Device": "sdb"})

    assert only["Device"] == "sdb"


def test_what_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(BadMessage, match=r"no Device 'sdz' here .*sda, sdb"):
        Machine().monitor().sample(DISKS, {"Device": "sdz"})


def test_an_unknown_parameter_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadMessage, match=r"no parameter 'Colour' .*Period, Device"):
        Machine().monitor().sample(DISKS, {"Colour": "red"})


@pytest.mark.parametrize("period", [0, -1, Quantity(1, "ns"), "soon", Quantity(3, "furlong")])
def test_a_period_that_is_none_is_refused(period: int | str | Quantity) -> None:
    with pytest.raises(BadMessage, match="Period"):
        Machine().monitor().sample(DISKS, {"Period": period})


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "No such file or directory", "/proc/diskstats"),
        PermissionError(13, "Permission denied"),
        RuntimeError("couldn't find any"),
        ValueError("not enough values to unpack"),
        AttributeError("module 'psutil' has no attribute 'sensors_fans'"),
    ],
)
def test_whatever_a_probe_raises_is_words_and_no_crash(error: Exception) -> None:
    machine = Machine()
    monitor = machine.monitor()
    machine.now_s, machine.fails = 100.0, error

    with pytest.raises(CannotMeasure, match=r"DiskIO cannot be read here"):
        monitor.sample(DISKS)

    machine.now_s, machine.fails = 200.0, None
    assert monitor.sample(DISKS)


def test_what_cannot_be_read_is_missing_with_the_reason() -> None:
    monitor = Machine(fails=FileNotFoundError(2, "No such file", "/proc/diskstats")).monitor()

    assert not monitor.probes
    assert "No such file" in monitor.missing[DISKS]


def test_what_there_is_none_of_is_missing() -> None:
    monitor = Machine(disks=()).monitor()

    assert not monitor.probes
    assert "this machine has none" in monitor.missing[DISKS]


def test_a_costly_probe_is_not_asked_as_often_as_somebody_wants() -> None:
    def burn() -> None:
        sum(range(200_000))

    machine = Machine(burns=burn)
    monitor = machine.monitor()
    begun = machine.readings
    for tick in range(1, 101):
        machine.now_s = tick * 0.01
        monitor.sample(DISKS, {"Period": 0.01})

    # Each takes a millisecond or more, so one in fifty milliseconds at most.
    assert COST_RATIO == 50
    assert machine.readings - begun <= 25


def test_the_paper_s_event_needs_no_second_reading() -> None:
    probe = Probe(LOAD, "load", lambda: r.Load(1.5, 1.6, 1.3), load_elements)

    [event] = Monitor("foo.gov", [probe]).maker(LOAD)({})

    assert isinstance(event, PerformanceEvent)
    assert [each.name for each in event.elements] == ["Load1", "Load5", "Load15", "HostName"]
    assert event["HostName"] == "foo.gov"

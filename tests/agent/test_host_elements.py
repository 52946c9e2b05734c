"""What the events of a host say: readings in, elements out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.agent import PROBES, elements
from tocsin.agent.elements import Elements, Previous
from tocsin.client.host_readings import readings as r
from tocsin.wire.gma.messages import Element, EventMessage, PerformanceEvent
from tocsin.wire.gma.names import EventName
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

odd_numbers = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.just(float("nan")), st.just(float("inf"))
)
counters = st.integers(0, 2**64)
DISK = r.DiskCounters(1_000, 2_000, 10, 20, 500)
ETHERNET = r.InterfaceCounters(1_000, 2_000, 10, 20, 0, 0, 3, 0)


def values(elements: Elements) -> dict[str, object]:
    return {each.name: each.value for each in elements}


def units(elements: Elements) -> dict[str, str | None]:
    return {each.name: each.units for each in elements}


def test_the_load_is_as_in_the_paper() -> None:
    [reported] = elements.load_elements(r.Load(1.5, 1.6, 1.3042), None)

    assert reported == (Element("Load1", 1.5), Element("Load5", 1.6), Element("Load15", 1.3))


def test_the_cores_are_reported_in_percent_of_their_time() -> None:
    then = r.CpuTimes({"user": 10.0, "system": 5.0, "idle": 100.0, "iowait": 0.0}, 4)
    now = r.CpuTimes({"user": 12.0, "system": 6.0, "idle": 106.0, "iowait": 1.0}, 4, 2_300.0)

    [reported] = elements.cpu_elements(now, Previous(then, 2.5))

    assert values(reported) == {
        "Usage": 30.0,
        "User": 20.0,
        "System": 10.0,
        "Idle": 60.0,
        "IOWait": 10.0,
        "Cores": 4,
        "Frequency": 2_300.0,
        "Interval": 2.5,
    }
    assert units(reported)["User"] == "%"
    assert units(reported)["Frequency"] == "MHz"
    assert units(reported)["Interval"] == "s"


def test_with_nothing_to_compare_there_are_no_rates() -> None:
    [cpu] = elements.cpu_elements(r.CpuTimes({"user": 1.0, "idle": 2.0}, 2), None)
    [disk] = elements.disk_elements({"sda": DISK}, None)

    assert values(cpu) == {"Cores": 2}
    assert "ReadRate" not in values(disk)
    assert values(disk)["Read"] == 1_000


def test_a_disk_has_rates_and_totals() -> None:
    now = r.DiskCounters(5_000, 2_000, 14, 21, 1_500)

    [reported] = elements.disk_elements({"sda": now}, Previous({"sda": DISK}, 2.0))

    assert values(reported) == {
        "Device": "sda",
        "ReadRate": 2_000.0,
        "WriteRate": 0.0,
        "ReadOperationRate": 2.0,
        "WriteOperationRate": 0.5,
        "Busy": 50.0,
        "Read": 5_000,
        "Written": 2_000,
        "ReadOperations": 14,
        "WriteOperations": 21,
        "Interval": 2.0,
    }
    assert units(reported)["ReadRate"] == "B/s"
    assert units(reported)["ReadOperationRate"] == "operations/s"


def test_a_disk_that_was_plugged_in_just_now_has_totals_only() -> None:
    first, second = elements.disk_elements({"sda": DISK, "sdb": DISK}, Previous({"sda": DISK}, 2.0))

    assert values(first)["ReadRate"] == 0.0
    assert "ReadRate" not in values(second)
    assert "Interval" not in values(second)


def test_an_interface_that_came_up_again_has_no_negative_rates() -> None:
    [reported] = elements.interface_elements(
        {"eth0": ETHERNET},
        Previous({"eth0": replace(ETHERNET, received_bytes=50_000_000, sent_bytes=1_500)}, 10.0),
    )

    assert values(reported)["ReceiveRate"] == 100.0
    assert values(reported)["SendRate"] == 50.0
    assert values(reported)["ReceiveDrops"] == 3


def test_a_file_system_is_as_full_as_df_says() -> None:
    root = r.FileSystem("/dev/vda", "/", "ext4", total=1_000, used=300, available=600)

    [reported] = elements.file_system_elements({"/": root}, None)

    assert values(reported) == {
        "Device": "/dev/vda",
        "MountPoint": "/",
        "FileSystem": "ext4",
        "Usage": 33.333,
        "Total": 1_000,
        "Used": 300,
        "Available": 600,
    }


def test_the_busiest_process_is_named() -> None:
    then = r.Processes(
        2, {"sleeping": 2}, {7: r.Process(1, "sim", 5.0), 8: r.Process(1, "sh", 9.0)}
    )
    now = r.Processes(
        3,
        {"running": 1, "sleeping": 1, "wondering": 1},
        {7: r.Process(1, "sim", 7.5), 8: r.Process(1, "sh", 9.1)},
    )

    [reported] = elements.process_elements(now, Previous(then, 5.0))

    assert values(reported) == {
        "Total": 3,
        "Running": 1,
        "Sleeping": 1,
        "DiskSleep": 0,
        "Idle": 0,
        "Stopped": 0,
        "Zombie": 0,
        "Other": 1,
        "TopProcess": "sim",
        "TopProcessID": 7,
        "TopProcessUsage": 50.0,
        "Interval": 5.0,
    }


def test_a_process_with_the_number_of_another_is_not_that_other() -> None:
    then = r.Processes(1, {}, {7: r.Process(started=1, name="old", cpu_s=50.0)})
    now = r.Processes(1, {}, {7: r.Process(started=9, name="new", cpu_s=2.0)})

    assert elements.busiest(then, now) == (7, 2.0)
    assert elements.busiest(now, now) is None


def test_a_meter_gives_joules_and_watts_also_over_its_end() -> None:
    then = r.EnergySource("rapl", counted_uj=9_000_000, counter_end_uj=10_000_000)
    now = replace(then, counted_uj=4_000_000)

    [reported] = elements.energy_elements({"package-0": now}, Previous({"package-0": then}, 2.0))

    assert values(reported) == {
        "Source": "package-0",
        "Kind": "rapl",
        "Energy": 5.0,
        "Power": 2.5,
        "Interval": 2.0,
    }
    assert (units(reported)["Energy"], units(reported)["Power"]) == ("J", "W")


def test_a_battery_has_a_charge() -> None:
    battery = r.EnergySource(
        "battery", power_w=8.5, charge_percent=72, left_j=90_000.0, is_on_mains=False
    )

    [reported] = elements.energy_elements({"BAT0": battery}, Previous({"BAT0": battery}, 10.0))

    assert values(reported) == {
        "Source": "BAT0",
        "Kind": "battery",
        "Power": 8.5,
        "Charge": 72,
        "EnergyLeft": 90_000.0,
        "OnMains": False,
    }


def test_a_sensor_without_limits_has_none() -> None:
    [reported] = elements.temperature_elements({"coretemp/Core 0": r.Sensor(45.5)}, None)

    assert reported == (Element("Sensor", "coretemp/Core 0"), Element("Temperature", 45.5, "degC"))


def test_every_measured_value_has_units() -> None:
    without = {"Device", "MountPoint", "FileSystem", "Interface", "Sensor", "Source", "Kind"}
    without |= {"OnMains", "TopProcess", "TopProcessID"}
    then = r.Processes(1, {}, {7: r.Process(1, "sim", 0.0)})
    now = r.Processes(1, {}, {7: r.Process(1, "sim", 1.0)})
    reported = [
        *elements.cpu_elements(r.CpuTimes({"user": 1.0, "idle": 1.0}, 1, 1.0), None),
        *elements.memory_elements(r.Memory(9, 8, 7, 6, 5, 4, 3, 2), None),
        *elements.disk_elements({"sda": DISK}, Previous({"sda": DISK}, 1.0)),
        *elements.interface_elements({"lo": ETHERNET}, Previous({"lo": ETHERNET}, 1.0)),
        *elements.process_elements(now, Previous(then, 1.0)),
        *elements.temperature_elements({"cpu": r.Sensor(1.0, 2.0, 3.0)}, None),
    ]

    bare = {each.name for elements in reported for each in elements if each.units is None}

    assert bare <= without


@pytest.mark.parametrize("text", ["name\x00\x1b[2J", "\ud800", "x" * 10_000, "<&>", "", " 7 "])
def test_odd_names_can_be_sent(text: str) -> None:
    [reported] = elements.disk_elements({text: DISK}, None)
    event = PerformanceEvent(EventName("DiskIO", "urn:x"), "2026-01-01T00:00:00Z", reported)

    received = read(write(EventMessage("1", event)))

    assert isinstance(received, EventMessage)
    assert received.event == event


@given(
    load=st.builds(r.Load, odd_numbers, odd_numbers, odd_numbers),
    memory=st.builds(r.Memory, *[counters] * 8),
    disks=st.lists(st.builds(r.DiskCounters, *[counters] * 5), min_size=2, max_size=2),
    sensor=st.builds(r.Sensor, odd_numbers, odd_numbers, odd_numbers),
    times=st.lists(
        st.dictionaries(st.sampled_from(["user", "idle", "x"]), odd_numbers), min_size=2, max_size=2
    ),
    interval_s=st.floats(-1, 1e9),
)
def test_whatever_a_kernel_says_can_be_sent(
    load: r.Load,
    memory: r.Memory,
    disks: list[r.DiskCounters],
    sensor: r.Sensor,
    times: list[dict[str, float]],
    interval_s: float,
) -> None:
    then, now = disks
    before, after = (r.CpuTimes(seconds, 1) for seconds in times)
    reported = [
        *elements.load_elements(load, None),
        *elements.memory_elements(memory, None),
        *elements.disk_elements({"sda": now}, Previous({"sda": then}, interval_s)),
        *elements.temperature_elements({"cpu": sensor}, None),
        *elements.cpu_elements(after, Previous(before, interval_s)),
    ]

    for each in reported:
        event = PerformanceEvent(EventName("Odd", "urn:x"), "2026-01-01T00:00:00Z", each)
        received = read(write(EventMessage("1", event)))

        assert isinstance(received, EventMessage)
        assert received.event == event


def test_every_probe_has_a_period_and_a_name_of_its_own() -> None:
    names = [probe.name for probe in PROBES]

    assert len(set(names)) == len(names)
    assert all("Period" in probe.parameters for probe in PROBES)
    assert {probe.choice for probe in PROBES if probe.choice} == {
        "MountPoint",
        "Device",
        "Interface",
        "Sensor",
        "Source",
    }

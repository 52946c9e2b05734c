"""Reading a machine: this one, and others that are laid out as files."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tocsin.agent import machine
from tocsin.agent.machine import one_mount_each
from tocsin.client.host_readings.energy import energy_sources
from tocsin.client.host_readings.processes import linux_processes, parse_stat, processes
from tocsin.client.host_readings.readings import EnergySource
from tocsin.errors import CannotMeasure

STAT = (
    b"42 (a) b (c)) R 1 42 42 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 1 0 9000 "
    b"1000 200 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)


def lay_out(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def test_this_machine_has_a_load_cores_and_memory() -> None:
    load, cpu, memory = machine.load(), machine.cpu_times(), machine.memory()

    assert load.one >= 0
    assert cpu.cores >= 1
    assert cpu.seconds["user"] > 0
    assert not {"guest", "guest_nice"} & cpu.seconds.keys()
    assert 0 < memory.available <= memory.total


def test_this_machine_has_a_root_file_system() -> None:
    found = machine.file_systems()

    assert "/" in found
    assert 0 < found["/"].used <= found["/"].total


def test_this_process_is_among_the_processes() -> None:
    found = processes()

    assert os.getpid() in found.by_id
    assert found.by_id[os.getpid()].cpu_s > 0
    assert sum(found.by_state.values()) == found.total


def test_what_is_sent_over_the_loopback_is_counted() -> None:
    before = machine.interfaces().get("lo")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        client.sendall(b"x" * 50_000)
        after = machine.interfaces()["lo"]

    assert after.sent_bytes - (before.sent_bytes if before else 0) >= 50_000


def test_a_container_shows_each_device_once() -> None:
    mounts = [
        ("/dev/vda1", "/etc/hosts", "ext4"),
        ("/dev/vda1", "/var/lib/data", "ext4"),
        ("/dev/vda1", "/data", "ext4"),
        ("overlay", "/", "overlay"),
    ]

    found = one_mount_each(mounts, is_directory=lambda path: path != "/etc/hosts")

    assert found == [("overlay", "/", "overlay"), ("/dev/vda1", "/data", "ext4")]


def test_a_name_may_hold_brackets_and_blanks() -> None:
    found = parse_stat(STAT, ticks_per_s=100)

    assert found is not None
    state, process = found
    assert (state, process.name, process.cpu_s, process.started) == (
        "running",
        "a) b (c)",
        2.0,
        9000,
    )


def test_a_line_cut_anywhere_is_a_process_or_nothing() -> None:
    whole = parse_stat(STAT, ticks_per_s=100)
    for cut in range(len(STAT)):
        found = parse_stat(STAT[:cut], ticks_per_s=100)
        if found is not None:
            state, process = found
            assert whole is not None
            assert (state, process.name, process.cpu_s) == (whole[0], whole[1].name, 2.0)


def test_processes_that_cannot_be_read_are_not_counted(tmp_path: Path) -> None:
    proc = lay_out(
        tmp_path,
        {"42/stat": STAT.decode(), "43/stat": "nonsense", "version": "7", "44/cmdline": "gone"},
    )

    found = linux_processes(proc)

    assert found.total == 1
    assert found.by_state == {"running": 1}
    assert list(found.by_id) == [42]


def test_meters_and_their_parts_are_named(tmp_path: Path) -> None:
    zone = "class/powercap/intel-rapl:0"
    part = "class/powercap/intel-rapl:0:1"
    system = lay_out(
        tmp_path,
        {
            f"{zone}/name": "package-0\n",
            f"{zone}/energy_uj": "123456\n",
            f"{zone}/max_energy_range_uj": "262143328850\n",
            f"{part}/name": "dram\n",
            f"{part}/energy_uj": "789\n",
            "class/powercap/intel-rapl/enabled": "1\n",
        },
    )

    assert energy_sources(system) == {
        "package-0": EnergySource("rapl", counted_uj=123_456, counter_end_uj=262_143_328_850),
        "package-0/dram": EnergySource("rapl", counted_uj=789),
    }


def test_a_battery_is_an_energy_source_and_the_mains_is_not(tmp_path: Path) -> None:
    battery = "class/power_supply/BAT0"
    system = lay_out(
        tmp_path,
        {
            f"{battery}/type": "Battery\n",
            f"{battery}/capacity": "72\n",
            f"{battery}/status": "Discharging\n",
            f"{battery}/power_now": "8500000\n",
            f"{battery}/energy_now": "25000000\n",
            "class/power_supply/AC/type": "Mains\n",
        },
    )

    assert energy_sources(system) == {
        "BAT0": EnergySource(
            "battery", power_w=8.5, charge_percent=72, left_j=90_000.0, is_on_mains=False
        )
    }


def test_where_there_is_no_meter_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(CannotMeasure, match="no energy counter and no battery"):
        energy_sources(str(tmp_path))


def test_a_meter_that_says_nonsense_says_which_file(tmp_path: Path) -> None:
    zone = "class/powercap/intel-rapl:0"
    system = lay_out(tmp_path, {f"{zone}/name": "package-0", f"{zone}/energy_uj": "lots"})

    with pytest.raises(CannotMeasure, match=r"energy_uj cannot be read: it says 'lots'"):
        energy_sources(system)


def test_a_meter_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    zone = "class/powercap/intel-rapl:0"
    system = lay_out(tmp_path, {f"{zone}/name": "package-0", f"{zone}/energy_uj/odd": ""})

    with pytest.raises(CannotMeasure, match="energy_uj cannot be read: Is a directory"):
        energy_sources(system)

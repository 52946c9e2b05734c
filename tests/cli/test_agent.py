"""`tocsin agent`: what it prints, what it refuses, and how it looks for its broker."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from served import ROOT
from tocsin.agent import PROBES
from tocsin.cli.agent.output import event_line, show_event
from tocsin.cli.main import run
from tocsin.client.gma import Element, EventName, PerformanceEvent, Producer

EVERYWHERE = {"UptimeCPULoad", "CPUUsage", "MemoryUsage", "DiskUsage", "ProcessCount"}


def agent(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tocsin", "agent", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
        check=False,
    )


def test_one_sample_of_everything_needs_no_broker() -> None:
    ran = agent("--once", "--json", "--broker", "http://127.0.0.1:1")

    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {event["name"] for event in events} >= EVERYWHERE
    for event in events:
        assert event["time"].endswith("Z")
        assert event["elements"][-1]["name"] == "HostName"
    [usage] = [event for event in events if event["name"] == "CPUUsage"]
    elements = {each["name"]: each for each in usage["elements"]}
    assert 0 <= elements["Usage"]["value"] <= 100
    assert elements["Usage"]["unit"] == "%"
    assert elements["Interval"]["value"] == pytest.approx(1.0, abs=0.5)


def test_a_person_reads_lines() -> None:
    ran = agent("--once", "--only", "UptimeCPULoad", "MemoryUsage")

    load, memory = ran.stdout.splitlines()
    assert "  UptimeCPULoad  Load1 " in load
    assert "  MemoryUsage  Usage " in memory
    assert re.search(r"Total [0-9.]+ [MGT]B  ", memory)


@pytest.mark.parametrize(
    ("element", "words"),
    [
        (Element("Total", 25_274_793_984, "B"), "Total 25.3 GB"),
        (Element("Free", 0, "B"), "Free 0 B"),
        (Element("Free", 999, "B"), "Free 999 B"),
        (Element("Free", 999_700, "B"), "Free 1 MB"),
        (Element("ReadRate", 1_419_258.104, "B/s"), "ReadRate 1.42 MB/s"),
        (Element("Cores", 2, "cores"), "Cores 2"),
        (Element("PacketRate", 25_117.139, "packets/s"), "PacketRate 25117 packets/s"),
        (Element("Usage", 75.622, "%"), "Usage 75.62 %"),
        (Element("OnMains", True), "OnMains yes"),
        (Element("Device", "sda"), "Device sda"),
        (Element("TopProcess", "a\nb"), "TopProcess a b"),
    ],
)
def test_a_person_reads_short_numbers(element: Element, words: str) -> None:
    event = PerformanceEvent(EventName("CPUUsage"), "2026-01-01T00:00:00Z", (element,))

    assert event_line(event) == f"2026-01-01T00:00:00Z  CPUUsage  {words}"


def test_the_agent_and_a_subscriber_print_the_same_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    disk = (Element("Free", 1.5, "GB", "+/-0.1"), Element("Name", "sda"))
    event = PerformanceEvent(EventName("Disk"), "2026-01-01T00:00:00Z", (Element("Disk", disk),))
    with Producer() as producer:
        producer.offer("Disk", lambda _: event)
        where = str(producer.address)
        assert run(["sub", "--as", "gma", where, "Disk", "--query", "--json"]) == 0
    subscribed = capsys.readouterr().out
    show_event(event, as_json=True)

    assert capsys.readouterr().out == subscribed
    assert json.loads(subscribed)["elements"][0]["value"][0] == {
        "name": "Free", "value": 1.5, "unit": "GB", "accuracy": "+/-0.1",
    }  # fmt: skip


def test_the_list_has_everything_or_says_why_not() -> None:
    ran = agent("--list", "--json")

    listed = {each["name"]: each for each in map(json.loads, ran.stdout.splitlines())}
    assert listed.keys() == {probe.name.local for probe in PROBES}
    assert listed["DiskUsage"]["parameters"] == ["Period", "MountPoint"]
    for each in listed.values():
        assert each["offered"] == (each["why_not"] is None)


def test_the_list_for_a_person_has_a_table_and_the_reasons() -> None:
    ran = agent("--list")

    assert ran.returncode == 0
    assert ran.stdout.startswith("EVENT")
    for probe in PROBES:
        assert probe.name.local in ran.stdout


def without_proc(*command: str) -> list[str]:
    """The command, where /proc is an empty directory."""
    return ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh", *command]


def may_hide_proc() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(without_proc("true"), capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not may_hide_proc(), reason="may not mount anything over /proc")
def test_a_container_without_proc_tells_what_it_can() -> None:
    command = [sys.executable, "-m", "tocsin", "agent"]

    reported = subprocess.run(without_proc(*command, "--once"), capture_output=True, text=True)
    listed = subprocess.run(without_proc(*command, "--list"), capture_output=True, text=True)

    assert reported.returncode == listed.returncode == 0, reported.stderr + listed.stderr
    assert "UptimeCPULoad  Load1 " in reported.stdout
    assert re.search(r"^MemoryUsage +cannot be read here", listed.stdout, re.MULTILINE)
    assert "/proc/meminfo" in listed.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "Mood"), "there is no host event 'Mood'"),
        (("--period", "0"), "the period is 0"),
        (("--period", "1ns"), "not a duration"),
        (("--period", "1000d"), "the period is 1000d"),
        (("--attr", "rack"), "has no ="),
        (("--broker", "off", "--listen", "off"), "nowhere to send events"),
        (("--broker", "ftp://x"), "not the address of a broker"),
        (("--listen", "nonsense", "--broker", "off"), "nonsense"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], words: str) -> None:
    ran = agent(*arguments)

    assert ran.returncode == 2, ran.stderr
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr

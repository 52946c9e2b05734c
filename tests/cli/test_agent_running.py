"""`tocsin agent` as a process, with a broker as a process: what arrives, what is found, what is
said, and that a broker that dies costs nothing."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from socket import gethostname
from typing import Any
from urllib.parse import quote

import pytest

from served import ROOT, Served, served
from tocsin.agent import NAMESPACE
from tocsin.client.gma import Consumer
from waiting import wait_until

HOST = gethostname()
WAIT_S = 20.0
EVERYWHERE = {"UptimeCPULoad", "CPUUsage", "MemoryUsage", "DiskUsage", "ProcessCount"}


class Agent:
    """One `tocsin agent`, ready."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.errors = directory / "agent.stderr"
        command = [sys.executable, "-m", "tocsin", "agent", "--json", "--listen", "127.0.0.1:0"]
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [*command, *arguments], stdout=subprocess.PIPE, stderr=errors, cwd=ROOT
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.said()
        self.ready = json.loads(line)

    def said(self) -> str:
        return self.errors.read_text(errors="replace")

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(WAIT_S)


@contextlib.contextmanager
def agent(*arguments: str) -> Iterator[Agent]:
    with tempfile.TemporaryDirectory(prefix="tocsin-agent-") as directory:
        running = Agent(Path(directory), *arguments)
        try:
            yield running
        finally:
            if running.process.poll() is None:
                running.process.kill()
            running.process.wait()
            if running.process.stdout is not None:
                running.process.stdout.close()


def events(broker: Served, filter: str = "") -> list[dict[str, Any]]:
    """All events in the log that pass."""
    found: list[dict[str, Any]] = []
    after = 0
    while True:
        query = f"/events?after={after}&limit=1000&filter={quote(filter)}"
        status, page = broker.call("GET", query)
        assert status == 200, page
        found += page["events"]
        if not page["events"]:
            return found
        after = page["next"]


def until_more(broker: Served, filter: str) -> None:
    """Wait for one more event than there is."""
    before = len(events(broker, filter))
    wait_until(lambda: len(events(broker, filter)) > before)


def until_said(running: Agent, words: str, times: int) -> None:
    wait_until(lambda: running.said().count(words) == times)


def producers(broker: Served, query: str = "") -> list[dict[str, Any]]:
    status, page = broker.call("GET", f"/directory?kind=producer&host={HOST}{query}")
    assert status == 200, page
    return [each for each in page["entries"] if each["name"] == "agent"]


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Served]:
    with served() as running:
        yield running


def test_every_event_arrives_in_the_log_with_its_units(own_broker: Served) -> None:
    with agent("--broker", own_broker.url, "--period", "0.3s") as running:
        names = {name.rpartition("}")[2] for name in running.ready["events"]}
        assert names >= EVERYWHERE

        def kinds() -> set[str]:
            topics = [event["topic"].split("/") for event in events(own_broker)]
            return {kind for first, kind, host in topics if (first, host) == ("gma", HOST)}

        wait_until(lambda: kinds() >= names)
        [usage, *_] = wait_until(lambda: events(own_broker, "topic gma/MemoryUsage/**"))

        assert usage["source"] == f"gma://{HOST}"
        assert usage["subject"] == HOST
        assert f'<MemoryUsage xmlns="{NAMESPACE}">' in usage["data"]
        assert '<Total units="B">' in usage["data"]
        assert wait_until(lambda: events(own_broker, "topic gma/MemoryUsage/** and Total > 1 MB"))
        assert running.end() == 0


def test_the_directory_has_it_while_it_runs(own_broker: Served) -> None:
    with agent("--broker", own_broker.url, "--attr", "rack=7", "--period", "1s") as running:
        [entry] = wait_until(lambda: producers(own_broker, "&event=UptimeCPULoad"))

        assert entry["address"] == f"gma://{running.ready['listen']}"
        assert entry["attributes"]["rack"] == 7
        assert entry["attributes"]["cores"] >= 1
        assert entry["attributes"]["memory"]["unit"] == "B"
        assert producers(own_broker, f"&filter={quote('rack = 7 and memory > 1 MB')}")
        disks = [each for each in entry["events"] if each["name"] == "DiskUsage"]
        assert disks[0]["parameters"] == ["Period", "MountPoint"]

        assert running.end() == 0
        assert producers(own_broker) == []


def test_it_says_when_it_starts_and_nothing_more_while_all_is_well(own_broker: Served) -> None:
    with agent("--broker", own_broker.url, "--period", "0.2s", "--only", "CPUUsage") as running:
        wait_until(lambda: len(running.said().splitlines()) >= 2)
        time.sleep(1.5)

        watches, goes = running.said().splitlines()
        assert f"watches {HOST}" in watches
        assert f"1 kind of events go to {own_broker.url}" in goes
        assert running.end(signal.SIGINT) == 130
        assert "Traceback" not in running.said()


def test_consumers_ask_it_without_a_broker() -> None:
    with agent("--broker", "off") as running, Consumer(running.ready["listen"]) as consumer:
        names = {name.local for name in consumer.event_names()}
        load = consumer.query("UptimeCPULoad")
        root = consumer.query(f"{{{NAMESPACE}}}DiskUsage", MountPoint="/")

        assert names >= EVERYWHERE
        assert load["HostName"] == HOST
        assert isinstance(load["Load5"], float)
        assert root["MountPoint"] == "/"
        assert root.element("Total").units == "B"
        assert running.end() == 0


def test_two_consumers_have_each_their_own_rate_of_one_agent() -> None:
    name = f"{{{NAMESPACE}}}CPUUsage"
    with agent("--broker", "off") as running:
        where = running.ready["listen"]
        with Consumer(where) as often, Consumer(where) as seldom:
            fast, slow = often.subscribe(name, period=0.2), seldom.subscribe(name, period=0.6)
            time.sleep(2.5)
            quick = [event for _ in range(9) if (event := fast.take(1.0)) is not None]
            calm = [event for _ in range(3) if (event := slow.take(1.0)) is not None]

        assert [event["Interval"] for event in quick[2:]] == pytest.approx([0.2] * 7, abs=0.1)
        assert [event["Interval"] for event in calm[1:]] == pytest.approx([0.6] * 2, abs=0.25)


def test_what_is_not_there_is_refused_in_words() -> None:
    from tocsin.errors import TocsinError

    with agent("--broker", "off") as running, Consumer(running.ready["listen"]) as consumer:
        with pytest.raises(TocsinError, match="no MountPoint '/nowhere' here"):
            consumer.query(f"{{{NAMESPACE}}}DiskUsage", MountPoint="/nowhere")
        assert consumer.query("UptimeCPULoad")


def test_a_broker_that_dies_twice_costs_no_event_and_doubles_none() -> None:
    with (
        served() as broker,
        agent("--broker", broker.url, "--period", "0.2s", "--only", "UptimeCPULoad") as running,
    ):
        topic = "topic gma/UptimeCPULoad/**"
        for time_of_death in (1, 2):
            until_more(broker, topic)
            broker.kill()
            until_said(running, "sent when it is back", time_of_death)
            broker.start()
            until_said(running, f"the broker at {broker.url} is back", time_of_death)
        until_more(broker, topic)
        assert running.end() == 0

        stored = events(broker, topic)
        times = [event["time"] for event in stored]
        assert len({event["id"] for event in stored}) == len(stored)
        assert len(set(times)) == len(times)
        assert times == sorted(times)
        numbers = [int(event["id"].rpartition("/e")[2]) for event in stored]
        assert numbers == list(range(1, len(stored) + 1))
        assert running.said().count("sent when it is back") == 2
        assert "Traceback" not in running.said()


def test_a_broker_that_dies_costs_no_event_of_any_kind() -> None:
    with served() as broker, agent("--broker", broker.url, "--period", "0.2s") as running:
        for how, time_of_death in ((broker.kill, 1), (broker.stop, 2)):
            until_more(broker, "topic gma/**")
            how()
            until_said(running, "sent when it is back", time_of_death)
            broker.start()
            until_said(running, f"the broker at {broker.url} is back", time_of_death)
        until_more(broker, "topic gma/**")
        assert running.end() == 0

        ids = [event["id"] for event in events(broker, "topic gma/**")]
        # All kinds are numbered together, so a gap would be an event that was lost.
        numbers = sorted(int(each.rpartition("/e")[2]) for each in ids)
        assert numbers == list(range(1, len(ids) + 1))
        assert "given up" not in running.said()
        assert "could not be sent" not in running.said()


def test_an_agent_may_be_there_before_its_broker() -> None:
    with served() as broker:
        broker.stop()
        with agent("--broker", broker.url, "--period", "0.2s", "--only", "CPUUsage") as running:
            wait_until(lambda: "cannot reach a broker" in running.said())
            broker.start()

            assert wait_until(lambda: events(broker, "topic gma/CPUUsage/**"))
            assert wait_until(lambda: producers(broker))
            assert running.end() == 0


def test_it_ends_at_once_when_its_broker_is_away() -> None:
    with agent("--broker", "http://127.0.0.1:1", "--period", "0.2s") as running:
        wait_until(lambda: "cannot reach a broker" in running.said())
        began_s = time.monotonic()

        assert running.end() == 0
        assert time.monotonic() - began_s < 5


def test_it_ends_soon_when_its_broker_hangs_and_says_what_is_left() -> None:
    with served() as broker, agent("--broker", broker.url, "--period", "0.2s") as running:
        wait_until(lambda: "kinds of events go to" in running.said())
        wait_until(lambda: producers(broker))
        broker.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(1.0)
            began_s = time.monotonic()
            assert running.end() == 0
            assert time.monotonic() - began_s < 3.5
        finally:
            broker.process.send_signal(signal.SIGCONT)

        last = running.said().splitlines()[-1]
        assert re.fullmatch(rf"tocsin: \d+ events could not be sent to {broker.url}", last), last
        assert "Traceback" not in running.said()


def test_it_has_one_connection_however_many_kinds_of_events() -> None:
    import psutil

    with served() as broker, agent("--broker", broker.url, "--period", "0.2s") as running:
        names = {name.rpartition("}")[2] for name in running.ready["events"]}
        wait_until(lambda: {event["topic"].split("/")[1] for event in events(broker)} >= names)
        port = int(broker.frames.rpartition(":")[2])
        connections = psutil.Process(running.process.pid).net_connections("tcp")

        assert len([each for each in connections if each.raddr and each.raddr.port == port]) == 1
        assert running.end() == 0
        assert "could not be sent" not in running.said()


def test_it_costs_little() -> None:
    import psutil  # type: ignore[import-untyped, unused-ignore]

    with agent("--broker", "off") as running:
        process = psutil.Process(running.process.pid)
        with Consumer(running.ready["listen"]) as consumer:
            kept = [consumer.subscribe(name, period=0.1) for name in running.ready["events"]]
            time.sleep(0.5)
            before = process.cpu_times()
            time.sleep(2.0)
            after = process.cpu_times()
            assert all(each.take(1.0) for each in kept)

    # Twenty samples of everything there is. At 20 ms each it would be 7 seconds an hour, at the
    # usual period; a quarter of that is usual here.
    assert (after.user + after.system) - (before.user + before.system) < 20 * 0.02


def as_resource(broker: Served, request: str) -> list[dict[str, Any]]:
    asked = {"request": request, "model": "dynamic", "max_age": 0}
    status, answer = broker.call("POST", "/discoveries", asked)
    assert status == 200, answer
    found: list[dict[str, Any]] = answer["resources"]
    return found


def test_the_host_is_a_resource_with_current_values_until_the_agent_ends(
    own_broker: Served,
) -> None:
    with agent("--broker", own_broker.url, "--period", "1s", "--attr", "rack=7") as running:
        request = "system = Linux and cores >= 1 and load1 >= 0 and disk > 0 and rack = 7"
        [first] = wait_until(lambda: as_resource(own_broker, request))
        before = own_broker.call("GET", f"/resources/{HOST}")[1]["updated"]
        wait_until(lambda: own_broker.call("GET", f"/resources/{HOST}")[1]["updated"] > before)
        code = running.end()

    assert (first["id"], first["kind"]) == (HOST, "machine")
    assert 0 <= first["attributes"]["free_memory"] <= first["attributes"]["memory"]
    assert code == 0
    assert as_resource(own_broker, "system = Linux") == []


def test_a_host_that_shall_not_be_a_resource_is_none(own_broker: Served) -> None:
    with agent("--broker", own_broker.url, "--period", "1s", "--no-resource") as running:
        until_more(own_broker, "topic gma/UptimeCPULoad/**")

        assert as_resource(own_broker, "system = Linux") == []
        assert running.end() == 0


def test_a_host_that_the_broker_has_forgotten_is_registered_again() -> None:
    with served() as broker, agent("--broker", broker.url, "--period", "1s"):
        wait_until(lambda: as_resource(broker, "system = Linux"))
        broker.call("DELETE", f"/resources/{HOST}")
        broker.kill()
        broker.start()

        assert wait_until(lambda: as_resource(broker, "system = Linux"))

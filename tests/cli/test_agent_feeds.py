"""How an agent keeps its broker told: consumers that listen stand for the broker's door, and a
page says where they are."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tocsin.agent import PROBES, Monitor
from tocsin.cli.agent.run import AgentOptions, BrokerFeeds, buffer_events_max
from tocsin.client.gma import Consumer, Producer
from tocsin.client.transport.address import broker_address
from waiting import wait_until

LOAD = [probe for probe in PROBES if probe.name.local == "UptimeCPULoad"]
WAIT_S = 15.0


class Page:
    """A broker's /gma, and nothing else."""

    def __init__(self) -> None:
        self.reported: Any = {}
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(page.reported).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def page() -> Iterator[Page]:
    found = Page()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def producer() -> Iterator[Producer]:
    with Producer(None, host="node7") as found:
        yield found


def call(page: Page, producer: Producer, said: list[str]) -> BrokerFeeds:
    monitor = Monitor("node7", LOAD)
    for name in monitor.probes:
        producer.offer(str(name), monitor.maker(name), period_s=0.2)
    options = AgentOptions(broker=page.url, listen=None, period_s=0.2, name="agent")
    feeds = BrokerFeeds(producer, monitor, broker_address(page.url), options, said.append)
    feeds.start()
    return feeds


def test_a_consumer_that_ends_and_returns_gets_events_again(page: Page, producer: Producer) -> None:
    said: list[str] = []
    with Consumer(listen="127.0.0.1:0") as first:
        where = first.address
        page.reported = {"frames": where}
        feeds = call(page, producer, said)
        assert first.take(WAIT_S) is not None
        wait_until(lambda: len(said) == 1)

    wait_until(lambda: len(said) == 2)
    with Consumer(listen=where) as second:
        event = second.take(WAIT_S)
        wait_until(lambda: len(said) == 3)
        feeds.stop()

    assert event is not None
    assert event["HostName"] == "node7"
    assert "1 kind of events go to" in said[0]
    assert "sent when it is back" in said[1]
    assert "is back" in said[2]


def test_a_broker_that_moved_is_found_again(
    page: Page, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.cli.agent.run.RETRY_S_MAX", 1.0)
    said: list[str] = []
    with Consumer(listen="127.0.0.1:0") as first, Consumer(listen="127.0.0.1:0") as second:
        page.reported = {"frames": first.address}
        feeds = call(page, producer, said)
        assert first.take(WAIT_S) is not None
        wait_until(lambda: said)

        page.reported = {"frames": second.address}
        first.close()

        assert second.take(WAIT_S) is not None
        wait_until(lambda: "is back" in said[-1])
        feeds.stop()


def test_a_broker_without_frames_is_reported_once(page: Page, producer: Producer) -> None:
    said: list[str] = []
    page.reported = {"frames": None}
    feeds = call(page, producer, said)
    wait_until(lambda: said)
    time.sleep(1.5)
    feeds.stop()

    [only] = said
    assert "takes no performance events; trying again" in only


def test_it_says_so_once_when_there_is_no_room_to_keep_more(
    page: Page, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.cli.agent.run.BUFFER_EVENTS_MIN", 1)
    monkeypatch.setattr("tocsin.cli.agent.run.BUFFER_S", 1.0)
    said: list[str] = []
    with Consumer(listen="127.0.0.1:0") as first:
        where = first.address
        page.reported = {"frames": where}
        feeds = call(page, producer, said)
        assert first.take(WAIT_S) is not None
        wait_until(lambda: len(said) == 1)
    wait_until(lambda: len(said) == 3)
    time.sleep(1.2)
    with Consumer(listen=where):
        wait_until(lambda: len(said) == 4)
        feeds.stop()

    assert "sent when it is back" in said[1]
    assert said[2] == (
        "tocsin: events are dropped: the buffer is full, the oldest events are dropped first"
    )
    assert re.search(r"is back; \d+ events dropped so far$", said[3])


def test_a_caller_whose_broker_hangs_stops_soon(producer: Producer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monitor = Monitor("node7", LOAD)
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        options = AgentOptions(broker=url, listen=None, period_s=0.2, name="agent")
        said: list[str] = []
        feeds = BrokerFeeds(producer, monitor, broker_address(url), options, said.append)
        feeds.start()
        time.sleep(0.3)
        began_s = time.monotonic()
        feeds.stop()

    assert time.monotonic() - began_s < 1
    assert said == []


def test_an_error_that_nobody_foresaw_is_reported_and_ends_nothing(
    page: Page, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise ZeroDivisionError("by zero")

    said: list[str] = []
    with Consumer(listen="127.0.0.1:0") as archive:
        page.reported = {"frames": archive.address}
        with monkeypatch.context() as patched:
            patched.setattr("tocsin.cli.agent.run.frames_address", broken)
            feeds = call(page, producer, said)
            wait_until(lambda: said)
        assert archive.take(WAIT_S) is not None
        feeds.stop()

    assert said[0] == "tocsin: ZeroDivisionError: by zero; trying again"


@pytest.mark.parametrize(
    ("period_s", "count", "kept"), [(10.0, 1, 8_640), (10.0, 3, 25_920), (0.01, 9, 100_000),
                                    (86_400.0, 1, 100), (3.0e7, 1, 100)],
)  # fmt: skip
def test_a_day_is_kept_within_limits(period_s: float, count: int, kept: int) -> None:
    assert buffer_events_max(period_s, count) == kept

"""Brokers as processes, linked with each other."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from served import Served, folder
from waiting import wait_until

WAIT_S = 60.0  # this machine may have much else to do
FAST = {
    "TOCSIN_ARCHIVE__ENABLED": "false",
    "TOCSIN_MONITOR__ENABLED": "false",
    "TOCSIN_OVERLAY__HEARTBEAT_S": "0.5",
    "TOCSIN_OVERLAY__SILENCE_S": "6",
    "TOCSIN_OVERLAY__PAUSE_S_MIN": "0.1",
    "TOCSIN_OVERLAY__PAUSE_S_MAX": "1",
    "TOCSIN_OVERLAY__RETURN_S": "1",
}


class Brokers:
    """Those of one test; `start` adds one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: list[Served] = []

    def start(self, name: str, *peers: str, flags: tuple[str, ...] = (), **env: str) -> Served:
        """A broker that connects to these peers; of several with commas between them, to one."""
        connects = [word for peer in peers for word in ("--peer", peer)]
        fixed = ("--frames", "off", "--soap-tcp", "off")
        broker = Served(self.directory / name, *fixed, *connects, *flags, env={**FAST, **env})
        self.started.append(broker)
        return broker


@contextlib.contextmanager
def brokers() -> Iterator[Brokers]:
    with folder() as directory:
        found = Brokers(directory)
        try:
            yield found
        finally:
            for each in found.started:
                if each.process.poll() is None:
                    each.process.kill()
                each.process.wait()
                if each.process.stdout is not None:
                    each.process.stdout.close()


def overlay(broker: Served) -> dict[str, Any]:
    status, found = broker.call("GET", "/overlay")
    assert status == 200, found
    known: dict[str, Any] = found
    return known


def id_of(broker: Served) -> str:
    found: str = overlay(broker)["broker"]
    return found


def until_reached(broker: Served, *others: Served) -> None:
    """Until these and no others are behind the neighbours of this broker."""
    wanted = {id_of(each) for each in others}
    wait_until(lambda: set(overlay(broker)["brokers"]) == wanted, f"{broker.said()[-2000:]}")


def box(broker: Served, topic: str) -> str:
    status, made = broker.call("POST", "/boxes", {"filters": [{"topic": topic}]})
    assert status == 201, made
    found: str = made["id"]
    return found


def until_wanted(broker: Served, filter: str) -> None:
    """Until a subscription with these words in it is known at a broker."""
    rows = "/overlay?rows=1000"
    wait_until(
        lambda: any(
            filter in each["filter"] for each in broker.call("GET", rows)[1]["subscriptions"]
        ),
        f"no subscription {filter}: {broker.said()[-2000:]}",
    )


def pulled(broker: Served, box_id: str) -> list[str]:
    """The ids of all events in a box, which is empty then."""
    found: list[str] = []
    token = ""
    while True:
        path = f"/boxes/{box_id}/messages?max=500&wait=1{f'&ack={token}' if token else ''}"
        status, page = broker.call("GET", path)
        assert status == 200, page
        if not page["events"]:
            return found
        found += [each["id"] for each in page["events"]]
        token = page["next"]


def until_arrived(
    broker: Served, box_id: str, wanted: list[str], before: list[str] | None = None
) -> list[str]:
    """Until all of these have been in a box. All that were, in their order, `before` first."""
    got = list(before or ())

    def all_are_there() -> bool:
        got.extend(pulled(broker, box_id))
        return set(got) >= set(wanted)

    wait_until(all_are_there, f"missing: {sorted(set(wanted) - set(got))[:10]}")
    return got


class Publishing:
    """A publisher in a thread: each event is published until it is acknowledged."""

    def __init__(self, broker: Served, topic: str, pause_s: float = 0.01) -> None:
        self.acknowledged: list[str] = []
        self._broker = broker
        self._topic = topic
        self._pause_s = pause_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Publishing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            event_id = f"{self._topic}-{number}"
            with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
                self._broker.publish({"id": event_id, "topic": self._topic, "data": number})
                self.acknowledged.append(event_id)
                number += 1
            self._stopping.wait(self._pause_s)

    def go_on(self, events: int) -> None:
        """Until so many more events have been acknowledged."""
        wanted = len(self.acknowledged) + events
        wait_until(lambda: len(self.acknowledged) >= wanted, "events are acknowledged")

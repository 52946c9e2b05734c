"""A broker that engines tell of their runs, and what its log says of them."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from served import Served
from tocsin.ontology import built_in
from tocsin.wire.blackboard.messages import Message

RECORDINGS = Path(__file__).parent.parent / "recordings"
WAIT_S = 60.0
PAGE = 1_000

ENDS = built_in().below("ActivityTerminalEvent") | {"ActivityRetrying"}
STATES = {
    "ActivitySucceeded": "succeeded",
    "ActivityFailed": "failed",
    "ActivityCancelled": "cancelled",
    "ActivitySkipped": "skipped",
    "ActivityCached": "cached",
}
RUN_ENDS = built_in().below("WorkflowTerminalEvent")


@dataclass(frozen=True, slots=True)
class Reported:
    """One message as it is in the log."""

    id: str
    source: str
    pairs: Mapping[str, str]


def somebody_listens(broker: Served) -> None:
    """Without a subscriber publishers send nothing. This one wants everything, for good."""
    status, answer = broker.call("POST", "/boxes", {"filters": []})
    assert status == 201, answer


def reported(broker: Served) -> list[Reported]:
    """All messages of the log, oldest first."""
    found: list[Reported] = []
    after = 0
    while True:
        _, page = broker.call("GET", f"/events?after={after}&limit={PAGE}")
        found += [Reported(e["id"], e["source"], e["data"]) for e in page["events"]]
        if not page["events"] or page["next"] is None or page["next"] <= after:
            return found
        after = page["next"]


def wait_until_reported(broker: Served, concept: str, **pairs: str) -> None:
    """Until the log has this of somebody, as seen from outside."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        for message in reported(broker):
            if concept in message.pairs and pairs.items() <= message.pairs.items():
                return
        time.sleep(0.05)
    raise AssertionError(f"nobody told {concept} {pairs}: {reported(broker)}")


def ends(messages: Iterable[Reported | Message]) -> dict[tuple[str, int], str]:
    """How each attempt of each activity ended; none of them twice."""
    found: dict[tuple[str, int], str] = {}
    for message in messages:
        for concept in ENDS & message.pairs.keys():
            key = message.pairs["ActivityId"], int(message.pairs["Attempt"])
            assert key not in found, f"{key} ended as {found[key]} and as {concept}"
            found[key] = concept
    return found


def run_ends(messages: Iterable[Reported | Message]) -> list[str]:
    return [concept for message in messages for concept in RUN_ENDS & message.pairs.keys()]


def with_concept(messages: Iterable[Any], concept: str) -> list[Any]:
    return [message for message in messages if concept in message.pairs]


def kinds(messages: Iterable[Reported | Message]) -> dict[str, str]:
    """What type each activity is of."""
    return {
        message.pairs["ActivityId"]: message.pairs["ActivityType"]
        for message in messages
        if "ActivityId" in message.pairs and "ActivityType" in message.pairs
    }


def assert_nothing_twice(messages: Iterable[Reported]) -> None:
    ids = [(message.source, message.id) for message in messages]
    assert len(ids) == len(set(ids))


def assert_the_monitor_agrees(broker: Served, messages: list[Reported]) -> None:
    """The broker's own view of each run: all that ended is counted, and nothing looks odd."""
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for message in messages:
        for concept in ENDS & message.pairs.keys():
            key = message.pairs["RunId"], message.pairs["ActivityId"]
            last[key] = max(last.get(key, (0, "")), (int(message.pairs["Attempt"]), concept))
    for run in {message.pairs["RunId"] for message in messages}:
        expected = Counter(STATES[last[key][1]] for key in last if key[0] == run)
        shown = _ended_run(broker, run)
        assert {state: shown["activities"][state] for state in expected} == expected
        assert shown["anomaly_list"] == []


def _ended_run(broker: Served, run: str) -> dict[str, Any]:
    deadline = time.monotonic() + WAIT_S
    while True:
        status, shown = broker.call("GET", f"/runs/{run}")
        if status == 200 and shown["ended"] is not None:
            whole: dict[str, Any] = shown
            return whole
        assert time.monotonic() < deadline, shown
        time.sleep(0.05)


def recording(name: str) -> list[dict[str, Any]]:
    lines = (RECORDINGS / name).read_text().splitlines()
    return [json.loads(line) for line in lines if line]


@contextlib.contextmanager
def deaf_broker() -> Iterator[str]:
    """The address of something that takes every connection and never says a word."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    held.append(listener.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for line in held:
                line.close()

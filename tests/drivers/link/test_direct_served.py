"""Brokers as processes whose results of discovery go straight to whoever asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from brokers import Brokers, brokers, overlay, until_reached

from served import Served
from waiting import wait_until

HEARTBEAT_S = 0.5  # of these brokers


@pytest.fixture
def place() -> Iterator[Brokers]:
    with brokers() as found:
        yield found


def asks_directly(broker: Served) -> None:
    status, answer = broker.call("PATCH", "/overlay/options", {"direct": True})
    assert status == 200, answer


def register(broker: Served, name: str) -> None:
    asked = {
        "id": name,
        "model": "dynamic",
        "advertisement": "[cores,<=,8]",
        "attributes": {"cores": 4},
    }
    status, answer = broker.call("POST", "/resources", asked)
    assert status == 201, answer


def find(broker: Served) -> Any:
    asked = {"request": "[cores,>,2]", "model": "dynamic"}
    status, answer = broker.call("POST", "/discoveries", asked)
    assert status in (200, 201), answer
    return answer


def ids(answer: Any) -> list[str]:
    return [each["id"] for each in answer["resources"]]


def test_results_come_directly_for_longer_than_a_heartbeat_and_after_a_crash(
    place: Brokers,
) -> None:
    host = place.start("host")
    far = place.start("far", host.link)
    until_reached(host, far)
    asks_directly(host)
    register(far, "node")
    wait_until(lambda: ids(find(host)) == ["node"], "it is found")

    for _ in range(10):
        time.sleep(HEARTBEAT_S / 2)
        found = find(host)
        assert (ids(found), found["incomplete"]) == (["node"], None)

    host.kill()
    host.start()
    until_reached(host, far)
    wait_until(lambda: ids(find(host)) == ["node"], "it is found again")

    assert "results are not delivered" not in far.said()
    refused = "request for results at an address that is not allowed"
    assert refused not in overlay(far)["discovery"]["counters"]["dropped"]

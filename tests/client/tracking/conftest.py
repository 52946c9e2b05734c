"""Runs of their own, and what the outbox asked for on its way."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from served import Served, served
from tocsin.client.blackboard import HttpLink


@pytest.fixture
def run() -> str:
    return f"run-{os.urandom(6).hex()}"


@pytest.fixture(scope="module")
def asked() -> Iterator[Served]:
    """A broker whose subscriber wants every event."""
    with served() as broker:
        address = {"address": "http://127.0.0.1:9/sink", "concepts": ["Event", "Identity"]}
        status, answer = broker.call("PUT", "/blackboard/subscribers", address)
        assert status in (200, 201), answer
        with HttpLink(broker.url).subscribe(["Event", "Identity"]) as subscription:
            subscription.take(0.1)
            yield broker

"""A pusher and its sinks for one test, and certificates for sinks with TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop
from world import World

from pki import server_files


@pytest.fixture
def world() -> Iterator[World]:
    loop = uvloop.new_event_loop()
    failures: list[dict[str, object]] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    world = World(loop)
    yield world
    world.pusher.close()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    world.wait(0.01)
    loop.close()
    assert failures == []


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A throw-away authority, and a certificate of it for sink.example."""
    return server_files(tmp_path_factory.mktemp("tls"), "sink.example")

"""A broker of its own for each test file, which must not have complained when the file is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from frames_peer import DEADLINE_S, complaints

from served import Served, served


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served("--archive", "127.0.0.1:0", "--soap-tcp", "off") as running:
        yield running
        assert complaints(running) == []


@pytest.fixture(scope="module")
def strict() -> Iterator[Served]:
    """A broker with little patience and little room."""
    limits = {
        "TOCSIN_FRAMES__MESSAGE_DEADLINE_S": str(DEADLINE_S),
        "TOCSIN_FRAMES__BYTES_PER_S_MIN": "1000000",
        "TOCSIN_FRAMES__IDLE_S": "1.5",
        "TOCSIN_FRAMES__MESSAGE_BYTES_MAX": "100000",
        "TOCSIN_FRAMES__SUBSCRIPTIONS_MAX": "5",
    }
    with served("--soap-tcp", "off", env=limits) as running:
        yield running
        assert complaints(running) == []

"""A broker of its own for each test file, which must not have complained when the file is done."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from raw_http import complaints

from served import Served, served


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running
        assert complaints(running) == []


@pytest.fixture(scope="module")
def strict() -> Iterator[Served]:
    """A broker with little patience and little room."""
    limits = {
        "TOCSIN_HTTP__HEADER_DEADLINE_S": "1",
        "TOCSIN_HTTP__BODY_DEADLINE_S": "1",
        "TOCSIN_HTTP__BODY_BYTES_PER_S_MIN": "1000000",
        "TOCSIN_HTTP__IDLE_S": "1",
        "TOCSIN_HTTP__BODY_BYTES_MAX": "1000000",
        "TOCSIN_HTTP__CONNECTIONS_MAX": "20",
        "TOCSIN_HTTP__STALLED_READER_S": "1",
        "TOCSIN_LIMITS__STREAMS_MAX": "3",
    }
    with served(env=limits) as running:
        yield running
        assert complaints(running) == []


@pytest.fixture
def lab() -> str:
    """An attribute's value that no other test uses."""
    return f"lab{os.urandom(4).hex()}"

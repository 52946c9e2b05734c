"""One real broker for the tests of the command line, and topics of their own for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from served import Served, served


@pytest.fixture(scope="session")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"test/{os.urandom(6).hex()}"

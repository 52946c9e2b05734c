"""A broker for all tests, and one that has stored nothing yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from served import Served, served


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as broker:
        yield broker


@pytest.fixture
def empty() -> Iterator[Served]:
    with served() as broker:
        yield broker

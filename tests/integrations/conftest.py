"""Real engines, real brokers: each run in a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integrations.engine_room import somebody_listens
from served import Served, served


@pytest.fixture
def broker() -> Iterator[Served]:
    with served() as broker:
        somebody_listens(broker)
        yield broker

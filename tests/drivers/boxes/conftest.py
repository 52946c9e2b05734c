"""A broker, a box service, and boxes in either of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drivers.boxes.box_process import BoxServed, boxes_served
from served import Served, served


@pytest.fixture(scope="package")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(scope="package")
def outside() -> Iterator[BoxServed]:
    with boxes_served() as running:
        yield running


@pytest.fixture(params=["in a process of its own", "in the broker"])
def boxes(request: pytest.FixtureRequest, broker: Served, outside: BoxServed) -> Served:
    return broker if request.param == "in the broker" else outside

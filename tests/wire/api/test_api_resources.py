"""Resources and requests for them, as clients write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tocsin.errors import BadDiscovery
from tocsin.wire.api.resource_request import read_discovery, read_resource

LONG = "a" * 8_193


@pytest.mark.parametrize(
    ("read", "asked", "words"),
    [
        (read_discovery, {"request": LONG}, "request has 8193 characters"),
        (read_discovery, {"request": 3}, "request is 3"),
        (read_resource, {"advertisement": LONG}, "advertisement has 8193 characters"),
    ],
)
def test_what_is_too_long_is_said_to_be_and_not_that_it_is_none(
    read: Callable[[dict[str, object]], object], asked: dict[str, object], words: str
) -> None:
    with pytest.raises(BadDiscovery) as caught:
        read(asked)

    assert words in caught.value.problem


@pytest.mark.parametrize("asked", [{}, {"request": ""}])
def test_a_request_without_conditions_is_for_everything(asked: dict[str, object]) -> None:
    assert read_discovery(asked).request == read_discovery({"request": ""}).request

"""A broker that is killed keeps every promise it made."""

from __future__ import annotations

import asyncio

import pytest

from crash.kills import killed_under_load


@pytest.mark.timeout(300)
def test_thirty_kills_under_load_lose_nothing_and_keep_the_order() -> None:
    figures = asyncio.run(killed_under_load(30, seed=2, say=lambda line: None))

    assert figures["problems"] == []
    assert figures["lost"] == 0
    assert figures["acknowledged"] > 1000

"""Plain peers, started for one test and stopped after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from minimal_consumer import PlainArchive
from minimal_producer import PlainProducer
from plain_peers import MEASURES


@pytest.fixture
def strict_producer() -> Iterator[PlainProducer]:
    with PlainProducer(MEASURES, every_s=0.05) as running:
        yield running


@pytest.fixture
def plain_archive() -> Iterator[PlainArchive]:
    with PlainArchive(passes_foreign=True) as listening:
        yield listening

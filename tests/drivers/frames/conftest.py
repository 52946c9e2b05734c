"""A broker of its own for each test file, which must not have complained when the file is done."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from frames_peer import complaints

from served import Served, served


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served("--archive", "127.0.0.1:0", "--soap-tcp", "off") as running:
        yield running
        assert complaints(running) == []

"""The monitor's tables on a disk of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.kept import Kept


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    found = Kept(tmp_path)
    yield found
    found.close()

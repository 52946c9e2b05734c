"""A file that cannot be read."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest


def fail_to_read(monkeypatch: pytest.MonkeyPatch, path: str, error: Exception) -> None:
    """From now on reading this file fails."""
    original = pq.ParquetFile

    def opened(source: object, **options: Any) -> pq.ParquetFile:
        if source == path:
            raise error
        return original(source, **options)

    monkeypatch.setattr(pq, "ParquetFile", opened)

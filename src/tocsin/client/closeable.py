"""Closeable: what is closed at the end of its `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Closeable(ABC):
    """A context manager; or call `close`."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Close what is open; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Which objects of some types a test leaves alive, with the garbage collector off."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


class LiveObjects:
    """Those of these types that were made since."""

    def __init__(self, types: tuple[type, ...]) -> None:
        self._types = types
        # Of earlier tests in this process. They are held, so that none of their ids is used again.
        self._before = self._all()

    def _all(self) -> list[object]:
        return [each for each in gc.get_objects() if isinstance(each, self._types)]

    def names(self) -> list[str]:
        earlier = set(map(id, self._before))
        return sorted(type(each).__qualname__ for each in self._all() if id(each) not in earlier)


@contextmanager
def without_collector(types: tuple[type, ...]) -> Iterator[LiveObjects]:
    gc.collect()
    gc.disable()
    try:
        yield LiveObjects(types)
    finally:
        gc.enable()

"""Several queries at a time: planning one leaves cores idle that another can use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

AT_ONCE: Final = 3

T = TypeVar("T")


def run_parallel(work: Iterable[Callable[[], T]]) -> list[T]:
    """The results, in order. The first failure is raised when all have ended."""
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="tocsin-query") as pool:
        futures = [pool.submit(each) for each in work]
    return [each.result() for each in futures]

"""Waiting for what another process, thread or task does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

WITHIN_S = 30.0  # far more than it takes, also on a machine that does much else


def wait_until(holds: Callable[[], T], what: object = "", within_s: float = WITHIN_S) -> T:
    """Ask until the answer is a true one, and return it; `what` says what was waited for, and may
    be a function that says what there was instead."""
    end_s = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < end_s, what() if callable(what) else what
        time.sleep(0.01)
    return found


async def async_wait_until(
    holds: Callable[[], T], what: object = "", within_s: float = WITHIN_S
) -> T:
    """As `wait_until`, in a task."""
    end_s = time.monotonic() + within_s
    while not (found := holds()):
        assert time.monotonic() < end_s, what() if callable(what) else what
        await asyncio.sleep(0.01)
    return found

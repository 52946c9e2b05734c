"""Shows messages as they come, until there are enough."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TypeVar

M = TypeVar("M")

POLL_S: Final = 1.0


def show_messages(
    take: Callable[[float], M | None],
    is_over: Callable[[], bool],
    show: Callable[[M], str],
    count: int | None,
    timeout_s: float | None,
) -> int:
    """Print what comes, so many at most and for so long; how many came."""
    came = 0
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    while (count is None or came < count) and not is_over():
        left_s = POLL_S if deadline is None else deadline - time.monotonic()
        if left_s <= 0:
            break
        message = take(min(left_s, POLL_S))
        if message is not None:
            came += 1
            sys.stdout.write(show(message))
            sys.stdout.flush()
    return came

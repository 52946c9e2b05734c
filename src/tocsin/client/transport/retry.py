"""When a request is worth sending again, and how long to wait before that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from tocsin.errors import BrokerRefused, CannotReachBroker, TlsFailed, TocsinError

if TYPE_CHECKING:
    from tocsin.client.transport.runtime import Runtime

FIRST_PAUSE_S = 0.05
PAUSE_S_MAX = 2.0
RETRY_STATUSES = frozenset({429, 503})

T = TypeVar("T")


def pauses_s(total_s: float) -> Iterator[float]:
    """How long to wait before each next attempt, until `total_s` is used up."""
    pause_s, spent_s = FIRST_PAUSE_S, 0.0
    while spent_s < total_s:
        yield min(pause_s, total_s - spent_s)
        spent_s += pause_s
        pause_s = min(pause_s * 2, PAUSE_S_MAX)


def is_transient(error: TocsinError) -> bool:
    """True if the same request may succeed a little later; a bad certificate stays bad."""
    if isinstance(error, BrokerRefused):
        return error.status in RETRY_STATUSES
    return isinstance(error, CannotReachBroker) and not isinstance(error, TlsFailed)


async def retry(runtime: Runtime, attempt: Callable[[], Awaitable[T]], total_s: float) -> T:
    """What an attempt returns; one that fails for now is made again for `total_s` seconds."""
    pauses = pauses_s(total_s)
    while True:
        try:
            return await attempt()
        except TocsinError as error:
            pause_s = next(pauses, None) if is_transient(error) else None
            if pause_s is None:
                raise
        await runtime.sleep(pause_s)

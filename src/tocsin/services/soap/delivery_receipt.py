"""DeliveryReceipt: whether an answer that took messages out of a box arrived.

These protocols have no acknowledgement of their own, so the transport says what became of the
answer. Where it says nothing for `redeliver_s`, the answer arrived if every byte was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable

from tocsin.broker.runtime import Runtime, Timer


class DeliveryReceipt:
    """For one answer. `arrived` or `lost` is called once; what comes after that does nothing."""

    __slots__ = ("_arrived", "_lost", "_timer", "is_acknowledged")

    def __init__(
        self,
        runtime: Runtime,
        redeliver_s: float,
        *,
        arrived: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        self._arrived, self._lost = arrived, lost
        # Set by the connection that carries the answer. Without one nobody can have it.
        self.is_acknowledged: Callable[[], bool] = _by_nobody
        self._timer: Timer | None = runtime.call_later(redeliver_s, self._time_is_up)

    def arrived(self) -> None:
        if self._is_first():
            self._arrived()

    def lost(self) -> None:
        if self._is_first():
            self._lost()

    def _time_is_up(self) -> None:
        if self.is_acknowledged():
            self.arrived()
        else:
            self.lost()

    def _is_first(self) -> bool:
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return timer is not None


def _by_nobody() -> bool:
    return False

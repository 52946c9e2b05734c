"""Rates: how many messages a second each sender may send."""

from __future__ import annotations

from typing import Final

from tocsin.event.instant import NS_PER_S

RATE_MIN: Final = 1e-6  # a setting of 0 is as good as never
BURST_S: Final = 2  # so many seconds' worth may come at once, if nothing came for a while


class Rates:
    """Of senders with names, the same rate for each. Who has sent nothing for a while is forgotten,
    as it would be counted from the beginning anyway."""

    def __init__(self, rate: float, senders_max: int) -> None:
        self._interval_ns = max(1, int(NS_PER_S / max(rate, RATE_MIN)))
        self._ahead_ns_max = max(BURST_S * NS_PER_S, self._interval_ns)  # one at least
        self._senders_max = senders_max
        self._through_ns: dict[str, int] = {}  # by name: until then all that was sent is paid for

    def __len__(self) -> int:
        return len(self._through_ns)

    def take(self, sender: str, now_ns: int) -> bool:
        """Count one message; False if it is one too many, or there are too many senders."""
        if sender not in self._through_ns and not self._has_room(now_ns):
            return False
        after_ns = max(self._through_ns.get(sender, 0), now_ns) + self._interval_ns
        if after_ns - now_ns > self._ahead_ns_max:
            return False
        self._through_ns[sender] = after_ns
        return True

    def wait_s(self, sender: str, now_ns: int) -> float:
        """How long until this sender may send one more."""
        after_ns = max(self._through_ns.get(sender, 0), now_ns) + self._interval_ns
        return max(0, after_ns - now_ns - self._ahead_ns_max) / NS_PER_S

    def _has_room(self, now_ns: int) -> bool:
        """For one sender more, perhaps because others are forgotten."""
        if len(self._through_ns) >= self._senders_max:
            ahead = {name: at for name, at in self._through_ns.items() if at > now_ns}
            self._through_ns = ahead
        return len(self._through_ns) < self._senders_max

"""World: virtual time, one source of chance, and a queue of what happens next."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable
from itertools import count
from random import Random
from zlib import crc32

from tocsin.event.instant import NS_PER_MS, NS_PER_S

BEGINNING_NS = 1_800_000_000 * NS_PER_S
TRACE_LINES_KEPT = 30
STEPS_MAX = 200_000  # twenty times what a long run takes: past it, something spins
STEPS_PER_BROKER_MAX = 25_000  # where there are many; two dozen took up to 14,000 each

Action = Callable[[], None]


class Violation(BaseException):
    """Something happened that must not, or did not happen that must. No service catches it."""


class World:
    """Everything that differs between two runs comes from the seed, so one seed is one run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now_ns = BEGINNING_NS
        self.steps = 0
        self.steps_max = STEPS_MAX
        self.calm = False  # no more faults: what is still owed must come
        self.seen: Counter[str] = Counter()
        self.trace_hash = 0
        self._queue: list[tuple[int, int, Action]] = []
        self._numbers = count()
        self._lines: deque[str] = deque(maxlen=TRACE_LINES_KEPT)

    def at(self, when_ns: int, action: Action) -> None:
        heapq.heappush(self._queue, (max(when_ns, self.now_ns), next(self._numbers), action))

    def after_ms(self, delay_ms: float, action: Action) -> None:
        self.at(self.now_ns + int(delay_ms * NS_PER_MS), action)

    def soon(self, low_ms: float, high_ms: float, action: Action) -> None:
        """Some time between the two from now."""
        self.after_ms(self.random.uniform(low_ms, high_ms), action)

    def step(self) -> None:
        """Let the next thing happen."""
        self.now_ns, _, action = heapq.heappop(self._queue)
        self.steps += 1
        if self.steps > self.steps_max:
            raise Violation(f"no rest after {self.steps_max} steps")
        action()

    def fault(self, probability: float) -> bool:
        """True with the probability, and never in calm."""
        return not self.calm and self.random.random() < probability

    @property
    def elapsed_s(self) -> float:
        return (self.now_ns - BEGINNING_NS) / NS_PER_S

    def trace(self, line: str) -> None:
        """Write down what happened; the hash of all lines is what two equal runs share."""
        entry = f"{self.elapsed_s:10.6f}  {line}"
        self.trace_hash = crc32(entry.encode(), self.trace_hash)
        self._lines.append(entry)

    def last_lines(self) -> list[str]:
        return list(self._lines)

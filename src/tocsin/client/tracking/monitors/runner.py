"""Runner: one monitor in a thread of its own, where it can hang or fail for itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from tocsin.client.tracking.log_once import LogOnce
from tocsin.client.tracking.monitors.kinds import Aggregation, BeforeAfter, Periodic, Reading
from tocsin.client.tracking.run import Pairs, Step, Value, value_text

DEADLINE_S = 5.0  # a reading that takes longer hangs
WAITING_MAX = 1_000  # activities whose turn has not come; more are not measured

Send = Callable[[Step, str, Pairs], None]


@dataclass(slots=True)
class _Readings:
    """What was read so far about one activity."""

    before: Any = None
    total: float = 0.0
    peak: float = float("-inf")
    count: int = 0


class Runner:
    """`begin`, `end` and `measure` only queue a job for the thread. A monitor that hangs is given
    up: its thread is left to itself, it is not called again, and that is logged once."""

    def __init__(
        self,
        concept: str,
        monitor: BeforeAfter | Periodic | Reading,
        send: Send,
        log: LogOnce,
        *,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.concept = concept
        self.monitor = monitor
        self.settle_s = getattr(monitor, "settle_s", 0.0)
        self.is_given_up = False
        self._send = send
        self._log = log
        self._deadline_s = deadline_s
        self._queue: SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]] | None] = SimpleQueue()
        self._activities: dict[object, tuple[Step, _Readings]] = {}
        self._called_at: float | None = None
        self._next_at = 0.0
        self._lock = Lock()
        self._thread: Thread | None = None

    def begin(self, activity: object, step: Step) -> None:
        self._enqueue(self._begin, activity, step)

    def end(self, activity: object) -> None:
        self._enqueue(self._end, activity)

    def measure(self, activity: object, step: Step) -> None:
        self._enqueue(self._measure, activity, step)

    def close(self, timeout_s: float) -> None:
        """Finish what is queued, in this time at most."""
        self.check()
        if self._thread is not None and not self.is_given_up:
            self._queue.put(None)
            self._thread.join(timeout_s)
            self.check()

    def check(self) -> None:
        """Give it up if it hangs."""
        called_at = self._called_at
        if called_at is None or self.is_given_up:
            return
        if time.monotonic() - called_at > self._deadline_s:
            self.is_given_up = True
            self._log.warn(
                f"{self.concept} hangs",
                f"The monitor of {self.concept} hangs and is not called again.",
            )

    def _enqueue(self, action: Callable[..., None], *arguments: object) -> None:
        self.check()
        if self.is_given_up or self._queue.qsize() > WAITING_MAX:
            return
        self._queue.put((action, arguments))
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = Thread(
                        target=self._run, name=f"tocsin-{self.concept}", daemon=True
                    )
                    self._thread.start()

    def _run(self) -> None:
        while not self.is_given_up:
            try:
                job = self._queue.get(timeout=self._until_next_s())
            except Empty:
                self._sample()
                continue
            if job is None:
                return
            action, arguments = job
            action(*arguments)

    def _until_next_s(self) -> float | None:
        if not self._activities or not isinstance(self.monitor, Periodic):
            return None
        return max(0.0, self._next_at - time.monotonic())

    def _begin(self, activity: object, step: Step) -> None:
        readings = _Readings()
        if isinstance(self.monitor, BeforeAfter):
            readings.before = self._call(self.monitor.before)
        elif isinstance(self.monitor, Periodic):
            self._take(step, readings, self._call(self.monitor.read))
            if not self._activities:
                self._next_at = time.monotonic() + self.monitor.every_s
        else:
            self._report(step, self._call(self.monitor))
        self._activities[activity] = (step, readings)

    def _sample(self) -> None:
        assert isinstance(self.monitor, Periodic)
        self._next_at = time.monotonic() + self.monitor.every_s
        value = self._call(self.monitor.read)
        for step, readings in self._activities.values():
            self._take(step, readings, value)

    def _end(self, activity: object) -> None:
        found = self._activities.pop(activity, None)
        if found is None:
            return
        step, readings = found
        if isinstance(self.monitor, BeforeAfter):
            if readings.before is not None:
                self._report(step, self._call(self.monitor.after, readings.before))
        elif isinstance(self.monitor, Periodic):
            self._take(step, readings, self._call(self.monitor.read))
            if self.monitor.aggregation is not Aggregation.EACH and readings.count:
                average = readings.total / readings.count
                peak = int(readings.peak) if readings.peak == int(readings.peak) else readings.peak
                self._report(
                    step, peak if self.monitor.aggregation is Aggregation.PEAK else average
                )
        else:
            self._report(step, self._call(self.monitor))

    def _measure(self, activity: object, step: Step) -> None:
        if isinstance(self.monitor, BeforeAfter):
            found = self._activities.get(activity)
            before = found[1].before if found is not None else self._call(self.monitor.before)
            value = None if before is None else self._call(self.monitor.after, before)
        elif isinstance(self.monitor, Periodic):
            value = self._call(self.monitor.read)
        else:
            value = self._call(self.monitor)
        self._report(step, value, "UserResourceRequest")

    def _take(self, step: Step, readings: _Readings, value: Value) -> None:
        assert isinstance(self.monitor, Periodic)
        if self.monitor.aggregation is Aggregation.EACH:
            self._report(step, value)
        elif isinstance(value, int | float) and value == value:
            readings.total += value
            readings.count += 1
            readings.peak = max(readings.peak, value)

    def _report(self, step: Step, value: Value, event: str = "") -> None:
        text = value_text(value)
        if text is not None and not self.is_given_up:
            self._send(step, event, {self.concept: text})

    def _call(self, function: Callable[..., Any], *arguments: object) -> Any:
        self._called_at = time.monotonic()
        try:
            return function(*arguments)
        except Exception as error:  # of whoever wrote the monitor
            self._log.warn(
                f"{self.concept} raises", f"The monitor of {self.concept} failed: {error!r}."
            )
            return None
        finally:
            self.check()
            self._called_at = None

"""MonitorScheduler: starts and stops, for each activity, the monitors that somebody asked for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, Protocol

from tocsin.client.tracking.log_once import LogOnce
from tocsin.client.tracking.monitors import kinds
from tocsin.client.tracking.monitors.built_in import built_in_monitors
from tocsin.client.tracking.monitors.kinds import Inline, Monitor
from tocsin.client.tracking.monitors.process import Snapshot, SnapshotReader
from tocsin.client.tracking.monitors.runner import DEADLINE_S, Runner
from tocsin.client.tracking.outbox import Outbox
from tocsin.client.tracking.run import Pairs, Step, value_text

POLL_S = 0.1
CLOSE_S = 1.0

Send = Callable[[Step, str, Pairs], None]


# The monitors and the snapshots from which the sender's thread makes pairs.
Read = tuple[tuple[tuple[str, Inline], ...], Snapshot, Snapshot]


class Monitored(Protocol):
    """An activity, as far as its monitors are concerned."""

    step: Step
    started_ns: int
    before: Snapshot | None
    runners: tuple[Any, ...]


class _Plan(NamedTuple):
    """What to do for each activity under one profile."""

    filter: object
    is_settled: bool
    version: int
    process: int
    inline: tuple[tuple[str, Inline], ...]
    at_once: tuple[Runner, ...]
    later: tuple[Runner, ...]


class MonitorScheduler:
    """One for each run. Monitors that are worth it for long activities only are started by a thread
    that looks ten times a second, so that a thousand short activities cost them nothing."""

    def __init__(self, outbox: Outbox, send: Send, *, deadline_s: float = DEADLINE_S) -> None:
        self._outbox = outbox
        self._send = send
        self._deadline_s = deadline_s
        self._reset()

    def _reset(self) -> None:
        self._log = LogOnce()
        self._own = built_in_monitors()
        self._snapshot = SnapshotReader()
        self._runners: dict[str, Runner] = {}
        self._running: dict[Monitored, None] = {}
        self._wake = Event()
        self._closed = False
        self._lock = Lock()
        self._thread: Thread | None = None
        self._plan_now: _Plan | None = None

    def begin(self, activity: Monitored) -> None:
        """The activity runs from now on."""
        plan = self._plan()
        if plan.inline:
            activity.before = self._snapshot()
        if plan.at_once:
            if plan.is_settled:
                self._start_runners(activity, plan.at_once)
            else:
                self._start_later(activity)
        if plan.later:
            self._start_later(activity)

    def end(self, activity: Monitored) -> Read | None:
        """It is over; what could be read at once. The rest is sent when it is known."""
        self._running.pop(activity, None)
        for runner in activity.runners:
            runner.end(activity)
        activity.runners = ()
        inline = self._plan().inline
        if not inline or activity.before is None:
            return None
        return inline, activity.before, self._snapshot()

    def measure(self, activity: Monitored, concept: str) -> None:
        """Now, because the activity itself asks for it, and only if somebody wants to know."""
        if not self._outbox.wants(concept):
            return
        monitor = self._monitors().get(concept)
        if monitor is None:
            self._log.warn(f"no {concept}", f"Nothing here measures {concept}.")
        elif isinstance(monitor, Inline):
            now = self._snapshot()
            read = (((concept, monitor),), activity.before or now, now)
            self._send(activity.step, "UserResourceRequest", pairs_read(read))
        else:
            self._runner(concept, monitor).measure(activity, activity.step)

    def close(self) -> None:
        """Finish what is under way, for a bounded time in all."""
        if self._plan_now is not None and self._plan_now.process != os.getpid():
            self._reset()  # a forked child: a thread that is not here may hold our locks for ever
        self._closed = True
        self._wake.set()
        deadline = time.monotonic() + CLOSE_S
        for runner in list(self._runners.values()):
            runner.close(max(0.0, deadline - time.monotonic()))

    def _monitors(self) -> dict[str, Monitor]:
        return {**self._own, **kinds.registered()}

    def _plan(self) -> _Plan:
        plan = self._plan_now
        if (
            plan is not None
            and plan.filter is self._outbox.filter
            and plan.version == kinds.version()
            and plan.process == os.getpid()
            and (plan.is_settled or not self._outbox.is_settled)
        ):
            return plan
        if plan is not None and plan.process != os.getpid():
            # A forked child: the threads of our runners are not here.
            self._reset()
        return self._new_plan()

    def _new_plan(self) -> _Plan:
        current, is_settled = self._outbox.filter, self._outbox.is_settled
        version = kinds.version()
        inline: list[tuple[str, Inline]] = []
        at_once: list[Runner] = []
        later: list[Runner] = []
        for concept, monitor in self._monitors().items():
            if current is not None and concept not in current:
                continue
            if isinstance(monitor, Inline):
                inline.append((concept, monitor))
                continue
            runner = self._runner(concept, monitor)
            (later if runner.settle_s > 0 else at_once).append(runner)
        self._plan_now = plan = _Plan(
            current,
            is_settled,
            version,
            os.getpid(),
            tuple(inline),
            tuple(at_once),
            tuple(later),
        )
        return plan

    def _runner(self, concept: str, monitor: Monitor) -> Runner:
        assert not isinstance(monitor, Inline)
        with self._lock:
            runner = self._runners.get(concept)
            if runner is None or runner.monitor is not monitor:
                runner = self._runners[concept] = Runner(
                    concept, monitor, self._send, self._log, deadline_s=self._deadline_s
                )
            return runner

    def _start_runners(self, activity: Monitored, runners: tuple[Runner, ...]) -> None:
        new = tuple(runner for runner in runners if runner not in activity.runners)
        activity.runners += new
        for runner in new:
            runner.begin(activity, activity.step)

    def _start_later(self, activity: Monitored) -> None:
        self._running[activity] = None
        if not self._wake.is_set():
            self._wake.set()
            if self._thread is None:
                with self._lock:
                    if self._thread is None:
                        self._thread = Thread(
                            target=self._poll, name="tocsin-monitors", daemon=True
                        )
                        self._thread.start()

    def _poll(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            while self._running and not self._closed:
                time.sleep(POLL_S)
                if self._outbox.is_settled:
                    self._start_due(self._plan())

    def _start_due(self, plan: _Plan) -> None:
        now_ns = time.time_ns()
        for runner in (*plan.at_once, *plan.later):
            runner.check()
        for activity in list(self._running):
            age_s = (now_ns - activity.started_ns) / 1e9
            due = [r for r in (*plan.at_once, *plan.later) if age_s >= r.settle_s]
            if activity in self._running:
                self._start_runners(activity, tuple(due))
            if len(due) == len(plan.at_once) + len(plan.later):
                self._running.pop(activity, None)


def pairs_read(read: Read) -> Pairs:
    """As a message has it."""
    inline, before, now = read
    pairs: Pairs = {}
    for concept, monitor in inline:
        text = value_text(monitor.value(before, now))
        if text is not None:
            pairs[concept] = text
    return pairs

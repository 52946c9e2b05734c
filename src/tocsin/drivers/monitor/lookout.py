"""Lookout: every few seconds runs under way are counted, and what is slower than usual is told.

It works in the monitor's thread, between two batches. What it says is published as anybody's
message is, so that it is on disk, and reaches who asked for it. Its ids are the same each time, and
what was told is remembered beside the runs: neither a restart nor a table that was lost repeats it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Final

import apsw

from tocsin.drivers.monitor.alarms import Alarms, Found
from tocsin.drivers.monitor.damage import DamagedRow, is_damage
from tocsin.drivers.monitor.house import SESSION, House
from tocsin.drivers.monitor.store import MonitorStore
from tocsin.errors import TocsinError
from tocsin.event.event import Event
from tocsin.monitor.alerts.messages import SOURCE
from tocsin.monitor.times import shown
from tocsin.ontology import Vocabulary
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event

LOOK_S_MAX: Final = 0.25  # then the rest waits for the next look


class Lookout:
    """One look at a time; the next is after what the last one found was answered."""

    def __init__(
        self, node: House, store: MonitorStore, alarms: Alarms, vocabulary: Vocabulary
    ) -> None:
        self._node = node
        self._store = store
        self._alarms = alarms
        self._vocabulary = vocabulary
        self.every_s = store.options.look_every_s
        self.under_way: dict[str, int] = {}
        self.looks = 0
        self._looked_s = time.monotonic()
        self._due: tuple[int, int] | None = None
        self._asked: list[Found] = []
        self._answer: object | None = None
        self._is_off = False

    def turn(self, through: int, is_stopping: Callable[[], bool]) -> None:
        """Look, if it is time for it and all that was published until now is folded."""
        if self._due is None:
            if self._is_off or time.monotonic() - self._looked_s < self.every_s:
                return
            self._due = self._node.broker.head, self._node.now_ns()
        head, now_ns = self._due
        if through < head:
            return  # what seems to run may have ended: first the rest of the log
        self._due = None
        try:
            self._look(now_ns, is_stopping)
        except apsw.Error as error:
            if is_damage(error):
                raise
            self._node.note("error", "the monitor could not look for alerts", why=repr(error))
        except DamagedRow:
            raise
        except Exception as error:
            # Without alerts runs can still be asked about.
            trace = "".join(traceback.format_exception(error))
            self._node.note("error", "alerts failed and are switched off", trace=trace)
            self._is_off = True
        self._looked_s = time.monotonic()
        self.looks += 1

    def answer(self, result: object) -> None:
        """What became of what was published. On the loop."""
        self._answer = result
        if isinstance(result, TocsinError):
            self._node.note("warning", "alerts could not be published yet", why=str(result))

    def _look(self, now_ns: int, is_stopping: Callable[[], bool]) -> None:
        self.under_way = self._alarms.under_way(now_ns)
        if not self._store.options.alerts or not self._is_settled():
            return
        begun_s = time.monotonic()
        found = self._alarms.look(
            now_ns, lambda: is_stopping() or time.monotonic() - begun_s > LOOK_S_MAX
        )
        if not found or is_stopping():
            return
        self._asked, self._answer = found, None
        events = [self._event(each, now_ns) for each in found]
        try:
            self._node.loop.call_soon_threadsafe(self._node.port.submit, SESSION, events, self)
        except RuntimeError:
            return  # the loop is closed; they are found again after the next start

    def _is_settled(self) -> bool:
        """True if nothing is on its way to the log. What has got there is remembered."""
        if self._asked and self._answer is None:
            return False
        if self._asked and not isinstance(self._answer, TocsinError):
            self._store.remember_alerts([each.key for each in self._asked])
        self._asked = []
        return True

    def _event(self, found: Found, now_ns: int) -> Event:
        straggler = found.straggler
        message = Message(
            straggler.pairs(now_ns), id=straggler.id, source=SOURCE, time=shown(now_ns)
        )
        return to_event(message, id=straggler.id, source=SOURCE, vocabulary=self._vocabulary)

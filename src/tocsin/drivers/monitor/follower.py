"""LogFollower: reads the log as one more stream, and folds what is about runs in its own thread.

Nobody waits for it. When it is slower than the publishers, the broker holds its place in the log
and lets it catch up; its own place is written with what was folded, so that after a crash it goes
on from there. It follows every event and looks itself for those about runs: a filter on the content
would have the broker open every payload on the way of an event.
"""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Final

import apsw

from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.drivers.monitor.database.damage import DamagedRow, is_damage, is_of_the_disk
from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.event.filter import EVERYTHING
from tocsin.event.stored import Stored
from tocsin.monitor.fold import RunMessage
from tocsin.monitor.run_messages import BadRunId, run_message
from tocsin.ontology import Vocabulary
from tocsin.services.alerts.publisher import AlertPublisher
from tocsin.store.faults import is_full, reason

WAITING_MAX: Final = 4_096  # events that were handed over and not folded yet
BATCH_MAX: Final = 1_000  # events in one transaction
PLACE_EVERY: Final = 20_000  # events of others, before the place is written for their sake alone
PLACE_EVERY_S: Final = 10.0
PRUNE_EVERY_S: Final = 60.0
TRY_AGAIN_S: Final = 5.0  # after the disk refused a batch
# Python runs one thread at a time, and publishers come first. After a batch they have the
# interpreter to themselves for as long as that took. When they need all of it, they have it for far
# longer: the log keeps what they say, and the monitor catches up when it is quieter. Of 100,000
# events a second, a share of 1 cost a third. With one of 12, 300,000 messages took the broker about
# 0.3 s more of the processor than the 2.5 s that they take without a monitor.
REST_SHARE: Final = 1.0
REST_SHARE_BUSY: Final = 12.0
REST_S_MAX: Final = 0.5  # a batch that waited for the disk took nobody's time
BUSY_EVENTS_PER_S: Final = 15_000
PRUNE_S_MAX: Final = 0.1  # of letting old runs go, before it is looked whether there are events
PAUSE_S: Final = 0.1  # and after it, if there are none
CLOSING_S: Final = 10.0
NAME: Final = "the monitor"

_NOTED_AT: Final = frozenset(10**n for n in range(12))


class LogFollower:
    """The sink of the monitor's stream, and the thread behind it."""

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        loop: asyncio.AbstractEventLoop,
        writer: RunWriter,
        vocabulary: Vocabulary,
        asks: frozenset[str],
        alerts: AlertPublisher,
        on_damage: Callable[[Exception], None],
    ) -> None:
        """`on_damage` is called on the loop when the tables turn out to be damaged."""
        self._port = port
        self._session = session
        self._loop = loop
        self._note = port.runtime.note
        self._alerts = alerts
        self._on_damage = on_damage
        self._asks = asks
        self._writer = writer
        self._vocabulary = vocabulary
        self._turn = threading.Condition()
        self._waiting: list[Stored] = []
        self._blocked = False
        self._missed = 0
        self._is_refused = False
        self.left_out = 0
        self._stopping = False
        self._stream: int | None = None
        self._through = writer.place
        self._prune_every_s = PRUNE_EVERY_S
        self._folded = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="tocsin-monitor", daemon=True)

    def start(self) -> None:
        """Follow the log from where the last fold was. On the loop."""
        head = self._port.head
        if self._writer.place > head:
            self._note(
                "warning",
                "the monitor has read further than the log goes: it reads this log from its start",
                read=self._writer.place,
                head=head,
            )
            self._writer.restart()
        self._through = self._writer.place
        self._stream = self._port.open_stream(
            self._session, self, EVERYTHING, self._through, NAME, asks=self._asks
        )
        self._thread.start()

    @property
    def through(self) -> int:
        """Everything up to this place in the log is folded, and on disk."""
        return self._through

    def wait_for(self, seq: int, patience_s: float) -> bool:
        """Wait until this event is folded; False if that took too long. Not on the loop."""
        with self._folded:
            return self._folded.wait_for(
                lambda: self._through >= seq or self._stopping, timeout=patience_s
            )

    # The stream's far end, on the loop

    def write(self, events: list[Stored]) -> bool:
        with self._turn:
            self._waiting += events
            self._blocked = len(self._waiting) >= WAITING_MAX
            self._turn.notify()
            return not self._blocked

    def dropped(self, count: int) -> None:
        self._note(
            "warning",
            "the log no longer had what the monitor wanted to read: some runs are incomplete",
            missed=count,
        )
        with self._turn:
            self._missed += count

    def withheld(self, count: int) -> None:
        """The monitor may read everything."""

    def end(self, reason: str) -> None:
        self.stop()

    def stop(self) -> None:
        """Fold what is here, and no more. On the loop."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._port.close_stream(stream)
        with self._turn:
            self._stopping = True
            self._turn.notify()
        with self._folded:
            self._folded.notify_all()

    def join(self) -> None:
        """Wait for the thread. Not on the loop."""
        if self._thread.is_alive():
            self._thread.join(CLOSING_S)

    # The thread

    def _work(self) -> None:
        try:
            self._follow()
        except Exception as error:
            if is_damage(error):
                self._on_loop(partial(self._on_damage, error))
                return
            # A reader that no longer reads would hold back the log for ever.
            trace = "".join(traceback.format_exception(error))
            self._note("error", "the monitor failed and no longer follows the log", trace=trace)
            self._on_loop(self.stop)

    def _follow(self) -> None:
        placed_s = pruned_s = time.monotonic()
        while True:
            events = self._take()
            if events is None:
                break
            begun_s, head = time.monotonic(), self._port.head
            if events:
                self._fold(events, begun_s - placed_s)
                if self._through == self._writer.place:
                    placed_s = begun_s
            if begun_s - pruned_s >= self._prune_every_s:
                pruned_s = begun_s
                self._prune()
            self._scan_for_alerts()
            self._give_way(self._port.head - head, time.monotonic() - begun_s)
        if self._through > self._writer.place:
            self._try(lambda: self._writer.write([], self._through))

    def _scan_for_alerts(self) -> None:
        now_ns = self._alerts.due(self._through)
        if now_ns is None:
            return
        try:
            events = self._alerts.scan(now_ns, lambda: self._stopping)
        except (apsw.Error, DamagedRow) as error:
            if is_damage(error):
                raise
            self._note("error", "the monitor could not look for alerts", why=repr(error))
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            self._note("error", "alerts failed and are switched off", trace=trace)
            self._alerts.switch_off()
        else:
            if events:  # after the next start they are found again, if the loop is closed
                self._on_loop(partial(self._alerts.publish, events))

    def _give_way(self, published: int, took_s: float) -> None:
        """Rest, if somebody published while a batch was folded."""
        is_busy = published > took_s * BUSY_EVENTS_PER_S
        if published:
            share = REST_SHARE_BUSY if is_busy else REST_SHARE
            self._rest(min(took_s * share, REST_S_MAX))

    def _take(self) -> list[Stored] | None:
        """The next events, or none if it is time for other things; None at the end."""
        with self._turn:
            if not self._waiting and not self._stopping:
                self._turn.wait(min(self._prune_every_s, self._alerts.every_s))
            if not self._waiting and self._stopping:
                return None
            events, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            was_blocked = self._blocked
            if was_blocked and len(self._waiting) < WAITING_MAX // 2:
                self._blocked = False
            is_ready = was_blocked and not self._blocked
        if is_ready:
            self._on_loop(self._ready)
        return events

    def _ready(self) -> None:
        if self._stream is not None:
            self._port.stream_ready(self._stream)

    def _on_loop(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            return  # the loop is closed, and nobody waits

    def _fold(self, events: list[Stored], since_place_s: float) -> None:
        messages = [each for each in map(self._message, events) if each is not None]
        through = events[-1].seq
        with self._turn:
            missed, self._missed = self._missed, 0
        unplaced = through - self._writer.place
        if messages or missed or unplaced >= PLACE_EVERY or since_place_s >= PLACE_EVERY_S:
            while not self._try(lambda: self._write(messages, through, missed)):
                if self._stopping:
                    return
                self._rest(TRY_AGAIN_S)
        with self._folded:
            self._through = through
            self._folded.notify_all()

    def _message(self, stored: Stored) -> RunMessage | None:
        """What the event says in concepts, if it may be about a run or a workflow's version."""
        try:
            return run_message(stored, self._vocabulary)
        except BadRunId as error:
            self._skip(stored.seq, str(error))
        except Exception as error:  # a payload that nobody foresaw costs itself
            self._note("warning", "an event could not be read", seq=stored.seq, why=error)
        return None

    def _write(self, messages: list[RunMessage], through: int, missed: int) -> None:
        try:
            self._writer.write(messages, through, missed=missed)
        except Exception as error:
            if is_damage(error) or is_of_the_disk(error):
                raise
            self._one_by_one(messages, through, missed, error)

    def _one_by_one(
        self, messages: list[RunMessage], through: int, missed: int, why: Exception
    ) -> None:
        """A message that the fold cannot take must not stop those after it."""
        if len(messages) == 1:
            self._skip(messages[0].seq, repr(why))
        for each in messages if len(messages) > 1 else ():
            self._write([each], each.seq, 0)
        self._writer.write([], through, missed=missed)

    def _skip(self, seq: int, why: str) -> None:
        """Count it, and note the first, the tenth and so on: a publisher may send many."""
        self.left_out += 1
        if self.left_out in _NOTED_AT:
            self._note(
                "error",
                "the monitor skipped a message",
                seq=seq,
                why=why,
                left_out=self.left_out,
            )

    def _prune(self) -> None:
        """Let some of what is too old go. If there is more, it goes after the next events."""
        begun_s = time.monotonic()
        gone = 0

        def some() -> None:
            nonlocal gone
            gone = self._writer.prune(
                self._port.lower_bound_ns,
                lambda: self._stopping or time.monotonic() - begun_s > PRUNE_S_MAX,
            )

        self._try(some)
        self._prune_every_s = PAUSE_S if gone else PRUNE_EVERY_S

    def _try(self, work: Callable[[], object]) -> bool:
        try:
            work()
        except apsw.Error as error:
            if is_damage(error):
                raise
            self._note_refusal(error)
            return False
        if self._is_refused:
            self._is_refused = False
            self._note("info", "the monitor can write again")
        return True

    def _note_refusal(self, error: apsw.Error) -> None:
        """Once, however often it is tried again."""
        if self._is_refused:
            return
        self._is_refused = True
        if is_full(error):
            words = "the disk is full: the monitor waits until there is room"
        else:
            words = "the monitor could not write; it tries again"
        self._note("error", words, why=reason(error))

    def _rest(self, seconds: float) -> None:
        with self._turn:
            if not self._stopping and seconds > 0:
                self._turn.wait_for(lambda: self._stopping, timeout=seconds)

"""Outbox: messages on their way to a blackboard, without anybody waiting for it.

`put` leaves a message in a bounded queue and returns. One thread sends what is queued in batches,
another keeps the aggregate profile fresh; pairs that nobody asked for are left out. What cannot be
sent is written to the spool and sent later: by this process, by the next one, or by
`tocsin wf send`. Ids make repetitions harmless.
"""

from __future__ import annotations

import atexit
import encodings.idna  # noqa: F401  # by sockets: a fork while a thread imports it hangs the child
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Self
from weakref import ReferenceType, WeakSet, ref

import msgspec

from tocsin.client.blackboard.link import Link
from tocsin.client.blackboard.open_link import link_or_unavailable
from tocsin.client.blackboard.wanted import Wanted
from tocsin.client.outgoing import new_id
from tocsin.client.tracking.courier import Courier
from tocsin.client.tracking.profile_watch import ProfileWatch
from tocsin.client.tracking.spool import BATCH_MESSAGES_MAX, Spool
from tocsin.client.tracking.telling import Teller
from tocsin.client.tracking.times import time_text
from tocsin.ontology import in_use
from tocsin.wire.blackboard.messages import Message

# A batch is gathered this long. Each time that another thread has something to do, a workflow that
# computes in Python loses the interpreter a few times, and on a busy machine its place in the queue
# for a processor too. It is also what the crash of a workflow costs while the broker answers.
LINGER_S = 0.2
SETTLE_S = 0.05
IDLE_S = 1.0
HURRY_S = 1.0
OTHERS_S = 1.0  # at the end, for what former runs left behind: a short run has no other moment
CATCH_UP_BATCHES_MAX = 8  # in one turn; then what is queued has its turn

Make = Callable[..., Message | None]


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the messages; one that was spooled may have been sent later."""

    put: int
    sent: int
    filtered: int
    spooled: int
    dropped: int


class Outbox:
    """For any number of threads. After a fork the child goes on with an empty one of its own."""

    def __init__(
        self,
        broker: str | None = None,
        *,
        source: str,
        spool: Path | None = None,
        queue_max: int = 100_000,
        drain_s: float = 5.0,
        link: Link | None = None,
    ) -> None:
        self.source = self._first_source = source
        self._queue_max = queue_max
        self._drain_s = drain_s
        self._teller = Teller()
        way = link if link is not None else link_or_unavailable(broker)
        self._identity = in_use().below("Identity")
        self._courier = Courier(way, Spool(spool, way.name), self._teller, self._identity)
        self._begin()
        if not way.is_remote:
            # It is here: what is asked for can be known before anything happens.
            self._courier.heard(way.profile())
        self._start()
        _living.add(self)

    def _begin(self) -> None:
        """Empty, and without threads."""
        self._queue: deque[tuple[Make, tuple[Any, ...]]] = deque()
        self._lock = Lock()
        self._wake = Event()
        self._ending = Event()
        self._others_until_s = inf  # so long, what former runs left behind is sent too
        self._thread: Thread | None = None
        self._watch: ProfileWatch | None = None
        self._finish: Any = None
        self._in_hand: list[Message] = []
        self._is_busy = False
        self._closed = False
        self._taken = self._too_many = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def spool(self) -> Path:
        """Where messages wait while the broker is away."""
        return self._courier.spool.directory

    @property
    def counts(self) -> Counts:
        """So far."""
        courier = self._courier
        put = self._taken + len(self._queue) + self._too_many
        dropped = courier.dropped + self._too_many
        return Counts(put, courier.sent, courier.filtered, courier.spooled, dropped)

    @property
    def wanted(self) -> Wanted | None:
        """What is asked for, as far as it is known."""
        return self._courier.wanted

    @property
    def is_settled(self) -> bool:
        """True once the blackboard has answered, or it is known that it does not."""
        return self._courier.settled.is_set()

    def wants(self, concept: str) -> bool:
        """True if somebody asked for the concept, or nobody could say yet."""
        wanted = self._courier.wanted
        return wanted is None or concept in wanted

    def put(self, message: Message) -> None:
        """Send it soon. Never raises, never waits: what does not fit the queue is dropped."""
        self.put_made(_as_it_is, time.time_ns(), message)

    def put_made(self, make: Make, *arguments: object) -> None:
        """Send soon what `make(*arguments)` returns, which the sender's thread will call."""
        if self._closed or len(self._queue) >= self._queue_max:
            self._turn_away()
            return
        self._queue.append((make, arguments))
        if not self._wake.is_set():
            if self._thread is None:
                self._start()
            self._wake.set()

    def _turn_away(self) -> None:
        with self._lock:
            self._too_many += 1
        why = "the outbox is closed" if self._closed else f"{self._queue_max} of them wait already"
        self._teller.once("queue", f"Workflow events are lost: {why}.")

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until everything is with the broker or in the spool; False if that takes longer."""
        deadline = time.monotonic() + timeout_s
        while self._queue or self._is_busy:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.005)
        return True

    def close(self) -> None:
        """Send what is left, for `drain_s` at most; the rest is in the spool then."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._finish is not None:
            self._finish.cancel()
        thread = self._thread
        if thread is None:
            self._rescue()
            return
        self._others_until_s = time.monotonic() + OTHERS_S
        self._ending.set()
        self._wake.set()
        thread.join(self._drain_s)
        if thread.is_alive():
            self._courier.hurries = True
            with suppress(Exception):
                self._courier.link.interrupt()
            thread.join(HURRY_S)
        if self._watch is not None:
            self._watch.stop()
        if thread.is_alive():
            self._rescue()
        with suppress(Exception):
            self._courier.link.interrupt()

    def _rescue(self) -> None:
        """The thread hangs in a request that cannot be woken: write down what it has."""
        spool = self._courier.spool
        aside = Spool(spool.directory, spool.broker)
        left = [*self._in_hand, *self._taken_from_queue(self._queue_max)]
        if left:
            with suppress(OSError):
                aside.append(left)
                self._courier.spooled += len(left)
        aside.close()

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None or self._closed:
                return
            self._thread = Thread(target=self._run, name="tocsin-outbox", daemon=True)
        try:
            self._thread.start()
            self._watch = ProfileWatch(self._courier.link, self._heard, self._courier.lost)
        except RuntimeError as error:
            # No more threads for this process. What is queued is written down at the end.
            self._courier.lost(error)
            self._thread = self._thread if self._thread.is_alive() else None
            return
        # A child of multiprocessing ends without what is registered with atexit.
        processes = sys.modules.get("multiprocessing.util")
        if processes is not None:
            self._finish = processes.Finalize(None, _close, (ref(self),), exitpriority=10)

    def _heard(self, profile: Any) -> None:
        self._courier.heard(profile)
        self._wake.set()

    def _run(self) -> None:
        courier = self._courier
        while not courier.settled.wait(SETTLE_S) and not self._ending.is_set():
            pass
        if self._ending.is_set():
            courier.settled.wait(self._drain_s)
        more = False
        while True:
            if not more:
                self._wake.wait(IDLE_S)
            self._ending.wait(LINGER_S)
            try:
                more = self._turn()
            except Exception as error:  # a bug of ours must not end the thread
                self._teller.once("bug", f"Workflow events were lost: {error!r}.")
            if self._ending.is_set() and not self._queue and not more:
                break
        courier.close()

    def _turn(self) -> bool:
        """Carry one batch, and some of what waits. True if there is more to do at once."""
        self._wake.clear()
        self._is_busy = True
        try:
            # A broker that is slower than the workflow: the disk is larger than the queue.
            while len(self._queue) > self._queue_max // 2:
                self._carry(self._courier.put_by)
            self._carry(self._courier.carry)
        finally:
            self._is_busy = False
        more = bool(self._queue)
        with_others = not more and time.monotonic() < self._others_until_s
        for _ in range(CATCH_UP_BATCHES_MAX):
            if not self._courier.catch_up(with_others=with_others):
                return more
        return True

    def _carry(self, bring: Callable[[list[Message]], None]) -> None:
        self._in_hand = self._taken_from_queue(BATCH_MESSAGES_MAX)
        bring(self._in_hand)
        self._in_hand = []

    def _taken_from_queue(self, count_max: int) -> list[Message]:
        """The oldest messages of the queue, made, each with an id, a source and a time."""
        messages: list[Message] = []
        with suppress(IndexError):
            while len(messages) < count_max:
                make, arguments = self._queue.popleft()
                self._taken += 1
                try:
                    message = make(*arguments)
                except Exception as error:  # of whoever wrote it
                    self._courier.dropped += 1
                    self._teller.once("made", f"A workflow event could not be made: {error!r}.")
                    continue
                if message is not None:
                    messages.append(self._signed(message))
        return messages

    def _signed(self, message: Message) -> Message:
        if message.id and message.source:
            return message
        return msgspec.structs.replace(
            message, id=message.id or new_id(), source=message.source or self.source
        )

    def begin_again(self) -> None:
        """In a forked child: what the parent queued the parent sends, and its threads are not here.

        The child's source is another one, as it may say different things under the same id.
        """
        self.source = f"{self._first_source}/{os.getpid()}"
        self._teller = Teller()
        former = self._courier
        former.leave()
        link, spool = former.link.reopened(), former.spool.reopened()
        self._courier = Courier(link, spool, self._teller, self._identity)
        self._courier.wanted = former.wanted
        self._begin()


def _as_it_is(at_ns: int, message: Message) -> Message:
    if message.time is not None:
        return message
    return msgspec.structs.replace(message, time=time_text(at_ns))


def _close(outbox: ReferenceType[Outbox]) -> None:
    found = outbox()
    if found is not None:
        found.close()


_living: WeakSet[Outbox] = WeakSet()


def _after_fork() -> None:
    for outbox in list(_living):
        with suppress(Exception):
            outbox.begin_again()


def _at_exit() -> None:
    for outbox in list(_living):
        with suppress(Exception):
            outbox.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)

"""Outbox: messages on their chosen to a blackboard, without anybody waiting for it.

`put` leaves a message in a bounded queue and returns. One thread sends what is queued in batches,
another keeps the aggregate profile fresh; pairs that nobody asked for are left out. What cannot be
sent is written to the spool and sent later: by this process, by the next one, or by
`tocsin wf send`. Ids build repetitions harmless.
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
from typing import Any, Unpack
from weakref import ReferenceType, WeakSet, ref

import msgspec

from tocsin.client.blackboard.link import Link
from tocsin.client.blackboard.open_link import link_or_unavailable
from tocsin.client.closeable import Closeable
from tocsin.client.event_json import new_id
from tocsin.client.tracking.log_once import LogOnce
from tocsin.client.tracking.profile import ProfileFilter, ProfileWatch
from tocsin.client.tracking.sender import Sender
from tocsin.client.tracking.spool import BATCH_MESSAGES_MAX, Spool
from tocsin.credentials.secret import Secret
from tocsin.credentials.sign_in import SignIn
from tocsin.event.instant import rfc3339
from tocsin.ontology import in_use
from tocsin.wire.blackboard.messages import Message

# A batch is gathered this long. Each time that another thread has something to do, a workflow that
# computes in Python loses the interpreter a few times, and on a busy machine its place in the queue
# for a processor too. It is also what the crash of a workflow costs while the broker answers.
LINGER_S = 0.2
SETTLE_S = 0.05
IDLE_S = 1.0
STOP_S = 1.0
ORPHANS_S = 1.0  # at the end, for what former runs left behind: a short run has no other moment
CATCH_UP_BATCHES_MAX = 8  # in one turn; then what is queued has its turn

HIDDEN = "(token)"

Build = Callable[..., Message | None]


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the messages; one that was spooled may have been sent later."""

    put: int
    sent: int
    filtered: int
    spooled: int
    dropped: int


class Outbox(Closeable):
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
        **sign_in: Unpack[SignIn],
    ) -> None:
        self.source = self._first_source = source
        self._queue_max = queue_max
        self._drain_s = drain_s
        self._log = LogOnce()
        chosen = link if link is not None else link_or_unavailable(broker, **sign_in)
        self._identity = in_use().below("Identity")
        self._sender = Sender(chosen, Spool(spool, chosen.name), self._log, self._identity)
        self._reset()
        if not chosen.is_remote:
            # It is here: what is asked for can be known before anything happens.
            self._sender.profile_received(chosen.profile())
        self._start()
        _open_outboxes.add(self)

    def _reset(self) -> None:
        """Empty, and without threads."""
        self._queue: deque[tuple[Build, tuple[Any, ...]]] = deque()
        self._lock = Lock()
        self._wake = Event()
        self._ending = Event()
        self._orphans_until_s = inf  # so long, what former runs left behind is sent too
        self._thread: Thread | None = None
        self._watch: ProfileWatch | None = None
        self._finish: Any = None
        self._current_batch: list[Message] = []
        self._is_busy = False
        self._closed = False
        self._taken = self._rejected = 0

    @property
    def spool(self) -> Path:
        """Where messages wait while the broker is away."""
        return self._sender.spool.directory

    @property
    def counts(self) -> Counts:
        """So far."""
        sender = self._sender
        put = self._taken + len(self._queue) + self._rejected
        dropped = sender.dropped + self._rejected
        return Counts(put, sender.sent, sender.filtered, sender.spooled, dropped)

    @property
    def filter(self) -> ProfileFilter | None:
        """What subscribers asked for, as far as it is known."""
        return self._sender.filter

    @property
    def is_settled(self) -> bool:
        """True once the blackboard has answered, or it is known that it does not."""
        return self._sender.settled.is_set()

    def wants(self, concept: str) -> bool:
        """True if somebody asked for the concept, or nobody could say yet."""
        current = self._sender.filter
        return current is None or concept in current

    def put(self, message: Message) -> None:
        """Send it soon. Never raises, never waits: what does not fit the queue is dropped."""
        self.put_later(_with_time, time.time_ns(), message)

    def put_later(self, build: Build, *arguments: object) -> None:
        """Send soon what `build(*arguments)` returns, which the sender's thread will call."""
        if self._closed or len(self._queue) >= self._queue_max:
            self._reject()
            return
        self._queue.append((build, arguments))
        if not self._wake.is_set():
            if self._thread is None:
                self._start()
            self._wake.set()

    def _reject(self) -> None:
        with self._lock:
            self._rejected += 1
        why = "the outbox is closed" if self._closed else f"{self._queue_max} of them wait already"
        self._log.warn("queue", f"Workflow events are lost: {why}.")

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
            self._spool_the_rest()
            return
        self._orphans_until_s = time.monotonic() + ORPHANS_S
        self._ending.set()
        self._wake.set()
        thread.join(self._drain_s)
        if thread.is_alive():
            self._sender.is_stopped = True
            with suppress(Exception):
                self._sender.link.interrupt()
            thread.join(STOP_S)
        if self._watch is not None:
            self._watch.stop()
        if thread.is_alive():
            self._spool_the_rest()
        with suppress(Exception):
            self._sender.link.interrupt()

    def _spool_the_rest(self) -> None:
        """The thread hangs in a request that cannot be woken: write down what it has."""
        spool = self._sender.spool
        aside = Spool(spool.directory, spool.broker)
        left = [*self._current_batch, *self._dequeue(self._queue_max)]
        if left:
            with suppress(OSError):
                aside.append(left)
                self._sender.spooled += len(left)
        aside.close()

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None or self._closed:
                return
            self._thread = Thread(target=self._run, name="tocsin-outbox", daemon=True)
        try:
            self._thread.start()
            self._watch = ProfileWatch(
                self._sender.link, self._profile_received, self._sender.link_lost
            )
        except RuntimeError as error:
            # No more threads for this process. What is queued is written down at the end.
            self._sender.link_lost(error)
            self._thread = self._thread if self._thread.is_alive() else None
            return
        # A child of multiprocessing ends without what is registered with atexit.
        processes = sys.modules.get("multiprocessing.util")
        if processes is not None:
            self._finish = processes.Finalize(None, _close, (ref(self),), exitpriority=10)

    def _profile_received(self, profile: Any) -> None:
        self._sender.profile_received(profile)
        self._wake.set()

    def _run(self) -> None:
        sender = self._sender
        while not sender.settled.wait(SETTLE_S) and not self._ending.is_set():
            pass
        if self._ending.is_set():
            sender.settled.wait(self._drain_s)
        more = False
        while True:
            if not more:
                self._wake.wait(IDLE_S)
            self._ending.wait(LINGER_S)
            try:
                more = self._send_some()
            except Exception as error:  # a bug of ours must not end the thread
                self._log.warn("bug", f"Workflow events were lost: {error!r}.")
            if self._ending.is_set() and not self._queue and not more:
                break
        sender.close()

    def _send_some(self) -> bool:
        """Send one batch, and some of what is in the spool. True if there is more to do at once."""
        self._wake.clear()
        self._is_busy = True
        try:
            # A broker that is slower than the workflow: the disk is larger than the queue.
            while len(self._queue) > self._queue_max // 2:
                self._forward(self._sender.write_to_spool)
            self._forward(self._sender.send)
        finally:
            self._is_busy = False
        more = bool(self._queue)
        with_orphans = not more and time.monotonic() < self._orphans_until_s
        for _ in range(CATCH_UP_BATCHES_MAX):
            if not self._sender.catch_up(with_orphans=with_orphans):
                return more
        return True

    def _forward(self, forward: Callable[[list[Message]], None]) -> None:
        self._current_batch = self._dequeue(BATCH_MESSAGES_MAX)
        forward(self._current_batch)
        self._current_batch = []

    def _dequeue(self, count_max: int) -> list[Message]:
        """The oldest messages of the queue, built, each with an id, a source and a time."""
        messages: list[Message] = []
        # Looked up each time, as it may change; a link that is none of ours has none.
        hidden: Secret | None = getattr(self._sender.link, "hidden", None)
        with suppress(IndexError):
            while len(messages) < count_max:
                build, arguments = self._queue.popleft()
                self._taken += 1
                try:
                    message = build(*arguments)
                except Exception as error:  # of whoever wrote it
                    self._sender.dropped += 1
                    self._log.warn("build", f"A workflow event could not be built: {error!r}.")
                    continue
                if message is not None:
                    messages.append(_without(self._with_id(message), hidden))
        return messages

    def _with_id(self, message: Message) -> Message:
        if message.id and message.source:
            return message
        return msgspec.structs.replace(
            message, id=message.id or new_id(), source=message.source or self.source
        )

    def reset_after_fork(self) -> None:
        """In a forked child: what the parent queued the parent sends, and its threads are not here.

        The child's source is another one, as it may say different things under the same id.
        """
        self.source = f"{self._first_source}/{os.getpid()}"
        self._log = LogOnce()
        former = self._sender
        former.abandon()
        link, spool = former.link.reopened(), former.spool.reopened()
        self._sender = Sender(link, spool, self._log, self._identity)
        self._sender.filter = former.filter
        self._reset()


def _without(message: Message, hidden: Secret | None) -> Message:
    """A message without our own token, which a command's line or its output may have had."""
    if hidden is None:
        return message
    token, pairs = hidden.reveal(), message.pairs
    if not any(token in value for value in pairs.values()):
        return message
    cleaned = {concept: value.replace(token, HIDDEN) for concept, value in pairs.items()}
    return msgspec.structs.replace(message, pairs=cleaned)


def _with_time(at_ns: int, message: Message) -> Message:
    if message.time is not None:
        return message
    return msgspec.structs.replace(message, time=rfc3339(at_ns))


def _close(outbox: ReferenceType[Outbox]) -> None:
    found = outbox()
    if found is not None:
        found.close()


_open_outboxes: WeakSet[Outbox] = WeakSet()


def _after_fork() -> None:
    for outbox in list(_open_outboxes):
        with suppress(Exception):
            outbox.reset_after_fork()


def _at_exit() -> None:
    for outbox in list(_open_outboxes):
        with suppress(Exception):
            outbox.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)

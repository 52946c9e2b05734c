"""Maker: the one thread in which the events of an offer are made.

A slow or stuck offer so delays nobody but those who wait for it, and no offer is called twice at
once. Those who wait with the same parameters share what one call makes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Condition, Thread

from tocsin.client.gma.encoded_event import EncodedEvent, Failed, failed
from tocsin.wire.gma.messages import Element

WAITING_MAX = 10_000  # who may wait for one offer

Outcome = list[EncodedEvent] | Failed
Asked = tuple[Element, ...]
Done = Callable[[Outcome], None]


class Maker:
    """`make` is called in its thread, and `done` too, with what came of it."""

    def __init__(self, name: str, make: Callable[[Asked], list[EncodedEvent]]) -> None:
        self._name = name
        self._make = make
        self._changed = Condition()
        self._waiting: OrderedDict[str, tuple[Asked, list[Done]]] = OrderedDict()
        self._waiters = 0
        self._thread: Thread | None = None
        self._closed = False

    def ask(self, asked: Asked, done: Done) -> bool:
        """Have events made; False if too many wait already."""
        with self._changed:
            if self._closed or self._waiters >= WAITING_MAX:
                return False
            # By its text, because 1 and True are equal and not the same parameter.
            self._waiting.setdefault(repr(asked), (asked, []))[1].append(done)
            self._waiters += 1
            if self._thread is None:
                self._thread = Thread(target=self._run, name=f"tocsin-{self._name}", daemon=True)
                self._thread.start()
            self._changed.notify()
        return True

    def close(self) -> None:
        """End the thread, after the call that it may be in; nobody who waits is notified."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                _, (asked, waiters) = self._waiting.popitem(last=False)
                self._waiters -= len(waiters)
            outcome = self._outcome(asked)
            for done in waiters:
                done(outcome)

    def _outcome(self, asked: Asked) -> Outcome:
        try:
            return self._make(asked)
        except (Exception, SystemExit) as error:
            # Whatever it is: consumers get it in place of an event, and this goes on.
            return failed(error)

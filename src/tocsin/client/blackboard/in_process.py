"""InProcessBlackboard: the blackboard without a broker and without sockets, for one process."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Condition

from tocsin.client.blackboard.link import Delivered
from tocsin.client.closeable import Closeable
from tocsin.matching.lookup_index import LookupIndex
from tocsin.ontology import Vocabulary, in_use
from tocsin.wire.blackboard.messages import Message, Profile

WAITING_MAX = 100_000  # for one subscriber that does not take them; then the oldest go
REMEMBERED_MAX = 100_000  # messages whose repetition is known


class InProcessBlackboard:
    """The same index as a broker's (`matching.lookup_index`). Messages are not kept: who subscribes
    later gets only what comes later."""

    is_remote = False

    def __init__(self, vocabulary: Vocabulary | None = None, *, name: str = "in process") -> None:
        self.name = name
        self.vocabulary = vocabulary or in_use()
        self._changed = Condition()
        self._index: LookupIndex[InProcessSubscription] = LookupIndex()
        self._version = 1
        self._seq = 0
        self._seen: dict[tuple[str, str], None] = {}
        self._interrupted = False

    def publish(self, messages: Sequence[Message]) -> int:
        for message in messages:
            for concept in message.pairs:
                if concept not in self.vocabulary:
                    raise self.vocabulary.unknown(concept)
        with self._changed:
            new = sum(self._take(message) for message in messages)
            self._changed.notify_all()
        return new

    def _take(self, message: Message) -> bool:
        if message.id:
            known = (message.source, message.id)
            if known in self._seen:
                return False
            self._seen[known] = None
            if len(self._seen) > REMEMBERED_MAX:
                del self._seen[next(iter(self._seen))]
        self._seq += 1
        for subscriber, pairs in self._index.split(message.pairs).items():
            part = Message(pairs, message.id, message.source, message.time)
            subscriber.offer(Delivered(self._seq, part))
        return True

    def profile(self, *, after: int | None = None, wait_s: float = 0.0) -> Profile:
        deadline = time.monotonic() + wait_s
        with self._changed:
            self._interrupted = False
            while self._version == after and not self._interrupted:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                self._changed.wait(left_s)
            return Profile(self._version, tuple(sorted(self._index.aggregate())))

    def subscribe(
        self, concepts: Iterable[str], *, after: int | None = None
    ) -> InProcessSubscription:
        expanded = self.vocabulary.expanded(concepts)
        subscription = InProcessSubscription(self._changed, self._forget)
        with self._changed:
            self._note(changed=self._index.subscribe(subscription, expanded))
        return subscription

    def _forget(self, subscription: InProcessSubscription) -> None:
        with self._changed:
            self._note(changed=self._index.unsubscribe(subscription))

    def _note(self, *, changed: bool) -> None:
        if changed:
            self._version += 1
            self._changed.notify_all()

    def interrupt(self) -> None:
        with self._changed:
            self._interrupted = True
            self._changed.notify_all()

    def reopened(self) -> InProcessBlackboard:
        # Who subscribed did so in the parent; nobody in the child can receive.
        return InProcessBlackboard(self.vocabulary, name=self.name)

    def close(self) -> None:
        """Nothing is open."""


class InProcessSubscription(Closeable):
    """What waits for one subscriber; `dropped` counts what it did not take in time."""

    def __init__(self, changed: Condition, forget: Callable[[InProcessSubscription], None]) -> None:
        self._changed = changed
        self._forget = forget
        self._waiting: deque[Delivered] = deque(maxlen=WAITING_MAX)
        self._closed = False
        self.dropped = 0

    def offer(self, delivered: Delivered) -> None:
        """Called by the blackboard, which holds the lock."""
        self.dropped += len(self._waiting) == WAITING_MAX
        self._waiting.append(delivered)

    def take(self, wait_s: float) -> list[Delivered]:
        deadline = time.monotonic() + wait_s
        with self._changed:
            while not self._waiting and not self._closed:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                self._changed.wait(left_s)
            came = list(self._waiting)
            self._waiting.clear()
            return came

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._forget(self)

"""A subscription in the hands of a program."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Final, Protocol

from tocsin.client.soap.boxes import PULL_MESSAGES_MAX, Box
from tocsin.client.soap.inbox import Inbox, MessageIterator
from tocsin.client.soap.message import Ended, Message
from tocsin.client.soap.renewals import Lease
from tocsin.errors import BadSetting
from tocsin.wire.soap.addressing import EndpointReference

PULL_PAUSE_S_MIN: Final = 0.1
PULL_PAUSE_S_MAX: Final = 1.0  # the original's puller asks an empty box once a second

Expires = str | float | timedelta | None
"""An xs:duration or xs:dateTime, seconds, or None to leave it to the producer."""


@dataclass(frozen=True, slots=True)
class Status:
    """How long a subscription still has, in seconds; None if it has no end."""

    remaining_s: float | None


class Owner(Protocol):
    """The client that made a subscription, and can speak of it to its producer."""

    def renew(self, subscription: Subscription, expires: Expires = None) -> Status: ...
    def status(self, subscription: Subscription) -> Status: ...
    def pause(self, subscription: Subscription) -> None: ...
    def resume(self, subscription: Subscription) -> None: ...
    def unsubscribe(self, subscription: Subscription) -> None: ...
    def end(self, subscription: Subscription) -> None: ...
    def pull(
        self, subscription: Subscription, count: int = ..., *, wait_s: float = ...
    ) -> list[Message]: ...


class Subscription(MessageIterator):
    """What a client subscribed to: iterate over its messages, in one thread; `close` it, from any.

    The loop ends when the subscription does; `ended` then says why, unless it was closed here.
    """

    def __init__(
        self,
        client: Owner,
        manager: EndpointReference,
        expires: Expires,
        *,
        consumer: EndpointReference | None,
        inbox: Inbox | None = None,
        box: Box | None = None,
        lease_s: float | None = None,
    ) -> None:
        self.manager = manager
        self.consumer = consumer  # where notifications go; None if the source keeps them
        self.expires = expires
        self.dropped = 0  # messages that a box says it had to give up
        self._client = client
        self._inbox = inbox
        self._box = box
        self._lease: Lease | None = None
        self._lock = Lock()
        self._pulled: deque[Message] = deque()
        self._ended: Ended | None = None
        self._closed = False
        self._ends_at_s: float | None = None
        self.granted(lease_s)

    # What a program does with it

    def renew(self, expires: Expires = None) -> Status:
        """Ask for more time: as much as at first, unless `expires` says otherwise."""
        return self._client.renew(self, expires)

    def status(self) -> Status:
        """Ask how long it still has."""
        return self._client.status(self)

    def pause(self) -> None:
        """Have notifications held back."""
        self._client.pause(self)

    def resume(self) -> None:
        """Have them sent again."""
        self._client.resume(self)

    def unsubscribe(self) -> None:
        """End it; raises if the producer refuses."""
        self._client.unsubscribe(self)

    def pull(self, count: int = PULL_MESSAGES_MAX, *, wait_s: float = 0.0) -> list[Message]:
        """What waits in its box; waits for the first up to `wait_s`."""
        return self._client.pull(self, count, wait_s=wait_s)

    @property
    def ended(self) -> Ended | None:
        """Why it is over, if it did not end here."""
        return self._inbox.ended if self._inbox is not None else self._ended

    def take(self, timeout_s: float) -> Message | None:
        """The next message; None if none came in time or none will."""
        if self._inbox is not None:
            return self._inbox.take(timeout_s)
        if not self._pulled:
            self._pulled.extend(self.pull(wait_s=timeout_s))
        return self._pulled.popleft() if self._pulled else None

    @property
    def is_over(self) -> bool:
        """True if nothing more will come."""
        if self._inbox is not None:
            return self._inbox.is_over
        return self._closed or (self._ended is not None and not self._pulled)

    def close(self) -> None:
        """End it, whether or not the producer can still be reached."""
        self._client.end(self)

    # What the client does with it

    def granted(self, lease_s: float | None) -> None:
        """How long its producer says that it still has; None is for ever."""
        self._ends_at_s = None if lease_s is None else time.monotonic() + lease_s

    @property
    def remaining_s(self) -> float | None:
        """What is left of what was granted last."""
        if self._ends_at_s is None:
            return None
        return max(0.0, self._ends_at_s - time.monotonic())

    def leased(self, lease: Lease | None) -> None:
        """It is renewed in the background."""
        self._lease = lease

    @property
    def is_closed(self) -> bool:
        """True if it was ended here."""
        return self._closed

    @property
    def lease(self) -> Lease | None:
        return self._lease

    def lapse(self, ended: Ended) -> None:
        """It is over, and not by our doing."""
        if self._inbox is not None:
            self._inbox.end(ended)
        else:
            self._ended = self._ended or ended

    def forget(self) -> tuple[Inbox | None, Box | None] | None:
        """Mark it as closed; what it held here and elsewhere, or None if that was done before."""
        with self._lock:
            if self._closed:
                return None
            self._closed = True
        return self._inbox, self._box

    def fetch(self, count: int, wait_s: float) -> list[Message]:
        """Pull, again and again while there is nothing and time is left."""
        if self._box is None:
            raise BadSetting(
                "this subscription is pushed, so there is nothing to pull",
                remedy="Subscribe with pull=True, or loop over the subscription.",
            )
        deadline, pause_s = time.monotonic() + wait_s, PULL_PAUSE_S_MIN
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            pulled = self._box.pull(count, left_s)
            self.dropped += pulled.dropped
            if pulled.ended is not None:
                self.lapse(pulled.ended)
            left_s = deadline - time.monotonic()
            if pulled.messages or left_s <= 0 or self.is_over:
                return pulled.messages
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, PULL_PAUSE_S_MAX)

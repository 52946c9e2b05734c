"""Everything a broker can ask to be done. The real world and the simulated one do the same list.

The broker decides and returns these; a driver performs them and reports the outcome by calling the
method of the broker named beside each.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tocsin.broker.delivery.deadletter import DeadLetter
from tocsin.errors import TocsinError
from tocsin.event.stored import Append, StateChange, Stored
from tocsin.event.subscription import SinkCredential, Subscription

Level = Literal["info", "warning", "error"]
EndStatus = Literal["DeliveryFailure", "SourceCancelling", "SourceShuttingDown"]

Token = object
"""Whoever waits for an answer: the driver's own thing, handed back untouched in `Reply`."""


class Commit(msgspec.Struct, frozen=True):
    """Have the store apply both, then call `committed(applied, first_seq, now)`, or
    `commit_failed(...)` if nothing of it was stored."""

    append: Append
    change: StateChange


class ReadLog(msgspec.Struct, frozen=True):
    """Read the log past `after`, then call `log_read(page...)`. At most one is under way."""

    after: int
    limit: int


class CheckRetention(msgspec.Struct, frozen=True):
    """Find how far retention reaches, then call `retention_checked(seq, now)`: events received
    before `before_ns`, and enough of the oldest to bring the log under `bytes_max`."""

    before_ns: int | None
    bytes_max: int | None


class Push(msgspec.Struct, frozen=True):
    """Send these to a sink, then call `pushed(lane, outcome, now)`. One under way per lane."""

    lane: int
    sink: str
    subscription: Subscription
    events: list[Stored]
    timeout_s: float


class CloseSubscription(msgspec.Struct, frozen=True):
    """Nothing more of this subscription goes to the lane's sink: notify the sink, where its
    protocol has words for that. A push of it that is under way is answered as ever."""

    lane: int
    subscription_id: str


class Handshake(msgspec.Struct, frozen=True):
    """Ask the sink whether it wants events, then call `handshaken(token, answer, now)`."""

    subscription_id: str
    sink: str
    token: str
    credential: SinkCredential | None = None


class StreamOut(msgspec.Struct, frozen=True):
    """Write these to an open stream; if its transport is then full, call `stream_blocked`."""

    stream: int
    events: list[Stored]


class StreamDropped(msgspec.Struct, frozen=True):
    """Notify the reader of a stream that events it asked for are gone."""

    stream: int
    dropped: int


class StreamWithheld(msgspec.Struct, frozen=True):
    """Notify the reader of a stream, who may know it, that there were events it has no right to."""

    stream: int
    withheld: int


class StreamEnded(msgspec.Struct, frozen=True):
    """End an open stream, and say why; then it is closed as if its reader had left."""

    stream: int
    reason: str


class Ended(msgspec.Struct, frozen=True):
    """Notify who asked for it (`soap.end_to`) that the subscription is over before its time.

    It is off the disk by then. One that its owner ended, or that expired, ends without a word.
    """

    subscription: Subscription
    status: EndStatus
    reason: str


class Reply(msgspec.Struct, frozen=True):
    """Answer whoever waits with a result, or with an error."""

    token: Token
    result: object | TocsinError


class LogLine(msgspec.Struct, frozen=True):
    """Write a line to the broker's own log."""

    level: Level
    message: str
    fields: dict[str, object]


class Stop(msgspec.Struct, frozen=True):
    """End the process: it may not go on."""

    error: TocsinError


Effect = (
    Commit
    | ReadLog
    | CheckRetention
    | Push
    | CloseSubscription
    | Handshake
    | StreamOut
    | StreamDropped
    | StreamWithheld
    | StreamEnded
    | Ended
    | Reply
    | LogLine
    | Stop
)


class Accepted(msgspec.Struct, frozen=True):
    """The answer to a publisher: on disk."""

    accepted: int
    first: int
    last: int
    duplicates: int = 0


class Pulled(msgspec.Struct, frozen=True):
    """The answer to a pull from a box. `next` releases these when given back as `ack`."""

    events: list[Stored]
    next: str
    dropped: int
    withheld: int | None = None  # None for who may not know


class Redriven(msgspec.Struct, frozen=True):
    """The answer to a redrive: the sink took it, and the dead letter is gone."""

    dead_letter: DeadLetter

"""What was given up: the event, why, every attempt with its answer; enough to send it again."""

from __future__ import annotations

import msgspec

from tocsin.broker.delivery.outcome import Answered, Outcome, describe
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Owner, SoapTerms

ATTEMPTS_KEPT_MAX = 32


class Attempt(msgspec.Struct, frozen=True):
    """One try: when, what came back, and the start of the answer's body."""

    at_ns: int
    result: str
    status: int | None = None
    excerpt: str = ""


def attempt(outcome: Outcome, now_ns: int) -> Attempt:
    """The try that ended so."""
    if isinstance(outcome, Answered):
        return Attempt(now_ns, describe(outcome), outcome.status, outcome.excerpt)
    return Attempt(now_ns, describe(outcome))


class DeadLetter(msgspec.Struct, frozen=True):
    """An event that one subscription did not get."""

    id: str
    subscription: str
    sink: str
    seq: int
    received_ns: int
    given_up_ns: int
    reason: str
    attempts: list[Attempt]
    event: Event
    soap: SoapTerms | None = None  # how its consumer is spoken to, if by Web services
    owner: Owner | None = None  # of the subscription, as it was when this was given up

    def stored(self) -> Stored:
        """The event as it was in the log, which may have let go of it by now."""
        return Stored(self.seq, self.received_ns, self.event)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(DeadLetter).decode


def record(letter: DeadLetter) -> bytes:
    """The stored form."""
    return _encode(letter)


def from_record(data: bytes) -> DeadLetter:
    """A dead letter from its stored form."""
    return _decode(data)

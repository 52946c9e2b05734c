"""What became of one attempt to push, and what that means for the event and the sink."""

from __future__ import annotations

from enum import Enum, auto

import msgspec

ANSWER_EXCERPT_BYTES = 512  # enough for a person to see what the sink complained about


class Answered(msgspec.Struct, frozen=True):
    """The sink answered."""

    status: int
    retry_after_s: float | None = None
    excerpt: str = ""


class Failed(msgspec.Struct, frozen=True):
    """No usable answer came: refused, reset, timed out, forbidden address, garbage."""

    reason: str
    reachable: bool = False  # True if something answered there, though not with HTTP


Outcome = Answered | Failed


class Verdict(Enum):
    """What to do next."""

    DELIVERED = auto()
    GONE = auto()  # the sink wants no more, ever
    RETRY = auto()  # it may take this event later; counts towards giving up
    WAIT = auto()  # nobody is there or it asks for patience; wait without giving up
    REFUSED = auto()  # it will never take this event


# Answers that speak about this very event: to send it again would be answered the same way.
NEVER_AGAIN = frozenset({400, 413, 414, 415, 422, 431})


def judge(outcome: Outcome) -> Verdict:
    """One table for every way an attempt can end."""
    if isinstance(outcome, Failed):
        return Verdict.RETRY if outcome.reachable else Verdict.WAIT
    status = outcome.status
    if 200 <= status < 300:
        return Verdict.DELIVERED
    if status == 410:
        return Verdict.GONE
    if status == 429 or (status == 503 and outcome.retry_after_s is not None):
        return Verdict.WAIT
    return Verdict.REFUSED if status in NEVER_AGAIN else Verdict.RETRY


def describe(outcome: Outcome) -> str:
    """One line for a person."""
    if isinstance(outcome, Failed):
        return outcome.reason
    if 300 <= outcome.status < 400:
        return f"HTTP {outcome.status}: redirects are not followed; subscribe the final address"
    return f"HTTP {outcome.status}"

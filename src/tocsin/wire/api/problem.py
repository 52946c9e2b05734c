"""An error as RFC 9457 problem details: the same code, words and remedy at every endpoint."""

from __future__ import annotations

import re
from math import ceil

import msgspec

from tocsin.errors import BadFilter, Busy, InternalError, QuotaReached, ShuttingDown, TocsinError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1  # a group commit takes milliseconds, so what was full is soon not


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a client gets: `code` and `status` are stable, the words are not."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    remedy: str
    position: int | None = None
    pointed: str | None = None


def problem(error: TocsinError) -> Problem:
    """The error as it is shown to a client."""
    position = pointed = None
    if isinstance(error, BadFilter) and error.text:
        position, pointed = error.position, _encodable(error.pointed())
    return Problem(
        type=f"/errors/{error.code}",
        title=title(type(error)),
        status=error.http_status,
        detail=_encodable(error.problem),
        code=error.code,
        remedy=_encodable(error.remedy),
        position=position,
        pointed=pointed,
    )


def _encodable(text: str) -> str:
    """The text without lone surrogates, which the words may quote from the input."""
    return text.encode(errors="replace").decode()


def title(kind: type[TocsinError]) -> str:
    """The name of the error's class as words: NoSuchBox is `No such box`."""
    words = re.findall("[A-Z][a-z]*", kind.__name__)
    return " ".join(words).capitalize()


_encode = msgspec.json.Encoder().encode


def problem_json(error: TocsinError) -> bytes:
    """The body of the answer."""
    return _encode(problem(error))


def retry_after_s(error: TocsinError) -> int | None:
    """How long a client should wait before it asks again, where waiting helps."""
    if isinstance(error, QuotaReached):
        return None if error.retry_after_s is None else max(1, ceil(error.retry_after_s))
    return RETRY_AFTER_S if isinstance(error, Busy | ShuttingDown) else None


def internal_error() -> InternalError:
    """What a client gets for a failure that should not be; the trace is for the log alone."""
    return InternalError(
        "the broker failed to answer this request",
        remedy="Its log has the trace; please report it with this code.",
    )

"""Errors of Spark in one line, with their cause and what to do about it."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tocsin.errors.pipeline import PipelineFailed

WORDS_MAX: Final = 400  # of what went wrong, and as many of why
DISK_FULL: Final = "No space left on device"
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_SPOKEN_BEFORE: Final = re.compile(r"^(An error occurred while calling \S+|: (\w+\.)+\w+: )")
_TRACE: Final = "Traceback (most recent call last):"
_THROWN: Final = re.compile(r"^(?:Caused by: |: )?((?:[a-z]\w*\.)+[A-Z][\w$]+)(?=:|$)", re.M)
_CAUSE: Final = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+(?:: (.+))?$", re.M)


def in_a_line(error: Exception) -> str:
    """What Spark says, without the trace and without what is only about how it was called."""
    lines = (_SPOKEN_BEFORE.sub("", line).strip() for line in str(error).splitlines())
    words = next((line for line in lines if line), type(error).__name__)
    return f"{words.removesuffix(_TRACE)}{_raised(str(error))}" if words.endswith(_TRACE) else words


def _raised(trace: str) -> str:
    """The error at the end of Python's trace: its first line that is not about a place."""
    *_, last = trace.rpartition(_TRACE)
    lines = (line for line in last.splitlines() if line.strip() and not line.startswith(" "))
    return next(lines, "an error in Python").strip()


def cause_of(error: Exception) -> str | None:
    """What was at the bottom of it, if the trace that came with it says so."""
    trace = getattr(error, "_stackTrace", None) or str(error)
    causes = [words.strip() for words in _CAUSE.findall(trace) if words.strip()]
    return causes[-1] if causes else None


def thrown(error: Exception) -> list[str]:
    """The classes of what Java threw, the cause of all last."""
    trace = getattr(error, "_stackTrace", None) or str(error)
    return _THROWN.findall(trace)


def with_cause(error: Exception) -> str:
    """Both, in one line."""
    words, cause = in_a_line(error)[:WORDS_MAX], cause_of(error)
    return words if cause is None or cause in words else f"{words}: {cause[:WORDS_MAX]}"


@contextmanager
def readable_errors() -> Iterator[None]:
    """An error of Spark's or of the disk's becomes one of ours."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        words = with_cause(error)
        remedy = "Run it again with --verbose for the full error."
        if DISK_FULL in words:
            remedy = "Make room, or name another place with --tables."
        raise PipelineFailed(
            f"Spark gave up: {words}", remedy=f"The tables are as they were. {remedy}"
        ) from error
    except OSError as error:
        remedy = "Check the permissions and the disk of that file."
        if error.errno in NO_ROOM:
            remedy = "Make room, or name another place with --tables."
        raise PipelineFailed(
            f"a file could not be read or written: {error}",
            remedy=f"The tables are as they were. {remedy}",
        ) from error

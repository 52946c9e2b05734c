"""Errors as printed: the problem with its code, then the remedy; and the exit code."""

from __future__ import annotations

import sys

from tocsin.errors import BadFilter, BrokerRefused, TocsinError, catalogue

NOT_ALLOWED = 4
NOT_FOUND = 5
TIMED_OUT = 6

_EXIT_BY_STATUS = {401: NOT_ALLOWED, 403: NOT_ALLOWED, 404: NOT_FOUND, 408: TIMED_OUT}


def report(error: Exception) -> int:
    """Print a TocsinError and return its exit code; any other error is a bug, and raised."""
    if not isinstance(error, TocsinError):
        raise error
    from tocsin.cli.render import safe

    print(safe(error_text(error)), file=sys.stderr)  # it may quote an untrusted server
    return exit_code(error)


def error_text(error: TocsinError) -> str:
    """The error in two lines, and the text with a mark where it is about a text."""
    code, pointed = error.code, ""
    if isinstance(error, BrokerRefused):
        code, pointed = error.broker_code, error.pointed
    elif isinstance(error, BadFilter) and error.text:
        pointed = error.pointed()
    lines = [f"tocsin: {_one_line(error.problem)} [{code}]"]
    lines += [f"  {line}" for line in pointed.splitlines()]
    if error.remedy:
        lines.append(_one_line(error.remedy))
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def exit_code(error: TocsinError) -> int:
    """The exit code of an error; a broker's refusal has that of the error it names."""
    if not isinstance(error, BrokerRefused):
        return error.exit_code
    known = catalogue().get(error.broker_code)
    if known is not None and known is not BrokerRefused:
        return known.exit_code
    return _EXIT_BY_STATUS.get(error.status, error.exit_code)

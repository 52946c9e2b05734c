"""`config.credential`: what a sink wants to see with each request, read and sealed at once.

Nothing of it is repeated in an error: a person who misplaced a brace must not find the password in
a log.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Final

from tocsin.event.subscription import SinkCredential
from tocsin.wire.api import members

Seal = Callable[[str, str], str]
"""A text that is secret, and whom it is for, into what may be kept and shown to nobody else."""

SHAPES: Final = (
    '{"bearer": "TOKEN"}, {"basic": {"user": "...", "password": "..."}}, or '
    '{"header": {"name": "X-Api-Key", "value": "..."}}'
)
VALUE_CHARS_MAX: Final = 8_192
NAME_CHARS_MAX: Final = 128

_TOKEN: Final = re.compile(r"[!-~]+")
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
_LINE: Final = re.compile(r"[!-~]([ \t]*[!-~])*")
# What frames the request, says what is in it, or is ours to say.
_NOT_TO_SET: Final = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "content-encoding", "expect"),
        *("keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "date"),
        *("proxy-connection", "proxy-authorization"),
    }
)
_NOT_TO_SET_BEFORE: Final = ("ce-", "tocsin-", "webhook-")


def read_credential(value: object, sink: str, seal: Seal) -> SinkCredential:
    """The credential for this sink, and for no other: sealed for it, it opens for it alone."""
    if not isinstance(value, dict) or len(value) != 1:
        members.refuse("config.credential", "is not of one kind", f"Give {SHAPES}.")
    ((kind, given),) = value.items()
    if kind == "bearer":
        line = f"authorization: Bearer {_matching('bearer', given, _TOKEN)}"
    elif kind == "basic":
        user = _text("basic.user", _parts("basic", given, ("user", "password"))["user"])
        password = _text("basic.password", given["password"])
        if ":" in user:
            members.refuse("config.credential.basic.user", "has a colon", "Leave it out.")
        line = f"authorization: Basic {_base64(f'{user}:{password}')}"
    elif kind == "header":
        parts = _parts("header", given, ("name", "value"))
        name = _matching("header.name", parts["name"], _NAME, most=NAME_CHARS_MAX).lower()
        if name in _NOT_TO_SET or name.startswith(_NOT_TO_SET_BEFORE):
            members.refuse(
                "config.credential.header.name",
                "is a header that the broker sets itself",
                "Name the header that the sink looks for, such as X-Api-Key.",
            )
        line = f"{name}: {_matching('header.value', parts['value'], _LINE)}"
    else:
        members.refuse("config.credential", "is of no known kind", f"Give {SHAPES}.")
    return SinkCredential(kind, seal(line, sink))


def _parts(name: str, value: object, wanted: tuple[str, ...]) -> dict[str, object]:
    if not isinstance(value, dict) or sorted(value) != sorted(wanted):
        members.refuse(
            f"config.credential.{name}",
            f"has not just the members {' and '.join(wanted)}",
            f"Give {SHAPES}.",
        )
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > VALUE_CHARS_MAX or not value.isprintable():
        members.refuse(
            f"config.credential.{name}",
            "cannot be sent",
            f"Give a text of visible characters, at most {VALUE_CHARS_MAX}.",
        )
    return value


def _matching(
    name: str, value: object, pattern: re.Pattern[str], *, most: int = VALUE_CHARS_MAX
) -> str:
    if not isinstance(value, str) or len(value) > most or pattern.fullmatch(value) is None:
        members.refuse(
            f"config.credential.{name}",
            "cannot be sent",
            f"Give visible ASCII characters, at most {most}, without spaces around them.",
        )
    return value


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")

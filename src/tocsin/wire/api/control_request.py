"""Control messages from JSON: each member checked, and named when it is wrong."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Mapping
from typing import Final

import msgspec

from tocsin.errors import BadControlMessage, BadSubscription
from tocsin.event.control_topic import (
    BODY_BYTES_MAX,
    EVERY_BROKER,
    FLOOD_HOPS_MAX,
    TOPIC_CHARS_MAX,
)
from tocsin.wire.api import members

BASE64_CHARS_MAX: Final = 4 * (BODY_BYTES_MAX // 3 + 1)

_MEMBERS: Final = ("topic", "kind", "body", "to", "ttl")
_KIND = re.compile(r"[a-z0-9.-]{1,64}")
_BROKER = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class ControlRequest(msgspec.Struct, frozen=True):
    """A message that somebody wants to be sent.

    `to`: a broker; `*`, everybody within `ttl` links; or empty, the topic discovery nodes that the
    topic means. Without `ttl` it goes as far as it may.
    """

    topic: str
    kind: str
    body: bytes = b""
    to: str = ""
    ttl: int = 0


def read_control(asked: Mapping[str, object]) -> ControlRequest:
    """The message in a JSON object; BadControlMessage says what is wrong with it."""
    try:
        members.only_known(asked, _MEMBERS)
        return ControlRequest(
            topic=members.text("topic", asked.get("topic"), most=TOPIC_CHARS_MAX),
            kind=_matching("kind", asked.get("kind"), _KIND, "small letters, digits, - and ."),
            body=_body(asked.get("body")),
            to=_to(asked.get("to")),
            ttl=_ttl(asked.get("ttl"), asked.get("to")),
        )
    except BadSubscription as bad:  # what the checks of members raise, whoever asks
        raise BadControlMessage(bad.problem, remedy=bad.remedy) from None


def _matching(name: str, value: object, pattern: re.Pattern[str], of: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        members.refuse(name, f"is {members.quoted(value)}", f"Give 1 to 64 of {of}.")
    return value


def _to(value: object) -> str:
    if value is None or value == EVERY_BROKER:
        return value or ""
    return _matching("to", value, _BROKER, 'the characters of the id of a broker; or "*"')


def _ttl(value: object, to: object) -> int:
    if value is None:
        return 0
    if to != EVERY_BROKER:
        members.refuse("ttl", "is given", 'Leave it out, or send the message to "*".')
    return members.whole("ttl", value, least=1, most=FLOOD_HOPS_MAX)


def _body(value: object) -> bytes:
    if value is None:
        return b""
    text = members.text("body", value, most=BASE64_CHARS_MAX)
    try:
        body = a2b_base64(text, strict_mode=True)
    except (Error, ValueError):
        members.refuse("body", "is not Base64", "Encode the bytes as RFC 4648 section 4 has it.")
    if len(body) > BODY_BYTES_MAX:
        members.refuse("body", f"has {len(body)} bytes", f"Send at most {BODY_BYTES_MAX}.")
    return body

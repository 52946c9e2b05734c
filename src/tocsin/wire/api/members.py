"""A JSON object from a request, its members checked one by one and named when they are wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import NoReturn, cast

import msgspec

from tocsin.errors import BadRequest, BadSubscription
from tocsin.event.instant import NS_PER_S, iso_duration_ns
from tocsin.event.json_reader import read_json
from tocsin.wire import strict_json

_SHOWN_MAX = 60


def read_object(body: bytes) -> dict[str, object]:
    """The JSON object that a body is; an empty body counts as an empty object."""
    if not body.strip():
        return {}
    try:
        value = read_json(body)
        strict_json.check(body)
    except RecursionError:
        raise BadRequest("the JSON nests too deeply", remedy="Nest less.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, strict_json.Ambiguous) as error:
        raise BadRequest(
            f"the body is not JSON: {error}", remedy="Send one JSON object, in UTF-8."
        ) from None
    if not isinstance(value, dict):
        raise BadRequest(
            "the body is not a JSON object",
            remedy='Send members in braces, as in {"name": "value"}.',
        )
    return value


def only_known(members: Iterable[str], known: tuple[str, ...], where: str = "") -> None:
    """Refuse a member that nobody would look at: most likely it is misspelt."""
    for name in members:
        if name not in known:
            near = difflib.get_close_matches(name[:_SHOWN_MAX], known, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known members: {', '.join(known)}."
            refuse(f"{where}{name[:_SHOWN_MAX]}", "is not known", hint)


def text(name: str, value: object, *, most: int = 2048) -> str:
    if not isinstance(value, str) or not value:
        refuse(name, f"is {quoted(value)}", f"Give a text of 1 to {most} characters.")
    if len(value) > most:
        refuse(name, f"has {len(value)} characters", f"Give at most {most}.")
    return value


def printable(name: str, value: object, *, most: int) -> str:
    """A text that can stand in one line."""
    found = text(name, value, most=most)
    if not found.isprintable() or not found.strip():
        refuse(name, f"is {quoted(found)}", "Use visible characters.")
    return found


def whole(name: str, value: object, *, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        refuse(name, f"is {quoted(value)}", f"Give a whole number, from {least} to {most}.")
    return value


def seconds(name: str, value: object, *, least: float, most: float) -> float:
    if type(value) not in (int, float) or not least <= value <= most:  # type: ignore[operator]
        refuse(name, f"is {quoted(value)}", f"Give seconds, from {least:g} to {most:g}.")
    return float(value)  # type: ignore[arg-type]


def duration_ns(name: str, value: object, *, least_s: float, most_s: float) -> int:
    """An ISO 8601 duration, or seconds."""
    found: int | None = None
    if isinstance(value, str):
        found = iso_duration_ns(value)
    elif type(value) in (int, float):
        found = int(min(max(cast(float, value), -1), most_s + 1) * NS_PER_S)
    if found is None or not least_s * NS_PER_S <= found <= most_s * NS_PER_S:
        refuse(
            name,
            f"is {quoted(value)}",
            f"Give a duration such as PT10M, or seconds, from {least_s:.10g} to {most_s:.10g}.",
        )
    return found


def choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    if value not in choices or not isinstance(value, str):
        refuse(name, f"is {quoted(value)}", f"Choose one of {', '.join(choices)}.")
    return value


def refuse(name: str, problem: str, remedy: str) -> NoReturn:
    raise BadSubscription(f"{name} {problem}", remedy=remedy)


def quoted(value: object) -> str:
    """A value from the request, short enough for a message."""
    rendered = msgspec.json.encode(value).decode()
    return rendered if len(rendered) <= _SHOWN_MAX else rendered[: _SHOWN_MAX - 3] + "..."

"""Values that an engine sent: each is what it must be, within its limit, or it is not there.

Engines change what they send from version to version. So no value is demanded but the few that say
whom a message is about, a wrong one counts as none, and nothing here raises but `read_json`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from tocsin.errors import BadRequest
from tocsin.event import json_reader
from tocsin.wire import strict_json

TEXT_BYTES_MAX: Final = 4 << 10  # of a command, an error or the end of a log
NAME_CHARS_MAX: Final = 400  # ids become headers, and several stand in one
LIST_MAX: Final = 1_000  # of files of one activity
LIST_BYTES_MAX: Final = 256 << 10  # so that an event stays far below its own limit
OBJECT_BYTES_MAX: Final = 64 << 10  # of parameters
NUMBER_MAX: Final = 1e18  # bytes, seconds: nothing real is more, and it fits in 64 bits
MOMENT_CHARS_MAX: Final = 64
_HASH_CHARS: Final = 12
_SHOWN_MAX: Final = 80

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_encode = msgspec.json.Encoder().encode


def read_json(body: bytes) -> Any:
    """The value that the JSON says; BadRequest if it is none, or if readers could disagree."""
    try:
        value = json_reader.read_json(body)
        strict_json.check(body)
        return value
    except strict_json.Ambiguous as error:
        raise BadRequest(
            f"this JSON is not read alike by all: {error}",
            remedy="Send each name once, and numbers that a double can hold.",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = "too deep" if isinstance(error, RecursionError) else str(error)[:_SHOWN_MAX]
        raise BadRequest(
            f"this is not valid JSON: {problem}",
            remedy="Send what the engine's own plugin sends, one JSON object.",
        ) from None


def member(table: object, *path: str) -> Any:
    """What lies at the end of this path of names; None where it breaks off."""
    for step in path:
        if not isinstance(table, Mapping):
            return None
        table = table.get(step)
    return table


def text(value: object, bytes_max: int = TEXT_BYTES_MAX) -> str | None:
    """The text, its beginning if it is long."""
    string = _as_text(value)
    if string is None or len(string) * 4 <= bytes_max:
        return string
    return string.encode()[:bytes_max].decode(errors="ignore")


def tail(value: object, bytes_max: int = TEXT_BYTES_MAX) -> str | None:
    """The text, its end if it is long: where logs and traces say what went wrong."""
    string = _as_text(value)
    if string is None or len(string) * 4 <= bytes_max:
        return string
    return string.encode()[-bytes_max:].decode(errors="ignore")


def name(value: object) -> str | None:
    """A text that is fit to be an id: printable, not empty, short and still unlike others."""
    string = _as_text(value)
    if string is None:
        return None
    string = "".join(each if each.isprintable() else "_" for each in string[: 1 << 16].strip())
    if len(string) > NAME_CHARS_MAX:
        digest = hashlib.sha256(string.encode()).hexdigest()[:_HASH_CHARS]
        string = f"{string[: NAME_CHARS_MAX - _HASH_CHARS - 1]}~{digest}"
    return string or None


def number(value: object) -> int | float | None:
    """A number, also one that came as text."""
    if isinstance(value, str):
        if len(value) > MOMENT_CHARS_MAX:
            return None
        try:
            value = float(value) if not value.strip().lstrip("+-").isdecimal() else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if -NUMBER_MAX < value < NUMBER_MAX else None  # NaN is in no range


def whole(value: object) -> int | None:
    """A whole number."""
    found = number(value)
    return None if found is None else int(found)


def amount(value: object, scale: float = 1) -> str | None:
    """A measured amount in plain decimals; engines say -1 or so where they measured nothing."""
    found = number(value)
    return None if found is None or found < 0 else decimal(found * scale)


def total(value: object, scale: int = 1) -> str | None:
    """A count or a size: a whole number from 0 up."""
    found = number(value)
    return None if found is None or found < 0 else str(int(found * scale))


def decimal(value: float) -> str:
    """The number without an exponent, to the microsecond."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.6f}".rstrip("0").rstrip(".")


def moment_ms(value: object) -> str | None:
    """Milliseconds since 1970 as RFC 3339 text in UTC."""
    found = number(value)
    if found is None or found <= 0:
        return None
    try:
        return _rfc3339(_EPOCH + timedelta(milliseconds=round(found)))
    except OverflowError:
        return None


def moment(value: object) -> str | None:
    """Seconds since 1970, or an ISO 8601 text (UTC where it names no zone), as RFC 3339 text."""
    if (found := number(value)) is not None:
        return moment_ms(found * 1_000)
    if not isinstance(value, str) or len(value) > MOMENT_CHARS_MAX:
        return None
    try:
        read = datetime.fromisoformat(value.strip())
        aware = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
        return _rfc3339(aware)
    except (ValueError, OverflowError):
        return None


def names_json(values: Iterable[str]) -> str | None:
    """A list as the text of a JSON array, cut where it grows too long; None if it is empty."""
    kept: list[str] = []
    room = LIST_BYTES_MAX
    for value in values:
        room -= 4 * len(value) + 4
        if room < 0 or len(kept) == LIST_MAX:
            break
        kept.append(value)
    return _encode(kept).decode() if kept else None


def object_json(value: object) -> str | None:
    """An object as the text of JSON; of one that is too long, the members that are short."""
    if not isinstance(value, Mapping) or not value:
        return None
    try:
        whole_text = _encode(value)
        if len(whole_text) <= OBJECT_BYTES_MAX:
            return whole_text.decode()
        return _encode(_short_members(value)).decode()
    except (TypeError, ValueError, RecursionError):
        return None


def filled(pairs: Mapping[str, str | None]) -> dict[str, str]:
    """The pairs that have a value."""
    return {concept: value for concept, value in pairs.items() if value}


def _short_members(value: Mapping[Any, Any]) -> dict[str, object]:
    kept: dict[str, object] = {}
    room = OBJECT_BYTES_MAX
    for key, each in value.items():
        size = len(_encode({key: each}))
        if size <= TEXT_BYTES_MAX and size <= room:
            kept[key] = each
            room -= size
    return kept


def _as_text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A number without end is nobody's name, and writing it down would take long.
    return str(value) if -NUMBER_MAX < value < NUMBER_MAX else None


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

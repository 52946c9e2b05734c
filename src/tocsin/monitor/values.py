"""Values: what the text of a pair says. What cannot be read is left out, and never an error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

import msgspec

from tocsin.event.json_reader import read_json

NAME_CHARS_MAX: Final = 512
TEXT_CHARS_MAX: Final = 4_096  # publishers cut there as well
JSON_CHARS_MAX: Final = 64 << 10  # parameters and counts
ITEMS_READ_MAX: Final = 10_000  # of a list in one message; fewer are kept
WHOLE_MAX: Final = 2**63 - 1
NUMBERS_MAX: Final = 16  # of one planned task
NUMBER_NAME_CHARS_MAX: Final = 64


def _text(text: str) -> str | None:
    if is_cut(text):
        return _fewer(text)
    is_whole = text[:1] in "{[" and len(text) <= JSON_CHARS_MAX
    return (text if is_whole else text[:TEXT_CHARS_MAX]) or None


def is_cut(text: str) -> bool:
    """True if the text is an object of JSON that is too long to be kept whole."""
    return len(text) > JSON_CHARS_MAX and text.startswith("{")


def _fewer(text: str) -> str:
    """The members of an object that fit, the shortest first; of what is no JSON, its beginning."""
    found = objects(text)
    if not found:
        return text[:TEXT_CHARS_MAX]
    members = {name: _member(name, value) for name, value in found[0].items()}
    kept: list[str] = []
    left = JSON_CHARS_MAX - len("{}")
    for name in sorted(members, key=lambda each: (len(members[each]), each)):
        left -= len(members[name]) + len(",")
        if left < 0:
            break
        kept.append(name)
    return f"{{{','.join(members[name] for name in sorted(kept))}}}"


def _member(name: str, value: Any) -> str:
    return msgspec.json.encode({name: value}, order="deterministic").decode()[1:-1]


def _tail(text: str) -> str | None:
    return text[-TEXT_CHARS_MAX:] or None


def number(text: str) -> float | int | None:
    """A finite number, whole where it is."""
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) <= WHOLE_MAX // 2 else value


def whole(text: str) -> int | None:
    value = number(text)
    return None if value is None or abs(value) > WHOLE_MAX // 2 else int(value)


def names(text: str) -> list[str]:
    """A list in text: a JSON array, or else the one name that the text is."""
    if text.startswith("["):
        try:
            found = read_json(text.encode())
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            found = [text]
    else:
        found = [text]
    texts = (str(each) for each in found if isinstance(each, str | int | float))
    return [each[: 2 * NAME_CHARS_MAX] for each in texts if each]


def _items(text: str) -> list[str] | None:
    """The objects of a JSON array, each as JSON text with its members in order."""
    found = [
        msgspec.json.encode(each, order="deterministic").decode()
        for each in objects(text)[:ITEMS_READ_MAX]
    ]
    return found or None


def objects(text: str) -> list[dict[str, Any]]:
    try:
        found = read_json(text.encode())
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return []
    if isinstance(found, dict):
        found = [found]
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def numbers_by_name(value: object) -> tuple[tuple[str, float], ...]:
    """The numbers of a task, as far as they are finite and not less than nothing."""
    if not isinstance(value, dict):
        return ()
    found = (
        (str(name)[:NUMBER_NAME_CHARS_MAX], each)
        for name, each in value.items()
        if isinstance(each, int | float) and not isinstance(each, bool) and 0 <= each <= WHOLE_MAX
    )
    return tuple(sorted(islice(found, NUMBERS_MAX)))


READERS: Final[dict[str, Callable[[str], Any]]] = {
    "text": _text,
    "tail": _tail,
    "number": number,
    "whole": whole,
    "list": lambda text: names(text) or None,
    "items": _items,
}


# Unions: sets of texts that stay small however much is added, and in whatever order. The shortest
# are kept, and among those of one length the first by their letters, as many as fit. Of two that do
# not fit both, the shorter stays: had the longer one stayed, a text that was left out in one order
# could have found room in another.
ITEMS_MAX: Final = 1_000
# A run's row is read and written with every batch that speaks of it: a mebibyte takes some 2 ms.
BYTES_MAX: Final = 256 << 10
BYTES_MAX_OF: Final = {"files": 1 << 20}  # with their texts, of which publishers cut each at 64 KiB
UTF8_BYTES_MAX: Final = 4  # of one character


def bounded_union(field: str, *sides: Iterable[str]) -> tuple[list[str], bool]:
    """The texts of all sides that fit, sorted; and whether some did not."""
    texts = sorted({each for side in sides for each in side})
    bytes_max = BYTES_MAX_OF.get(field, BYTES_MAX)
    if len(texts) <= ITEMS_MAX and sum(map(len, texts)) * UTF8_BYTES_MAX <= bytes_max:
        return texts, False
    kept: list[str] = []
    left_bytes = bytes_max
    for size, text in sorted((_size(each), each) for each in texts):
        left_bytes -= size
        if left_bytes < 0 or len(kept) == ITEMS_MAX:
            break
        kept.append(text)
    return sorted(kept), len(kept) < len(texts)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))

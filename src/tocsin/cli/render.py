"""Output: data to stdout, messages to stderr, colour only at a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

ROWS_MAX = 500  # more are not read on a screen
CELL_CHARS_MAX = 60

# Control characters that a terminal acts on: C0 but tab and newline, DEL, C1, and the marks that
# turn the direction of writing.
_CONTROLS = [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)]
_CONTROLS += [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {code: f"\\u{code:04x}" for code in _CONTROLS}


def say(text: str) -> None:
    """Print a message to stderr."""
    print(safe(text), file=sys.stderr, flush=True)


def show(text: str) -> None:
    """Data, as text."""
    print(safe(text) if sys.stdout.isatty() else text)


def show_json(value: Any) -> None:
    """Data, as one line of JSON."""
    show(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def safe(text: str) -> str:
    """Text with control characters escaped. In JSON the meaning stays the same."""
    return text if text.isascii() and text.isprintable() else text.translate(_SHOWN)


def colour(text: str, code: str) -> str:
    """Text in an ANSI colour, if stdout is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def table(
    headers: Sequence[str], rows: Sequence[Sequence[object]], *, limit: int = ROWS_MAX
) -> None:
    """Rows in columns; past `limit` a message counts the rest."""
    shown = [[_cell(value) for value in row] for row in rows[:limit]]
    widths = [
        max(len(header), *(len(row[column]) for row in shown)) if shown else len(header)
        for column, header in enumerate(headers)
    ]
    print(colour(_line(headers, widths), "1"))
    for row in shown:
        print(_line(row, widths))
    if len(rows) > limit:
        say(f"... {len(rows) - limit} more; use --json for all of them")


def _cell(value: object) -> str:
    text = "-" if value is None or value == "" else safe(str(value)).replace("\n", " ")
    return text if len(text) <= CELL_CHARS_MAX else f"{text[: CELL_CHARS_MAX - 1]}…"


def _line(cells: Iterable[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line."""
    listed = [(name, value) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        print(f"{name:<{width}}  {safe(_value(value))}")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        shown = ", ".join(f"{k} {_value(v)}" for k, v in value.items() if v is not None)
        return shown or "none"
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return str(value)


def plural(count: int, noun: str) -> str:
    """`1 event`, `2 events`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

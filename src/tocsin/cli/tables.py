"""Tables and paragraphs that fit the terminal they are shown on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from unicodedata import combining, east_asian_width

from tocsin.cli.render import ROWS_MAX, colour, safe, say

COLUMN_CHARS_MIN = 8  # a narrower name is useless
PIPE_CHARS_MAX = 10_000  # where no terminal is, nothing is cut to fit
COLUMNS_USUAL, ROWS_USUAL = 80, 24  # if the terminal does not report its size
INDENT = "  "

Paint = Callable[[int, str], str]


def screen_width() -> int:
    """How many columns there are; very many where stdout is no terminal."""
    if not sys.stdout.isatty():
        return PIPE_CHARS_MAX
    try:
        return int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        pass
    return _screen().columns or COLUMNS_USUAL


def screen_height() -> int:
    """How many lines there are."""
    return _screen().lines or ROWS_USUAL


def _screen() -> os.terminal_size:
    try:
        return os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return os.terminal_size((0, 0))


def display_width(text: str) -> int:
    """How many columns a text takes: two for what East Asia writes, none for accents."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def truncate(text: str, width: int) -> str:
    """As much of a text as fits, with a mark where it was cut."""
    if display_width(text) <= width:
        return text
    kept = ""
    for char in text:
        if display_width(kept + char) > width - 1:
            break
        kept += char
    return kept + "…"


def cell(value: object) -> str:
    """A value on one line, with control characters escaped."""
    if value is None or value == "":
        return "-"
    return " ".join(safe(str(value)).split("\n"))


def table_lines(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    width: int,
    right: frozenset[int] = frozenset(),
    soft: frozenset[int] = frozenset(),
    paint: Paint | None = None,
) -> list[str]:
    """Rows in columns no wider than `width`; what is too wide loses the end of its widest cells.

    Columns in `right` stand at the right, those in `soft` are cut before the others. `paint`
    colours a cell, after it was measured.
    """
    shown = [[cell(value) for value in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(headers, *shown, strict=True)]
    room = width - len(INDENT) * (len(widths) - 1)
    _narrow(widths, headers, room, soft)
    _narrow(widths, headers, room, frozenset(range(len(widths))))
    lines = [colour(_line(headers, widths, right, None).rstrip(), "1")]
    lines += [_line(row, widths, right, paint) for row in shown]
    return lines


def _narrow(widths: list[int], headers: Sequence[str], room: int, columns: frozenset[int]) -> None:
    """Take from the widest of these columns, one place at a time, until all fit or none can."""
    least = {column: max(display_width(headers[column]), COLUMN_CHARS_MIN) for column in columns}
    for _ in range(sum(widths) - room):
        wider = [column for column in columns if widths[column] > least[column]]
        if not wider:
            return
        widths[max(wider, key=widths.__getitem__)] -= 1


def _line(
    cells: Sequence[str], widths: Sequence[int], right: frozenset[int], paint: Paint | None
) -> str:
    parts = []
    for column, (text, width) in enumerate(zip(cells, widths, strict=True)):
        fitted = truncate(text, width)
        space = " " * (width - display_width(fitted))
        painted = fitted if paint is None else paint(column, fitted)
        last = column == len(cells) - 1
        parts.append(space + painted if column in right else painted + ("" if last else space))
    return INDENT.join(parts)


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    right: frozenset[int] = frozenset(),
    soft: frozenset[int] = frozenset(),
    paint: Paint | None = None,
) -> None:
    """Print a table as wide as the screen; past a limit a message counts the rest."""
    show_lines(
        table_lines(
            headers, rows[:ROWS_MAX], width=screen_width(), right=right, soft=soft, paint=paint
        )
    )
    if len(rows) > ROWS_MAX:
        say(f"... {len(rows) - ROWS_MAX:,} more; use --json for all of them")


def field_lines(
    pairs: Iterable[tuple[str, str | None]],
    *,
    width: int,
    paint: Callable[[str, str], str] | None = None,
) -> list[str]:
    """Names and values, one below the other; a long value continues below its start.

    `paint` colours the first line of a value, by its name, once it was made harmless.
    """
    listed = [(name, value) for name, value in pairs if value]
    column = max((len(name) for name, _ in listed), default=0)
    lines = []
    for name, value in listed:
        first, *more = wrapped(safe(str(value)), max(20, width - column - len(INDENT)))
        lines.append(f"{name:<{column}}{INDENT}{first if paint is None else paint(name, first)}")
        lines += [f"{'':<{column}}{INDENT}{line}".rstrip() for line in more]
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """A text in lines no wider than `width`, cut between words where there are any."""
    from textwrap import wrap

    if display_width(text) <= width and "\n" not in text:
        return [text]
    return [
        line
        for paragraph in text.splitlines()
        for line in (wrap(paragraph, width, break_on_hyphens=False) or [""])
    ] or [""]


def heading(text: str) -> None:
    """A line that names what follows."""
    print(f"\n{colour(text, '1')}")


def show_lines(lines: Iterable[str]) -> None:
    """Print lines that were made for the screen."""
    for line in lines:
        print(line)

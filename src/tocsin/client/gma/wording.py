"""What a peer said, in words that can stand in a line of a log or of an error."""

from __future__ import annotations

from typing import Final

CHARS_MAX: Final = 1_000


def one_line(text: str) -> str:
    """The text in one line; what a terminal would obey instead of showing is written out."""
    cut = text if len(text) <= CHARS_MAX else f"{text[:CHARS_MAX]}..."
    words = " ".join(cut.split())
    if words.isprintable():
        return words
    return "".join(each if each.isprintable() else _escaped(each) for each in words)


def error_words(error: str, detail: str | None) -> str:
    """An Error and its ErrorDetail, if there is one."""
    return one_line(f"{error}: {detail}" if detail else error)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

"""Markup: HTML and SVG in which every text is escaped. An `Html` is escaped already."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from tocsin.cli.render import safe

TEXT_CHARS_MAX = 2_000  # of one text on the page: a message may be megabytes long

_VOID = frozenset({"meta", "br"})


class Html(str):
    """A piece of the page. A plain `str` is a text, and is escaped where it becomes part of one."""

    __slots__ = ()


Child = Html | str | int | None


def text(value: object) -> Html:
    """Any value as text: escaped, shortened, and without what turns the direction of writing."""
    if isinstance(value, Html):
        return value
    shown = str(value)
    if len(shown) > TEXT_CHARS_MAX:
        shown = f"{shown[:TEXT_CHARS_MAX]}…"
    return Html(escape(safe(shown)))


def join(children: Iterable[Child], between: str = "") -> Html:
    """The pieces one after another; None is nothing."""
    return Html(between.join(text(child) for child in children if child is not None))


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Html:
    """An element. `class_` is class, `stroke_width` is stroke-width; None leaves one out."""
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{named}>")
    return Html(f"<{name}{named}>{join(children)}</{name}>")


def _attribute(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return text(value)

"""The query of a URL: known parameters, each once, each within its limits."""

from __future__ import annotations

import difflib
import re
from urllib.parse import parse_qsl

from tocsin.errors import BadRequest
from tocsin.event.filter import EVERYTHING, Filter
from tocsin.event.filter_text import parse_filter
from tocsin.event.wildcards import without_foreign_wildcards

PARAMETERS_MAX = 32
SEQ_MAX = 2**63 - 1  # what the log can number
_SHOWN_MAX = 60


class Query:
    """The parameters that were given, by name."""

    __slots__ = ("_given",)

    def __init__(self, given: dict[str, str]) -> None:
        self._given = given

    @classmethod
    def parse(cls, raw: bytes, known: tuple[str, ...]) -> Query:
        """Read a query; BadRequest if it names what is not known, or one thing twice."""
        try:
            pairs = parse_qsl(
                raw.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=PARAMETERS_MAX,
            )
        except ValueError as error:  # also what is no UTF-8, or no ASCII
            raise _refused(
                f"cannot be read: {_short(str(error))}", "Percent-encode UTF-8."
            ) from None
        given: dict[str, str] = {}
        for name, value in pairs:
            if name not in known:
                raise _refused(
                    f"has {_short(name)!r}, which is not a known parameter", _hint(name, known)
                )
            if name in given:
                raise _refused(f"has {name} twice", "Give it once.")
            given[name] = value
        return cls(given)

    def text(self, name: str) -> str | None:
        """The parameter as it was given; an empty one counts as none."""
        return self._given.get(name) or None

    def number(self, name: str, default: int, *, least: int = 0, most: int = SEQ_MAX) -> int:
        """A whole number; one outside of its limits is refused and not bent."""
        text = self.text(name)
        return default if text is None else whole_number(name, text, least=least, most=most)

    def seconds(self, name: str, default: float, *, most: float) -> float:
        """A time of at most so many seconds."""
        text = self.text(name)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or float(text) > most:
            raise _refused(
                f"has {name}={_short(text)}", f"Give seconds, from 0 to {most:g}, as in 2.5."
            )
        return float(text)

    def choice(self, name: str, default: str, choices: tuple[str, ...]) -> str:
        text = self.text(name) or default
        if text not in choices:
            raise _refused(f"has {name}={_short(text)}", f"Choose one of {', '.join(choices)}.")
        return text

    def filter(self) -> Filter:
        """What `filter=` asks for, in the filter language; without it, every event."""
        text = self.text("filter")
        return EVERYTHING if text is None else without_foreign_wildcards(parse_filter(text))


def whole_number(name: str, text: str, *, least: int = 0, most: int = SEQ_MAX) -> int:
    """The number that the text writes in decimal digits."""
    number = int(text) if re.fullmatch("[0-9]{1,19}", text) else -1
    if not least <= number <= most:
        raise _refused(
            f"has {name}={_short(text)}", f"Give a whole number, from {least} to {most}."
        )
    return number


def _hint(name: str, known: tuple[str, ...]) -> str:
    if not known:
        return "This address takes no parameters."
    near = difflib.get_close_matches(name[:_SHOWN_MAX], known, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are: {', '.join(known)}."


def _refused(problem: str, remedy: str) -> BadRequest:
    return BadRequest(f"the query {problem}", remedy=remedy)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "..."

"""Topics: where an event is filed, and the patterns that subscriptions name them by.

A topic is levels separated by single slashes, `weather/ohio/radar`. In a pattern a level may be `*`
(exactly one level) or `**` (any number of levels, also none). An event without a topic has zero
levels: only `**` fits it. Patterns can also be written in the dialects of WS-Topics and of NATS,
where the dialect is named; they are turned into the same few levels.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self, get_args

from tocsin.errors import BadTopic, BadTopicPattern
from tocsin.event.topic_levels import MANY, ONE, fits, includes, overlaps

Dialect = Literal["tocsin", "simple", "concrete", "full", "nats"]

TOPIC_BYTES_MAX = 1024  # a topic travels in an HTTP header, and those are short
TOPIC_LEVELS_MAX = 32
ALTERNATIVES_MAX = 64  # of one expression in the Full dialect
VALID_TOPICS_KEPT = 8_192  # at the longest topics, 8 MiB

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SHOWN_MAX = 80

_TOPIC_REMEDY = "Separate levels with single slashes, as in weather/ohio/radar."


@lru_cache(maxsize=VALID_TOPICS_KEPT)
def valid_topic(text: str) -> str:
    """The text itself if it is a topic, else BadTopic. Every published event comes by here."""
    problem = _problem_of(text, text.split("/"))
    if problem is None and "*" in text:
        problem = "has a wildcard, which only a subscription may use"
    if problem is not None:
        raise BadTopic(f"topic {_shown(text)} {problem}", remedy=_TOPIC_REMEDY)
    return text


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """Which topics: levels, of which any may be `*` or `**`."""

    levels: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, dialect: str = "tocsin") -> Self:
        """The one pattern that the text writes in the dialect, else BadTopicPattern."""
        alternatives = cls.parse_alternatives(text, dialect)
        if len(alternatives) > 1:
            raise _refused(text, "has alternatives where one pattern is wanted")
        return alternatives[0]

    @classmethod
    def parse_alternatives(cls, text: str, dialect: str = "tocsin") -> tuple[Self, ...]:
        """Every pattern that the text writes: several only in the Full dialect, between bars."""
        if dialect not in _READERS:
            raise BadTopicPattern(
                f"there is no topic dialect {_shown(dialect)}",
                remedy=f"Name one of these: {', '.join(get_args(Dialect))}, or regex in a filter.",
            )
        texts = text.split("|") if dialect == "full" else [text]
        if len(texts) > ALTERNATIVES_MAX:
            raise _refused(text, f"has more than {ALTERNATIVES_MAX} alternatives")
        try:
            return tuple(cls(_checked(each, _READERS[dialect](each))) for each in texts)
        except BadTopicPattern as error:
            remedy = _REMEDIES.get(dialect, error.remedy)
            raise BadTopicPattern(error.problem, remedy=remedy) from None

    def matches(self, topic: str) -> bool:
        """True if the topic fits; the empty text is the topic of an event that has none."""
        return fits(self.levels, tuple(topic.split("/")) if topic else ())

    def covers(self, other: TopicPattern) -> bool:
        """True only if every topic that fits the other pattern fits this one."""
        return self.levels == other.levels or includes(self.levels, other.levels)

    def intersects(self, other: TopicPattern) -> bool:
        """True if and only if some topic fits both."""
        return overlaps(self.levels, other.levels)

    def __str__(self) -> str:
        return "/".join(self.levels)


def _tocsin_levels(text: str) -> list[str]:
    return text.split("/")


def _simple_levels(text: str) -> list[str]:
    """WS-Topics Simple: one root topic by its name."""
    if "/" in text:
        raise _refused(text, "has a slash: the Simple dialect names one root topic")
    return _concrete_levels(text)


def _concrete_levels(text: str) -> list[str]:
    """WS-Topics Concrete: one topic by its path."""
    if "*" in text:
        raise _refused(text, "has a wildcard, which this dialect does not know")
    return text.split("/")


def _full_levels(text: str) -> list[str]:
    """One alternative of WS-Topics Full: `//` skips any number of levels, `.` stays where it is."""
    text = text.strip()
    levels: list[str] = []
    for step in re.findall(r"//|/|[^/]+", text):
        if step == "//":
            levels.append(MANY)
        elif step == MANY:
            raise _refused(text, "has **, which the Full dialect writes //")
        elif step not in ("/", "."):
            levels.append(step)
    if re.search(r"///|[^/]/$|//$|^/(?!/)", text):
        raise _refused(text, "has an empty level")
    if re.match(r"(//)?\.(/|$)", text):
        raise _refused(text, "begins with a dot: write //* for every topic")
    return levels


def _nats_levels(text: str) -> list[str]:
    """NATS: dots between levels (or slashes, if there are any), a last `>` is one level or more."""
    levels = text.split("/" if "/" in text else ".")
    if MANY in levels:
        raise _refused(text, "has **, which NATS writes >")
    if ">" in levels[:-1]:
        raise _refused(text, "has a > that is not the last level")
    return [*levels[:-1], ONE, MANY] if levels[-1] == ">" else levels


_READERS: dict[str, Callable[[str], list[str]]] = {
    "tocsin": _tocsin_levels,
    "simple": _simple_levels,
    "concrete": _concrete_levels,
    "full": _full_levels,
    "nats": _nats_levels,
}


# How to write a pattern, in dialects that write it otherwise than we do.
_REMEDIES: dict[str, str] = {
    "simple": "Name one root topic, as in weather.",
    "concrete": "Name one topic, level by level, as in weather/alps/radar.",
    "full": "Write levels, or * for one level and // for any number, as in weather/*//radar.",
}


def _checked(text: str, levels: list[str]) -> tuple[str, ...]:
    problem = _problem_of(text, levels)
    if problem is None and any("*" in level and level not in (ONE, MANY) for level in levels):
        problem = "has a * inside a level: a wildcard stands for whole levels"
    if problem is not None:
        raise _refused(text, problem)
    if ">" in levels:
        raise BadTopicPattern(
            f"topic pattern {_shown(text)} has a >, the wildcard of NATS",
            remedy=f"Write {'/'.join(MANY if level == '>' else level for level in levels)} (* is "
            "one level, ** any number of levels), or name the dialect in a filter: "
            "topic nats:'a.>'.",
        )
    return tuple(levels)


def _problem_of(text: str, levels: list[str]) -> str | None:
    """What keeps the text from being a topic or a pattern of one, if anything does."""
    if not text:
        return "is empty"
    if len(text) > TOPIC_BYTES_MAX:
        return f"is longer than {TOPIC_BYTES_MAX} bytes"
    if _UNPRINTABLE.search(text):
        return "has a control character"
    if len(text.encode()) > TOPIC_BYTES_MAX:
        return f"is longer than {TOPIC_BYTES_MAX} bytes"
    if "" in levels:
        return "has an empty level"
    if len(levels) > TOPIC_LEVELS_MAX:
        return f"has more than {TOPIC_LEVELS_MAX} levels"
    return None


def _refused(text: str, problem: str) -> BadTopicPattern:
    return BadTopicPattern(
        f"topic pattern {_shown(text)} {problem}",
        remedy="Write levels, or * for one level and ** for any number, as in weather/*/radar.",
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 3] + "...")

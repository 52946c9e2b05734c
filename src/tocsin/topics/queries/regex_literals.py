"""The texts that must occur in whatever a regular expression finds, read from the expression.

Only what is certain is taken: at anything unusual (see `_UNREAD`) the reader gives up, which makes
the search slower and never wrong. RE2 has checked the expression before.
"""

from __future__ import annotations

import re
from typing import Final

from tocsin.topics.queries.requirement import NOTHING, Requirement, Text, all_of, any_of

GROUPS_DEPTH_MAX: Final = 16  # inside each other; of deeper ones nothing is read

_REPEAT = re.compile(r"[*+?]|\{(\d+)(?:,\d*)?\}")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|[imsU-]*:))?")
_FLAGS = re.compile(r"\(\?[imsU-]+\)")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
# Escapes that stand for a set of characters or a place, and end a text.
_SETS: Final = frozenset("dDsSwWbBAz")
_UNREAD: Final = re.compile(r"\\[^\W_]")  # octal, hexadecimal, Unicode classes, \Q, \n and so on


class _GiveUp(Exception):
    """Something that is not read here."""


def required_texts(expression: str) -> Requirement:
    """What must occur, without regard to case, in one line that the expression is found in."""
    try:
        wanted, end = _Reader(expression).alternatives(0)
    except _GiveUp:
        return NOTHING
    return wanted if end == len(expression) else NOTHING


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0

    def alternatives(self, at: int) -> tuple[Requirement, int]:
        """Up to the closing parenthesis or the end."""
        branches: list[Requirement] = []
        while True:
            branch, at = self._branch(at)
            branches.append(branch)
            if not self._text.startswith("|", at):
                return any_of(branches), at
            at += 1

    def _branch(self, at: int) -> tuple[Requirement, int]:
        parts: list[Requirement] = []
        run = ""
        while at < len(self._text) and self._text[at] not in "|)":
            char, group, at = self._piece(at)
            least, at = self._repeat(at)
            if char and least == 1:
                run += char
                continue
            # Repeated or not a single character: what comes after does not follow directly.
            if char and least:
                run += char
            parts.append(Text(run) if run else NOTHING)
            run = ""
            if group != NOTHING and least:
                parts.append(group)
        parts.append(Text(run) if run else NOTHING)
        return all_of(parts), at

    def _piece(self, at: int) -> tuple[str, Requirement, int]:
        """A character, or what a group requires, and where it ends."""
        text = self._text
        char = text[at]
        if char == "\\":
            return self._escape(at)
        if char == "[":
            found = _CLASS.match(text, at)
            if found is None:
                raise _GiveUp
            return "", NOTHING, found.end()
        if char == "(":
            return self._group(at)
        if char in ".^$":
            return "", NOTHING, at + 1
        if char in "*+?":
            raise _GiveUp  # RE2 has refused it, or reads it in a way of its own
        return char, NOTHING, at + 1

    def _escape(self, at: int) -> tuple[str, Requirement, int]:
        escaped = self._text[at + 1 : at + 2]
        if escaped in _SETS and escaped:
            return "", NOTHING, at + 2
        if not escaped or _UNREAD.match(self._text, at):
            raise _GiveUp
        return escaped, NOTHING, at + 2

    def _group(self, at: int) -> tuple[str, Requirement, int]:
        flags = _FLAGS.match(self._text, at)
        if flags:
            return "", NOTHING, flags.end()
        opened = _GROUP.match(self._text, at)
        if opened is None or (self._text.startswith("(?", at) and opened.end() == at + 1):
            raise _GiveUp
        self._depth += 1
        if self._depth > GROUPS_DEPTH_MAX:
            raise _GiveUp
        wanted, end = self.alternatives(opened.end())
        self._depth -= 1
        if not self._text.startswith(")", end):
            raise _GiveUp
        return "", wanted, end + 1

    def _repeat(self, at: int) -> tuple[int, int]:
        """How often the piece before occurs at least (1 is also: exactly once), and what follows.

        More than once counts as 2: then what comes after does not follow the first.
        """
        found = _REPEAT.match(self._text, at)
        if found is None:
            return 1, at
        sign = found[0]
        least = int(found[1]) if found[1] is not None else int(sign == "+")
        at = found.end()
        if self._text.startswith("?", at):  # reluctant
            at += 1
        if _REPEAT.match(self._text, at):
            raise _GiveUp
        return (2 if least else 0), at

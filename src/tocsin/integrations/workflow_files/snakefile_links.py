"""Which rule makes what another one reads, by the names of files with wildcards in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tocsin.integrations.workflow_files.snakefile_lines import Word, literal, spelled
from tocsin.monitor.evolution.definition import Source

COMPARISONS_MAX = 1_000_000  # of patterns; past this only equal names are linked

# In a pattern: any text but none at all. In a name: a text that is not known.
_ANY = "\0"
_WILDCARD = re.compile(r"\{[^{}]*\}")
_QUOTES = re.compile(r"^[a-zA-Z]*('''|\"\"\"|'|\")")


@dataclass(frozen=True, slots=True)
class RuleOutput:
    """One output of a rule: its port, its expression and the file names in it."""

    source: Source
    expression: str
    patterns: tuple[str, ...]


def patterns_of(words: Iterable[Word]) -> tuple[str, ...]:
    """The texts in an expression, each wildcard as one sign."""
    found: dict[str, None] = {}
    for word in words:
        if not word.is_text:
            continue
        text = literal(word)
        if text is None:  # computed: what is in its braces is as unknown as a wildcard
            opening = _QUOTES.match(word.text)
            text = word.text[opening.end() : -len(opening.group(1))] if opening else ""
        text = _WILDCARD.sub(_ANY, text.replace("{{", "{").replace("}}", "}"))
        if text.strip(_ANY + "."):
            found[text] = None
    return tuple(found)


def named_rules(words: list[Word]) -> list[str]:
    """The rules that an expression names, as in rules.sort.output."""
    return [
        third.text
        for first, second, third in zip(words, words[1:], words[2:], strict=False)
        if first.text in ("rules", "checkpoints") and second.text == "."
    ]


class Links:
    """Finds the makers of files among all outputs of a workflow."""

    def __init__(self, made: Iterable[RuleOutput]) -> None:
        # Apart, as the variable `parts` is not the file "parts".
        self._by_expression: dict[str, dict[Source, None]] = {}
        self._by_text: dict[str, dict[Source, None]] = {}
        self._globs: list[tuple[str, Source]] = []
        self._comparisons = 0
        for each in made:
            self._by_expression.setdefault(each.expression, {})[each.source] = None
            for text in each.patterns:
                self._by_text.setdefault(text, {})[each.source] = None
            self._globs += [(text, each.source) for text in each.patterns if _ANY in text]

    def makers(self, words: list[Word], reader: str, known: Mapping[str, object]) -> list[Source]:
        """Who makes what the expression names; a rule does not read from itself."""
        found: dict[Source, None] = {
            (name, ""): None for name in named_rules(words) if name in known
        }
        found.update(self._by_expression.get(spelled(words), {}))
        for text in patterns_of(words):
            equal = self._by_text.get(text)
            found.update(equal if equal else dict.fromkeys(self._matching(text)))
        return [source for source in found if source[0] != reader]

    def _matching(self, text: str) -> list[Source]:
        self._comparisons += len(self._globs)
        if self._comparisons > COMPARISONS_MAX:
            return []
        return [source for pattern, source in self._globs if fits(pattern, text)]


def fits(pattern: str, text: str) -> bool:
    """True if the wildcards of the pattern can be filled to give the text; in linear steps.

    No regular expression, which a hostile pattern of many wildcards would keep busy for ever.
    """
    first, *rest = pattern.split(_ANY)
    if not rest:
        return pattern == text
    last = rest.pop()
    if not text.startswith(first) or not text.endswith(last):
        return False
    place, end = len(first), len(text) - len(last)
    for piece in rest:
        found = text.find(piece, place + 1, end)  # a wildcard is at least one character
        if found < 0:
            return False
        place = found + len(piece)
    return place < end

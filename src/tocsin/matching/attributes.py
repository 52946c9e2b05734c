"""Attributes: what the stored filters ask about, by number, and what one event answers.

An attribute is there while a stored row uses it; its number is then free for another, so the table
is as large as what is stored now, not as what ever was.
"""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.event.event import CONTEXT_NAMES, Value
from tocsin.event.facets import TEXT, facets
from tocsin.event.filter_eval import canonical_text
from tocsin.matching.conjunction import (
    BEGINS,
    ENDS,
    EQUAL,
    EXISTS,
    FORM,
    TOPIC,
    AttributeKey,
)


class Attribute:
    """One thing that rows ask about, and the clusters that are reached through it."""

    __slots__ = ("cluster", "equals", "is_presence", "is_topic", "key", "number", "pairs", "uses")

    def __init__(self, number: int, key: AttributeKey) -> None:
        self.number = number
        self.key = key
        self.is_topic = key[1] == TOPIC
        self.is_presence = self.is_topic or key[1][0] in (TEXT, FORM)  # there, or not: no value
        self.uses = 0
        self.cluster: int | None = None  # of rows reached because the attribute is there
        self.equals: dict[float, int] | None = None  # of rows reached by its value
        self.pairs: dict[int, int] | None = None  # of rows reached by it and a later attribute


Answers = list[tuple[Attribute, float]]


class _Name:
    """What is asked about one name."""

    __slots__ = ("lengths", "ranges", "texts", "uses")

    def __init__(self) -> None:
        self.uses = 0
        self.ranges: dict[str, Attribute] = {}  # by kind
        self.texts: dict[str, dict[str, Attribute]] = {}  # by kind, by text
        self.lengths: dict[str, dict[int, int]] = {}  # by kind, how many texts are so long


class AttributeTable:
    """The attributes in use. Number 0 is none of them: it fills up rows."""

    def __init__(self) -> None:
        self.by_number: list[Attribute | None] = [None]
        self.names_beyond_context = 0
        self._by_key: dict[AttributeKey, Attribute] = {}
        self._names: dict[str, _Name] = {}
        self._free: list[int] = []
        self._beyond_facets = 0  # how many attributes ask for what is no facet

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def names(self) -> Mapping[str, object]:
        """The names that are asked about."""
        return self._names

    def acquire(self, key: AttributeKey) -> Attribute:
        """The attribute of this key, with one more use."""
        attribute = self._by_key.get(key)
        if attribute is None:
            attribute = self._new(key)
        attribute.uses += 1
        return attribute

    def get(self, key: AttributeKey) -> Attribute | None:
        """The attribute of this key, if a row uses it."""
        return self._by_key.get(key)

    def release(self, attribute: Attribute) -> bool:
        """Give one use back. True if it was the last one."""
        attribute.uses -= 1
        if attribute.uses:
            return False
        key = attribute.key
        del self._by_key[key]
        self.by_number[attribute.number] = None
        self._free.append(attribute.number)
        if not attribute.is_topic:
            self._unname(key)
        return True

    def read(self, values: Mapping[str, Value]) -> Answers:
        """What these values answer to the attributes in use."""
        names = self._names
        asked = {name: values[name] for name in names.keys() & values.keys()}
        answers: Answers = []
        for (name, kind), facet in facets(asked).items():
            about = names[name]
            if isinstance(facet, str):
                _read_text(about, kind, facet, answers)
            elif kind in about.ranges:
                answers.append((about.ranges[kind], float(facet)))
        if not self._beyond_facets:
            return answers
        for name, value in asked.items():
            about = names[name]
            if EXISTS in about.ranges:
                answers.append((about.ranges[EXISTS], 1.0))
            if _asks_form(about):
                form = canonical_text(value)
                if form is not None:
                    _read_text(about, FORM, form, answers)
        return answers

    def _new(self, key: AttributeKey) -> Attribute:
        if self._free:
            number = self._free.pop()
        else:
            number = len(self.by_number)
            self.by_number.append(None)
        attribute = self._by_key[key] = self.by_number[number] = Attribute(number, key)
        if not attribute.is_topic:
            self._name(key, attribute)
        return attribute

    def _name(self, key: AttributeKey, attribute: Attribute) -> None:
        name, kind, text = key
        about = self._names.get(name)
        if about is None:
            about = self._names[name] = _Name()
            self.names_beyond_context += name not in CONTEXT_NAMES
        about.uses += 1
        self._beyond_facets += kind[0] in (EXISTS, FORM)
        if kind[0] not in (TEXT, FORM):
            about.ranges[kind] = attribute
            return
        about.texts.setdefault(kind, {})[text] = attribute
        lengths = about.lengths.setdefault(kind, {})
        lengths[len(text)] = lengths.get(len(text), 0) + 1

    def _unname(self, key: AttributeKey) -> None:
        name, kind, text = key
        about = self._names[name]
        about.uses -= 1
        self._beyond_facets -= kind[0] in (EXISTS, FORM)
        if not about.uses:
            del self._names[name]
            self.names_beyond_context -= name not in CONTEXT_NAMES
        elif kind[0] not in (TEXT, FORM):
            del about.ranges[kind]
        else:
            _forget_text(about, kind, text)


def _forget_text(about: _Name, kind: str, text: str) -> None:
    texts, lengths = about.texts[kind], about.lengths[kind]
    del texts[text]
    lengths[len(text)] -= 1
    if not lengths[len(text)]:
        del lengths[len(text)]
    if not texts:
        del about.texts[kind], about.lengths[kind]


def _asks_form(about: _Name) -> bool:
    texts = about.texts
    return FORM + EQUAL in texts or FORM + BEGINS in texts or FORM + ENDS in texts


def _read_text(about: _Name, kind: str, text: str, answers: Answers) -> None:
    texts = about.texts
    equal = texts.get(kind + EQUAL)
    if equal is not None and text in equal:
        answers.append((equal[text], 1.0))
    begins = texts.get(kind + BEGINS)
    if begins is not None:
        for length in about.lengths[kind + BEGINS]:
            # A text shorter than that is found under its own length, and only there.
            if length <= len(text) and text[:length] in begins:
                answers.append((begins[text[:length]], 1.0))
    ends = texts.get(kind + ENDS)
    if ends is not None:
        for length in about.lengths[kind + ENDS]:
            if length <= len(text) and text[len(text) - length :] in ends:
                answers.append((ends[text[len(text) - length :]], 1.0))

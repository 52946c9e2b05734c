"""Facts: what the archive keeps of a message beside its bytes, typed, one member a concept.

They are made from the table of rules and from nothing else, and read by the same functions that
the live fold uses: an engine that folds the archive has no text left to interpret. A concept of a
site is kept as the built-in one that it is nearest to, which is what the rules would do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from tocsin.event.instant import NS_PER_US, iso8601_ns
from tocsin.monitor.fold import ConceptRules, MessageTimes, RunMessage, is_nameless
from tocsin.monitor.rules import FIELD_RULES, Kind
from tocsin.monitor.values import JSON_CHARS_MAX, READERS, is_cut
from tocsin.ontology import Vocabulary, built_in

MOMENT: Final = pa.timestamp("us", tz="UTC")
TYPES: Final[Mapping[str, pa.DataType]] = {
    "moment": MOMENT,
    "text": pa.string(),
    "tail": pa.string(),
    "number": pa.float64(),
    "whole": pa.int64(),
    "list": pa.list_(pa.string()),
    "items": pa.list_(pa.string()),
}
# What no rule asks for, and who looks at the evolution of a workflow does.
BESIDE: Final = ("PreviousVersion", "ChangeDetail")
# Texts that are times: kept as such as well, read as the monitor reads them.
TIMES: Final = ("StartTime", "EndTime")
OWN: Final[Mapping[str, pa.DataType]] = {
    "over": pa.list_(pa.string()),  # fields of which more was said than is kept
    "ahead_us": pa.int64(),  # by so much a time was ahead of when it was received
    "undated": pa.bool_(),  # an event's value was no time
    "nameless": pa.bool_(),  # it happened to an activity, and nobody said to which
    "evolution": pa.string(),  # which event of the workflow's evolution it is
}


@dataclass(frozen=True, slots=True)
class Member:
    """One member of `facts`: of which concept, and how its text is read."""

    name: str
    concept: str
    kind: Kind | str


def member_name(concept: str, kind: str, *, first: bool = True) -> str:
    return concept if first else f"{concept}_{kind}"


def _all_members() -> tuple[Member, ...]:
    reading = ConceptRules(built_in())
    concepts = sorted(set(reading.of["run"]) | set(reading.of["activity"]))
    found: list[Member] = []
    for concept in concepts:
        if concept in reading.events:
            found.append(Member(concept, concept, "moment"))
            continue
        kinds = dict.fromkeys(
            rule.kind for entity in reading.of.values() for rule in entity.get(concept, ((), ()))[1]
        )
        for number, kind in enumerate(kinds):
            found.append(Member(member_name(concept, kind, first=not number), concept, kind))
    found += (Member(concept, concept, "text") for concept in BESIDE)
    found += (Member(f"{concept}_moment", concept, "moment") for concept in TIMES)
    return tuple(found)


MEMBERS: Final = _all_members()
FACTS: Final = pa.struct(
    [
        *(pa.field(each.name, TYPES[each.kind]) for each in MEMBERS),
        *(pa.field(name, kind) for name, kind in OWN.items()),
    ]
)
assert not {rule.kind for rule in FIELD_RULES} - {*TYPES, "time", "order", "received"}

_OF_CONCEPT: Final[dict[str, tuple[Member, ...]]] = {
    concept: tuple(each for each in MEMBERS if each.concept == concept)
    for concept in dict.fromkeys(each.concept for each in MEMBERS)
}


@dataclass(frozen=True, slots=True)
class _Step:
    """What is done with a pair of one concept."""

    plain: tuple[tuple[str, Callable[[str], Any]], ...]  # members, and how the text is read
    moments: tuple[str, ...]  # members that are the event's time
    borrowed: tuple[tuple[str, tuple[Member, ...]], ...]  # as which concepts it is kept
    is_evolution: bool
    is_more: bool = field(init=False)

    def __post_init__(self) -> None:
        is_more = bool(self.moments or self.borrowed or self.is_evolution)
        object.__setattr__(self, "is_more", is_more)


class FactsReader:
    """Reads messages into members, for one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.reading = ConceptRules(vocabulary)
        self._evolution = vocabulary.below("EvolutionEvent")
        self._steps: dict[str, _Step] = {}  # one for each concept of the vocabulary at most

    def _nearest_kept(self, concept: str) -> tuple[str, ...]:
        """The built-in concepts as which this one is kept: itself, or those it is nearest to."""
        if concept in _OF_CONCEPT:
            return (concept,)
        concepts = self.reading.vocabulary.concepts
        seen, level = {concept}, [concept]
        while level:
            kept = sorted(_OF_CONCEPT.keys() & set(level))
            if kept:
                return tuple(kept) if concept in self.reading.events else tuple(kept[:1])
            level = [
                parent
                for each in level
                for parent in concepts[each].parents
                if parent not in seen and parent in concepts
            ]
            seen.update(level)
        return ()

    def _step(self, concept: str) -> _Step:
        """What is done with a pair of this concept, worked out once."""
        plain: list[tuple[str, Callable[[str], Any]]] = []
        moments: list[str] = []
        borrowed: list[tuple[str, tuple[Member, ...]]] = []
        for kept in self._nearest_kept(concept):
            if kept != concept:
                borrowed.append((kept, _OF_CONCEPT[kept]))
                continue
            for member in _OF_CONCEPT[kept]:
                if member.kind != "moment":
                    plain.append((member.name, READERS[member.kind]))
                elif concept in TIMES:
                    plain.append((member.name, _moment_us))
                else:
                    moments.append(member.name)
        is_evolution = concept in self._evolution
        step = _Step(tuple(plain), tuple(moments), tuple(borrowed), is_evolution)
        self._steps[concept] = step
        return step

    def read(self, message: RunMessage) -> tuple[dict[str, Any], int]:
        """What the message says, by member; and when it happened, in microseconds."""
        stamps = MessageTimes(message, self.reading)
        found: dict[str, Any] = {}
        pairs = message.pairs
        steps = self._steps
        for concept, text in pairs.items():
            step = steps.get(concept) or self._step(concept)
            for name, read in step.plain:
                value = read(text)
                if value is not None:
                    found[name] = value
            if step.is_more:
                _add_more(found, step, concept, text, stamps, pairs)
            if len(text) > JSON_CHARS_MAX and is_cut(text):
                self._is_over(concept, text, found)
        if stamps.ahead_ns:
            found["ahead_us"] = stamps.ahead_ns // NS_PER_US
        if stamps.undated:
            found["undated"] = True
        if not pairs.get("ActivityId") and is_nameless(pairs, self.reading):
            found["nameless"] = True
        return found, stamps.order_ns // NS_PER_US

    def _is_over(self, concept: str, text: str, found: dict[str, Any]) -> None:
        fields = {
            rule.field
            for entity in self.reading.of.values()
            for rule in entity.get(concept, ((), ()))[1]
            if rule.kind == "text"
        }
        if fields:
            found["over"] = sorted({*found.get("over", ()), *fields})


def _add_more(
    found: dict[str, Any],
    step: _Step,
    concept: str,
    text: str,
    stamps: MessageTimes,
    pairs: Mapping[str, str],
) -> None:
    """Add what is no matter of the text alone: when, as what else, and of which evolution."""
    moment_ns = stamps.of.get(concept)
    if moment_ns is not None:
        for name in step.moments:
            found[name] = moment_ns // NS_PER_US
    for kept, members in step.borrowed:
        if kept in pairs:
            continue  # it says so itself
        for member in members:
            value = _value(member, text, moment_ns)
            if value is not None:
                found[member.name] = value
    if step.is_evolution:
        found.setdefault("evolution", concept)


def _moment_us(text: str) -> int | None:
    moment_ns = iso8601_ns(text)
    return None if moment_ns is None else moment_ns // NS_PER_US


def _value(member: Member, text: str, moment_ns: int | None) -> Any:
    if member.kind != "moment":
        return READERS[member.kind](text)
    if member.concept in TIMES:
        return _moment_us(text)
    return None if moment_ns is None else moment_ns // NS_PER_US

"""Members: what the archive keeps of a message beside its bytes, typed, one member a concept.

They are made from the table of rules and from nothing else, and read by the same functions that
the live fold uses: an engine that folds the archive has no text left to interpret. A concept of a
site is kept as the built-in one that it is nearest to, which is what the rules would do with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from tocsin.monitor.fold import Heard, Reading, Stamps, is_nameless
from tocsin.monitor.rules import FIELD_RULES, Kind
from tocsin.monitor.times import NS_PER_US, read_ns
from tocsin.monitor.values import READERS, is_cut
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
    """One member of `told`: of which concept, and how its text is read."""

    name: str
    concept: str
    kind: Kind | str


def member_name(concept: str, kind: str, *, first: bool = True) -> str:
    return concept if first else f"{concept}_{kind}"


def _all_members() -> tuple[Member, ...]:
    reading = Reading(built_in())
    concepts = sorted(set(reading.rules["run"]) | set(reading.rules["activity"]))
    found: list[Member] = []
    for concept in concepts:
        if concept in reading.events:
            found.append(Member(concept, concept, "moment"))
            continue
        kinds = dict.fromkeys(
            rule.kind
            for entity in reading.rules.values()
            for rule in entity.get(concept, ((), ()))[1]
        )
        for number, kind in enumerate(kinds):
            found.append(Member(member_name(concept, kind, first=not number), concept, kind))
    found += (Member(concept, concept, "text") for concept in BESIDE)
    found += (Member(f"{concept}_moment", concept, "moment") for concept in TIMES)
    return tuple(found)


MEMBERS: Final = _all_members()
TOLD: Final = pa.struct(
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


class Teller:
    """Reads messages into members, for one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.reading = Reading(vocabulary)
        self._evolution = vocabulary.below("EvolutionEvent")
        self._known_as = lru_cache(maxsize=4_096)(self._nearest_kept)

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

    def told(self, heard: Heard) -> tuple[dict[str, Any], int]:
        """What the message says, by member; and when it happened, in microseconds."""
        stamps = Stamps(heard, self.reading)
        found: dict[str, Any] = {}
        pairs = heard.pairs
        for concept, text in pairs.items():
            for kept in self._known_as(concept):
                if kept != concept and kept in pairs:
                    continue  # it says so itself
                for member in _OF_CONCEPT[kept]:
                    value = _value(member, text, stamps.of.get(concept))
                    if value is not None:
                        found[member.name] = value
            if concept in self._evolution:
                found.setdefault("evolution", concept)
            if is_cut(text):
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
            for entity in self.reading.rules.values()
            for rule in entity.get(concept, ((), ()))[1]
            if rule.kind == "text"
        }
        if fields:
            found["over"] = sorted({*found.get("over", ()), *fields})


def _value(member: Member, text: str, moment_ns: int | None) -> Any:
    if member.kind == "moment":
        moment_ns = read_ns(text) if member.concept in TIMES else moment_ns
        return None if moment_ns is None else moment_ns // NS_PER_US
    return READERS[member.kind](text)

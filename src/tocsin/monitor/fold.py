"""Fold: what one message says of a run and its activities, and how two such rows become one.

A row maps a field to a cell. What a cell is follows from how its field merges: a number for `min`
and `max`; [time, seq, value] for `latest`; [phase, time, seq, state] for `state`; a sorted list of
texts for `union`. Cells are lists and never tuples, so that a row that was on disk equals one that
was not. `merge` is commutative, associative and idempotent: rows are the sum of their messages,
in whatever order those came and however often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tocsin.event.instant import NS_PER_S, iso8601_ns
from tocsin.monitor.rules import (
    ANY,
    ENDING,
    FIELD_RULES,
    MERGES,
    STATE_RULES,
    FieldRule,
    Kind,
    StateRule,
)
from tocsin.monitor.values import (
    NAME_CHARS_MAX,
    READERS,
    WHOLE_MAX,
    bounded_union,
    is_cut,
    numbers_by_name,
    objects,
    whole,
)
from tocsin.ontology import Vocabulary

Row = dict[str, Any]
_Rules = tuple[tuple[StateRule, ...], tuple[FieldRule, ...]]

# A clock may be ahead of ours by so much and is still believed. Machines with NTP differ by far
# less; a wrong zone differs by at least half an hour.
AHEAD_NS_MAX: Final = 300 * NS_PER_S
PLAN_TASKS_MAX: Final = 100_000  # in one message
ATTEMPT_MAX: Final = 1_000_000
_PLANS: Final = frozenset({"ActivityPlan", "PlannedActivities", "PlannedCounts"})


@dataclass(frozen=True, slots=True)
class RunMessage:
    """A message about a run: its pairs, its place in the log, and when it was received.

    `derived`: the monitor published it. It is kept with the events of its run and changes no state.
    `topic` is that of its event: who may read all events of a run's topics may read the run.
    """

    pairs: Mapping[str, str]
    seq: int
    received_ns: int
    time: str | None = None
    derived: bool = False
    topic: str = ""


@dataclass(slots=True)
class ParsedMessage:
    """What a message says of its run, and of activities by (id, attempt)."""

    run: str
    run_row: Row
    activities: dict[tuple[str, int], Row] = field(default_factory=dict)
    order_ns: int = 0
    """When it happened, as far as that can be believed."""


class ConceptRules:
    """The rules of `rules.py` by concept, for one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.activity_events = vocabulary.below("ActivityEvent")
        self.events = vocabulary.below("Event")
        self.of: dict[str, dict[str, _Rules]] = {
            entity: self._rules_of(entity) for entity in ("run", "activity")
        }
        self.moves = frozenset(
            concept
            for rules in self.of.values()
            for concept, (states, _) in rules.items()
            if states
        )

    def _rules_of(self, entity: str) -> dict[str, _Rules]:
        """What each concept does to a run, or to an activity."""
        states = {rule.concept: rule for rule in STATE_RULES if rule.entity == entity}
        fields: dict[str, list[FieldRule]] = {}
        for rule in FIELD_RULES:
            if rule.entity == entity and rule.concept != ANY:
                fields.setdefault(rule.concept, []).append(rule)
        found: dict[str, _Rules] = {}
        for concept in self.vocabulary.concepts:
            moves = [states[each] for each in _nearest(concept, states.keys(), self.vocabulary)]
            sets = self._field_rules(concept, fields)
            if moves or sets:
                found[concept] = (tuple(moves), tuple(sets))
        return found

    def _field_rules(self, concept: str, rules: Mapping[str, list[FieldRule]]) -> list[FieldRule]:
        """An event sets the fields of all that it is; a property only those of what it is most."""
        if concept in self.events:
            names: Iterable[str] = sorted(self.vocabulary.above(concept) & rules.keys())
        else:
            names = _nearest(concept, rules.keys(), self.vocabulary)[:1]
        return [rule for name in names for rule in rules[name]]


def _nearest(concept: str, ruled: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """The concepts with rules that are fewest steps above this one."""
    ruled = set(ruled)
    seen, level = {concept}, [concept]
    while level:
        found = sorted(ruled.intersection(level))
        if found:
            return found
        level = [
            parent
            for each in level
            for parent in vocabulary.concepts[each].parents
            if parent not in seen and parent in vocabulary.concepts
        ]
        seen.update(level)
    return []


def parse_message(message: RunMessage, rules: ConceptRules) -> ParsedMessage | None:
    """What the message says of its run; None if it does not say of which."""
    pairs = message.pairs
    run = pairs.get("RunId", "")
    if not run or len(run) > NAME_CHARS_MAX:
        return None
    times = MessageTimes(message, rules)
    activity = pairs.get("ActivityId", "")[:NAME_CHARS_MAX]
    found = ParsedMessage(run, {}, order_ns=times.order_ns)
    _fill(found.run_row, "run", times, rules, alone=not activity)
    if activity:
        row: Row = {}
        _fill(row, "activity", times, rules, alone=False)
        found.activities[activity, attempt_number(pairs.get("Attempt"))] = row
    elif is_nameless(pairs, rules):
        found.run_row["nameless_at"] = message.seq
    if times.ahead_ns:
        target = found.run_row if not activity else row
        target["ahead"] = times.ahead_ns
        target["ahead_at"] = message.seq
    if times.undated:
        found.run_row["undated_at"] = message.seq
    if "ActivityPlan" in pairs:
        _add_plan(found, pairs["ActivityPlan"], times)
    return found


def is_nameless(pairs: Mapping[str, str], rules: ConceptRules) -> bool:
    """True if something happened to an activity and nobody says to which; a plan is of many."""
    happened = rules.activity_events.intersection(pairs)
    return bool(happened) and (happened != {"ActivityPlanned"} or _PLANS.isdisjoint(pairs))


class MessageTimes:
    """The times of one message: of each of its events, and the one that orders it."""

    __slots__ = ("ahead_ns", "message", "of", "order_ns", "undated")

    def __init__(self, message: RunMessage, rules: ConceptRules) -> None:
        self.message = message
        self.of: dict[str, int] = {}
        self.undated = False
        base_ns = iso8601_ns(message.time)
        waiting: list[str] = []
        for concept, value in message.pairs.items():
            if concept not in rules.events:
                continue
            moment_ns = iso8601_ns(value)
            if moment_ns is None:
                waiting.append(concept)
            else:
                self.of[concept] = moment_ns
        if base_ns is None:
            base_ns = max(self.of.values(), default=None)
        latest_ns = max(self.of.values(), default=base_ns or 0)
        received_ns = message.received_ns
        ahead_ns = max(latest_ns, base_ns or 0) - received_ns
        self.ahead_ns = ahead_ns if ahead_ns > AHEAD_NS_MAX else 0
        if base_ns is None:
            base_ns = received_ns
        for concept in waiting:
            self.of[concept] = base_ns
            self.undated |= concept in rules.moves and bool(message.pairs[concept])
        self.order_ns = believed_ns(base_ns, received_ns)

    def order_of(self, concept: str) -> int:
        moment_ns = self.of.get(concept)
        return (
            self.order_ns if moment_ns is None else believed_ns(moment_ns, self.message.received_ns)
        )


def believed_ns(moment_ns: int, received_ns: int) -> int:
    """When something happened: what its source says, unless that is in the future."""
    return received_ns if moment_ns - received_ns > AHEAD_NS_MAX else moment_ns


def _fill(row: Row, entity: str, times: MessageTimes, rules: ConceptRules, *, alone: bool) -> None:
    message = times.message
    seq = message.seq
    row["last_event"] = times.order_ns
    row["last_received"] = message.received_ns
    if entity == "run":
        row["first_received"] = message.received_ns
    for concept, text in message.pairs.items():
        found = rules.of[entity].get(concept)
        if found is None:
            continue
        for state in found[0]:
            put(row, "state", [state.phase, times.order_of(concept), seq, state.state])
            if state.phase > ENDING:
                put(row, "ends", [state.state])
        for rule in found[1]:
            if rule.alone and not alone:
                continue
            value = _value(rule.kind, text, concept, times)
            if value is not None:
                latest = rule.merge == "latest"
                put(row, rule.field, [times.order_ns, seq, value] if latest else value)
                if rule.kind == "text" and is_cut(text):
                    put(row, "over", [rule.field])


def _value(kind: Kind, text: str, concept: str, times: MessageTimes) -> Any:
    if kind == "time":
        return times.of.get(concept)
    if kind == "order":
        return times.order_of(concept)
    if kind == "received":
        return times.message.received_ns
    return READERS[kind](text)


def _add_plan(found: ParsedMessage, text: str, times: MessageTimes) -> None:
    """Each task that was announced is an activity from then on."""
    found.run_row["plan"] = 1
    seq, order_ns = times.message.seq, times.order_ns
    for task in planned_tasks(text):
        if task is None:
            found.run_row["nameless_at"] = seq
            continue
        row: Row = {"state": [0, order_ns, seq, "planned"]}
        if task.type is not None:
            row["type"] = [order_ns, seq, task.type]
        if task.external_bytes is not None:
            row["external_bytes"] = [order_ns, seq, task.external_bytes]
        if task.numbers:
            row["numbers"] = [order_ns, seq, dict(task.numbers)]
        if task.open:
            row["open"] = 1
        if task.parents is not None:
            put(row, "parents", list(task.parents))
        key = (task.id, 1)
        found.activities[key] = merge(found.activities.get(key, {}), row)


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task as a plan announces it."""

    id: str
    type: str | None = None
    external_bytes: int | None = None
    parents: tuple[str, ...] | None = None
    open: bool = False
    """More tasks may come when it ends."""
    numbers: tuple[tuple[str, float], ...] = ()
    """Those that its command names, by name."""


def planned_tasks(text: str) -> list[PlannedTask | None]:
    """The tasks of a plan; None for one that has no name."""
    return [_planned_task(task) for task in objects(text)[:PLAN_TASKS_MAX]]


def _planned_task(task: Mapping[str, Any]) -> PlannedTask | None:
    name = task.get("id")
    if not isinstance(name, str | int) or not str(name):
        return None
    kind, size, parents = task.get("type"), task.get("external_bytes"), task.get("parents")
    names = None
    if isinstance(parents, list):
        texts = (str(each) for each in parents if isinstance(each, str | int))
        names = tuple(each[:NAME_CHARS_MAX] for each in texts)
    return PlannedTask(
        str(name)[:NAME_CHARS_MAX],
        kind[:NAME_CHARS_MAX] if isinstance(kind, str) and kind else None,
        size if type(size) is int and 0 <= size <= WHOLE_MAX else None,
        names,
        task.get("checkpoint") is True,
        numbers_by_name(task.get("numbers")),
    )


def attempt_number(text: str | None) -> int:
    value = whole(text) if text else None
    return value if value is not None and 1 <= value <= ATTEMPT_MAX else 1


# Merging


def put(row: Row, name: str, cell: Any) -> None:
    """Merge one cell into the row."""
    had, merged = row.get(name), _MERGE_OF[name]
    if merged is None:
        _unite(row, name, had or [], cell)
    else:
        row[name] = cell if had is None else merged(had, cell)


def merge_into(row: Row, other: Row) -> None:
    """Merge the other row into this one."""
    for name, cell in other.items():
        had = row.get(name)
        if had is None:
            row[name] = cell
        elif had != cell:
            merged = _MERGE_OF[name]
            if merged is None:
                _unite(row, name, had, cell)
            else:
                row[name] = merged(had, cell)


def _unite(row: Row, name: str, one: list[str], other: list[str]) -> None:
    row[name], is_over = bounded_union(name, one, other)
    if is_over:
        put(row, "over", [name])


def merge(row: Row, other: Row) -> Row:
    """Both rows merged into one."""
    both = dict(row)
    merge_into(both, other)
    return both


def _latest(one: list[Any], other: list[Any]) -> list[Any]:
    if one[:2] != other[:2]:
        return one if one[:2] > other[:2] else other
    return max(one, other, key=lambda cell: str(cell[2]))


_MERGE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "min": min,
    "max": max,
    "latest": _latest,
    "state": max,
}
# By field; None is a union, which may say more of the row than one cell.
_MERGE_OF: Final = {name: _MERGE.get(how) for name, how in MERGES.items()}


def latest(row: Row, name: str) -> Any:
    """The value of a `latest` cell, or None."""
    cell = row.get(name)
    return None if cell is None else cell[2]

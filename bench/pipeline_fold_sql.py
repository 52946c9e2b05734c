"""The fold in DuckDB's SQL, made from the monitor's table of rules.

What a message says of the order of things is one whole number, so that `max` and `arg_max` over it
are what the live fold does with cells: (source time, place in the log) for `latest`; in front of
that the phase, and behind it the state, for `state`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tocsin.archive.facts import MEMBERS
from tocsin.event.instant import NS_PER_S
from tocsin.monitor.fold import AHEAD_NS_MAX, ConceptRules
from tocsin.monitor.rules import (
    ANY,
    CURRENT,
    FIELD_RULES,
    GROWING,
    MERGES,
    RESOURCE,
    Entity,
    FieldRule,
    StateRule,
)
from tocsin.ontology import built_in
from tocsin.wire.api.run_views import ACTIVITY_STATES, RUN_STATES

SEQ_BITS: Final = 48
TIME_BITS: Final = 54  # of microseconds: until 2540
STATE_BITS: Final = 5
AHEAD_S: Final = AHEAD_NS_MAX // NS_PER_S
# Among states of one phase, time and message the last by its letters stands.
RANKED: Final[dict[Entity, tuple[str, ...]]] = {
    "run": tuple(sorted(RUN_STATES)),
    "activity": tuple(sorted(ACTIVITY_STATES)),
}
# The fields that the tables need. Times told as text count as told even if they are no times.
USES: Final = tuple(RESOURCE + concept for concept in (*GROWING, *CURRENT))
UNITED: Final = ("inputs", "outputs", "parents")
NEEDED: Final[dict[Entity, tuple[str, ...]]] = {
    "run": (
        *("last_event", "last_received", "created", "started", "started_last", "ended"),
        *("active_first", "active_last", "idle_last", "workflow", "version", "engine"),
        *("engine_version", "user", "parent", "host", "working_directory", "command", "error"),
        *("exit_code", "planned_total", "planned_counts", "heartbeat_s", "parameters", "progress"),
        *USES,
    ),
    "activity": (
        *("queued", "queued_last", "held_last", "started", "started_last", "ended_first", "ended"),
        *("told_start", "told_end", "told_duration_s", "type", "version", "job", "host"),
        *("container", "exit_code", "error", "trace", "log", "log_file", "command"),
        *("input_bytes", "output_bytes", "external_bytes"),
        *USES,
    ),
}
UNREADABLE: Final = "TIMESTAMPTZ '2500-01-01 00:00:00+00'"

MEMBER_OF: Final = {(each.concept, each.kind): each.name for each in MEMBERS}


@dataclass(frozen=True, slots=True)
class ConceptRule:
    """A rule, and the concept by which a message comes under it."""

    concept: str
    rule: StateRule | FieldRule


def rules(entity: Entity) -> tuple[list[ConceptRule], dict[str, list[ConceptRule]]]:
    """Which concept moves the state, and which sets each field."""
    moves: list[ConceptRule] = []
    fields: dict[str, list[ConceptRule]] = {}
    for rule in FIELD_RULES:
        if rule.entity == entity and rule.concept == ANY:
            fields.setdefault(rule.field, []).append(ConceptRule(ANY, rule))
    for concept, (states, sets) in ConceptRules(built_in()).of[entity].items():
        moves += (ConceptRule(concept, state) for state in states)
        for rule in sets:
            fields.setdefault(rule.field, []).append(ConceptRule(concept, rule))
    return moves, fields


def column_of(field: str) -> str:
    return field.replace(RESOURCE, "use_")


def _fact(concept: str, kind: str) -> str:
    return f'facts."{MEMBER_OF[concept, kind]}"'


def _believed(moment: str) -> str:
    return (
        f"CASE WHEN {moment} > received + INTERVAL {AHEAD_S} SECOND THEN received ELSE {moment} END"
    )


def order_of(moment: str) -> str:
    return f"((epoch_us({moment})::HUGEINT << {SEQ_BITS}) + seq)"


def state_number(phase: int, moment: str, entity: Entity, state: str) -> str:
    rank = RANKED[entity].index(state)
    lead = phase << (TIME_BITS + SEQ_BITS + STATE_BITS)
    return f"({lead}::HUGEINT + ({order_of(moment)} << {STATE_BITS}) + {rank})"


def state_in(number: str, entity: Entity) -> str:
    """The state that a state number names."""
    names = ", ".join(f"'{each}'" for each in RANKED[entity])
    return f"([{names}])[1 + ({number} & {(1 << STATE_BITS) - 1})::INTEGER]"


def phase_in(number: str) -> str:
    return f"({number} >> {TIME_BITS + SEQ_BITS + STATE_BITS})::INTEGER"


def seq_in(number: str) -> str:
    return f"(({number} >> {STATE_BITS}) & {(1 << SEQ_BITS) - 1})::BIGINT"


def moment_in(number: str) -> str:
    shift, mask = STATE_BITS + SEQ_BITS, (1 << TIME_BITS) - 1
    return f"make_timestamptz((({number} >> {shift}) & {mask})::BIGINT)"


def _state(moves: Iterable[ConceptRule], entity: Entity) -> str:
    cells = []
    for moved in moves:
        assert isinstance(moved.rule, StateRule)
        moment = _fact(moved.concept, "moment")
        number = state_number(moved.rule.phase, _believed(moment), entity, moved.rule.state)
        cells.append(f"CASE WHEN {moment} IS NOT NULL THEN {number} END")
    return f"greatest({', '.join(cells)})"


def _value(moved: ConceptRule) -> str:
    rule = moved.rule
    assert isinstance(rule, FieldRule)
    value = _plain_value(moved.concept, rule)
    return f"CASE WHEN activity IS NULL THEN {value} END" if rule.alone else value


def _plain_value(concept: str, rule: FieldRule) -> str:
    if rule.field in ("told_start", "told_end"):
        moment = _fact(concept, "moment")
        return (
            f"CASE WHEN {_fact(concept, 'text')} IS NOT NULL "
            f"THEN coalesce({moment}, {UNREADABLE}) END"
        )
    match rule.kind:
        case "received":
            assert concept == ANY, "no table needs another one"
            return "received"
        case "order":
            return '"at"' if concept == ANY else _believed(_fact(concept, "moment"))
        case "time":
            return _fact(concept, "moment")
        case kind:
            return _fact(concept, kind)


def message_cells(entity: Entity) -> dict[str, str]:
    """What one message says of its run or activity, by column."""
    moves, fields = rules(entity)
    cells = {"state": _state(moves, entity)}
    for field in NEEDED[entity]:
        values = [_value(each) for each in fields[field]]
        choose = "least" if MERGES[field] == "min" else "greatest"
        cells[column_of(field)] = (
            values[0] if len(values) == 1 else f"{choose}({', '.join(values)})"
        )
    return cells


def merged_cells(entity: Entity) -> dict[str, str]:
    """All cells of a column as one; `ord` orders the messages."""
    found = {"state": "max(state)"}
    for field in NEEDED[entity]:
        column = f'"{column_of(field)}"'
        match MERGES[field]:
            case "min":
                found[column_of(field)] = f"min({column})"
            case "max":
                found[column_of(field)] = f"max({column})"
            case _:
                found[column_of(field)] = f"arg_max({column}, ord)"
    return found

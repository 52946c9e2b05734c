"""The fold, in Spark: expressions made from the monitor's table of rules.

A cell is what the live fold calls one: a value for `min` and `max`, (at, seq, value) for `latest`,
(phase, at, seq, state) for `state`, a sorted array for `union`. Merging is commutative, associative
and idempotent here as there, so rows may be folded in any order, in parts, and more than once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tocsin.archive.facts import MEMBERS
from tocsin.archive.record import SCHEMA
from tocsin.event.instant import NS_PER_US
from tocsin.monitor.alerts.messages import SOURCE
from tocsin.monitor.fold import AHEAD_NS_MAX, ConceptRules
from tocsin.monitor.rules import (
    ANY,
    CURRENT,
    EXPECTED,
    FIELD_RULES,
    GROWING,
    MERGES,
    RESOURCE,
    STATE_RULES,
    Entity,
    FieldRule,
    Merge,
    StateRule,
)
from tocsin.monitor.values import BYTES_MAX, BYTES_MAX_OF, ITEMS_MAX
from tocsin.ontology import built_in
from tocsin.tables.schemas import USE

RUN_KEY: Final = ("run",)
ATTEMPT_KEY: Final = ("run", "activity", "attempt")
KEYS: Final[dict[Entity, tuple[str, ...]]] = {"run": RUN_KEY, "activity": ATTEMPT_KEY}

# Of the messages that are grouped, what the sort by key goes by first: a number compares quickly,
# and both attempts of an activity are in one place.
HASH: Final = "hash"
HASHED: Final[dict[Entity, tuple[str, ...]]] = {"run": ("run",), "activity": ("run", "activity")}

# What the tables show; the rest of the fold is for the monitor's own pages.
NEEDED: Final[dict[Entity, frozenset[str]]] = {
    "activity": frozenset(
        {
            *("queued", "queued_last", "held_last", "started", "started_last", "ended_first"),
            *("ended", "told_start", "told_end", "told_duration_s", "type", "version", "job"),
            *("host", "container", "exit_code", "error", "trace", "log", "log_file", "command"),
            *("inputs", "outputs", "parents", "input_bytes", "output_bytes", "external_bytes"),
            *(f"{RESOURCE}{concept}" for concept in (*GROWING, *CURRENT)),
        }
    ),
    "run": frozenset(
        {
            *("created", "started", "started_last", "ended", "active_first", "active_last"),
            *("idle_last", "last_event", "last_received", "workflow", "version", "engine"),
            *("engine_version", "user", "parent", "host", "working_directory", "command"),
            *("error", "exit_code", "planned_total", "planned_counts", "heartbeat_s"),
            *("parameters", "progress"),
            *(f"{RESOURCE}{concept}" for concept in (*GROWING, *CURRENT)),
        }
    ),
}

# A state cell begins with a number: three bits of phase, the moment in microseconds, and five bits
# of which state it is. It grows as the live fold's [phase, moment, ..., state] does.
STATE_BITS: Final = 5
PHASE_SHIFT: Final = 58
STATES: Final = sorted({rule.state for rule in STATE_RULES})
assert len(STATES) <= 1 << STATE_BITS
RECEIVED_US: Final = "received_us"
LIMIT_US: Final = "limit_us"
NUMBER: Final = "state_number"
AHEAD_US: Final = AHEAD_NS_MAX // NS_PER_US

_MEMBER: Final = {(each.concept, each.kind): each.name for each in MEMBERS}
_TIMES: Final = {"told_start": "StartTime", "told_end": "EndTime"}  # texts that are moments
_SMALLEST: Final = "least"


@dataclass(frozen=True, slots=True)
class ConceptRule:
    """A rule of the table, and the concept by which a message comes under it."""

    concept: str
    rule: StateRule | FieldRule


@cache
def _rules(entity: Entity) -> tuple[tuple[ConceptRule, ...], dict[str, list[ConceptRule]]]:
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
    return tuple(moves), fields


def column_of(field: str) -> str:
    """The column that a field of the table is kept in."""
    return field.replace(RESOURCE, USE)


_MERGE_OF: Final = {column_of(field): how for field, how in MERGES.items()}


def cell_is_stamped(column: str) -> bool:
    """True if the cell has a moment and a sequence number beside its value."""
    return _MERGE_OF[column] == "latest"


Members = frozenset[str]
"""Those of `facts` that the messages have: what none of them has is not even a column."""


def _fact(concept: str, kind: str) -> Column:
    return F.col(f"facts.{_MEMBER[concept, kind]}")


def _has_fact(moved: ConceptRule, members: Members) -> bool:
    """True if a message can come under the rule."""
    if moved.concept == ANY:
        return True
    kind = moved.rule.kind if isinstance(moved.rule, FieldRule) else "time"
    is_event = kind in ("received", "order", "time")
    return _MEMBER[moved.concept, "moment" if is_event else kind] in members


def _believed(micros: Column) -> Column:
    """When it happened: what its source says, unless that is in the future."""
    return F.when(micros > F.col(LIMIT_US), F.col(RECEIVED_US)).otherwise(micros)


def _value(moved: ConceptRule) -> Column:
    rule = moved.rule
    assert isinstance(rule, FieldRule)
    match rule.kind:
        case "received":
            value = F.col("received")
            has = None if moved.concept == ANY else _fact(moved.concept, "moment").isNotNull()
            value = value if has is None else F.when(has, value)
        case "order":
            micros = F.unix_micros("at" if moved.concept == ANY else _fact(moved.concept, "moment"))
            value = F.col("at") if moved.concept == ANY else F.timestamp_micros(_believed(micros))
        case "time":
            value = _fact(moved.concept, "moment")
        case kind:
            value = _fact(moved.concept, kind)
    return F.when(F.col("activity").isNull(), value) if rule.alone else value


def _first_of(values: Iterable[Column], choose: str) -> Column:
    columns = list(values)
    if len(columns) == 1:
        return columns[0]
    return F.least(*columns) if choose == _SMALLEST else F.greatest(*columns)


def state_number(entity: Entity, members: Members) -> Column:
    """Of the events in a message, the one that counts: phase, moment and state in one
    number, in the order in which they decide."""
    numbers = [F.lit(None).cast("long")] * 2  # there may be no other
    for moved in _rules(entity)[0]:
        if not _has_fact(moved, members):
            continue
        assert isinstance(moved.rule, StateRule)
        moment = _fact(moved.concept, "moment")
        number = packed(moved.rule.phase, _believed(F.unix_micros(moment)), moved.rule.state)
        numbers.append(F.when(moment.isNotNull(), number))
    return F.greatest(*numbers)


def packed(phase: int, micros: Column, state: str) -> Column:
    return F.lit(phase << PHASE_SHIFT | STATES.index(state)) + F.shiftleft(micros, STATE_BITS)


def _settled(number: Column) -> Column:
    """What two messages are compared by: phase and moment, then the place, then the state."""
    rank = number.bitwiseAND(F.lit((1 << STATE_BITS) - 1)).cast("int")
    cell = F.struct(
        F.shiftright(number, STATE_BITS).alias("when"),
        F.col("seq").alias("seq"),
        rank.alias("rank"),
    )
    return F.when(number.isNotNull(), cell)


def unpacked(cell: str) -> Column:
    """A state cell as (phase, at, seq, state)."""
    number = F.col(f"{cell}.when")
    bits = PHASE_SHIFT - STATE_BITS
    names = F.array(*map(F.lit, STATES))
    shown = F.struct(
        F.shiftright(number, bits).cast("int").alias("phase"),
        F.timestamp_micros(number.bitwiseAND(F.lit((1 << bits) - 1))).alias("at"),
        F.col(f"{cell}.seq").alias("seq"),
        F.element_at(names, F.col(f"{cell}.rank") + 1).alias("state"),
    )
    return F.when(number.isNotNull(), shown)


def message_cells(entity: Entity, members: Members) -> dict[str, Column]:
    """What one message of the archive says of its run or activity, by field."""
    cells = {"state": _settled(F.col(NUMBER))}
    for field, rules in _rules(entity)[1].items():
        values = [_value(each) for each in rules if _has_fact(each, members)]
        if field not in NEEDED[entity] or not values:
            continue
        match MERGES[field]:
            case "min":
                cells[field] = _first_of(values, _SMALLEST)
            case "max":
                cells[field] = _first_of(values, "greatest")
            case "latest" if field in _TIMES:
                text = _TIMES[field]
                cells[field] = _stamped(_time_in(text, members), F.col(f"facts.{text}"))
            case "latest":
                value = _first_of(values, "greatest")
                cells[field] = _stamped(value, value)
            case _:
                cells[field] = F.coalesce(*values)
    if entity == "run":
        cells["plan"] = F.when(F.col("plan").isNotNull(), F.lit(1))
    return cells


def _time_in(text: str, members: Members) -> Column:
    """The moment that a text is. If none of them is one, there is none to be read."""
    name = f"{text}_moment"
    return F.col(f"facts.{name}") if name in members else F.lit(None).cast("timestamp")


def _stamped(value: Column, said: Column) -> Column:
    at_us = F.unix_micros("at")  # a number: it is compared and kept, and never shown
    cell = F.struct(at_us.alias("at_us"), F.col("seq").alias("seq"), value.alias("value"))
    return F.when(said.isNotNull(), cell)


def planned_cells(messages: DataFrame) -> DataFrame:
    """Each task that was announced is an activity from then on."""
    tasks = messages.where("plan IS NOT NULL").select(
        "run", "seq", "at", F.explode("plan").alias("task")
    )
    planned = _settled(packed(EXPECTED, F.unix_micros("at"), "planned"))
    return tasks.where("task.id IS NOT NULL").select(
        "run",
        F.col("task.id").alias("activity"),
        F.lit(1).cast("int").alias("attempt"),
        planned.alias("state"),
        _stamped(F.col("task.type"), F.col("task.type")).alias("type"),
        _stamped(F.col("task.external_bytes"), F.col("task.external_bytes")).alias(
            "external_bytes"
        ),
        F.col("task.parents").alias("parents"),
    )


def is_run_message() -> Column:
    """True of a message about a run. What we said ourselves is no news. (`facts` is null
    then; but to ask for that, Spark would read all of its hundred members.)"""
    return F.col("run").isNotNull() & (F.col("source") != SOURCE)


def cells_of(messages: DataFrame, entity: Entity, plans: DataFrame | None = None) -> DataFrame:
    """The cells of each message of the archive about a run, one row a message.

    `plans` are those of the messages in which tasks are announced, where they are kept apart: to
    look for these few, Spark would read all messages once more.
    """
    keys = KEYS[entity]
    members = _members(messages)
    received_us = F.unix_micros("received")
    about_runs = messages.where(is_run_message())
    stamped = about_runs.withColumns({RECEIVED_US: received_us, LIMIT_US: received_us + AHEAD_US})
    if entity == "activity":
        stamped = stamped.where("activity IS NOT NULL")
    rows = stamped.withColumn(NUMBER, state_number(entity, members)).select(
        *keys,
        *(cell.alias(column_of(field)) for field, cell in message_cells(entity, members).items()),
    )
    if entity == "run":
        return rows
    announced = about_runs if plans is None else plans.where(is_run_message())
    return rows.unionByName(planned_cells(announced), allowMissingColumns=True)


def _members(messages: DataFrame) -> Members:
    facts = messages.schema["facts"].dataType
    assert isinstance(facts, StructType)
    return frozenset(facts.names)


def with_all_cells(folded: DataFrame, entity: Entity) -> DataFrame:
    """With those that no message has as well."""
    there = set(folded.columns)
    none = [
        F.lit(None).cast(each.dataType).alias(each.name)
        for each in cell_schema(folded.sparkSession, entity)
        if each.name not in there
    ]
    return folded.select("*", *none)


def folded(cells: DataFrame, entity: Entity, partitions: int) -> DataFrame:
    """One row a run, or an attempt: what all the cells say. In parts by `hash`, sorted by key."""
    keys = KEYS[entity]
    names = [name for name in cells.columns if name not in (*keys, HASH)]
    spread = (
        cells.withColumn(HASH, F.xxhash64(*HASHED[entity]))
        .repartition(partitions, HASH)
        .sortWithinPartitions(HASH, *keys)
    )
    merged = spread.groupBy(HASH, *keys).agg(
        *(_merged(name, F.col(name)).alias(name) for name in names)
    )
    unions = [name for name in names if _MERGE_OF[name] == "union"]
    for tidied in (_flat, _fitting):
        merged = merged.withColumns({name: tidied(name) for name in unions})
    return merged


def _merged(column: str, cell: Column) -> Column:
    """All cells of a field as one; of a union, what is to be united."""
    how: Merge = _MERGE_OF[column]
    if how == "union":
        return F.collect_set(cell)
    return F.min(cell) if how == "min" else F.max(cell)


def _flat(column: str) -> Column:
    """The texts of all, each once, sorted."""
    texts = F.sort_array(F.array_distinct(F.flatten(column)))
    return F.when(F.size(column) > 0, texts)


def _fitting(column: str) -> Column:
    """The texts; of too many the shortest, as `monitor.values` keeps them."""
    texts = F.col(column)
    bytes_max = BYTES_MAX_OF.get(column, BYTES_MAX)
    sized = F.sort_array(
        F.transform(texts, lambda text: F.struct(F.octet_length(text).alias("n"), text.alias("t")))
    )
    start = F.struct(
        F.lit(0).cast("long").alias("n"), F.array().cast("array<string>").alias("kept")
    )
    fitting = F.aggregate(
        F.slice(sized, 1, ITEMS_MAX),
        start,
        lambda had, one: F.when(
            had.n + one.n <= bytes_max,
            F.struct((had.n + one.n).alias("n"), F.concat(had.kept, F.array(one.t)).alias("kept")),
        ).otherwise(F.struct(F.lit(bytes_max + 1).cast("long").alias("n"), had.kept.alias("kept"))),
    ).kept
    fits = (F.size(texts) <= ITEMS_MAX) & (F.octet_length(F.array_join(texts, "")) <= bytes_max)
    return F.when(texts.isNull() | fits, texts).otherwise(F.sort_array(fitting))


@cache
def cell_schema(spark: SparkSession, entity: Entity) -> StructType:
    """The columns of folded cells."""
    nothing = spark.createDataFrame([], from_arrow_schema(SCHEMA))
    return folded(cells_of(nothing, entity), entity, 1).schema

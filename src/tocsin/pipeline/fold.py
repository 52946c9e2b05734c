"""The fold, in Spark: expressions made from the monitor's table of rules.

A cell is what the live fold calls one: a value for `min` and `max`, (at, seq, value) for `latest`,
(phase, at, seq, state) for `state`, a sorted array for `union`. Merging is commutative, associative
and idempotent here as there, so rows may be folded in any order, in parts, and more than once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tocsin.archive.members import MEMBERS
from tocsin.archive.tables import USE
from tocsin.monitor.fold import AHEAD_NS_MAX, Reading
from tocsin.monitor.rules import (
    ANY,
    ENDING,
    EXPECTED,
    FIELD_RULES,
    MERGES,
    RESOURCE,
    Entity,
    FieldRule,
    Merge,
    StateRule,
)
from tocsin.monitor.times import NS_PER_S
from tocsin.monitor.unions import BYTES_MAX, BYTES_MAX_OF, ITEMS_MAX
from tocsin.ontology import built_in

RUN_KEY: Final = ("run",)
ATTEMPT_KEY: Final = ("run", "activity", "attempt")
KEYS: Final[dict[Entity, tuple[str, ...]]] = {"run": RUN_KEY, "activity": ATTEMPT_KEY}

# Of the messages that are grouped, what the sort by key goes by first: a number compares quickly,
# and both attempts of an activity are in one place.
HASH: Final = "hash"
HASHED: Final[dict[Entity, tuple[str, ...]]] = {"run": ("run",), "activity": ("run", "activity")}

_MEMBER: Final = {(each.concept, each.kind): each.name for each in MEMBERS}
_TIMES: Final = {"told_start": "StartTime", "told_end": "EndTime"}  # texts that are moments
_AHEAD_S: Final = AHEAD_NS_MAX // NS_PER_S
_SMALLEST: Final = "least"


@dataclass(frozen=True, slots=True)
class Moved:
    """A rule of the table, and the concept by which a message comes under it."""

    concept: str
    rule: StateRule | FieldRule


@cache
def _rules(entity: Entity) -> tuple[tuple[Moved, ...], dict[str, list[Moved]]]:
    """Which concept moves the state, and which sets each field."""
    moves: list[Moved] = []
    fields: dict[str, list[Moved]] = {}
    for rule in FIELD_RULES:
        if rule.entity == entity and rule.concept == ANY:
            fields.setdefault(rule.field, []).append(Moved(ANY, rule))
    for concept, (states, sets) in Reading(built_in()).rules[entity].items():
        moves += (Moved(concept, state) for state in states)
        for rule in sets:
            fields.setdefault(rule.field, []).append(Moved(concept, rule))
    return tuple(moves), fields


def column_of(field: str) -> str:
    """The column that a field of the table is kept in."""
    return field.replace(RESOURCE, USE)


_MERGE_OF: Final = {column_of(field): how for field, how in MERGES.items()}


def cell_is_stamped(column: str) -> bool:
    """True if the cell has a moment and a sequence number beside its value."""
    return _MERGE_OF[column] == "latest"


def _told(concept: str, kind: str) -> Column:
    return F.col(f"told.{_MEMBER[concept, kind]}")


def _believed(moment: Column) -> Column:
    """When it happened: what its source says, unless that is in the future."""
    limit = F.col("received") + F.expr(f"INTERVAL {_AHEAD_S} SECONDS")
    return F.when(moment > limit, F.col("received")).otherwise(moment)


def _value(moved: Moved) -> Column:
    rule = moved.rule
    assert isinstance(rule, FieldRule)
    match rule.kind:
        case "received":
            value = F.col("received")
            has = None if moved.concept == ANY else _told(moved.concept, "moment").isNotNull()
            value = value if has is None else F.when(has, value)
        case "order":
            value = (
                F.col("at") if moved.concept == ANY else _believed(_told(moved.concept, "moment"))
            )
        case "time":
            value = _told(moved.concept, "moment")
        case kind:
            value = _told(moved.concept, kind)
    return F.when(F.col("activity").isNull(), value) if rule.alone else value


def _first_of(values: Iterable[Column], choose: str) -> Column:
    columns = list(values)
    if len(columns) == 1:
        return columns[0]
    return F.least(*columns) if choose == _SMALLEST else F.greatest(*columns)


def _state(moves: Iterable[Moved]) -> Column:
    """The state cell of one message: of the events that it tells, the one that stands."""
    cells = []
    for moved in moves:
        assert isinstance(moved.rule, StateRule)
        moment = _told(moved.concept, "moment")
        cell = F.struct(
            F.lit(moved.rule.phase).alias("phase"),
            _believed(moment).alias("at"),
            F.col("seq").alias("seq"),
            F.lit(moved.rule.state).alias("state"),
        )
        cells.append(F.when(moment.isNotNull(), cell))
    return F.greatest(*cells)


def _ends(moves: Iterable[Moved]) -> Column:
    """Every way in which the message says that it ended."""
    ways: dict[str, list[Column]] = {}
    for moved in moves:
        assert isinstance(moved.rule, StateRule)
        if moved.rule.phase > ENDING:
            ways.setdefault(moved.rule.state, []).append(_told(moved.concept, "moment").isNotNull())
    texts = [
        F.when(reduce(Column.__or__, told), F.lit(state)) for state, told in sorted(ways.items())
    ]
    found = F.array_compact(F.array(*texts))
    return F.when(F.size(found) > 0, found)


def message_cells(entity: Entity) -> dict[str, Column]:
    """What one message of the archive says of its run or activity, by field."""
    moves, fields = _rules(entity)
    cells = {"state": _state(moves), "ends": _ends(moves)}
    for field, rules in fields.items():
        values = [_value(each) for each in rules]
        match MERGES[field]:
            case "min":
                cells[field] = _first_of(values, _SMALLEST)
            case "max":
                cells[field] = _first_of(values, "greatest")
            case "latest" if field in _TIMES:
                text = _TIMES[field]
                cells[field] = _stamped(F.col(f"told.{text}_moment"), F.col(f"told.{text}"))
            case "latest":
                value = _first_of(values, "greatest")
                cells[field] = _stamped(value, value)
            case _:
                cells[field] = F.coalesce(*values)
    is_alone = F.col("activity").isNull()
    is_own = is_alone if entity == "run" else ~is_alone
    ahead = F.when(is_own, F.col("told.ahead_us"))
    cells["ahead"] = ahead
    cells["ahead_at"] = F.when(ahead.isNotNull(), F.col("seq"))
    if entity == "run":
        nameless = F.col("told.nameless") | F.exists("plan", lambda task: task.id.isNull())
        cells["nameless_at"] = F.when(nameless, F.col("seq"))
        cells["undated_at"] = F.when(F.col("told.undated"), F.col("seq"))
        cells["plan"] = F.when(F.col("plan").isNotNull(), F.lit(1))
    cells["over"] = _over(entity, fields)
    return cells


def _over(entity: Entity, fields: dict[str, list[Moved]]) -> Column:
    def names(*, alone: bool) -> Column:
        kept = sorted(
            field
            for field, rules in fields.items()
            if all(
                not isinstance(each.rule, FieldRule) or alone or not each.rule.alone
                for each in rules
            )
        )
        return F.array_intersect("told.over", F.array(*map(F.lit, kept)))

    if entity == "activity":
        return names(alone=True)
    return F.when(F.col("activity").isNull(), names(alone=True)).otherwise(names(alone=False))


def _stamped(value: Column, said: Column) -> Column:
    cell = F.struct(F.col("at").alias("at"), F.col("seq").alias("seq"), value.alias("value"))
    return F.when(said.isNotNull(), cell)


def planned_cells(messages: DataFrame) -> DataFrame:
    """Each task that was announced is an activity from then on."""
    tasks = messages.where("plan IS NOT NULL").select(
        "run", "seq", "at", F.explode("plan").alias("task")
    )
    planned = F.struct(
        F.lit(EXPECTED).alias("phase"),
        F.col("at").alias("at"),
        F.col("seq").alias("seq"),
        F.lit("planned").alias("state"),
    )
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
        F.when(F.col("task.open"), F.lit(1)).alias("open"),
    )


def cells_of(messages: DataFrame, entity: Entity) -> DataFrame:
    """The cells of each message of the archive that tells of a run, one row a message."""
    keys = KEYS[entity]
    telling = messages.where("run IS NOT NULL AND told IS NOT NULL")
    cells = {column_of(field): cell for field, cell in message_cells(entity).items()}
    if entity == "run":
        return telling.select(*keys, *(cell.alias(name) for name, cell in cells.items()))
    cells["open"] = F.lit(None).cast("int")
    rows = telling.where("activity IS NOT NULL").select(
        *keys, *(cell.alias(name) for name, cell in cells.items())
    )
    return rows.unionByName(planned_cells(telling), allowMissingColumns=True)


def folded(cells: DataFrame, entity: Entity, partitions: int) -> DataFrame:
    """One row a run, or an attempt: what all the cells say. In parts by `hash`, sorted by key."""
    keys = KEYS[entity]
    names = [name for name in cells.columns if name not in (*keys, HASH)]
    spread = (
        cells.withColumn(HASH, F.xxhash64(*HASHED[entity]))
        .repartition(partitions, HASH)
        .sortWithinPartitions(HASH, *keys)
    )
    return spread.groupBy(HASH, *keys).agg(
        *(_merged(name, F.col(name)).alias(name) for name in names)
    )


def _merged(column: str, cell: Column) -> Column:
    """All cells of a field as one."""
    how: Merge = _MERGE_OF[column]
    if how == "union":
        return _united(column, F.collect_set(cell))
    return F.min(cell) if how == "min" else F.max(cell)


def _united(field: str, sets: Column) -> Column:
    """The texts of all, sorted; of too many the shortest, as `monitor.unions` keeps them."""
    texts = F.array_sort(F.array_distinct(F.flatten(sets)))
    bytes_max = BYTES_MAX_OF.get(field, BYTES_MAX)
    sized = F.array_sort(
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
            F.struct(
                (had.n + one.n).alias("n"),
                F.concat(had.kept, F.array(one.t)).alias("kept"),
            ),
        ).otherwise(F.struct(F.lit(bytes_max + 1).cast("long").alias("n"), had.kept.alias("kept"))),
    ).kept
    total = F.aggregate(
        texts, F.lit(0).cast("long"), lambda sum_, text: sum_ + F.octet_length(text)
    )
    fits = (F.size(texts) <= ITEMS_MAX) & (total <= bytes_max)
    united = F.when(fits, texts).otherwise(F.array_sort(fitting))
    return F.when(F.size(texts) > 0, united)

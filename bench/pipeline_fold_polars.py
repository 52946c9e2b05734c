"""The fold in expressions of Polars, made from the monitor's table of rules, as that in SQL is."""

from __future__ import annotations

from typing import Final

import polars as pl

from pipeline_fold_sql import (
    AHEAD_S,
    MEMBER_OF,
    NEEDED,
    RANKED,
    SEQ_BITS,
    STATE_BITS,
    TIME_BITS,
    Moved,
    column_of,
    rules,
)
from tocsin.monitor.rules import ANY, MERGES, Entity, FieldRule, StateRule

AT: Final = pl.col("at")
RECEIVED: Final = pl.col("received")
UNREADABLE_US: Final = 16_725_225_600_000_000  # 2500-01-01


def told(concept: str, kind: str) -> pl.Expr:
    return pl.col(MEMBER_OF[concept, kind])


def members(*entities: Entity) -> list[str]:
    """The members of `told` that the cells of these are made from."""
    found: set[str] = set()
    for entity in entities:
        moves, fields = rules(entity)
        used = [*moves, *(each for name in NEEDED[entity] for each in fields[name])]
        for moved in used:
            found |= {name for (concept, _), name in MEMBER_OF.items() if concept == moved.concept}
    return sorted(found)


def _believed(moment: pl.Expr) -> pl.Expr:
    return (
        pl.when(moment > RECEIVED + pl.duration(seconds=AHEAD_S)).then(RECEIVED).otherwise(moment)
    )


def order_of(moment: pl.Expr) -> pl.Expr:
    return moment.to_physical().cast(pl.Int128) * (1 << SEQ_BITS) + pl.col("seq")


def state_number(phase: int, moment: pl.Expr, entity: Entity, state: str) -> pl.Expr:
    lead = pl.lit(phase << (TIME_BITS + SEQ_BITS + STATE_BITS), pl.Int128)
    return lead + order_of(moment) * (1 << STATE_BITS) + RANKED[entity].index(state)


def state_in(number: pl.Expr, entity: Entity) -> pl.Expr:
    rank = (number % (1 << STATE_BITS)).cast(pl.Int8)
    return rank.replace_strict(dict(enumerate(RANKED[entity])), return_dtype=pl.String)


def phase_in(number: pl.Expr) -> pl.Expr:
    return (number // pl.lit(1 << (TIME_BITS + SEQ_BITS + STATE_BITS), pl.Int128)).cast(pl.Int8)


def seq_in(number: pl.Expr) -> pl.Expr:
    return (number // (1 << STATE_BITS) % (1 << SEQ_BITS)).cast(pl.Int64)


def moment_in(number: pl.Expr) -> pl.Expr:
    shifted = number // (1 << (STATE_BITS + SEQ_BITS)) % (1 << TIME_BITS)
    return shifted.cast(pl.Int64).cast(pl.Datetime("us", "UTC"))


def _value(moved: Moved) -> pl.Expr:
    rule = moved.rule
    assert isinstance(rule, FieldRule)
    value = _plain_value(moved.concept, rule)
    return pl.when(pl.col("activity").is_null()).then(value) if rule.alone else value


def _plain_value(concept: str, rule: FieldRule) -> pl.Expr:
    if rule.field in ("told_start", "told_end"):
        unreadable = pl.lit(UNREADABLE_US).cast(pl.Datetime("us", "UTC"))
        moment = told(concept, "moment").fill_null(unreadable)
        return pl.when(told(concept, "text").is_not_null()).then(moment)
    match rule.kind:
        case "received":
            return RECEIVED
        case "order":
            return AT if concept == ANY else _believed(told(concept, "moment"))
        case "time":
            return told(concept, "moment")
        case kind:
            return told(concept, kind)


def message_cells(entity: Entity) -> dict[str, pl.Expr]:
    """What one message says of its run or activity, by column."""
    moves, fields = rules(entity)
    states = []
    for moved in moves:
        assert isinstance(moved.rule, StateRule)
        moment = told(moved.concept, "moment")
        states.append(state_number(moved.rule.phase, _believed(moment), entity, moved.rule.state))
    cells = {"state": pl.max_horizontal(states)}
    for field in NEEDED[entity]:
        values = [_value(each) for each in fields[field]]
        choose = pl.min_horizontal if MERGES[field] == "min" else pl.max_horizontal
        cells[column_of(field)] = values[0] if len(values) == 1 else choose(values)
    return cells


def merged_cells(entity: Entity) -> dict[str, pl.Expr]:
    """All cells of a column as one; `ord` orders the messages."""
    found = {"state": pl.col("state").max()}
    for field in NEEDED[entity]:
        cell = pl.col(column_of(field))
        match MERGES[field]:
            case "min":
                found[column_of(field)] = cell.min()
            case "max":
                found[column_of(field)] = cell.max()
            case _:
                told_at = pl.when(cell.is_not_null()).then(pl.col("ord"))
                found[column_of(field)] = cell.max_by(told_at)
    return found

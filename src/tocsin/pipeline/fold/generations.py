"""Generations, in Spark: a run id that was used again is split by the monitor's own rules.

Which messages say that a run was created, started or ended is kept with each part of the state.
Those of the few ids that were used more than once are gone through in the order of the log; what
comes out is small, and sent to where the messages are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tocsin.event.instant import NS_PER_US
from tocsin.monitor.fold import ConceptRules
from tocsin.monitor.generations import MARK, Boundary, Generations
from tocsin.ontology import built_in
from tocsin.pipeline.fold.rules import AHEAD_US, is_run_message
from tocsin.pipeline.spark.parquet import read
from tocsin.pipeline.state import Partial

TURNS: Final = "turns"
FOR_EVER: Final = 2**63 - 1
_TIMES: Final = ("created_us", "started_us", "ended_us")
_USES: Final = (
    "run string, turns map<bigint,int>, "
    "spans array<struct<begin:bigint,number:int,since:bigint,until:bigint>>"
)
_FIRST_OF: Final = {"created": F.least, "started": F.least, "ended": F.greatest}


def turns_of(messages: DataFrame) -> DataFrame:
    """The messages that say that a run was created, was started, or ended; and when."""
    facts = messages.schema["facts"].dataType
    assert isinstance(facts, StructType)
    received_us = F.unix_micros("received")
    times = {f"{name}_us": _believed(name, set(facts.names), received_us) for name in _FIRST_OF}
    rows = messages.where(is_run_message()).select(
        "run", "seq", received_us.alias("received_us"), *(t.alias(n) for n, t in times.items())
    )
    return rows.where(" OR ".join(f"{name} IS NOT NULL" for name in _TIMES))


def _believed(name: str, members: set[str], received_us: Column) -> Column:
    """When the message says that it happened, as `monitor.fold.believed_ns` has it."""
    rules = ConceptRules(built_in()).of["run"]
    concepts = [
        concept
        for concept, (_, sets) in rules.items()
        if concept in members and any(rule.field == name for rule in sets)
    ]
    none = F.lit(None).cast("timestamp")
    moment = _FIRST_OF[name](none, none, *(F.col(f"facts.{concept}") for concept in concepts))
    moment_us = F.unix_micros(moment)
    return F.when(moment_us - received_us > AHEAD_US, received_us).otherwise(moment_us)


def turns_before(spark: SparkSession, parts: Sequence[Partial]) -> list[DataFrame]:
    """The turns of former parts; those that were made before turns were kept have none."""
    having = [each for each in parts if each.files(TURNS)]
    return [read(spark, having, TURNS)] if having else []


def split_generations(messages: DataFrame, turns: Sequence[DataFrame]) -> DataFrame:
    """The messages, each with the name of the run that it belongs to.

    `turns` are those of all that is in the log up to the last of these messages.
    """
    uses = [_uses(run, rows) for run, rows in _of_reused(turns)]
    if not any(each.is_reused for each in uses):
        return messages
    rows = [(each.run, each.turns, each.spans) for each in uses if each.is_reused]
    known = F.broadcast(messages.sparkSession.createDataFrame(rows, _USES))
    number = F.coalesce(F.element_at("turns", F.col("seq")), _number_at(), F.lit(1))
    name = F.when(number > 1, F.concat_ws(MARK, "run", number)).otherwise(F.col("run"))
    joined = messages.join(known, "run", "left").withColumn("run", name)
    return joined.select(*messages.columns)


def _number_at() -> Column:
    """As `Generations.number_at`: of the spans of the message's place, the last that has begun."""
    at_us = F.unix_micros("at")
    now = F.filter("spans", lambda each: (each.since <= F.col("seq")) & (F.col("seq") < each.until))
    begun = F.filter(now, lambda each: each.begin <= at_us)
    return F.coalesce(F.array_max(begun).number, F.array_min(now).number)


def _of_reused(turns: Sequence[DataFrame]) -> Iterator[tuple[str, list[Any]]]:
    """The turns of each id that may have been used again, in the order of the log."""
    every = turns[0]
    for each in turns[1:]:
        every = every.unionByName(each)
    again = every.groupBy("run").agg(
        *(F.min(name).alias(f"first_{name}") for name in _TIMES),
        *(F.max(name).alias(f"last_{name}") for name in _TIMES),
    )
    last_opened = F.greatest("last_created_us", "last_started_us")
    candidates = again.where(
        (F.col("first_created_us") < F.col("last_created_us"))
        | (F.col("first_started_us") < F.col("last_started_us"))
        | (F.col("first_ended_us") < last_opened)
        | (F.col("first_started_us") < F.col("last_created_us"))
    ).select("run")
    rows = every.join(candidates, "run", "left_semi").dropDuplicates(["run", "seq"])
    found = rows.orderBy("run", "seq").toLocalIterator()
    for run, some in groupby(found, key=lambda row: str(row.run)):
        yield run, list(some)


@dataclass(slots=True)
class _Uses:
    """How an id was used: to which run each turn belongs, and from when on each run was known."""

    run: str
    turns: dict[int, int] = field(default_factory=dict)
    spans: list[tuple[int, int, int, int]] = field(default_factory=list)

    @property
    def is_reused(self) -> bool:
        return any(number > 1 for number in self.turns.values())


def _uses(run: str, rows: Iterable[Any]) -> _Uses:
    known, found = Generations(), _Uses(run)
    places: dict[int, int] = {}
    for row in rows:
        number = known.take(_turn(row))
        found.turns[row.seq] = number
        (generation,) = (each for each in known.known if each.number == number)
        opened_ns = generation.opened_ns
        begin = -1 if opened_ns is None else opened_ns // NS_PER_US
        place = places.get(number)
        if place is not None:
            had = found.spans[place]
            if had[0] == begin:
                continue
            found.spans[place] = (*had[:3], row.seq)
        places[number] = len(found.spans)
        found.spans.append((begin, number, row.seq, FOR_EVER))
    return found


def _turn(row: Any) -> Boundary:
    created_ns, started_ns, ended_ns = (
        None if row[name] is None else row[name] * NS_PER_US for name in _TIMES
    )
    return Boundary(created_ns, started_ns, ended_ns, row.received_us * NS_PER_US)

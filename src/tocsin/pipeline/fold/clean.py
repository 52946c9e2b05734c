"""Clean: which records can be used, which cannot and why, and which are repetitions."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tocsin.monitor.alerts.messages import SOURCE
from tocsin.monitor.states import CLOCK_OFF_S_MIN, DELAY_S_MAX
from tocsin.pipeline.derive.usage import WATCHED
from tocsin.pipeline.fold.attempts import is_zone_apart, seconds_between
from tocsin.pipeline.spark.broadcast import Keep
from tocsin.tables.schemas import EVENTS, QUARANTINE
from tocsin.wire.blackboard.normal import TYPE_PREFIX

NOTE_COLUMNS: Final = ("seq", "at", "id", "source", "type", "run", "attributes", "plan")
NOTED: Final = (
    *("WorkflowName", "WorkflowVersion", "PreviousVersion", "ChangeDetail", "evolution"),
    "ActivityType",
)
JUDGED_BY: Final = ("WorkflowName", "evolution")
NAME_BYTES_MAX: Final = 64 << 10  # of an id, a source, a type: no listener takes more
EXCERPT_CHARS: Final = 200
# A clock may be years off, and what it stamped is an event all the same. But none shows these: -1,
# as Kafka writes where there is no time, or a year that most readers do not know.
EARLIEST: Final = {"received": "1970-01-01T00:00:00Z", "at": "0001-01-01T00:00:00Z"}
LATEST: Final = "9999-12-31T00:00:00Z"
SAME: Final = ("key", "check")  # what a repetition is known by
LATE_S: Final = 600.0  # an event that comes so long after it happened counts as late


def reason() -> Column:
    """Why a record of the archive cannot be used; null for one that can."""
    return F.coalesce(
        _at_a_glance(),
        F.when(
            _is_no_message(), F.lit("it should be a message, and its data is not a JSON object")
        ).when(_is_nobodys(), F.lit("its RunId is too long or not printable")),
    )


def _at_a_glance() -> Column:
    """The same, as far as that can be known without the data, which is most of what is read."""
    found = F.when(F.coalesce(F.col("seq"), F.lit(0)) < 1, F.lit("it has no sequence number"))
    for name in ("id", "source", "type"):
        found = found.when(
            F.coalesce(F.octet_length(name), F.lit(0)) == 0, F.lit(f"it has no {name}")
        ).when(F.octet_length(name) > NAME_BYTES_MAX, F.lit(f"its {name} is too long to be one"))
    for name in ("received", "at"):
        found = found.when(F.col(name).isNull(), F.lit(f"it has no time ({name})"))
    for name in ("topic", "subject", "run", "activity"):
        found = found.when(F.octet_length(name) > NAME_BYTES_MAX, F.lit(f"its {name} is too long"))
    for name in EARLIEST:
        found = found.when(~_is_shown(name), F.lit(f"its time ({name}) is out of range"))
    return found


def _is_shown(name: str) -> Column:
    """Whether any clock shows such a time."""
    between = (F.lit(each).cast("timestamp") for each in (EARLIEST[name], LATEST))
    return F.col(name).between(*between)


def as_judged(records: DataFrame) -> DataFrame:
    """With no more of what a message has than is needed to judge it. Beyond a join, Spark would
    read all of it."""
    members = (F.col(f"facts.{name}").alias(name) for name in JUDGED_BY)
    return records.withColumn("facts", F.struct(*members))


def _says_nothing() -> Column:
    """A message of the blackboard that no fact was read from. (`facts` is null then; but to ask for
    that, Spark would read all of its hundred members.)"""
    is_message = F.col("type").startswith(TYPE_PREFIX) & (F.col("source") != SOURCE)
    members = (F.col(f"facts.{name}").isNull() for name in JUDGED_BY)
    return reduce(Column.__and__, (is_message, F.col("run").isNull(), *members))


def _is_no_message() -> Column:
    """It cannot be read."""
    is_text = F.is_valid_utf8(F.col("data").cast("string"))
    is_object = F.ltrim(_text()).startswith("{") & F.get_json_object(_text(), "$").isNotNull()
    return _says_nothing() & ~F.coalesce(is_text & is_object, F.lit(False))


def _is_nobodys() -> Column:
    """It says of which run it is, and nobody could ask for a run of that name."""
    return _says_nothing() & F.get_json_object(_text(), "$.RunId").isNotNull()


def _text() -> Column:
    return F.make_valid_utf8(F.col("data").cast("string"))


def set_aside(bad: DataFrame) -> DataFrame:
    """Bad records as the quarantine shows them."""
    excerpt = F.substring(_text(), 1, EXCERPT_CHARS)
    short = {name: F.substring(name, 1, EXCERPT_CHARS) for name in ("id", "source", "type")}
    # A time that no clock shows is also one that most readers cannot show.
    received = F.when(_is_shown("received"), F.col("received"))
    columns = {"file": F.col("file"), "excerpt": excerpt, "received": received, **short}
    return bad.withColumns(columns).select(*QUARANTINE.names)


def keys_of(clean: DataFrame) -> DataFrame:
    """What a repetition is known by: two hashes of source and id, 96 bits together."""
    return clean.select(
        F.xxhash64("source", "id").alias("key"), F.hash("id", "source").alias("check"), "seq"
    )


def repetitions(keys: DataFrame, known: DataFrame | None, keep: Keep) -> DataFrame:
    """The sequence numbers of events that were there before: in this part, or those `known`."""
    same = list(SAME)
    firsts = keys.groupBy(*same).agg(F.min("seq").alias("first"), F.count("*").alias("times"))
    twice = keep(firsts.where("times > 1").drop("times"))
    again = keys.join(twice, same).where("seq > first").select("seq")
    return keep(again if known is None else again.unionByName(known).distinct())


def notes_of(usable: DataFrame) -> DataFrame:
    """What later steps ask of single messages: samples of hosts, how workflows evolved, plans."""
    noted = F.col("type").isin(*WATCHED) | F.col("facts.evolution").isNotNull()
    facts = F.struct(*(F.col(f"facts.{name}").alias(name) for name in NOTED))
    kept = (F.col("run").isNull() & noted) | F.col("plan").isNotNull()
    return usable.where(kept).select(*NOTE_COLUMNS, facts.alias("facts"))


def is_clock_off() -> Column:
    """True if the clock that dated the event was wrong, rather than the event late: it differs from
    the broker's by whole time zones, or by more than a year.

    By the event alone, so that the answer does not depend on which others are folded with it. One
    of sixty events that are an hour to a day late happens to be late by that.
    """
    delay_s = _delay_s()
    return is_zone_apart(delay_s, DELAY_S_MAX) & (delay_s > 0) | (delay_s >= CLOCK_OFF_S_MIN)


def _delay_s() -> Column:
    return seconds_between(F.col("at"), F.col("received"))


def events_of(once: DataFrame) -> DataFrame:
    """The table of events."""
    late_s = F.when(is_clock_off(), F.lit(0.0)).otherwise(F.greatest(_delay_s(), F.lit(0.0)))
    columns = {"workflow": F.col("facts.WorkflowName"), "late_s": late_s}
    return once.withColumns(columns).select(*EVENTS.names)

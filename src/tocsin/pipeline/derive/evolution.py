"""Evolution: the versions of each workflow, what was changed, and what became of durations."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from tocsin.pipeline.spark.schemas import fitted

VERSION: Final = ("workflow", "version")
SAVED: Final = ("VersionSaved", "VersionForked")
GREW: Final = 1.1
SHRANK: Final = 0.9
# A version of which more changed is another workflow; a cell of a table is to be read by people.
NAMES_MAX: Final = 100
CHANGE_CHARS_MAX: Final = 300
_CLASSES: Final = ("slower", "faster", "added", "removed")


def evolution(runs: DataFrame, stats: DataFrame, messages: DataFrame) -> DataFrame:
    """One row for each version that a run had or a message announced.

    `stats` are the rows of activity_stats. A workflow whose runs have no version has one row.
    """
    versions = _linked(_versions(runs, _announced(messages)))
    links = versions.where(F.col("previous").isNotNull()).select(*VERSION, "previous")
    joined = _beside(versions).join(_compared(links, stats), on=list(VERSION), how="left")
    none = F.array().cast("array<string>")
    lists = {name: F.coalesce(name, none) for name in _CLASSES}
    ratio = F.try_divide(F.col("p50_s"), F.col("p50_before"))
    return fitted(joined.withColumns({**lists, "ratio": ratio}), "evolution")


def _announced(messages: DataFrame) -> DataFrame:
    """Messages about a version, as the monitor takes them: those that are of no run."""
    about = messages.where(
        F.col("facts.evolution").isNotNull()
        & F.col("run").isNull()
        & (F.col("facts.WorkflowName") != "")
    ).select(
        "source",
        "id",
        "seq",
        "at",
        F.col("facts.evolution").alias("concept"),
        F.col("facts.WorkflowName").alias("workflow"),
        F.coalesce("facts.WorkflowVersion", F.lit("")).alias("version"),
        F.col("facts.PreviousVersion").alias("previous"),
        F.col("facts.ChangeDetail").alias("detail"),
        F.col("facts.ActivityType").alias("activity"),
    )
    again = Window.partitionBy("source", "id").orderBy("seq")
    once = about.withColumn("time", F.row_number().over(again)).where(F.col("time") == 1)
    is_change = F.col("concept") != "VersionSaved"
    in_order = Window.partitionBy(*VERSION, is_change).orderBy("seq")
    is_shown = is_change & (F.row_number().over(in_order) <= NAMES_MAX)
    text = F.substring(_in_words(), 1, CHANGE_CHARS_MAX).alias("text")
    saved = F.when(F.col("concept").isin(*SAVED), F.struct("seq", "previous"))
    return once.select(
        *VERSION,
        F.col("at").alias("begin"),
        F.col("at").alias("end"),
        saved.alias("saved"),
        F.when(is_shown, F.struct("seq", text)).alias("change"),
    )


def _in_words() -> Column:
    """As in "ParameterChanged align: parameter precision, 0.1 -> 0.2"."""
    detail = F.col("detail")

    def member(name: str) -> Column:
        return F.get_json_object(detail, f"$.{name}")

    nothing = F.lit("nothing")
    moved = F.when(
        member("was").isNotNull() | member("is").isNotNull(),
        F.concat(
            F.coalesce(member("was"), nothing), F.lit(" -> "), F.coalesce(member("is"), nothing)
        ),
    )
    said = F.nullif(F.concat_ws(", ", member("what"), moved), F.lit(""))
    subject = F.concat_ws(" ", "concept", "activity")
    return F.concat_ws(": ", subject, F.coalesce(said, detail))


def _versions(runs: DataFrame, announced: DataFrame) -> DataFrame:
    """What runs and messages say of each version, together."""
    done = F.when(F.col("state") == "completed", F.col("duration_s"))
    of_runs = runs.where(F.col("workflow") != "").select(
        "workflow",
        F.coalesce("version", F.lit("")).alias("version"),
        F.coalesce("started", "created", "last_event").alias("begin"),
        F.coalesce("last_event", "ended", "started").alias("end"),
        "state",
        done.alias("lasted"),
    )
    both = of_runs.unionByName(announced, allowMissingColumns=True)
    state = F.col("state")
    changes = F.transform(F.array_sort(F.collect_list("change")), lambda each: each.text)
    # Runs are far fewer than attempts: their different durations fit in memory.
    return both.groupBy(*VERSION).agg(
        F.min("begin").alias("first_seen"),
        F.max("end").alias("last_seen"),
        F.count("state").alias("runs"),
        F.count_if(state == "completed").alias("completed"),
        F.count_if(state == "failed").alias("failed"),
        F.avg("lasted").alias("mean_s"),
        F.percentile("lasted", F.lit(0.5)).alias("p50_s"),
        F.percentile("lasted", F.lit(0.9)).alias("p90_s"),
        F.max("saved").alias("saved"),
        changes.alias("changes"),
    )


def _linked(versions: DataFrame) -> DataFrame:
    """Each with the one before: as it was recorded, or else the one that was seen before it."""
    in_time = Window.partitionBy("workflow").orderBy("first_seen", "version")
    seen = F.nullif(F.lag("version").over(in_time), F.lit(""))
    recorded = F.nullif(F.col("saved.previous"), F.lit(""))
    recorded = F.when(recorded != F.col("version"), recorded)
    previous = F.when(F.col("saved").isNotNull(), recorded).otherwise(seen)
    return versions.withColumn("previous", previous)


def _beside(versions: DataFrame) -> DataFrame:
    """Each version with the median of the one before.

    Every version both asks and is asked, so that all it took to make them is done once: as a join
    with itself it would be done twice.
    """
    asks = F.struct(F.col("previous").alias("of"), F.lit(None).cast("double").alias("known_p50"))
    is_asked = F.struct(F.col("version").alias("of"), F.col("p50_s").alias("known_p50"))
    met = Window.partitionBy("workflow", "of")
    return (
        versions.select("*", F.posexplode(F.array(asks, is_asked)).alias("role", "it"))
        .select("*", "it.*")
        .withColumn("p50_before", F.max("known_p50").over(met))
        .where(F.col("role") == 0)
        .drop("role", "it", "of", "known_p50")
    )


def _compared(links: DataFrame, stats: DataFrame) -> DataFrame:
    """The activities that a version has otherwise than the one before; where both ran."""
    medians = stats.where(F.col("activity").isNotNull()).select(*VERSION, "activity", "p50_s")
    now = medians.select(*VERSION, "activity", F.struct("p50_s").alias("now"))
    earlier = medians.select(
        "workflow", F.col("version").alias("previous"), "activity", F.struct("p50_s").alias("then")
    )
    then = links.join(earlier, on=["workflow", "previous"]).drop("previous")
    both = now.unionByName(then, allowMissingColumns=True)
    activities = both.groupBy(*VERSION, "activity").agg(
        F.max("now").alias("now"), F.max("then").alias("then")
    )
    whole = Window.partitionBy(*VERSION)
    ran = (F.count("now").over(whole) > 0) & (F.count("then").over(whole) > 0)
    ratio = F.try_divide(F.col("now.p50_s"), F.col("then.p50_s"))
    compared = activities.withColumn("ran", ran).where("ran")
    classed = compared.select(
        *VERSION, "activity", _class(ratio).alias("class"), _rank(ratio).alias("rank")
    ).where(F.col("class").isNotNull())
    most = Window.partitionBy(*VERSION, "class").orderBy("rank", "activity")
    few = classed.withColumn("number", F.row_number().over(most))
    return (
        few.where(F.col("number") <= NAMES_MAX)
        .groupBy(*VERSION)
        .agg(*(_listed(name).alias(name) for name in _CLASSES))
    )


def _class(ratio: Column) -> Column:
    return (
        F.when(F.col("then").isNull(), "added")
        .when(F.col("now").isNull(), "removed")
        .when(ratio >= GREW, "slower")
        .when(ratio <= SHRANK, "faster")
    )


def _rank(ratio: Column) -> Column:
    """What changed most comes first."""
    return F.when(ratio >= 1, -ratio).otherwise(F.coalesce(ratio, F.lit(0.0)))


def _listed(name: str) -> Column:
    those = F.when(F.col("class") == name, F.struct("number", "activity"))
    return F.transform(F.array_sort(F.collect_list(those)), lambda each: each.activity)

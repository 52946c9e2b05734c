"""TableBuilder: from the merged state to a new version of every table.

Each step is a function from DataFrame to DataFrame. What several steps need is written once and
read again: a table on disk, with the columns that a step asks for, is read faster than it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from tocsin.archive.file_names import DEADLETTERS, DELIVERIES, DISCOVERIES
from tocsin.pipeline.derive.costs import cost_models
from tocsin.pipeline.derive.deliveries import deliveries
from tocsin.pipeline.derive.discoveries import discoveries
from tocsin.pipeline.derive.estimates import estimates
from tocsin.pipeline.derive.evolution import evolution
from tocsin.pipeline.derive.failures import failures
from tocsin.pipeline.derive.stats import activity_stats
from tocsin.pipeline.derive.usage import activity_usage, host_usage
from tocsin.pipeline.fold.runs import run_rows, with_activities, with_runs
from tocsin.pipeline.locations import on_this_disk
from tocsin.pipeline.partials.merged_state import added, merged_attempts, merged_runs
from tocsin.pipeline.partials.partial import Sizes, quarantined
from tocsin.pipeline.publish.edition import Edition
from tocsin.pipeline.quality import findings, require
from tocsin.pipeline.read.samples import Samples
from tocsin.pipeline.spark.parallel import run_parallel
from tocsin.pipeline.spark.parquet import read, write, write_one_file
from tocsin.pipeline.spark.schemas import fitted, table_schema
from tocsin.pipeline.state import Partial, State
from tocsin.tables.published import Manifest
from tocsin.tables.schemas import QUARANTINE

QUARANTINE_ROWS_MAX: Final = 1_000_000  # of which each is shown; the rest is counted

Step = Callable[[str], None]


class TableBuilder:
    """One edition of the tables, from the parts that there are."""

    def __init__(
        self, spark: SparkSession, state: State, samples: Samples, sizes: Sizes, silence_s: float
    ) -> None:
        self._spark = spark
        self._parts: Sequence[Partial] = state.partials()
        self._state_id = state.id
        self._samples = samples
        self._sizes = sizes
        self._silence_s = silence_s
        self._edition = Edition(state.tables)
        moments = [each.facts.as_of for each in self._parts if each.facts.as_of is not None]
        self._as_of = max(moments, default=None)

    def build(self, now: datetime, step: Step) -> Manifest:
        """Make, check and publish. If anything fails, the tables are as they were."""
        try:
            if self._parts:
                self._make_all(self._as_of or now, step)
                step("quality")
                require(findings(self.table))
            return self._edition.publish(
                now,
                max((each.facts.last for each in self._parts), default=0),
                self._as_of,
                added(self._parts),
                self._samples.fingerprint(),
                self._state_id,
                self._samples.window,
            )
        except BaseException:
            self._edition.give_up()
            raise

    def table(self, name: str) -> DataFrame:
        """A table of this edition, as far as it is made."""
        directory = on_this_disk(self._edition.table_directory(name))
        return self._spark.read.schema(table_schema(name)).parquet(directory)

    def _make_all(self, as_of: datetime, step: Step) -> None:
        step("activities")
        runs = run_rows(merged_runs(self._spark, self._parts, self._sizes), as_of, self._silence_s)
        runs = runs.persist()
        attempts = merged_attempts(self._spark, self._parts, self._sizes)
        everything = fitted(with_runs(attempts, runs), "activities")
        write(everything, self._edition.table_directory("activities"), None)
        activities = self.table("activities")
        step("runs")
        self._write("runs", with_activities(runs, activities))
        runs.unpersist()
        step("events")
        self._edition.link("events", [f for each in self._parts for f in each.files("events")])
        self._make_summaries(activities, self.table("runs"), as_of, step)

    def _make_summaries(
        self, activities: DataFrame, runs: DataFrame, as_of: datetime, step: Step
    ) -> None:
        events, notes = self.table("events"), read(self._spark, self._parts, "notes")
        steps: dict[str, Callable[[], DataFrame]] = {
            "activity_stats": lambda: activity_stats(activities),
            "cost_models": lambda: cost_models(activities),
            "estimates": lambda: estimates(runs, activities, as_of),
            "failures": lambda: failures(activities, events),
            "evolution": lambda: evolution(runs, self.table("activity_stats"), notes),
            "host_usage": lambda: host_usage(notes, activities),
            "activity_usage": lambda: activity_usage(activities),
            "deliveries": lambda: deliveries(
                self._samples.of(DELIVERIES), self._samples.of(DEADLETTERS)
            ),
            "discoveries": lambda: discoveries(self._samples.of(DISCOVERIES)),
            "quarantine": self._quarantine,
        }
        in_turn = ("activity_stats", "evolution")  # the latter is made of the former
        alone = [name for name in steps if name not in in_turn]
        run_parallel(
            partial(self._make_each, {name: steps[name] for name in names}, step)
            for names in (in_turn, *((name,) for name in alone))
        )

    def _make_each(self, steps: Mapping[str, Callable[[], DataFrame]], step: Step) -> None:
        for name, made in steps.items():
            self._make(name, made, step)

    def _make(self, name: str, made: Callable[[], DataFrame], step: Step) -> None:
        step(name)
        self._write(name, made())

    def _quarantine(self) -> DataFrame:
        aside = read(self._spark, self._parts, "quarantine").select(*QUARANTINE.names)
        named = quarantined(self._spark, self._samples.unreadable())
        return named.unionByName(aside).limit(QUARANTINE_ROWS_MAX)

    def _write(self, name: str, rows: DataFrame) -> None:
        write_one_file(fitted(rows, name), self._edition.table_directory(name))

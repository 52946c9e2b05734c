"""The tables of the pipeline by Polars, from the archive's own Parquet: a peer of our Spark job.

    POLARS_MAX_THREADS=2 python bench/pipeline_polars.py --archive DIR --tables DIR

Lazy, on the streaming engine; what is used more than once is kept as Parquet beside the tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

import pipeline_fold_polars as fold
import pipeline_polars_attempts as states
import pipeline_polars_derive as derive
import pipeline_polars_history as history
import pipeline_polars_usage as usage
import pipeline_steps
from tocsin.archive.tables import TABLES
from tocsin.monitor.alerts.messages import SOURCE
from tocsin.wire.blackboard.normal import TYPE_PREFIX

NAME_CHARS_MAX: Final = 64 << 10  # of an id, a source, a type: no door takes more
EXCERPT_CHARS: Final = 200
PLACE: Final = "place"  # of a record in the archive


class Making:
    """One run over an archive. Each table is a step from those before."""

    def __init__(self, archive: Path, tables: Path) -> None:
        self._archive = archive
        self._tables = tables
        self._kept = tables / ".kept"
        self._kept.mkdir(parents=True, exist_ok=True)
        self._aside: pl.Series = pl.Series(PLACE, [], pl.UInt32)
        self._now = pl.lit(None)
        self._repeated = pl.LazyFrame(schema={"seq": pl.Int64})

    def make(self) -> Iterator[tuple[str, int]]:
        yield "quarantine", self._write("quarantine", self._quarantine())
        yield "events", self._write("events", self._events())
        # What is under way is seen as it was when the last event was received.
        latest = self._table("events").select(pl.col("received").max()).collect()
        self._now = pl.lit(latest.item()).cast(states.MOMENT)
        runs = self._keep("told_runs", states.told_runs(self._run_cells(), self._now))
        yield "activities", self._write("activities", self._activities(runs))
        attempts = self._table("activities")
        yield "runs", self._write("runs", states.with_activities(runs, attempts))
        for name, table in self._derived(attempts):
            yield name, self._write(name, table)
        shutil.rmtree(self._kept)

    # Sources

    def _raw(self) -> pl.LazyFrame:
        files = str(self._archive / "date=*" / "*.parquet")
        return pl.scan_parquet(
            files, hive_partitioning=False, row_index_name=PLACE, include_file_paths="file"
        )

    def _clean(self) -> pl.LazyFrame:
        texts = [pl.col(name) != "" for name in ("id", "source", "type")]
        moments = [pl.col(name).is_not_null() for name in ("received", "at")]
        usable = pl.all_horizontal(pl.col("seq") > 0, *texts, *moments)
        return self._raw().filter(usable, ~pl.col(PLACE).is_in(self._aside.implode()))

    def _messages(self) -> pl.LazyFrame:
        """What tells of runs, our own words apart: those are no news."""
        return self._clean().filter(pl.col("run").is_not_null(), pl.col("source") != SOURCE)

    # Tables

    def _quarantine(self) -> pl.LazyFrame:
        raw = self._raw()
        silent = (
            raw.filter(
                pl.col("type").str.starts_with(TYPE_PREFIX),
                pl.col("source") != SOURCE,
                pl.col("run").is_null(),
            )
            .select(PLACE, "data")
            .collect(engine="streaming")
        )
        reasons = pl.Series("why", [_why(data) for data in silent["data"]], pl.String)
        unheard = silent.select(PLACE).with_columns(reasons).drop_nulls()
        bad = _reason(pl.Series(PLACE, [], pl.UInt32), unheard).is_not_null()
        twice = raw.select("seq").group_by("seq").len().filter(pl.col("len") > 1).select("seq")
        again = (
            raw.filter(pl.col("seq") > 0)
            .select("seq", PLACE, "received", "source", "id", bad=bad)
            .join(twice, on="seq", how="semi")
            .sort("seq", "bad", "received", "source", "id")
            .filter(pl.int_range(pl.len()).over("seq") > 0)
            .select(PLACE)
            .collect(engine="streaming")[PLACE]
        )
        judged = raw.with_columns(reason=_reason(again, unheard)).filter(
            pl.col("reason").is_not_null()
        )
        found = judged.select(
            PLACE, "file", "seq", "received", "id", "source", "type", "reason", "data"
        ).collect(engine="streaming")
        self._aside = found[PLACE]
        excerpts = [_excerpt(data) for data in found["data"]]
        return found.lazy().with_columns(
            *(pl.col(name).str.slice(0, EXCERPT_CHARS) for name in ("id", "source", "type")),
            seq=pl.when(~pl.col(PLACE).is_in(again.implode())).then("seq"),
            excerpt=pl.Series(excerpts, dtype=pl.String),
        )

    def _events(self) -> pl.LazyFrame:
        clean = self._clean()
        key = pl.struct("source", "id").hash().alias("key")
        twice = clean.select(key).group_by("key").len().filter(pl.col("len") > 1).select("key")
        again = (
            clean.select("seq", "source", "id", key)
            .join(twice, on="key", how="semi")
            .sort("seq")
            .filter(pl.int_range(pl.len()).over("source", "id") > 0)
            .select("seq")
        )
        self._repeated = again = self._keep("repeated", again)
        late_s = states.seconds_between(pl.col("at"), pl.col("received"))
        return clean.join(again, on="seq", how="anti").with_columns(
            workflow=pl.col("told").struct.field("WorkflowName"),
            late_s=pl.when(states.is_clock_off(late_s))
            .then(0.0)
            .otherwise(pl.max_horizontal(late_s, pl.lit(0.0))),
        )

    def _run_cells(self) -> pl.LazyFrame:
        told = (pl.col("told").struct.field(name) for name in fold.members("run"))
        rows = self._messages().select("run", "activity", "seq", "at", "received", "plan", *told)
        cells = rows.select(
            "run",
            ord=fold.order_of(fold.AT),
            has_plan=pl.col("plan").is_not_null(),
            **fold.message_cells("run"),
        )
        merged = cells.group_by("run").agg(
            has_plan=pl.col("has_plan").any(), **fold.merged_cells("run")
        )
        return self._keep("run_cells", merged)

    def _activities(self, runs: pl.LazyFrame) -> pl.LazyFrame:
        cells = self._keep("attempt_cells", self._attempt_cells())
        joined = cells.join(self._lists(), on=states.ATTEMPT, how="left")
        timed = self._keep("timed", states.timed_attempts(states.whole_attempts(joined)))
        attempts = timed.join(states.faults(timed), on=states.ATTEMPT, how="left")
        return states.standing(attempts, runs)

    def _attempt_cells(self) -> pl.LazyFrame:
        told = (pl.col("told").struct.field(name) for name in fold.members("activity"))
        rows = (
            self._messages()
            .filter(pl.col("activity").is_not_null())
            .select("run", "activity", "attempt", "seq", "at", "received", *told)
        )
        cells = rows.select(
            *("run", "attempt", pl.col("activity").alias("id")),
            ord=fold.order_of(fold.AT),
            **fold.message_cells("activity"),
        )
        both = pl.concat([cells, self._planned()], how="diagonal")
        type_ord = pl.when(pl.col("type").is_not_null()).then(pl.col("ord")).max()
        return both.group_by(states.ATTEMPT).agg(type_ord=type_ord, **fold.merged_cells("activity"))

    def _tasks(self) -> pl.LazyFrame:
        return (
            self._messages()
            .filter(pl.col("plan").is_not_null())
            .join(self._repeated, on="seq", how="anti")
            .select("run", "seq", "at", "plan")
            .explode("plan")
            .unnest("plan")
            .filter(pl.col("id").is_not_null())
            .with_columns(attempt=pl.lit(1, pl.Int32))
        )

    def _planned(self) -> pl.LazyFrame:
        return self._tasks().select(
            *("run", "id", "attempt", "type", "external_bytes"),
            ord=fold.order_of(fold.AT),
            state=fold.state_number(0, fold.AT, "activity", "planned"),
        )

    def _lists(self) -> pl.LazyFrame:
        """Lists of texts, united: few messages have some."""
        lists = {"inputs": "InputFile", "outputs": "OutputFile", "parents": "ParentActivity"}
        told = {name: pl.col("told").struct.field(concept) for name, concept in lists.items()}
        rows = (
            self._messages()
            .filter(pl.col("activity").is_not_null())
            .select("run", "attempt", pl.col("activity").alias("id"), **told)
            .filter(pl.any_horizontal(pl.col(name).is_not_null() for name in lists))
        )
        planned = self._tasks().select("run", "id", "attempt", "parents")
        planned = planned.filter(pl.col("parents").is_not_null())
        both = pl.concat([rows, planned], how="diagonal")
        united = {name: pl.col(name).explode().drop_nulls().unique().sort() for name in lists}
        was_told = {f"has_{name}": pl.col(name).is_not_null().any() for name in lists}
        # A list that was told to be empty is one; a list of which nothing was told is none.
        return (
            both.group_by(states.ATTEMPT)
            .agg(**united, **was_told)
            .with_columns(pl.when(f"has_{name}").then(pl.col(name)).alias(name) for name in lists)
            .drop(was_told)
        )

    def _derived(self, attempts: pl.LazyFrame) -> Iterator[tuple[str, pl.LazyFrame]]:
        events, runs = self._table("events"), self._table("runs")
        yield "activity_stats", derive.activity_stats(attempts)
        yield "cost_models", derive.cost_models(attempts)
        yield "estimates", history.estimates(runs, attempts, self._now)
        yield "failures", derive.failures(attempts, events)
        stats = self._table("activity_stats")
        yield "evolution", history.evolution(runs, stats, self._told_of_versions())
        yield "host_usage", usage.host_usage(attempts, events)
        yield "activity_usage", usage.activity_usage(attempts)
        letters = self._samples("_deadletters")
        yield "deliveries", usage.deliveries(self._samples("_deliveries"), letters)
        yield "discoveries", usage.discoveries(self._samples("_discoveries"))

    def _told_of_versions(self) -> pl.LazyFrame:
        """Messages about a version of a workflow, each once."""
        told = pl.col("told").struct
        return (
            self._clean()
            .filter(pl.col("run").is_null())
            .select(
                *("seq", "source", "id", "at"),
                concept=told.field("evolution"),
                workflow=told.field("WorkflowName"),
                version=told.field("WorkflowVersion"),
                previous=told.field("PreviousVersion"),
                detail=told.field("ChangeDetail"),
                activity=told.field("ActivityType"),
            )
            .filter(pl.col("concept").is_not_null(), pl.col("workflow").is_not_null())
            .sort("seq")
            .unique(["source", "id"], keep="last", maintain_order=True)
        )

    def _samples(self, name: str) -> pl.LazyFrame:
        files = str(self._archive / name / "*" / "*.parquet")
        return pl.scan_parquet(files, hive_partitioning=False)

    # Files

    def _keep(self, name: str, frame: pl.LazyFrame) -> pl.LazyFrame:
        path = self._kept / f"{name}.parquet"
        frame.sink_parquet(path, compression="lz4", engine="streaming")
        return pl.scan_parquet(path)

    def _write(self, name: str, frame: pl.LazyFrame) -> int:
        path = self._tables / name / "part-0.parquet"
        path.parent.mkdir(parents=True)
        frame.select(TABLES[name].names).sink_parquet(path, compression="zstd", engine="streaming")
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())

    def _table(self, name: str) -> pl.LazyFrame:
        return pl.scan_parquet(self._tables / name / "*.parquet")


def _reason(again: pl.Series, unheard: pl.DataFrame) -> pl.Expr:
    """Why a record of the archive cannot be used; null for one that can."""
    place, seq = pl.col(PLACE), pl.col("seq")
    found = pl.when(place.is_in(again.implode()) | (seq.fill_null(0) < 1)).then(
        pl.lit("it has no sequence number")
    )
    for name in ("id", "source", "type"):
        length = pl.col(name).str.len_chars()
        found = found.when(length.fill_null(0) == 0).then(pl.lit(f"it has no {name}"))
        found = found.when(length > NAME_CHARS_MAX).then(
            pl.lit(f"its {name} is too long to be one")
        )
    for name in ("received", "at"):
        found = found.when(pl.col(name).is_null()).then(pl.lit(f"it has no time ({name})"))
    for name in ("topic", "subject", "run", "activity"):
        is_long = pl.col(name).str.len_chars() > NAME_CHARS_MAX
        found = found.when(is_long).then(pl.lit(f"its {name} is too long"))
    for (why,), those in unheard.group_by("why"):
        found = found.when(place.is_in(those[PLACE].implode())).then(pl.lit(why))
    return found


def _why(data: bytes | None) -> str | None:
    """Why nothing was heard of a message; None if there is nothing wrong with it."""
    try:
        members = json.loads((data or b"").decode())
    except ValueError:
        members = None
    if not isinstance(members, dict):
        return "it should be a message, and its data is not a JSON object"
    return None if members.get("RunId") is None else "its RunId is too long or not printable"


def _excerpt(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")[:EXCERPT_CHARS]


def make(archive: Path, tables: Path) -> Iterator[tuple[str, int]]:
    return Making(archive.resolve(), tables).make()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    pipeline_steps.main(parser, make)

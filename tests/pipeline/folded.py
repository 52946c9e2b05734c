"""The first half of a run: what is new is folded into the state, and no table is made."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tocsin.pipeline.job import Job, Taken, take_in
from tocsin.pipeline.state import State


def taken(spark: SparkSession, job: Job) -> Taken:
    state = State(job.tables)
    with state.held():
        state.agree_on(job.window)
        return take_in(spark, state, job, lambda step: None)

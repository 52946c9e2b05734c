"""Registering: `format("tocsin")` made known to a session."""

from __future__ import annotations

import logging
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tocsin.pipeline.source import native
from tocsin.pipeline.source.data_source import TocsinSource
from tocsin.pipeline.spark import session as sessions
from tocsin.pipeline.spark.spark_errors import with_cause

_log: Final = logging.getLogger(__name__)


def session(master: str = "local[*]") -> SparkSession:
    """The session there is, or one on that master, with the format registered."""
    if SparkContext._active_spark_context is None:
        return register(sessions.session(master))
    return register(SparkSession.Builder().getOrCreate())  # as it is, also in another thread


def register(spark: SparkSession) -> SparkSession:
    """Make the format known to the session, and have Spark itself read archives for it.

    Where that cannot be, as over Spark Connect, they are read through Python, as they are without
    registration. Gives the session back.
    """
    if not isinstance(spark, SparkSession):  # over Connect it is another, and Java is elsewhere
        spark.dataSource.register(TocsinSource)
        return spark
    if not native.is_found(spark, TocsinSource.name()):
        spark.dataSource.register(TocsinSource)
    try:
        native.read_natively(spark)
    except (Py4JError, native.NotThisSpark) as error:
        _log.warning("archives are read through Python, which is slower: %s", with_cause(error))
    return spark

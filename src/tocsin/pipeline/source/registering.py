"""Registering: `format("tocsin")` made known to a session."""

from __future__ import annotations

import logging
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tocsin.pipeline import session as sessions
from tocsin.pipeline.source import native
from tocsin.pipeline.source.spark import TocsinSource

_log: Final = logging.getLogger(__name__)


def session(master: str = "local[*]") -> SparkSession:
    """The session there is, or one on that master, with the format registered."""
    return register(SparkSession.getActiveSession() or sessions.session(master))


def register(spark: SparkSession) -> SparkSession:
    """Make the format known to the session, and have Spark itself read archives for it.

    Where that cannot be, as over Spark Connect, they are read through Python, as they are without
    registration. Gives the session back.
    """
    if not isinstance(spark, SparkSession):  # over Connect it is another, and Java is elsewhere
        spark.dataSource.register(TocsinSource)
        return spark
    try:
        if not native.is_found(spark, TocsinSource.name()):
            spark.dataSource.register(TocsinSource)
        native.read_natively(spark)
    except (Py4JError, native.NotThisSpark) as error:
        _log.warning("archives are read through Python, which is slower: %s", error)
    return spark

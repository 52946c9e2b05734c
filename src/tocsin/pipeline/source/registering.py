"""Registering: `format("tocsin")` made known to a session."""

from __future__ import annotations

import logging
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tocsin.pipeline.source.spark import TocsinSource

_log: Final = logging.getLogger(__name__)


def register(spark: SparkSession) -> SparkSession:
    """Make the format known to the session, and have Spark itself read archives for it.

    Where that cannot be, as over Spark Connect, they are read through Python, as they are without
    registration. Gives the session back.
    """
    spark.dataSource.register(TocsinSource)
    if not isinstance(spark, SparkSession):
        return spark  # over Connect, Java is elsewhere
    from tocsin.pipeline.source.native import read_natively

    try:
        read_natively(spark)
    except (Py4JError, ValueError, AttributeError, TypeError) as error:
        _log.warning("archives are read through Python, which is slower: %s", error)
    return spark

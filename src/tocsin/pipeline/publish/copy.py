"""The current version of the tables, copied to where others read it.

It is made and published here first. If it cannot be copied, it stands here all the same, and the
next run tries again, whether or not there is anything new.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tocsin.errors.pipeline import BadPipelineOption, PublicationFailed
from tocsin.pipeline.kafka.client import require_connector
from tocsin.pipeline.locations import KafkaLocation, is_kafka, shown
from tocsin.pipeline.publish.files import SCHEMES, copy_files
from tocsin.pipeline.publish.kafka import copy_rows
from tocsin.tables.published import published


def check_target(spark: SparkSession, url: str) -> None:
    """Whether tables could be sent there at all, before any are made."""
    if is_kafka(url):
        KafkaLocation.parse(url)
        require_connector(spark)
        return
    scheme, separator, _ = url.partition("://")
    if separator and scheme not in SCHEMES:
        raise BadPipelineOption(
            f"tables cannot be published to {shown(url)}",
            remedy=f"Name a directory, or an address that begins with {', '.join(SCHEMES)} or "
            "kafka, and then ://.",
        )


def send(spark: SparkSession, tables: Path, url: str) -> bool:
    """Copy the edition that stands, unless it is there already. True if it was copied.

    Raises PublicationFailed.
    """
    found = published(tables)
    if found is None:
        return False
    try:
        return copy_rows(spark, tables, found, url) if is_kafka(url) else copy_files(found, url)
    except OSError as error:
        words = " ".join(str(error).split())[:300]
        raise PublicationFailed(
            f"version {found.version} could not be copied to {shown(url)}: {words}",
            remedy=f"It stands in {tables} as it is; the next run tries again.",
        ) from error

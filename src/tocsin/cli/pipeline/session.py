"""The Spark session that a command of the pipeline starts, by how much there is to do."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from tocsin.errors.pipeline import BadPipelineOption, PipelineFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tocsin.pipeline.job import Job
    from tocsin.pipeline.spark.session import Purpose

# Below it, starting and compiling take longer than the work: a session for small queries is faster.
SMALL_BYTES: Final = 48 << 20
TINY_BYTES: Final = 5 << 20  # below it, that is also true of the code that Spark generates
BYTES_AN_EVENT: Final = 85  # in an archive, compressed


def session_for(arguments: Namespace, job: Job) -> SparkSession:
    """One that suits the archive, with the settings that were given."""
    from tocsin.pipeline.job import SETTINGS
    from tocsin.pipeline.spark.session import GENERATED

    # A stream that goes on meets more than there is now.
    goes_on = arguments.action == "stream" and not arguments.once
    size = SMALL_BYTES if goes_on else _size(job)
    is_small = arguments.master.startswith("local") and size < SMALL_BYTES
    extra = {**SETTINGS, **(GENERATED if is_small and size >= TINY_BYTES else {})}
    return started(arguments, "fast" if is_small else "work", extra)


def _given(settings: Iterable[str]) -> dict[str, str]:
    """The settings of --conf. Raises BadPipelineOption."""
    found: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.startswith("spark."):
            # The name alone: the value may be a secret.
            raise BadPipelineOption(
                f"--conf {name!r} is not a setting of Spark",
                remedy="Write it as --conf spark.executor.memory=4g.",
            )
        found[name] = value
    return found


def started(arguments: Namespace, purpose: Purpose, extra: Mapping[str, str]) -> SparkSession:
    """A session with these settings; those of --conf win."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from tocsin.pipeline.spark.session import session
    from tocsin.pipeline.spark.spark_errors import in_a_line

    settings = {**extra, **_given(arguments.conf)}
    try:
        return session(arguments.master, purpose=purpose, extra=settings)
    except (PySparkException, Py4JError, OSError) as error:
        raise PipelineFailed(
            f"Spark does not start with --master {arguments.master}: {in_a_line(error)[:300]}",
            remedy="Check --master and --conf; Spark's own output is above.",
        ) from error


def _size(job: Job) -> int:
    """How many bytes the archive has, about; of an object store or a topic nothing is known."""
    from tocsin.archive.catalog import Catalog
    from tocsin.pipeline.locations import directory_of, is_broker, is_directory
    from tocsin.pipeline.source.broker import Broker
    from tocsin.pipeline.source.options import Options

    if is_broker(job.archive):
        extent = Broker(Options.parse({"path": job.archive})).extent()
        return (extent.head - extent.first + 1) * BYTES_AN_EVENT
    if not is_directory(job.archive):
        return SMALL_BYTES
    return sum(piece.bytes for piece in Catalog(directory_of(job.archive)).pieces())

"""Session: a Spark session with the settings that suit a command, a test or a cluster."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final, Literal

import psutil

from tocsin.errors.spark import SparkMissing
from tocsin.pipeline.spark.java import Java, class_archive_flags, find_java, launcher_home

try:
    import pyspark
    from pyspark.sql import SparkSession
except ImportError as missing:
    raise SparkMissing(
        f"Spark's Python package cannot be imported: {missing}",
        remedy="Install it: pip install 'tocsin[spark]'.",
    ) from missing

Purpose = Literal["fast", "work"]

MIB: Final = 1 << 20
# The driver in local mode does all the work; the rest is for Python workers and the disk cache.
DRIVER_SHARE: Final = 0.4
DRIVER_MIB_MIN: Final = 1_024
DRIVER_MIB_MAX: Final = 16 * 1_024  # a larger heap means longer pauses and nothing else
FAST_MIB: Final = 1_024

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    # The default of 3 takes half as long again, and makes files a few percent smaller.
    "spark.hadoop.parquet.compression.codec.zstd.level": "1",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # as everybody else writes them
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What was damaged on a disk is an error and not another number: our files have checksums.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
    # Of one cycle of a stream. By default it keeps a hundred, fewer than it needs: then everything
    # is generated and compiled again with each batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # It asks Java where in Python each column was made: a fifth of the time of a small job.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
# A different code path than production in two points (no code generation, no adaptive plans), and
# a third of its time for many small queries.
FAST: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# What a job of some 50,000 events and more makes good again.
GENERATED: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
# With the quick compiler only, Java keeps room for 48 MB of compiled code. Two runs of the job fill
# it; from then on nothing is compiled any more, and everything takes several times as long.
FAST_FLAGS: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
# A fifth of a job's processor time is Java's optimising compiler, most of it for what is called a
# few thousand times while queries are planned and generated. It shall wait five times as long: a
# fifth less for the compiler, and nothing more for the tasks (at 10M events).
WORK_FLAGS: Final = (
    "-XX:+UseParallelGC -XX:Tier4InvocationThreshold=25000 -XX:Tier4MinInvocationThreshold=3000 "
    "-XX:Tier4CompileThreshold=75000 -XX:Tier4BackEdgeThreshold=200000"
)


def session(
    master: str = "local[*]", *, purpose: Purpose = "work", extra: Mapping[str, str] | None = None
) -> SparkSession:
    """A session on that master, or the one this process already has.

    `fast` starts quickly and suits many small queries; `work` suits few large ones. What `extra`
    sets wins. Raises JavaMissing.
    """
    given = dict(extra or {})
    java = find_java()
    # Workers are to run what the driver runs: a virtual environment need not be the default.
    os.environ["PYSPARK_PYTHON"] = given.get(
        "spark.pyspark.python", os.environ.get("PYSPARK_PYTHON", sys.executable)
    )
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = {**SETTINGS, **_placed(master, purpose), **(FAST if purpose == "fast" else {})}
    flags = _flags(java, purpose)
    flags += " " + given.pop("spark.driver.extraJavaOptions", "")
    settings |= {"spark.driver.extraJavaOptions": flags.strip(), **given}
    # It prints a page of JSON for an error that is raised all the same.
    logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
    builder = SparkSession.Builder().master(master).appName("tocsin")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _java_home(launcher_home(java)):
        return builder.getOrCreate()


@contextmanager
def _java_home(home: Path) -> Iterator[None]:
    """Spark's launcher goes by the environment; what this process starts later does not see it."""
    had = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    try:
        yield
    finally:
        if had is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = had


def driver_mib() -> int:
    """Heap for a driver that does the work itself: a share of what this process may use."""
    available = min(psutil.virtual_memory().total, _group_bytes()) // MIB
    return max(DRIVER_MIB_MIN, min(int(available * DRIVER_SHARE), DRIVER_MIB_MAX))


def _placed(master: str, purpose: Purpose) -> dict[str, str]:
    """Where it keeps its files, how much memory it takes, and where it listens."""
    scratch = tempfile.gettempdir()
    placed = {
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": str(Path(scratch) / f"tocsin-warehouse-{os.getuid()}"),
        "spark.driver.memory": f"{FAST_MIB if purpose == 'fast' else driver_mib()}m",
    }
    if master.startswith("local"):
        # Nobody else has to reach it; a host's own name may not resolve.
        placed |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return placed


def _flags(java: Java, purpose: Purpose) -> str:
    jars = Path(pyspark.__file__).parent / "jars"
    return " ".join(
        (
            FAST_FLAGS if purpose == "fast" else WORK_FLAGS,
            "-Duser.timezone=UTC",
            f"-Dlog4j2.configurationFile={_log_settings().as_uri()}",
            class_archive_flags(java, jars, may_write=purpose == "fast") if jars.is_dir() else "",
        )
    )


@cache
def _log_settings() -> Path:
    """A file that Java can read, also when the package itself lies in a zip: then a copy of it,
    for as long as this process runs."""
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(as_file(files("tocsin.pipeline") / "log4j2.properties"))


def _group_bytes() -> int:
    """What the control group allows; without one, no limit."""
    try:
        return int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):
        return sys.maxsize

"""Hadoop: an archive on any file system that Spark reads: s3a, gs, abfs, hdfs, viewfs and others.

It is listed and looked at by Hadoop's own classes in Spark's JVM, so that what was set for Spark
(`--conf spark.hadoop.fs.s3a.endpoint=...`) holds here too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tocsin.archive.catalog import Foreign, Piece, arranged, named
from tocsin.archive.file_names import FRESH, SUFFIX, UNFINISHED, parse_date
from tocsin.errors.archive import NoArchive
from tocsin.errors.pipeline import PipelineFailed
from tocsin.pipeline.state import Window

FOLDERS_AT_ONCE: Final = 8
# Which artifact knows a scheme; each has the version of the Hadoop that Spark brings.
CONNECTORS: Final = {
    "s3a": "org.apache.hadoop:hadoop-aws",
    "abfs": "org.apache.hadoop:hadoop-azure",
    "abfss": "org.apache.hadoop:hadoop-azure",
    "gs": "org.apache.hadoop:hadoop-gcp",
}
UNKNOWN: Final = ("UnsupportedFileSystemException", "ClassNotFoundException", "NoClassDefFound")
MISSING: Final = ("FileNotFoundException", "NoSuchFileException")


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of an archive: ascending, each event in one at most; and those left out."""

    pieces: list[Piece]
    foreign: list[Foreign]


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    path: str
    is_file: bool
    bytes: int


def listed(spark: SparkSession, archive: str, window: Window) -> Listing:
    """The archive at this address, but for dates outside of the window. Raises NoArchive."""
    root = _addressed(archive)
    with _hadoop_errors(spark, archive):
        # Fresh ones first: a file is sealed before the fresh ones it is made of are removed.
        fresh = _entries(spark, f"{root}/{FRESH}")
        top = _entries(spark, root, must_be=True)
    dates = [each.name for each in top if not each.is_file and _is_within(each.name, window)]
    found = [_named(each, is_fresh=True) for each in fresh]
    with _hadoop_errors(spark, archive), ThreadPoolExecutor(FOLDERS_AT_ONCE) as pool:
        for entries in pool.map(lambda name: _entries(spark, f"{root}/{name}"), dates):
            found += [_named(each, is_fresh=False) for each in entries]
    order = arranged([each for each in found if isinstance(each, Piece)])
    foreign = [each for each in found if isinstance(each, Foreign)]
    left_out = sorted([*foreign, *order.overlaps], key=lambda each: each.path)
    return Listing(order.pieces, left_out)


def kept_beside(spark: SparkSession, archive: str, name: str) -> list[str]:
    """The files of what an archive keeps beside events."""
    root = f"{_addressed(archive)}/{name}"
    with _hadoop_errors(spark, archive):
        folders = [each for each in _entries(spark, root) if not each.is_file]
        entries = [file for each in folders for file in _entries(spark, each.path)]
    return sorted(each.path for each in entries if each.name.endswith(SUFFIX))


@contextmanager
def opened(spark: SparkSession, piece: Piece) -> Iterator[BinaryIO]:
    """A file, to be read anywhere in it. FileNotFoundError if it is gone."""
    path = _java(spark).org.apache.hadoop.fs.Path(piece.path)
    with _hadoop_errors(spark, piece.path):
        try:
            stream = _file_system(spark, path).open(path)
        except Py4JJavaError as error:
            if _is(error, MISSING):
                raise FileNotFoundError(piece.path) from error
            raise
        try:
            # pyarrow asks for no more than a raw file has.
            yield cast(BinaryIO, _JavaFile(_java(spark), stream, piece.bytes))
        finally:
            stream.close()


class _JavaFile(io.RawIOBase):
    """A stream of Hadoop, as a file of Python."""

    def __init__(self, java: Any, stream: Any, size: int) -> None:
        self._java = java
        self._stream = stream
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        count = max(0, min(len(buffer), self._size - self._position))
        if count:
            self._stream.seek(self._position)
            buffer[:count] = self._java.org.apache.commons.io.IOUtils.toByteArray(
                self._stream, count
            )
            self._position += count
        return count


def _addressed(archive: str) -> str:
    """As Hadoop names it: to all others, what it calls s3a is s3."""
    scheme, separator, rest = archive.partition("://")
    return f"{'s3a' if scheme == 's3' else scheme}{separator}{rest}".rstrip("/")


def _entries(spark: SparkSession, address: str, *, must_be: bool = False) -> list[_Entry]:
    """What is in a directory. One that is not there has nothing, unless it must be."""
    path = _java(spark).org.apache.hadoop.fs.Path(address)
    try:
        found = _file_system(spark, path).listStatus(path)
    except Py4JJavaError as error:
        if must_be or not _is(error, MISSING):
            raise
        return []
    return [
        _Entry(each.getPath().getName(), str(each.getPath()), each.isFile(), each.getLen())
        for each in found
    ]


def _named(entry: _Entry, *, is_fresh: bool) -> Piece | Foreign | None:
    if entry.name.startswith(UNFINISHED) or not entry.is_file:
        return None
    return named(entry.name, entry.path, entry.bytes, is_fresh=is_fresh)


def _is_within(folder: str, window: Window) -> bool:
    date = parse_date(folder)
    return date is not None and window.has_date(date)


def _java(spark: SparkSession) -> Any:
    return spark._jvm


def _file_system(spark: SparkSession, path: Any) -> Any:
    return path.getFileSystem(spark._jsc.hadoopConfiguration())


@contextmanager
def _hadoop_errors(spark: SparkSession, archive: str) -> Iterator[None]:
    """What Java could not do, as an error that says what to do."""
    try:
        yield
    except Py4JJavaError as error:
        words = " ".join(str(error.java_exception.getMessage()).split())[:300]
        if _is(error, UNKNOWN):
            raise NoArchive(
                f"Spark does not know the file system of {archive}: {words}",
                remedy=f"Add its connector to the class path: {_packages(spark, archive)}.",
            ) from error
        if _is(error, MISSING):
            raise NoArchive(
                f"there is no directory {archive}",
                remedy="Name with --archive where the files of an archive were copied to.",
            ) from error
        raise PipelineFailed(
            f"{archive} cannot be read: {words}",
            remedy="Check the address and the credentials: they "
            "are set with --conf spark.hadoop.fs.*.",
        ) from error


def _packages(spark: SparkSession, archive: str) -> str:
    artifact = CONNECTORS.get(_addressed(archive).partition("://")[0])
    if artifact is None:
        return "--conf spark.jars=FILE.jar, or --conf spark.jars.packages=GROUP:ARTIFACT:VERSION"
    version = _java(spark).org.apache.hadoop.util.VersionInfo.getVersion()
    return f"--conf spark.jars.packages={artifact}:{version}"


def _is(error: Py4JJavaError, names: tuple[str, ...]) -> bool:
    """True if what Java threw, or what that was caused by, is one of these."""
    thrown = error.java_exception
    while thrown is not None:
        if any(name in thrown.getClass().getName() for name in names):
            return True
        thrown = thrown.getCause()
    return False

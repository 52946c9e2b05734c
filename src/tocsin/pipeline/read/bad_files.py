"""BadFileSearch: which file of the archive made Spark fail, and whether it is damaged.

It may be damaged, it may have been merged into another meanwhile, Spark may not know how to read
it, or it may be none of its doing: a disk that fails, a worker that does not see the archive. Only
what is the file's own fault sets it aside; for all else the work is done again, or ends.
"""

from __future__ import annotations

import re
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tocsin.errors.root import TocsinError
from tocsin.pipeline.new_records import NewRecords
from tocsin.pipeline.partials.partial import BadFile
from tocsin.pipeline.read.archive import is_there, unreadable
from tocsin.pipeline.spark.spark_errors import thrown, with_cause
from tocsin.pipeline.state import Window

SUSPECTS_MAX: Final = 20  # files that Spark alone cannot read: each costs two folds of everything
MERGES_SEEN_MAX: Final = 5  # how often files may be merged while they are folded

# What Java throws over the content of a file. All else may be the fault of who reads it.
_OF_CONTENT: Final = re.compile(
    r"org\.apache\.parquet\.|SchemaColumnConvertNotSupportedException|AnalysisException|Zstd"
    r"|java\.lang\.(\w*IndexOutOfBounds|NegativeArraySize|UnsupportedOperation|Arithmetic|ClassCast)"
)


class BadFileSearch:
    """What is known, while one part is made, of the files that it shall be made of."""

    def __init__(self, spark: SparkSession, archive: str, window: Window) -> None:
        self._spark = spark
        self._archive = archive
        self._window = window
        self._suspects: set[str] = set()
        self._merges = 0
        self.without: list[BadFile] = []
        """Files that are set aside."""

    def exclude_bad_file(self, found: NewRecords, error: Exception) -> None:
        """Make it so that the same work may be tried again. Raises that error if it may not."""
        named = _file_named_by(error, found)
        if named is None:
            raise error
        if not is_there(self._spark, self._archive, self._window, named.path):
            self._merges += 1
            if self._merges > MERGES_SEEN_MAX:
                raise error
            return
        damaged = self._damaged(found, error)
        self.without += damaged
        if damaged:
            return
        # We can read it, so the disk is not the one to blame. But the fault may be with whoever
        # reads it for Spark: to set files aside for that would be to lose them.
        is_its_own = any(map(_OF_CONTENT.search, thrown(error)[-1:]))
        if not is_its_own or len(self._suspects) >= SUSPECTS_MAX:
            raise error
        if named.path in self._suspects:
            self.without.append(named)
        self._suspects.add(named.path)

    def _damaged(self, found: NewRecords, error: Exception) -> list[BadFile]:
        """Raises that error if it cannot be said: in an outage every file looks damaged."""
        try:
            return unreadable(self._spark, self._archive, found.pieces)
        except (TocsinError, PySparkException, Py4JError, OSError):
            raise error from None


def _file_named_by(error: Exception, found: NewRecords) -> BadFile | None:
    """The file of the archive because of which Spark gave up, if it was one."""
    # By its name, which is that of no other: a file system may know it under another address.
    words = str(error)
    named = [each for each in found.files if each.rpartition("/")[2] in words]
    return BadFile(min(named), with_cause(error)[:300]) if named else None

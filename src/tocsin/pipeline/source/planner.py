"""Planner: what Java gets when Spark reads an archive itself.

The classes in `java/` ask which files hold which events, how far a stream may go, and which columns
there are; they decide nothing. Questions and answers are JSON, so that an error comes through as
its own words.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tocsin.archive.catalog import Catalog
from tocsin.errors import TocsinError
from tocsin.errors.archive import ArchiveFileNotRead
from tocsin.event.instant import NS_PER_MS
from tocsin.pipeline.source.directory import CachedCatalog, Directory, directory_of
from tocsin.pipeline.source.file_checks import File, FileChecks
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.stream_range import begin, must_be_those_read_before, next_end, reach
from tocsin.pipeline.source.user_schema import asked_for

ARCHIVES_MAX: Final = 32  # whose files are remembered; of any other they are listed again

Answer = dict[str, Any]
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question about an archive, and what is known of that."""

    options: Options
    source: Directory
    sound: FileChecks
    more: Mapping[str, Any]


class Planner:
    """One for a process, asked by all threads of Java."""

    def __init__(self) -> None:
        self._archives: OrderedDict[str, tuple[CachedCatalog, FileChecks]] = OrderedDict()
        self._turn = threading.Lock()

    def apply(self, question: str) -> str:
        """The answer as JSON; what went wrong is its member `error`, and nothing is raised."""
        try:
            return json.dumps(self._answer(json.loads(question)))
        except TocsinError as error:
            words = "\n".join([str(error), *getattr(error, "__notes__", ())])
        except OSError as error:
            words = str(ArchiveFileNotRead(str(error.filename or "the archive"), _why(error)))
        except Exception as error:  # Java would get a trace of Python's, and no message
            _log.exception("a question of Spark's could not be answered: %s", question)
            words = f"{type(error).__name__}: {error}"
        return json.dumps({"error": words})

    def _answer(self, question: Mapping[str, Any]) -> Answer:
        options = Options.parse(question["options"])
        if question["ask"] == "opening" and not is_plain(options):
            return _opening(options, question["schema"])
        known, sound = self._known_of(os.path.abspath(directory_of(options)))
        asked = _Asked(options, Directory(options, known), sound, question)
        return _ANSWERS[question["ask"]](asked)

    def _known_of(self, directory: str) -> tuple[CachedCatalog, FileChecks]:
        with self._turn:
            if directory not in self._archives:
                self._archives[directory] = CachedCatalog(Catalog(directory)), FileChecks()
            self._archives.move_to_end(directory)
            while len(self._archives) > ARCHIVES_MAX:
                self._archives.popitem(last=False)
            return self._archives[directory]

    class Java:
        implements: Final = ("java.util.function.Function",)


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def is_plain(options: Options) -> bool:
    """True if Spark reads it as it reads any Parquet: nothing is to be passed over or mended."""
    return not (options.is_broker or options.skips_bad_files or options.keeps_nulls)


def _opening(options: Options, schema: str | None) -> Answer:
    columns = from_arrow_schema(options.schema())
    if schema is not None:
        columns = StructType.fromJson(json.loads(schema))
        asked_for(columns)
    return {
        "is_plain": is_plain(options),
        "schema": columns.json(),
        "condition": _condition(options.after, options.through),
        "rows_per_trigger": options.rows_per_trigger,
    }


def _open(asked: _Asked) -> Answer:
    asked.source.extent()  # there must be an archive
    return _opening(asked.options, asked.more["schema"])


def _files(asked: _Asked) -> Answer:
    after, through = _bounds(asked)
    return {"files": _as_lists(_files_in_order(asked, after, through))}


def _size(asked: _Asked) -> Answer:
    pieces = asked.source.pieces_within(*_bounds(asked))
    return {"bytes": sum(piece.bytes for piece in pieces)}


def _reach(asked: _Asked) -> Answer:
    return {"offset": _offset(reach(asked.source, asked.options).through)}


def _latest(asked: _Asked) -> Answer:
    found = reach(asked.source, asked.options)
    start, target = asked.more["start"], asked.more["target"]
    after = _begin(asked)
    must_be_those_read_before(asked.options, after, found.head)
    through = found.through if target is None else _number(target)
    end = next_end(asked.source, after, through, asked.more.get("rows"))
    is_news = start is not None or end > after
    return {"offset": _offset(end) if is_news else None, "head": _offset(found.head)}


def _range(asked: _Asked) -> Answer:
    after, through = _begin(asked), _number(asked.more["end"])
    files = _just(asked, after, through)
    # Spark compiles a condition for its numbers, so once more with each batch: without need, none.
    condition = None if files is not None else _condition(after, through)
    return {"after": after, "through": through, "files": files, "condition": condition}


def _just(asked: _Asked, after: int, through: int) -> list[list[Any]] | None:
    """The files that hold these events and no others, if it can be said now.

    Spark asks for a batch also when it starts again and does not mean to read it: what is wrong
    with its files is reported when they are read.
    """
    try:
        found = _files_in_order(asked, after, through)
    except TocsinError:
        return None
    is_cut = found and (found[0].first <= after or found[-1].last > through)
    return None if is_cut else _as_lists(found)


def _files_in_order(asked: _Asked, after: int, through: int) -> list[File]:
    asked.sound.forget_all_but(asked.source.pieces())
    return asked.sound.files(partial(asked.source.pieces_within, after, through))


def _as_lists(found: Sequence[File]) -> list[list[Any]]:
    return [[each.uri, each.bytes, each.changed_ns // NS_PER_MS] for each in found]


def _bounds(asked: _Asked) -> tuple[int, int]:
    """Of a batch of a stream just what was planned: what is gone since is reported as a hole."""
    if "after" in asked.more:
        return asked.more["after"], asked.more["through"]
    return begin(asked.source, asked.options), reach(asked.source, asked.options).through


def _condition(after: int | None, through: int | None) -> str | None:
    """For Spark: which of the events that files hold belong to a range."""
    bounds = [f"seq > {after}"] if after is not None else []
    bounds += [f"seq <= {through}"] if through is not None else []
    return " AND ".join(bounds) or None


def _begin(asked: _Asked) -> int:
    start = asked.more["start"]
    return begin(asked.source, asked.options) if start is None else _number(start)


def _offset(seq: int) -> str:
    return json.dumps({"seq": seq})


def _number(offset: str) -> int:
    return int(json.loads(offset)["seq"])


_ANSWERS: Final[dict[str, Callable[[_Asked], Answer]]] = {
    "opening": _open,
    "files": _files,
    "size": _size,
    "reach": _reach,
    "latest": _latest,
    "range": _range,
}

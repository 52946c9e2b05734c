"""Planner: what Java is told when Spark reads an archive itself.

The classes in `java/` ask which files hold which events, how far a stream may go, and which columns
there are; they decide nothing. Questions and answers are JSON, so that an error comes through as
its own words.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from tocsin.errors import TocsinError
from tocsin.pipeline.source.asked import asked_for
from tocsin.pipeline.source.directory import Directory
from tocsin.pipeline.source.following import begin, must_be_those_read_before, next_end, reach
from tocsin.pipeline.source.options import Options
from tocsin.pipeline.source.sound import File, Sound

PLACES_MAX: Final = 32  # whose files are remembered; of any other they are listed anew

Answer = dict[str, Any]
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """An archive that was asked about, for one question at a time."""

    place: Directory
    sound: Sound
    turn: threading.Lock = field(default_factory=threading.Lock)


class Planner:
    """One for a process, asked by all threads of Java."""

    def __init__(self) -> None:
        self._known: OrderedDict[Options, _Known] = OrderedDict()
        self._turn = threading.Lock()

    def apply(self, question: str) -> str:
        """The answer as JSON; what went wrong is its member `error`, and nothing is raised."""
        try:
            return json.dumps(self._answer(json.loads(question)))
        except TocsinError as error:
            words = "\n".join([str(error), *getattr(error, "__notes__", ())])
        except OSError as error:
            words = f"the archive cannot be listed: {error}. Look at its rights and its disk."
        except Exception as error:  # Java would be told a trace of Python's, and no words
            _log.exception("a question of Spark's could not be answered: %s", question)
            words = f"{type(error).__name__}: {error}"
        return json.dumps({"error": words})

    def _answer(self, asked: Mapping[str, Any]) -> Answer:
        options = Options.parse(asked["options"])
        if asked["ask"] == "opening" and not is_plain(options):
            return _opening(options, asked["schema"])
        known = self._known_at(options)
        with known.turn:
            return _ANSWERS[asked["ask"]](known, options, asked)

    def _known_at(self, options: Options) -> _Known:
        with self._turn:
            known = self._known.setdefault(options, _Known(Directory(options), Sound()))
            self._known.move_to_end(options)
            while len(self._known) > PLACES_MAX:
                self._known.popitem(last=False)
            return known

    class Java:
        implements: Final = ("java.util.function.Function",)


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
        "after": options.after,
        "through": options.through,
        "rows_per_trigger": options.rows_per_trigger,
    }


def _open(known: _Known, options: Options, asked: Mapping[str, Any]) -> Answer:
    known.place.extent()  # there must be an archive
    return _opening(options, asked["schema"])


def _bounds(known: _Known, asked: Mapping[str, Any]) -> tuple[int, int]:
    extent = known.place.extent()
    after, through = asked.get("after"), asked.get("through")
    after = extent.first - 1 if after is None else after
    return after, extent.head if through is None else min(through, extent.head)


def _files(known: _Known, _options: Options, asked: Mapping[str, Any]) -> Answer:
    listed = partial(known.place.pieces_within, *_bounds(known, asked))
    return {"files": _told(known.sound.files(listed))}


def _told(found: Sequence[File]) -> list[list[Any]]:
    return [[each.uri, each.bytes, each.changed_ms] for each in found]


def _size(known: _Known, _options: Options, asked: Mapping[str, Any]) -> Answer:
    pieces = known.place.pieces_within(*_bounds(known, asked))
    return {"bytes": sum(piece.bytes for piece in pieces)}


def _reach(known: _Known, options: Options, _asked: Mapping[str, Any]) -> Answer:
    return {"offset": _offset(reach(known.place, options).through)}


def _latest(known: _Known, options: Options, asked: Mapping[str, Any]) -> Answer:
    found = reach(known.place, options)
    start, target = asked["start"], asked["target"]
    after = begin(known.place, options) if start is None else _number(start)
    must_be_those_read_before(options, after, found.head)
    through = found.through if target is None else _number(target)
    end = next_end(known.place, after, through, asked.get("rows"))
    is_news = start is not None or end > after
    return {"offset": _offset(end) if is_news else None, "head": _offset(found.head)}


def _range(known: _Known, options: Options, asked: Mapping[str, Any]) -> Answer:
    start = asked["start"]
    after = begin(known.place, options) if start is None else _number(start)
    through = _number(asked["end"])
    return {"after": after, "through": through, "files": _just(known, after, through)}


def _just(known: _Known, after: int, through: int) -> list[list[Any]] | None:
    """The files that hold these events and no others, if it can be said now.

    Spark asks for a batch also when it starts again and does not mean to read it: what is wrong
    with its files is told when they are read.
    """
    try:
        found = known.sound.files(partial(known.place.pieces_within, after, through))
    except TocsinError:
        return None
    is_cut = found and (found[0].first <= after or found[-1].last > through)
    return None if is_cut else _told(found)


def _offset(seq: int) -> str:
    return json.dumps({"seq": seq})


def _number(offset: str) -> int:
    return int(json.loads(offset)["seq"])


_ANSWERS: Final[dict[str, Callable[[_Known, Options, Mapping[str, Any]], Answer]]] = {
    "opening": _open,
    "files": _files,
    "size": _size,
    "reach": _reach,
    "latest": _latest,
    "range": _range,
}

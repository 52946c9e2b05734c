"""Published: the tables as their readers find them, without Spark.

    TABLES/_current          -> .versions/000007, exchanged in one rename
    TABLES/activity_stats    -> _current/activity_stats
    TABLES/activity_stats/part-*.parquet, _SUCCESS, _manifest.json

A version that was not finished is seen by nobody. The one before stays, for those who listed its
files and have yet to open them; who reads longer than it takes to make two begins again.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.errors.pipeline import NoTables
from tocsin.tables.schemas import TABLES

CURRENT: Final = "_current"
VERSIONS: Final = ".versions"
MANIFEST: Final = "_manifest.json"
SUCCESS: Final = "_SUCCESS"
FORMAT: Final = 1

Made = TypeVar("Made")


class TableFacts(msgspec.Struct, frozen=True):
    """How much there is of one table."""

    rows: int
    bytes: int
    files: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True):
    """What a version holds, and of which events it was made."""

    version: int
    made: datetime
    through: int
    """Every event of the archive up to this one is in, if it was received in the window."""
    as_of: datetime | None = None
    """The latest moment that an event was received; the tables are as of then."""
    tables: dict[str, TableFacts] = {}
    counts: dict[str, int] = {}
    """What was met on the way: events, duplicates, late, set aside."""
    samples: str = ""
    """Which samples beside the events it was made of: how many files, and the last of them."""
    state: str = ""
    """Of which state: another one, if that was started over."""
    since: datetime | None = None
    """The window: what was received before this is not in. None: everything is."""
    until: datetime | None = None
    """What was received at this moment or later is not in."""
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Published:
    """A version that can be read, and where it is."""

    directory: Path
    manifest: Manifest

    @property
    def version(self) -> int:
        return self.manifest.version

    @property
    def made(self) -> datetime:
        return self.manifest.made

    @property
    def through(self) -> int:
        return self.manifest.through

    @property
    def tables(self) -> dict[str, TableFacts]:
        return self.manifest.tables


_read_manifest = msgspec.json.Decoder(Manifest).decode


def published(directory: Path | str) -> Published | None:
    """The version that stands, or None if there is none. Raises NoTables if it cannot be read."""
    try:
        current = (Path(directory) / CURRENT).resolve(strict=True)
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError) as error:  # of the latter kind is a link that leads to itself
        raise unreadable(f"the tables in {directory}", error) from error
    try:
        manifest = _read_manifest((current / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise unreadable(f"the tables in {directory}", error) from error
    if manifest.format > FORMAT:
        raise NoTables(
            f"the tables in {directory} were made by a newer version (format {manifest.format})",
            remedy="Read them with that version, or rebuild them with `pipeline run --rebuild`.",
        )
    return Published(current, manifest)


def require(directory: Path | str) -> Published:
    """The version that stands, or an error that says how to make one."""
    found = published(directory)
    if found is None:
        raise NoTables(
            f"there are no tables in {directory}",
            remedy="Make them with `tocsin pipeline run`, or name another directory with --tables.",
        )
    return found


def read_current(directory: Path | str, read: Callable[[Published], Made]) -> Made:
    """What `read` makes of the version that stands; if its files went meanwhile, of the next."""
    try:
        return read(require(directory))
    except NoTables as error:
        if not _is_gone(error.__cause__):
            raise
    return read(require(directory))


def unreadable(what: str, error: Exception) -> NoTables:
    """The error about tables that cannot be read. To start over is no remedy for files that are
    gone: they were those of an older version, or the next version has them again. Nor is it one for
    a disk, or for rights."""
    remedy = "Rebuild the tables with `tocsin pipeline run --rebuild`."
    if _is_gone(error):
        remedy = (
            "If a new version was made meanwhile, ask again; else the next will have what is "
            "missing."
        )
    elif isinstance(error, OSError) and error.errno is not None:
        remedy = "Check the permissions and the disk of that file."
    return NoTables(f"{what} cannot be read: {error}", remedy=remedy)


def _is_gone(error: BaseException | None) -> bool:
    # On a network file system, what was removed elsewhere is stale.
    stale = isinstance(error, OSError) and error.errno == errno.ESTALE
    return stale or isinstance(error, FileNotFoundError)


def files_of(found: Published, name: str) -> list[Path]:
    """The Parquet files of a table, in order."""
    facts = found.tables.get(name)
    if facts is None:
        near = ", ".join(sorted(found.tables))
        raise NoTables(f"there is no table {name!r}", remedy=f"There are: {near}.")
    return [found.directory / name / each for each in facts.files]


def read_table(
    directory: Path | str | Published,
    name: str,
    columns: Sequence[str] | None = None,
    filters: Any = None,
) -> pa.Table:
    """The rows of a published table; `columns` and `filters` as pyarrow has them."""
    found = directory if isinstance(directory, Published) else require(directory)
    files = files_of(found, name)
    wanted = TABLES[name]
    if columns is not None:
        wanted = pa.schema([wanted.field(each) for each in columns])
    try:
        parts = [pq.read_table(each, columns=columns, filters=filters) for each in files]
    except (OSError, pa.ArrowException) as error:
        raise unreadable(f"the table {name}", error) from error
    parts = [each for each in parts if each.num_rows]
    if not parts:
        return wanted.empty_table()
    return pa.concat_tables(parts, promote_options="permissive").cast(wanted)

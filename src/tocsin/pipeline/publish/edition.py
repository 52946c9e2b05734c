"""Publishing: a new version of all tables at once, or none of them."""

from __future__ import annotations

import os
import shutil
import uuid
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tocsin.archive.disk_sync import sync, sync_tree
from tocsin.errors.pipeline import PipelineFailed, QualityFailed
from tocsin.pipeline.state import UNFINISHED, Window, write_whole
from tocsin.tables.published import (
    CURRENT,
    MANIFEST,
    SUCCESS,
    VERSIONS,
    Manifest,
    TableFacts,
)
from tocsin.tables.schemas import TABLES

VERSIONS_KEPT: Final = 2  # the one that stands, and one for whoever is still reading it
EVERYTHING: Final = Window()


class Edition:
    """A version in the making: tables are written into it, and then all published at once."""

    def __init__(self, tables: Path) -> None:
        self._tables = tables
        self._versions = tables / VERSIONS
        self._versions.mkdir(parents=True, exist_ok=True)
        for path in self._versions.glob(f"{UNFINISHED}*"):
            shutil.rmtree(path, ignore_errors=True)
        self.number = 1 + max(self._numbers(), default=0)
        # A name of its own: a Spark whose command was killed may still be writing into the last.
        self.directory = self._versions / f"{UNFINISHED}{self.number:06d}-{uuid.uuid4().hex}"
        self.directory.mkdir()

    def table_directory(self, table: str) -> Path:
        """Where the files of a table belong."""
        return self.directory / table

    def link(self, table: str, files: list[Path]) -> None:
        """These files are the table, as they are: nothing is copied."""
        directory = self.table_directory(table)
        directory.mkdir(exist_ok=True)
        for number, file in enumerate(files):
            os.link(file, directory / f"part-{number:05d}-{file.stem[-32:]}.parquet")

    def publish(
        self,
        made: datetime,
        through: int,
        as_of: datetime | None,
        counts: dict[str, int],
        samples: str,
        state: str = "",
        window: Window = EVERYTHING,
    ) -> Manifest:
        """From now on, this is what readers find."""
        self._make_way()
        manifest = Manifest(
            version=self.number,
            made=made,
            through=through,
            as_of=as_of,
            tables={name: self._finished(name) for name in TABLES},
            counts=counts,
            samples=samples,
            state=state,
            since=window.since,
            until=window.until,
        )
        for name, facts in manifest.tables.items():
            own = {"table": name, "version": self.number, "made": made, "through": through}
            own |= {"since": window.since, "until": window.until}
            content = {**own, **msgspec.to_builtins(facts)}
            write_whole(self.table_directory(name) / MANIFEST, msgspec.json.encode(content))
        write_whole(self.directory / MANIFEST, msgspec.json.encode(manifest))
        sync_tree(self.directory)
        final = self._versions / f"{self.number:06d}"
        os.rename(self.directory, final)
        sync(self._versions)
        self._point_to(final)
        self._forget_old()
        return manifest

    def give_up(self) -> None:
        """What was made so far is seen by nobody."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _finished(self, name: str) -> TableFacts:
        """What there is of a table; one of which nothing was written is an empty one."""
        directory = self.table_directory(name)
        directory.mkdir(exist_ok=True)
        files = sorted(directory.glob("*.parquet"))
        if not files:
            pq.write_table(TABLES[name].empty_table(), directory / "part-00000.parquet")
            files = [directory / "part-00000.parquet"]
        for path in directory.iterdir():
            if path.suffix == ".crc":
                path.unlink()
        (directory / SUCCESS).touch()
        try:
            footers = [pq.read_metadata(each) for each in files]
        except (OSError, pa.ArrowException) as error:
            raise PipelineFailed(
                f"what was written of {name} cannot be read: {error}",
                remedy="Look at the disk; the tables are as they were before.",
            ) from error
        rows = sum(each.num_rows for each in footers)
        for footer in footers:
            columns = footer.schema.to_arrow_schema().names
            if columns != TABLES[name].names:
                odd = ", ".join(sorted(set(columns) ^ set(TABLES[name].names))) or "their order"
                raise QualityFailed(
                    f"table {name}: its columns are not those it is documented with: {odd}",
                    remedy="Nothing was published. Rebuild it with `pipeline run --rebuild`.",
                )
        return TableFacts(
            rows, sum(each.stat().st_size for each in files), tuple(each.name for each in files)
        )

    def _make_way(self) -> None:
        """A link for each table, before there is anything that would have to be taken back."""
        for name in TABLES:
            self._link_once(self._tables / name, Path(CURRENT) / name)

    def _point_to(self, final: Path) -> None:
        swap = self._tables / f"{UNFINISHED}{CURRENT}"
        with suppress(FileNotFoundError):
            swap.unlink()
        swap.symlink_to(final.relative_to(self._tables))
        os.replace(swap, self._tables / CURRENT)
        sync(self._tables)

    @staticmethod
    def _link_once(path: Path, target: Path) -> None:
        if path.is_symlink():
            return
        if path.exists():
            raise PipelineFailed(
                f"{path} already exists, and is not a table of the pipeline",
                remedy="Move it, or name another directory with --tables.",
            )
        path.symlink_to(target)

    def _numbers(self) -> list[int]:
        return [int(each.name) for each in self._versions.iterdir() if each.name.isdigit()]

    def _forget_old(self) -> None:
        for number in sorted(self._numbers())[:-VERSIONS_KEPT]:
            shutil.rmtree(self._versions / f"{number:06d}", ignore_errors=True)

"""Files of an archive as they should not be, and commands of the pipeline that do not end well."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.archives import FACTS_READER
from tocsin.archive.file_names import format_range
from tocsin.archive.parquet_reader import COUNT_KEY, DATE_KEY, FIRST_KEY, LAST_KEY
from tocsin.archive.record import VERSION_KEY, to_batch
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.tables.published import published, read_table

END_S = 240.0  # of a command, on a machine that does other things as well


def message(number: int, pairs: dict[str, str], **members: Any) -> Event:
    """A message of a run, as an engine sends it; `members` win."""
    given: dict[str, Any] = {
        "id": f"made-{number}",
        "source": "/engines/made",
        "type": "bb.ActivitySucceeded",
        "topic": "blackboard/made",
        "datacontenttype": "application/json",
        "data": json.dumps(pairs).encode(),
    }
    return Event(**{**given, **members})


def ended(run: str, moment: str, **more: str) -> dict[str, str]:
    """What an activity says that ended well."""
    whose = {"RunId": run, "WorkflowName": "made", "ActivityId": "step-1", "ActivityType": "step"}
    return {**whose, "ActivitySucceeded": moment, "ExitCode": "0", **more}


def as_table(events: Sequence[Event], first: int, received_ns: Sequence[int]) -> pa.Table:
    moments = zip(events, received_ns, strict=True)
    stored = [Stored(first + n, moment, event) for n, (event, moment) in enumerate(moments)]
    return pa.Table.from_batches([to_batch(stored, FACTS_READER)])


def as_older(table: pa.Table, *unknown: str) -> pa.Table:
    """As a version wrote it that had no plans, no subject, and some members fewer."""
    reported = table.column("facts").combine_chunks()
    kept = [each for each in reported.type if each.name not in unknown]
    slim = pa.StructArray.from_arrays(
        [reported.field(each.name) for each in kept], fields=kept, mask=reported.is_null()
    )
    place = table.schema.get_field_index("facts")
    return table.set_column(place, "facts", slim).drop_columns(["plan", "subject"])


def as_newer(table: pa.Table) -> pa.Table:
    """As a version may write it that knows more than we do."""
    reported = table.column("facts").combine_chunks()
    more = pa.array(["?"] * len(reported))
    wide = pa.StructArray.from_arrays(
        [*(reported.field(each.name) for each in reported.type), more],
        fields=[*reported.type, pa.field("Unheard", pa.string())],
        mask=reported.is_null(),
    )
    place = table.schema.get_field_index("facts")
    return table.set_column(place, "facts", wide).append_column(
        "mood", pa.array([1] * len(reported))
    )


def add_file(archive: Path, table: pa.Table, first: int, *, version: int = 1) -> int:
    """One more sealed file. Returns the number after its last."""
    last, date = first + table.num_rows - 1, "2026-02-01"
    described = {
        VERSION_KEY: b"%d" % version,
        FIRST_KEY: b"%d" % first,
        LAST_KEY: b"%d" % last,
        COUNT_KEY: b"%d" % table.num_rows,
        DATE_KEY: date.encode(),
    }
    path = archive / f"date={date}" / format_range(first, last)
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table.replace_schema_metadata(described), path)
    return last + 1


def spoil(good: Path, cut: Path, foreign: Path, flipped: Path) -> None:
    """Three files of an archive, each broken in its own way, and a fourth beside them."""
    cut.write_bytes(cut.read_bytes()[:-500])
    pq.write_table(pq.read_table(good).select(["id"]), foreign)
    flip(flipped)
    (good.parent / "notes.parquet").write_bytes(b"mine")


def flip(path: Path) -> None:
    """Damage within a file. In a column that everybody reads: what is broken where nobody looks
    hurts nobody."""
    group = pq.ParquetFile(path).metadata.row_group(0)
    places = {group.column(n).path_in_schema: n for n in range(group.num_columns)}
    begin = group.column(places["received"]).data_page_offset
    content = bytearray(path.read_bytes())
    content[begin : begin + 200] = b"\xff" * 200
    path.write_bytes(content)


def version_read_whole(tables: Path) -> int:
    """The number of the version that stands, read by two engines; 0 if there is none."""
    found = published(tables)
    if found is None:
        return 0
    for name, facts in found.tables.items():
        assert read_table(found, name).num_rows == facts.rows, name
        query = f"SELECT count(*) FROM '{found.directory}/{name}/*.parquet'"
        assert duckdb.sql(query).fetchall() == [(facts.rows,)], name
    return found.version


@dataclass
class Command:
    """A command under way, and what it said."""

    process: subprocess.Popen[str]
    complaints: Path
    lines: list[dict[str, Any]] = field(default_factory=list)

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with suppress(ValueError):
                self.lines.append(json.loads(line))

    def kill(self, *, alone: bool = False) -> None:
        """As kill -9 does; alone, or with the Spark it started."""
        if alone:
            self.process.kill()
        else:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def errors(self) -> str:
        """Wait for its end. Returns what it complained of."""
        self.process.wait(END_S)
        return self.complaints.read_text()


@contextmanager
def pipeline(
    *arguments: str, preexec: Callable[[], None] | None = None, errors: Path
) -> Iterator[Command]:
    """A command of the pipeline, in a process group of its own that ends with the block."""
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tocsin", "pipeline", *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
            preexec_fn=preexec,
        )
    command = Command(process, errors)
    listener = threading.Thread(target=command.listen, daemon=True)
    listener.start()
    try:
        yield command
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        listener.join(5)
        if process.stdout is not None:
            process.stdout.close()

"""`tocsin pipeline show`: the rows of a table, chosen, sorted, and as wide as the terminal."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from tocsin.cli.format import duration_text, percent, size
from tocsin.cli.pipeline.row_filter import Where
from tocsin.cli.render import say, show_json
from tocsin.cli.tables import (
    INDENT,
    cell,
    display_width,
    screen_width,
    show_lines,
    table_lines,
    truncate,
)
from tocsin.errors.pipeline import BadPipelineOption
from tocsin.tables.published import Published, files_of, read_current, require, unreadable
from tocsin.tables.schemas import TABLES

LIMIT: Final = 50  # what a person looks through
LIMIT_MAX: Final = 1_000_000  # rows are kept in memory while they are sorted
COLUMN_CHARS_MAX: Final = 40
COLUMNS_MIN: Final = 3  # shown however narrow the terminal is
ITEMS_MAX: Final = 3
ALL: Final = "all"

Row = dict[str, Any]

# What a person asks first; the rest follows where there is room. `--columns all` shows everything.
FIRST: Final[dict[str, str]] = {
    "events": "seq received type topic run activity source late_s",
    "activities": "run activity attempt state duration_s host version workflow started"
    " exit_code error",
    "runs": "run workflow version state started duration_s progress busy_s wasted_s user error",
    "activity_stats": "activity workflow version count failed p50_s p90_s mean_s max_s busy_s"
    " wasted_s p99_s mean_memory_bytes mean_cpu_s last_ended",
    "cost_models": "activity workflow version target count median_error r2 intercept slope rmse",
    "estimates": "run workflow remaining_s elapsed_s done total ends remaining_low_s"
    " remaining_high_s basis",
    "failures": "activity run seen error exit_code host ended attempt workflow duration_s",
    "evolution": "workflow version previous runs p50_s ratio failed first_seen slower faster added"
    " removed changes p90_s",
    "host_usage": "host hour attempts busy_s mean_cpu_percent max_memory_bytes mean_load read_bytes"
    " written_bytes",
    "activity_usage": "activity workflow hour attempts failed busy_s cpu_s max_memory_bytes"
    " read_bytes written_bytes",
    "deliveries": "sink behind delivered dead failing_share slow state sink_state last_error"
    " protocol per_hour subscription",
    "discoveries": "request count empty p50_s p90_s mean_found model mean_brokers last_seen",
    "quarantine": "reason seq received source type excerpt file id",
}
_SHARES: Final = frozenset({"progress", "median_error", "failing_share"})


@dataclass(frozen=True, slots=True)
class Order:
    """By which column, and which end first."""

    column: str
    is_descending: bool = False


def show(
    tables_dir: Path,
    table: str,
    *,
    limit: int = LIMIT,
    where: str = "",
    sort: str = "",
    columns: str = "",
    json: bool = False,
) -> int:
    """Print the rows: as a table for a person, or one JSON object a line. Returns the exit code.

    `where` is a filter in the language for people, over the columns; `sort` is `column`, `-column`
    or `column desc`, several with commas; `columns` are names with commas, or `all`.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise BadPipelineOption(
            f"the limit is {limit:,}", remedy=f"Give a number between 1 and {LIMIT_MAX:,}."
        )
    files_of(require(tables_dir), table)  # else there is no such table
    order = _orders(table, sort)
    chosen = _chosen(table, columns)
    wanted = Where(table, where)
    shown = list(chosen or (TABLES[table].names if json else FIRST[table].split()))
    needed = list(dict.fromkeys([*shown, *wanted.columns, *(each.column for each in order)]))
    rows, has_more = read_current(
        tables_dir, lambda found: _rows(found, table, needed, wanted, order, limit)
    )
    if json:
        for row in rows.select(shown).to_pylist():
            show_json({name: _plain(value) for name, value in row.items()})
    else:
        _print(table, rows.select(shown), is_chosen=bool(chosen))
    if has_more:
        say(f"... more rows than {limit:,}; see them with --limit, or fewer with --where")
    return 0


def _column(table: str, name: str) -> str:
    names = TABLES[table].names
    if name in names:
        return name
    near = get_close_matches(name, names, 1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise BadPipelineOption(
        f"the table {table} has no column {name!r}", remedy=f"{hint}It has: {', '.join(names)}."
    )


def _chosen(table: str, columns: str) -> list[str]:
    names = [name.strip() for name in columns.split(",") if name.strip()]
    if names == [ALL]:
        return list(TABLES[table].names)
    return list(dict.fromkeys(_column(table, name) for name in names))


def _orders(table: str, sort: str) -> list[Order]:
    found = []
    for part in sort.split(","):
        words = part.split()
        if not words:
            continue
        name, *rest = words
        if rest not in ([], ["asc"], ["desc"]):
            raise BadPipelineOption(
                f"cannot sort by {part.strip()!r}", remedy="Write a column, or: column desc."
            )
        name = _column(table, name.removeprefix("-"))
        kind = TABLES[table].field(name).type
        if pa.types.is_nested(kind) or pa.types.is_binary(kind):
            raise BadPipelineOption(
                f"the column {name} has no order", remedy="Sort by one with single values."
            )
        found.append(Order(name, words[0].startswith("-") or rest == ["desc"]))
    return found


def _rows(
    found: Published, table: str, columns: list[str], where: Where, order: list[Order], limit: int
) -> tuple[pa.Table, bool]:
    """At most `limit` rows, and whether there are more. No more is kept than those and a batch."""
    kept = pa.schema([TABLES[table].field(name) for name in columns]).empty_table()
    has_more = False
    for batch in _batches(found, table, columns, where):
        kept = pa.concat_tables([kept, batch])
        if order:
            keys = [(e.column, "descending" if e.is_descending else "ascending") for e in order]
            kept = kept.take(pc.sort_indices(kept, sort_keys=keys)[: limit + 1])
        has_more = has_more or kept.num_rows > limit
        kept = kept.slice(0, limit + 1 if order else limit)
        if has_more and not order:
            break
    return kept.slice(0, limit), has_more


def _batches(found: Published, table: str, columns: list[str], where: Where) -> Iterator[pa.Table]:
    paths = [str(path) for path in files_of(found, table)]
    if not paths:
        return
    try:
        rows = ds.dataset(paths, schema=TABLES[table], format="parquet")
        for batch in rows.to_batches(columns=columns, filter=where.pushed):
            if batch.num_rows:
                yield where.chosen(pa.Table.from_batches([batch]))
    except (OSError, pa.ArrowException) as error:
        raise unreadable(f"the table {table}", error) from error


def _plain(value: object) -> object:
    """A value as JSON has it: times in RFC 3339, bytes as text or in base64, no NaN."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _print(table: str, rows: pa.Table, *, is_chosen: bool) -> None:
    names = rows.column_names
    kinds = [TABLES[table].field(name).type for name in names]
    listed = [[_text(name, row[name]) for name in names] for row in rows.to_pylist()]
    width = screen_width()
    fitting = len(names) if is_chosen else _fitting(names, listed, width)
    right = frozenset(
        number
        for number, kind in enumerate(kinds[:fitting])
        if pa.types.is_integer(kind) or pa.types.is_floating(kind)
    )
    cells = [[_cut(text) for text in row[:fitting]] for row in listed]
    show_lines(table_lines(names[:fitting], cells, width=width, right=right))
    if not listed:
        say("no rows")
    hidden = len(TABLES[table].names) - fitting
    if hidden and not is_chosen:
        say(f"{hidden} more columns: --columns all, --columns a,b or --json")


def _cut(text: str | None) -> str | None:
    return None if text is None else truncate(cell(text), COLUMN_CHARS_MAX)


def _fitting(names: Sequence[str], listed: list[list[str | None]], width: int) -> int:
    """How many of the first columns stand side by side."""
    room = width
    for number, name in enumerate(names):
        widest = max((display_width(cell(row[number])) for row in listed), default=0)
        room -= max(display_width(name), min(widest, COLUMN_CHARS_MAX)) + (
            len(INDENT) if number else 0
        )
        if room < 0 and number >= COLUMNS_MIN:
            return number
    return len(names)


def _text(name: str, value: Any) -> str | None:
    """A value for a person: durations, sizes and shares in their units."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, int | float):
        return _number(name, value)
    if isinstance(value, bytes):
        return value[:200].decode(errors="replace")
    if isinstance(value, list):
        shown = ", ".join(_item(each) for each in value[:ITEMS_MAX])
        more = len(value) - ITEMS_MAX
        return f"{shown} +{more}" if more > 0 else shown
    return str(value)


def _number(name: str, value: float) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "-"
    if name.endswith("_s"):
        return duration_text(value) if value >= 0 else f"-{duration_text(-value)}"
    if name.endswith("_bytes") or name == "bytes":
        return size(value)
    if name in _SHARES:
        return percent(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _item(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(str(_text(name, each) or "-") for name, each in value.items())
    return str(value)

"""`pipeline show`: rows that are asked for, in the order asked for, as wide as there is room."""

from __future__ import annotations

import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sample_tables import START
from table_files import publish
from tocsin.cli.pipeline.row_filter import Where
from tocsin.cli.pipeline.show import FIRST, LIMIT_MAX, show
from tocsin.errors import BadFilter
from tocsin.errors.pipeline import BadPipelineOption, NoTables
from tocsin.tables.schemas import TABLES

STATS = [
    {
        "workflow": workflow,
        "activity": activity,
        "version": version,
        "count": 10 * number,
        "p50_s": 20.0 * number,
        "p90_s": 45.0 * number if number != 3 else None,
        "max_memory_bytes": 1.5e9 * number,
        "last_ended": START + timedelta(days=30 * number),
        "histogram": [{"low_s": 1.0, "high_s": 2.0, "count": number}],
    }
    for number, (workflow, activity, version) in enumerate(
        [
            ("montage", "mProject", "1.0"),
            ("montage", "mAdd", "2"),
            ("sarek", "call \x1b[31mvariants", "2"),
            ("sarek", "fastqc", None),
        ],
        start=1,
    )
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    events = [{"seq": 1, "topic": "wf/a/b", "data": b"\xff\x00"}, {"seq": 2, "data": b"{}"}]
    return publish(tmp_path_factory.mktemp("shown"), {"activity_stats": STATS, "events": events})


def lines(tables: Path, capsys: pytest.CaptureFixture[str], **options: Any) -> list[Any]:
    """The rows as JSON, each as its one column or as a list of them."""
    table = options.pop("table", "activity_stats")
    assert show(tables, table, json=True, **options) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [next(iter(row.values())) if len(row) == 1 else row for row in rows]


@pytest.mark.parametrize(
    ("where", "counts"),
    [
        ("", [10, 20, 30, 40]),
        ("workflow = montage and p90_s > 60", [20]),
        ("p90_s > 1.5 min or workflow = sarek", [30, 40]),
        ("not p90_s > 60", [10, 30]),
        ("not p90_s exists", [30]),
        ("max_memory_bytes >= 3 GB and max_memory_bytes < 6 GB", [20, 30]),
        ("last_ended < '2026-03-15'", [10, 20]),
        ("version = 2", [20, 30]),
        ("activity prefix m or activity suffix qc", [10, 20, 40]),
        ("[workflow,=,sarek],[count,>,30]", [40]),
        ("p50_s > 2 GB", []),
    ],
)
def test_rows_are_chosen_in_the_filter_language(
    tables: Path, capsys: pytest.CaptureFixture[str], where: str, counts: list[int]
) -> None:
    assert lines(tables, capsys, where=where, columns="count") == counts


def test_rows_are_sorted_and_limited_and_it_is_said(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines(tables, capsys, sort="-p90_s", columns="count") == [40, 20, 10, 30]
    assert lines(tables, capsys, sort="workflow desc, count", columns="count", limit=3) == [
        *(30, 40, 10)
    ]
    show(tables, "activity_stats", limit=3)
    assert "more rows than 3" in capsys.readouterr().err
    show(tables, "activity_stats", limit=4)
    assert "more rows" not in capsys.readouterr().err


def test_a_person_sees_units_and_nothing_that_a_terminal_obeys(
    tables: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.cli.pipeline.show.screen_width", lambda: 60)

    show(tables, "activity_stats", sort="-count")

    out, err = capsys.readouterr()
    header, first, *_ = out.splitlines()
    assert header.split()[:4] == ["activity", "workflow", "version", "count"]
    assert first.split() == ["fastqc", "sarek", "-", "40", "-"]
    assert all(len(line) <= 60 for line in out.splitlines())
    assert "\x1b" not in out
    assert "22 more columns" in err


def test_json_keeps_what_bytes_moments_and_lists_say(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = lines(tables, capsys, table="events", columns="seq,data")
    [row] = lines(tables, capsys, where="count = 10")

    assert events == [{"seq": 1, "data": {"base64": "/wA="}}, {"seq": 2, "data": "{}"}]
    assert row.keys() == set(TABLES["activity_stats"].names)
    assert row["last_ended"] == "2026-01-31T00:00:00Z"
    assert row["histogram"] == [{"low_s": 1.0, "high_s": 2.0, "count": 1}]
    assert lines(tables, capsys, table="events", where="topic wf/**", columns="seq") == [1]


@pytest.mark.parametrize(
    ("error", "words", "options"),
    [
        (BadFilter, "no column 'p9_s'", {"where": "p9_s > 1"}),
        (BadFilter, "'histogram' of the table .* has several", {"where": "histogram exists"}),
        (BadFilter, "cannot be used on a table", {"where": "xpath '/a'"}),
        (BadFilter, "no column 'topic'", {"where": "topic a/*"}),
        (BadPipelineOption, "Did you mean p50_s", {"columns": "p5_s"}),
        (BadPipelineOption, "has no order", {"sort": "histogram"}),
        (BadPipelineOption, "cannot sort", {"sort": "count upwards"}),
        (BadPipelineOption, "limit is 0", {"limit": 0}),
        (BadPipelineOption, "limit is", {"limit": LIMIT_MAX + 1}),
        (NoTables, "no table 'stats'", {"table": "stats"}),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(
    tables: Path, error: type[Exception], words: str, options: dict[str, Any]
) -> None:
    with pytest.raises(error, match=words):
        show(tables, **{"table": "activity_stats", **options})


def test_every_table_has_columns_that_come_first() -> None:
    assert FIRST.keys() == TABLES.keys()
    for table, names in FIRST.items():
        assert set(names.split()) <= set(TABLES[table].names)


VALUES = st.one_of(st.none(), st.sampled_from([0.0, 1.0, 60.0, math.nan, math.inf, -1.0]))
TEXTS = st.one_of(st.none(), st.sampled_from(["", "a", "b", "60", "true"]))
LEAVES = st.sampled_from(
    [
        *("p50_s > 0", "p50_s != 60", "p50_s <= 1 min", "p50_s > 1 GB", "p50_s exists"),
        *("workflow = a", "workflow != b", "workflow < b", "workflow = 60", "workflow = true"),
        *("workflow prefix a", "workflow exists", "everything", "nothing"),
    ]
)
FILTERS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda one: f"not ({one})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda three: f"({three[0]}) {three[1]} ({three[2]})"
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(where=FILTERS, rows=st.lists(st.tuples(VALUES, TEXTS), max_size=6))
def test_what_parquet_is_asked_changes_no_answer(
    where: str, rows: list[tuple[float | None, str | None]]
) -> None:
    import pyarrow as pa

    made = [{"p50_s": number, "workflow": text} for number, text in rows]
    table = pa.Table.from_pylist(made, schema=TABLES["activity_stats"])
    asked = Where("activity_stats", where)

    pushed = table if asked.pushed is None else table.filter(asked.pushed)

    slowly = [row for row in table.to_pylist() if asked._holds(row)]
    assert str(asked.chosen(pushed).to_pylist()) == str(slowly)

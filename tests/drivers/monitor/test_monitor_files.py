"""Which run produced this file: an index over all runs, and the lineage up and down."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from monitor.kept import Kept
from monitor.runs import RECEIVED_NS, activity_pairs, at, ns, received, run_pairs
from tocsin.drivers.monitor.database.schema import FILE_NAME
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.file_queries import find_files
from tocsin.errors import BadRequest
from tocsin.monitor.file_names import asked_name, resolved

NOW_NS = RECEIVED_NS


def step(
    run: str, name: str, start_s: float, inputs: list[str], outputs: list[str], **more: str
) -> list[dict[str, str]]:
    files = {"InputFile": json.dumps(inputs), "OutputFile": json.dumps(outputs), **more}
    return [
        activity_pairs(name, "ActivityExecuting", start_s, run),
        activity_pairs(name, "ActivitySucceeded", start_s + 1, run, **files),
    ]


def run_of(name: str, start_s: float, directory: str, *steps: list[dict[str, str]], **more: str):  # type: ignore[no-untyped-def]
    return [
        run_pairs("WorkflowStarted", start_s, name, WorkingDirectory=directory, **more),
        *(each for some in steps for each in some),
        run_pairs("WorkflowCompleted", start_s + 50, name),
    ]


TWO_ENGINES = [
    *run_of(
        *("prep", 0, "/data/p"),
        step("prep", "clean", 1, ["/raw/x.csv"], ["clean.csv"], OutputBytes="120"),
        EngineName="parsl",
    ),
    *run_of(
        *("model", 100, "/data/m"),
        step("model", "fit", 101, ["/data/p/clean.csv"], ["fit/m.bin", "fit/log.txt"]),
        step("model", "plot", 110, ["fit/m.bin"], ["results/plot.png"]),
        EngineName="snakemake",
    ),
    *run_of(
        *("again", 300, "/data/m"),
        step("again", "plot", 301, ["fit/m.bin"], ["results/plot.png"]),
    ),
]


def who(kept: Kept, name: str, **more: object) -> list[tuple[str, str]]:
    found = find_files(kept.asked.index, NOW_NS, name, **more).files  # type: ignore[arg-type]
    return [(each.run, each.activity) for each in found]


def test_who_wrote_a_file_is_found_across_runs_and_engines_the_latest_first(kept: Kept) -> None:
    kept.fold(received(*TWO_ENGINES))

    [clean] = find_files(kept.asked.index, NOW_NS, "clean.csv").files

    assert (clean.run, clean.engine, clean.activity) == ("prep", "parsl", "clean")
    assert (clean.path, clean.time, clean.size) == ("/data/p/clean.csv", at(2), 120)
    assert who(kept, "results/plot.png") == [("again", "plot"), ("model", "plot")]
    assert who(kept, "clean.csv", wrote=False) == [("model", "fit")]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("m.bin", 1),
        ("fit/m.bin", 1),
        ("m/fit/m.bin", 1),
        ("/data/m/fit/m.bin", 1),
        ("./fit/m.bin", 1),
        ("/fit/m.bin", 0),
        ("other/m.bin", 0),
        ("it/m.bin", 0),
        ("fit/*", 2),
        ("*.bin", 1),
        ("m.*", 1),
        ("*", 5),
        ("/data/*/clean.csv", 1),
        ("/data/*", 0),
        ("nothing.txt", 0),
    ],
)
def test_a_name_is_matched_by_its_last_parts_and_by_wildcards(
    name: str, found: int, kept: Kept
) -> None:
    kept.fold(received(*TWO_ENGINES))

    assert len(who(kept, name)) == found


def test_the_lineage_goes_from_run_to_run_in_both_directions(kept: Kept) -> None:
    kept.fold(received(*TWO_ENGINES))

    up = find_files(kept.asked.index, NOW_NS, "/data/m/results/plot.png", depth=5).lineage.up
    down = find_files(kept.asked.index, NOW_NS, "clean.csv", depth=5).lineage.down

    assert [(each.file, each.run, each.activity, each.depth) for each in up] == [
        ("fit/m.bin", "model", "fit", 1),
        ("/data/p/clean.csv", "prep", "clean", 2),
        ("/raw/x.csv", None, None, 3),
    ]
    assert {(each.file, each.run, each.activity, each.depth) for each in down} == {
        ("clean.csv", "model", "fit", 1),
        ("fit/m.bin", "model", "plot", 2),
        ("fit/m.bin", "again", "plot", 2),
    }


def test_a_file_in_a_directory_that_a_step_wrote_was_written_by_that_step(kept: Kept) -> None:
    kept.fold(
        received(
            *run_of(
                *("smk", 0, "/data/s"),
                step("smk", "split", 1, ["all.csv"], ["parts/"]),
                step("smk", "count", 5, ["parts/deep/1.csv"], ["1.out"]),
            ),
            *run_of(*("late", 100, "/x"), step("late", "use", 101, ["/data/s/parts/2.csv"], ["u"])),
        )
    )

    up = find_files(kept.asked.index, NOW_NS, "1.out", depth=5).lineage.up
    down = find_files(kept.asked.index, NOW_NS, "/data/s/parts", depth=1).lineage.down

    assert [(each.file, each.activity) for each in up] == [
        ("parts/deep/1.csv", "split"),
        ("all.csv", None),
    ]
    assert {(each.file, each.run, each.activity) for each in down} == {
        ("parts/", "smk", "count"),
        ("parts/", "late", "use"),
    }
    assert who(kept, "parts/deep/1.csv") == who(kept, "2.csv") == [("smk", "split")]
    assert who(kept, "parts/deep/nobody-read.csv") == []


def test_a_lineage_that_is_cut_says_that_there_is_more(kept: Kept) -> None:
    kept.fold(received(*TWO_ENGINES))

    short = find_files(kept.asked.index, NOW_NS, "/data/m/results/plot.png", depth=1).lineage

    assert (len(short.up), short.more) == (1, True)


def test_a_file_of_the_same_name_elsewhere_is_another_file(kept: Kept) -> None:
    kept.fold(
        received(
            *run_of("one", 0, "/a", step("one", "s", 1, [], ["out.txt"])),
            *run_of("two", 100, "/b", step("two", "t", 101, ["out.txt"], ["end.txt"])),
        )
    )

    lineage = find_files(kept.asked.index, NOW_NS, "end.txt", depth=5).lineage

    assert [(each.file, each.run) for each in lineage.up] == [("out.txt", None)]


def test_an_earlier_reader_did_not_read_the_later_version(kept: Kept) -> None:
    kept.fold(
        received(
            *run_of("w1", 0, "/a", step("w1", "s", 1, [], ["f"])),
            *run_of("r1", 100, "/a", step("r1", "t", 101, ["f"], ["g"])),
            *run_of("w2", 200, "/a", step("w2", "s", 201, [], ["f"])),
        )
    )

    latest = find_files(kept.asked.index, NOW_NS, "/a/f", depth=3)
    before = find_files(kept.asked.index, NOW_NS, "/a/g", depth=3).lineage.up

    assert [each.run for each in latest.files] == ["w2", "w1"]
    assert latest.lineage.down == []
    assert [each.run for each in before] == ["w1"]


def test_a_list_of_files_goes_on_where_the_page_ended(kept: Kept) -> None:
    runs = [
        run_of(f"r{n}", n * 100, "/a", step(f"r{n}", "s", n * 100, [], ["f"])) for n in range(5)
    ]
    kept.fold(received(*(each for some in runs for each in some)))
    seen, after = [], None
    while True:
        page = find_files(kept.asked.index, NOW_NS, "f", limit=2, after=after)
        seen += [each.run for each in page.files]
        after = page.next
        if after is None:
            break

    assert seen == ["r4", "r3", "r2", "r1", "r0"]
    for wrong in ("x", "1.2", "9" * 30 + ".1.a"):
        with pytest.raises(BadRequest):
            find_files(kept.asked.index, NOW_NS, "f", after=wrong)
    with pytest.raises(BadRequest):
        find_files(kept.asked.index, NOW_NS, "/")


def test_what_is_asked_goes_by_an_index_and_not_through_all_rows(kept: Kept) -> None:
    for clause in ("base = 'x'", "base >= 'x' AND base < 'y'", "tail >= 'x' AND tail < 'y'"):
        plan = kept.asked.index.rows(
            f"EXPLAIN QUERY PLAN SELECT no, name FROM paths WHERE {clause}"
        )
        assert "USING INDEX" in str(plan), plan


def test_files_go_with_the_run_that_is_forgotten(tmp_path: Path) -> None:
    kept = Kept(tmp_path, MonitorOptions(retain_age_s=100))
    kept.fold(received(*TWO_ENGINES, received_ns=ns(0)))
    while kept.store.prune(ns(1_000)):
        pass

    assert who(kept, "*") == []
    assert kept.asked.index.rows("SELECT count(*) FROM files") == [(0,)]
    assert kept.asked.index.rows("SELECT count(*) FROM paths") == [(0,)]
    kept.close()


def test_the_files_of_a_database_of_before_are_indexed_when_it_is_opened(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.fold(received(*TWO_ENGINES))
    kept.close()
    old = apsw.Connection(str(tmp_path / FILE_NAME))
    old.execute("DROP TABLE files; DROP TABLE paths; DROP TABLE generations; PRAGMA user_version=3")
    old.close()

    kept = Kept(tmp_path)

    assert who(kept, "clean.csv") == [("prep", "clean")]
    kept.close()


def test_a_name_is_resolved_where_its_run_worked() -> None:
    assert resolved("a", "/x/") == resolved("./a", "/x") == "/x/a"
    assert resolved("/a", "/x") == "/a"
    assert resolved("s3://b/a", "/x") == "s3://b/a"
    assert resolved("a", None) == "a"
    assert asked_name("") is None

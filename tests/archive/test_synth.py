"""An archive that is made says what its bytes say, and the truth beside it is true."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tocsin.archive.catalog import Catalog
from tocsin.archive.facts import FactsReader
from tocsin.archive.parquet_reader import read_piece
from tocsin.archive.record import SCHEMA, to_batch, to_events
from tocsin.archive.samples import SCHEMAS
from tocsin.archive.verify import verify
from tocsin.cli import main as cli
from tocsin.errors.archive import BadArchiveFile
from tocsin.errors.settings import BadSetting
from tocsin.monitor.fold import Row, merge_into, parse_message
from tocsin.monitor.run_messages import run_message
from tocsin.monitor.states import attempt_state, attempt_times, run_state
from tocsin.ontology import built_in
from tocsin.synth import broken
from tocsin.synth.archive import TRUTH_NAME, synthesize
from tocsin.synth.plan import Plan

EVENTS = 30_000
PLAN = Plan(EVENTS, seed=5, broken=0.002, broken_files=True)


@dataclass(frozen=True)
class Made:
    directory: Path
    truth: dict[str, Any]
    events: pa.Table
    """All events of files without nulls where none may be, by number."""
    refused: int


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    directory = tmp_path_factory.mktemp("synth") / "made"
    truth = synthesize(PLAN, directory, lambda count: None)
    batches, refused = [], 0
    for piece in Catalog(directory).pieces():
        try:
            batches += list(read_piece(piece))
        except BadArchiveFile:
            refused += pq.read_metadata(piece.path).num_rows
    return Made(directory, truth, pa.Table.from_batches(batches, SCHEMA), refused)


def once(events: pa.Table) -> pa.Table:
    """Each event once, and none that is broken."""
    sound = events.filter(pc.not_equal(events["source"], broken.SOURCE))
    first = sound.group_by(["source", "id"]).aggregate([("seq", "min")])
    return sound.filter(pc.is_in(sound["seq"], first["seq_min"].combine_chunks()))


def test_synth_says_what_its_bytes_say(made: Made) -> None:
    step = 7
    sound = once(made.events)
    sample = sound.take(pa.array(range(0, sound.num_rows, step))).combine_chunks()
    batch = sample.to_batches()[0]

    again = to_batch(to_events(batch), FactsReader(built_in()))

    for name in SCHEMA.names:
        assert again.column(name).equals(batch.column(name)), name


def test_there_are_exactly_as_many_events_as_asked_for_in_the_order_of_their_numbers(
    made: Made,
) -> None:
    seq = made.events["seq"].to_numpy()
    received = made.events["received"].cast(pa.int64()).to_numpy()

    assert made.events.num_rows + made.refused == EVENTS == made.truth["events"]
    assert seq[0] == 1
    steps = np.diff(seq)
    assert np.all(steps >= 0)
    assert int((steps == 0).sum()) == made.truth["broken"]["seq_repeats"]
    assert made.truth["last_seq"] == EVENTS - made.truth["broken"]["seq_repeats"]
    assert np.all(np.diff(received) >= 0)


def test_the_truth_counts_what_is_broken_late_and_there_twice(made: Made) -> None:
    counts = made.truth["broken"]
    source = made.events["source"].to_pylist()
    ids = made.events["id"].to_pylist()

    twice = sum(count - 1 for count in Counter(zip(source, ids, strict=True)).values())

    assert sum(counts.values()) == round(EVENTS * PLAN.broken)
    assert all(counts.values()), counts
    assert made.refused == sum(counts[kind] for kind in broken.NULLS)
    assert twice == made.truth["duplicates"] > 0
    assert (
        made.truth["events_once"]
        == once(made.events).num_rows
        == EVENTS - twice - sum(counts.values())
    )
    assert source.count(broken.SOURCE) == sum(counts.values()) - made.refused
    assert made.truth["late"] > 0


def test_the_monitor_folds_the_events_to_what_the_truth_says(made: Made) -> None:
    facts_reader = FactsReader(built_in())
    runs: dict[str, Row] = {}
    attempts: dict[tuple[str, str, int], Row] = {}
    rows = once(made.events)
    for stored in to_events(rows):
        message = run_message(stored, facts_reader.reading.vocabulary)
        said = parse_message(message, facts_reader.reading) if message else None
        if said is None:
            continue
        merge_into(runs.setdefault(said.run, {}), said.run_row)
        for (activity, number), row in said.activities.items():
            merge_into(attempts.setdefault((said.run, activity, number), {}), row)

    states = Counter(attempt_state(row) for row in attempts.values())
    run_states = Counter(run_state(row) for row in runs.values())

    del states["planned"]  # of runs that told their plan and did not come so far
    assert states == Counter(made.truth["attempts"])
    said_runs = dict(made.truth["runs"])
    assert sum(run_states.values()) == said_runs.pop("seen")
    # Of a run whose start is late, no more may be known than that something of it is queued.
    assert run_states.pop("running", 0) + run_states.pop("created", 0) == said_runs.pop("open")
    assert run_states == Counter(said_runs)
    _law_holds(made.truth, runs, attempts)


def _law_holds(truth: dict[str, Any], runs: dict[str, Row], attempts: dict[Any, Row]) -> None:
    """Durations lie about the line that the truth tells; their mean is within what noise does."""
    laws = {
        (workflow["name"], activity["type"], version): law
        for workflow in truth["world"]["workflows"]
        for activity in workflow["activities"]
        for version, law in activity["laws"].items()
    }
    ratios = []
    for (name, _, _), row in attempts.items():
        times = attempt_times(row)
        if times.state != "succeeded" or times.duration_s is None or "version" not in runs[name]:
            continue
        of_run = runs[name]
        law = laws[of_run["workflow"][2], row["type"][2], of_run["version"][2]]
        expected_s = law["base_s"] + law["slope_s"] * row["input_bytes"][2]
        ratios.append(times.duration_s / expected_s)
    assert len(ratios) > 1_000
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)
    assert 0.05 < np.std(ratios) < 0.3


def test_the_world_is_skewed_and_its_clocks_are_wrong(made: Made) -> None:
    by_workflow = sorted(made.truth["runs_by_workflow"].values())
    of_run = made.events.group_by("run").aggregate([("seq", "count")])
    largest = max(
        count.as_py()
        for run, count in zip(of_run["run"], of_run["seq_count"], strict=True)
        if run.as_py() is not None
    )
    ahead = pc.struct_field(made.events["facts"], "ahead_us")

    assert 0.2 < by_workflow[-1] / sum(by_workflow) < 0.5
    assert 0.01 < largest / EVENTS < 0.04
    assert len(made.truth["world"]["clocks_ms"]) == 5
    assert pc.count(ahead).as_py() > 0
    assert {2020, 2026} <= set(pc.unique(pc.year(made.events["at"])).to_pylist())


def test_what_is_kept_beside_the_events_has_its_own_layout(made: Made) -> None:
    for kind, schema in SCHEMAS.items():
        files = sorted((made.directory / kind).glob("date=*/*.parquet"))
        tables = [pq.read_table(path, partitioning=None) for path in files]
        assert sum(each.num_rows for each in tables) == made.truth["samples"][kind] > 0
        assert all(each.schema.equals(schema) for each in tables)


def test_the_same_seed_makes_the_same_columns_and_another_one_others(tmp_path: Path) -> None:
    small = Plan(3_000, seed=1, days=2, files_of=500)

    def columns(name: str, plan: Plan) -> list[pa.Table]:
        synthesize(plan, tmp_path / name, lambda count: None)
        paths = sorted((tmp_path / name).rglob("*.parquet"))
        return [pq.read_table(path, partitioning=None) for path in paths]

    first, again = columns("first", small), columns("again", small)
    other = columns("other", Plan(3_000, seed=2, days=2, files_of=500))

    assert len(first) == len(again) > 6
    assert all(one.equals(two) for one, two in zip(first, again, strict=True))
    assert not first[0].equals(other[0])


def test_no_file_of_an_archive_is_damaged_unless_that_is_asked_for(tmp_path: Path) -> None:
    truth = synthesize(Plan(2_000, seed=3, broken=0.02), tmp_path / "made", lambda _: None)
    synthesize(
        Plan(2_000, seed=3, broken=0.02, broken_files=True), tmp_path / "hurt", lambda _: None
    )

    assert sum(truth["broken"].values()) == 40
    assert verify(str(tmp_path / "made")).findings == []
    assert {each.level for each in verify(str(tmp_path / "hurt")).findings} == {"damage"}


def test_a_day_on_which_nothing_came_is_a_day_like_any_other(tmp_path: Path) -> None:
    truth = synthesize(Plan(events=1_000, seed=3, files_of=200), tmp_path / "made", lambda _: None)
    assert truth["last_seq"] >= 990


def test_a_year_may_have_days_with_nothing_but_broken_records(tmp_path: Path) -> None:
    plan = Plan(events=1_500, seed=3, days=60, broken=0.05)
    truth = synthesize(plan, tmp_path / "made", lambda _: None)

    assert sum(truth["broken"].values()) == 75
    assert truth["events"] >= 1_500


def test_a_directory_that_has_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("important")

    with pytest.raises(BadSetting, match="not empty"):
        synthesize(Plan(1_000), tmp_path, lambda count: None)

    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_disk_that_takes_no_more_is_told_and_the_truth_is_not_written(tmp_path: Path) -> None:
    # A process of its own: the limit is on every file that it writes.
    code = "import resource, sys; from tocsin.cli.main import main; " + (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)); main(sys.argv[1:])"
    )
    out = tmp_path / "made"

    ended = subprocess.run(
        [sys.executable, "-c", code, "synth", "--events", "30k", "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 1
    assert "T402" in ended.stderr
    assert "begin again" in ended.stderr
    assert not (out / TRUTH_NAME).exists()
    assert not list(out.rglob(".*"))


@pytest.mark.parametrize(
    "wrong",
    [{"events": 10}, {"events": 5_000, "broken": 0.9}, {"events": 5_000, "days": 0}],
)
def test_what_cannot_be_made_is_refused_with_what_can(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadSetting, match="Give a number from"):
        Plan(**wrong)


def test_the_command_takes_numbers_as_people_write_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made"

    code = cli.run(["synth", "--events", "2k", "--seed", "3", "--out", str(out), "--json"])

    said = json.loads(capsys.readouterr().out)
    written = json.loads((out / TRUTH_NAME).read_text("utf-8"))
    assert code == 0
    assert said["events"] == written["events"] == 2_000
    assert said["plan"]["seed"] == 3
    assert said["directory"] == str(out)

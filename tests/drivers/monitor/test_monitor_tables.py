"""The pipeline's tables in the monitor's answers: shown with their age, never counted twice."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from monitor.made_tables import line, publish_tables, stats
from monitor.runs import activity_pairs, run_pairs
from served import Served
from tocsin.drivers.monitor.tables import Tables

THROUGH = 3  # the tables hold what the first three messages tell
FIRST = [
    run_pairs("WorkflowStarted", 0, run="r1", WorkflowName="blast"),
    activity_pairs("align-1", "ActivityExecuting", 0, run="r1"),
    activity_pairs("align-1", "ActivitySucceeded", 10, run="r1"),
]
SINCE = [
    activity_pairs("align-2", "ActivityExecuting", 10, run="r1"),
    activity_pairs("align-2", "ActivityFailed", 12, run="r1", ErrorMessage="no"),
    activity_pairs("align-3", "ActivityExecuting", 12, run="r1"),
    activity_pairs("align-3", "ActivitySucceeded", 23, run="r1"),
    activity_pairs("split-1", "ActivityExecuting", 12, run="r1"),
    activity_pairs("split-1", "ActivitySucceeded", 13, run="r1"),
]
PLAN = {
    "workflow": "blast",
    "tasks": [
        {"id": "a", "type": "align", "external_bytes": 11_000_000},
        {"id": "b", "type": "align", "parents": ["a"]},
    ],
}


class Received:
    """What an operator was told, and a log that ends somewhere."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []
        self.head = 100

    def note(self, level: str, message: str, **fields: object) -> None:
        self.notes.append((level, message))

    def tables(self, directory: Path, *, is_named: bool = False) -> Tables:
        return Tables(directory, lambda: self.head, self.note, is_named=is_named, look_every_s=0.0)


def test_a_new_version_is_read_and_a_damaged_one_leaves_the_one_before(tmp_path: Path) -> None:
    received = Received()
    tables = received.tables(tmp_path)
    publish_tables(tmp_path, 1, [stats("align")], [line("align")])
    first = tables.status()
    second = publish_tables(tmp_path, 2, [stats("align", version="2", p50_s=20.0)])
    then = tables.status()
    broken = publish_tables(tmp_path, 3, [stats("align")])
    (broken / "activity_stats" / "part-0.parquet").write_bytes(b"PAR1 nonsense")
    kept = [tables.status() for _ in range(3)]
    (tmp_path / "_current").unlink()
    (tmp_path / "_current").symlink_to(second)
    again = tables.status()

    assert first.learned is not None
    expected = first.learned.expected("blast", "align", "")
    assert expected is not None
    assert expected.seconds(None) == 10.0
    assert expected.seconds(14e6) == 15.0
    assert then.learned is not None
    assert then.learned.version == 2
    (row,) = then.learned.rows("align")
    assert (row.version, row.p50_s, [each.count for each in row.bins()]) == ("2", 20.0, [49, 49])
    assert {each.learned.version for each in kept if each.learned} == {2}
    assert all(each.problem and "activity_stats cannot be read" in each.problem for each in kept)
    assert [level for level, _ in received.notes] == ["warning", "info"]
    assert again.problem is None


def test_tables_that_cannot_be_used_are_told_of_once_and_left_alone(tmp_path: Path) -> None:
    def foreign(place: Path) -> None:
        shutil.rmtree(place / "cost_models")

    def newer(place: Path) -> None:
        manifest = json.loads((place / "_manifest.json").read_bytes())
        (place / "_manifest.json").write_text(json.dumps({**manifest, "format": 99}))

    def cut(place: Path) -> None:
        manifest = (place / "_manifest.json").read_bytes()
        (place / "_manifest.json").write_bytes(manifest[:-9])

    def fewer(place: Path) -> None:
        manifest = json.loads((place / "_manifest.json").read_bytes())
        manifest["tables"]["activity_stats"]["rows"] = 7
        (place / "_manifest.json").write_text(json.dumps(manifest))

    def huge(place: Path) -> None:
        manifest = json.loads((place / "_manifest.json").read_bytes())
        manifest["tables"]["activity_stats"]["rows"] = 10**9
        (place / "_manifest.json").write_text(json.dumps(manifest))

    def other_columns(place: Path) -> None:
        source = place / "cost_models" / "part-0.parquet"
        shutil.copy(source, place / "activity_stats" / "part-0.parquet")

    for number, spoil in enumerate((foreign, newer, cut, fewer, huge, other_columns)):
        received, directory = Received(), tmp_path / str(number)
        spoil(publish_tables(directory, 1, [stats("align")], [line("align")]))
        tables = received.tables(directory)

        found = [tables.status() for _ in range(3)]

        assert [each.learned for each in found] == [None] * 3, spoil
        assert all(each.problem for each in found), spoil
        assert [level for level, _ in received.notes] == ["warning"], spoil


@pytest.mark.parametrize("again_after_s", [0.0, 60.0])
def test_what_the_machine_did_not_read_is_tried_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again_after_s: float
) -> None:
    received = Received()
    tables = Tables(
        tmp_path, lambda: 100, received.note, look_every_s=0.0, again_after_s=again_after_s
    )
    publish_tables(tmp_path, 1, [stats("align")], [line("align")])

    def failing(*_given: object, **_options: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as outage:
        outage.setattr(pq, "read_table", failing)
        then = tables.status()
    now = tables.status()

    assert then.learned is None
    assert then.problem is not None
    assert "Too many open files" in then.problem
    assert (now.learned is not None) == (again_after_s == 0)


def test_tables_of_another_log_or_none_at_all_are_not_used(tmp_path: Path) -> None:
    received = Received()
    publish_tables(tmp_path / "other", 1, [stats("align")], through=101)
    other, none = received.tables(tmp_path / "other"), received.tables(tmp_path / "none")
    named = received.tables(tmp_path / "none", is_named=True)
    (tmp_path / "half" / ".versions" / "000001").mkdir(parents=True)

    beyond = [other.status() for _ in range(2)]
    received.head = 101
    grown = other.status()

    assert beyond[1].learned is None
    assert "another log" in (beyond[1].problem or "")
    assert grown.learned is not None
    assert none.status() == received.tables(tmp_path / "half").status()
    assert (none.status().learned, none.status().problem) == (None, None)
    assert "no tables" in (named.status().problem or "")
    assert [level for level, _ in received.notes] == ["warning", "info", "warning"]


def test_numbers_that_cannot_be_are_taken_as_not_told(tmp_path: Path) -> None:
    nonsense = float("nan")
    publish_tables(
        tmp_path,
        1,
        [
            stats("align", mean_s=nonsense, p50_s=-1.0, max_s=float("inf"), runs=None),
            stats(None, p50_s=1.0),  # type: ignore[arg-type]
        ],
        [line("align", slope=nonsense)],
    )

    learned = Received().tables(tmp_path).status().learned

    assert learned is not None
    (row,) = learned.rows("align")
    assert (row.mean_s, row.p50_s, row.max_s, row.runs, row.p90_s) == (None, None, None, 0, 11.0)
    assert learned.expected("blast", "align", "") is None
    assert [each.slope for each in learned.cost_models("align")] == [None]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("learned") / "data"
    found = Served(data)
    try:
        for messages in (FIRST, SINCE):
            posted = [{"pairs": pairs} for pairs in messages]
            assert found.call("POST", "/blackboard/messages", posted)[0] == 202
        made = datetime.now(UTC) - timedelta(days=8)
        rows = [stats("align"), stats("align", workflow="other", count=10), stats("gone")]
        publish_tables(data / "tables", 7, rows, [line("align")], through=THROUGH, made=made)
        yield found
    finally:
        found.stop()


def ask(broker: Served, path: str) -> Any:
    status, answer = broker.call("GET", path)
    assert status == 200, answer
    return answer


def test_a_history_is_the_tables_and_what_came_since(broker: Served) -> None:
    found = ask(broker, "/activities/align?workflow=blast")
    everywhere = ask(broker, "/activities/align")

    assert (found["tables"]["count"], found["tables"]["failed"]) == (100, 2)
    assert (found["since"]["count"], found["since"]["failed"]) == (2, 1)
    assert (found["count"], found["failed"], found["exact"]) == (102, 3, False)
    assert sum(found["histogram"]["counts"]) == 99
    assert found["p50_s"] == pytest.approx(10.0, abs=0.1)
    learned = found["learned"]
    assert (learned["version"], learned["through"], learned["attempts"]) == (7, THROUGH, 100)
    assert (learned["old"], learned["problem"]) == (True, None)
    assert learned["age_s"] == pytest.approx(8 * 86_400, rel=0.01)
    (model,) = found["cost_models"]
    assert (model["target"], model["slope"]) == ("duration_s", 1e-6)
    assert [each["workflow"] for each in everywhere["by_version"]] == ["blast", "other"]
    assert (everywhere["count"], everywhere["since"]["count"]) == (112, 2)


def test_what_only_one_of_them_knows_is_told_too(broker: Served) -> None:
    gone, only_here = ask(broker, "/activities/gone"), ask(broker, "/activities/split")
    status, problem = broker.call("GET", "/activities/gon")

    assert (gone["count"], gone["since"]["count"], gone["exact"]) == (100, 0, True)
    assert gone["histogram"] == {"edges": [8.0, 10.0, 12.0], "counts": [49, 49]}
    assert (only_here["count"], only_here["tables"], only_here["since"]) == (1, None, None)
    assert only_here["learned"]["attempts"] == 0
    assert status == 404
    assert "Did you mean gone" in problem["remedy"]


def test_a_plan_that_was_never_run_here_is_estimated_from_the_tables(broker: Served) -> None:
    status, found = broker.call("POST", "/estimates", PLAN)
    on_the_way = ask(broker, "/runs/r1/estimate")

    assert status == 200
    assert found["total_s"] == pytest.approx(12.0 + 10.0, rel=0.1)  # by its size, and by the median
    assert (found["past_runs"], found["method"]) == (0, "simulation")
    assert (found["learned"]["version"], found["learned"]["attempts"]) == (7, 98)
    assert on_the_way["learned"]["version"] == 7


def test_people_read_where_it_is_from_and_that_it_is_old(broker: Served, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(PLAN))

    def tocsin(*words: str) -> str:
        command = [sys.executable, "-m", "tocsin", "wf", *words, "--broker", broker.url]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    history = tocsin("history", "align", "--workflow", "blast")
    eta = tocsin("eta", "--plan", str(plan))

    assert "from 100 past attempts in tables made 8 days ago; they are old" in " ".join(
        history.split()
    )
    assert "since then  2 times, 1 failed" in history
    assert "1.0s + 16m40s a GB, usually off by 5%" in history
    assert "from 98 past attempts in tables made 8 days ago" in " ".join(eta.split())

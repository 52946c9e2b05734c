"""`tocsin evaluate`: a table for people, JSON for programs, and what it says of bad files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from monitor.estimate.estimate_runs import run as made_run
from tocsin.cli.main import run


def line(seed: int, samples: int, **changes: object) -> dict[str, Any]:
    one = made_run(seed, samples)
    tasks = one.plan.tasks
    return {
        "file": f"{seed}.json",
        "app": "made up",
        "makespan": one.makespan_s,
        "machines": 1,
        "cores": 4,
        "type": [task.type for task in tasks],
        "runtime": [one.done[index].runtime_s for index in range(len(tasks))],
        "parents": [list(task.parents) for task in tasks],
        "external_bytes": [task.external_bytes for task in tasks],
        **changes,
    }


def written(path: Path, lines: list[object], *, packed: bool = True) -> str:
    text = "".join(json.dumps(each) + "\n" for each in lines).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return str(path)


@pytest.fixture(scope="module")
def runs_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    lines = [line(seed, 3 + seed % 2) for seed in range(10)]
    few = [line(1, 3, app="rare")]
    return written(tmp_path_factory.mktemp("runs") / "runs.jsonl.gz", [*lines, *few])


def test_the_table_shows_ours_beside_the_baselines(runs_file: str, capsys) -> None:
    assert run(["evaluate", "eta", runs_file]) == 0

    out, err = capsys.readouterr()
    assert "made up      10" in out
    assert "MEDIAN" in out
    for column in ("ours", "80 % holds", "mean makespan", "fraction of tasks", "fraction of work"):
        assert column in out
    assert out.count("75%") == 4
    assert "1 application with fewer than 10 runs left out" in err


def test_json_is_one_document_with_every_figure(runs_file: str, capsys) -> None:
    assert run(["evaluate", "eta", runs_file, "--json"]) == 0

    report = json.loads(capsys.readouterr().out)
    found = report["applications"]["made up"]
    assert list(report["applications"]) == ["made up"]
    assert found["runs"] == 10
    assert 0 <= found["leave_one_run_out"]["50"]["mdape"] < 0.3
    assert set(found["leave_one_size_out"]["0"]) == {"mdape", "mape", "coverage", "ratio"}
    assert set(report["median"]["baselines"]) == {
        "mean_makespan",
        "fraction_of_tasks",
        "fraction_of_work",
    }


def test_fewer_runs_are_enough_if_one_says_so(tmp_path: Path, capsys) -> None:
    path = written(tmp_path / "runs.jsonl.gz", [line(seed, 3) for seed in range(4)])

    assert run(["evaluate", "eta", path, "--least", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["median"]["runs"] == 4
    assert run(["evaluate", "eta", path, "--least", "1"]) == 2
    assert "--least is 1" in capsys.readouterr().err


def test_a_record_without_machines_counts_as_one(tmp_path: Path, capsys) -> None:
    lines: list[object] = [line(seed, 3, machines=None, cores=0) for seed in range(4)]

    path = written(tmp_path / "runs.jsonl.gz", lines)

    assert run(["evaluate", "alerts", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["all"]["runs"] == 4


def test_recorded_times_are_taken_as_they_are(tmp_path: Path, capsys) -> None:
    lines: list[object] = [line(1, 3), line(2, 3, started=[-1.0] * 7)]
    path = written(tmp_path / "runs.jsonl", lines, packed=False)

    assert "line 2 of runs.jsonl: started[0] is -1" in refusal(path, capsys)


def test_alerts_are_measured_too(runs_file: str, capsys) -> None:
    assert run(["evaluate", "alerts", runs_file]) == 0
    assert "found at 10x" in capsys.readouterr().out
    assert run(["evaluate", "alerts", runs_file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rate"] == 0.01


def refusal(path: str, capsys) -> str:
    assert run(["evaluate", "eta", path]) == 2
    err = capsys.readouterr().err
    assert "[T340]" in err
    assert "Traceback" not in err
    return err


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys) -> None:
    assert "missing.jsonl" in refusal(str(tmp_path / "missing.jsonl"), capsys)
    assert "cannot be read" in refusal(str(tmp_path), capsys)


def test_a_damaged_gzip_file_is_reported(tmp_path: Path, capsys) -> None:
    whole = gzip.compress(b"x" * 5_000)
    for number, content in enumerate((whole[:-9], whole[:2] + b"garbage", b"\x1f\x8b")):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(content)
        assert "damaged gzip" in refusal(str(path), capsys)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"app": 7}, "app is not a name"),
        ({"makespan": None}, "makespan is missing"),
        ({"makespan": -5}, "makespan is -5"),
        ({"makespan": 0}, "makespan is 0"),
        ({"machines": -1}, "machines must be a whole number"),
        ({"machines": 1.5}, "machines must be a whole number"),
        ({"cores": "many"}, "cores must be a whole number"),
        ({"type": []}, "type is empty"),
        ({"type": "trim"}, "type is not a list"),
        ({"runtime": [1.0]}, "runtime has 1 entries"),
        ({"runtime": [-1.0] * 7}, "runtime[0] is -1"),
        ({"runtime": [float("nan")] * 7}, "runtime[0] is nan"),
        ({"runtime": ["1"] * 7}, "runtime[0] is not a number"),
        ({"parents": [[9]] * 7}, "parents[0] names a task that is not there"),
        ({"parents": [[0]] * 7}, "parents[0] names the task itself"),
        ({"parents": [[1], [0], [], [], [], [], []]}, "parents[0] leads back to the task itself"),
        ({"parents": [None] * 7}, "parents[0] is not a list"),
        ({"external_bytes": [-1] * 7}, "external_bytes[0] is not a number of bytes"),
        ({"external_bytes": None}, "external_bytes is missing"),
    ],
)
def test_a_line_that_cannot_be_is_named_with_its_field(
    changes: dict[str, object], problem: str, tmp_path: Path, capsys
) -> None:
    lines: list[object] = [line(1, 3), line(2, 3, **changes)]
    path = written(tmp_path / "runs.jsonl", lines, packed=False)

    err = refusal(path, capsys)

    assert f"line 2 of runs.jsonl: {problem}" in err


@pytest.mark.parametrize("text", [b"nonsense\n", b"[" * 100_000 + b"\n", b"\xff\xfe\n", b"{}{}\n"])
def test_a_line_that_is_no_json_is_named(text: bytes, tmp_path: Path, capsys) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(text)

    assert "line 1 of runs.jsonl is not valid JSON" in refusal(str(path), capsys)


def test_a_line_that_is_no_object_is_named(tmp_path: Path, capsys) -> None:
    path = written(tmp_path / "runs.jsonl", [[1, 2]], packed=False)

    assert "line 1 of runs.jsonl is not a JSON object" in refusal(path, capsys)


def test_a_file_with_too_few_runs_says_how_many_are_needed(tmp_path: Path, capsys) -> None:
    path = written(tmp_path / "runs.jsonl.gz", [line(seed, 3) for seed in range(9)])

    assert "no application with 10 runs" in refusal(path, capsys)
    assert "no application with 10 runs" in refusal(written(tmp_path / "none.gz", []), capsys)


def test_a_file_that_unpacks_to_more_than_a_machine_has_is_given_up(
    tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.cli.evaluate.runs_file.LINE_BYTES_MAX", 1_000)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b" " * 1_000_000))

    assert "too large at line 1" in refusal(str(path), capsys)

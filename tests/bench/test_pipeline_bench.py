"""The benchmark of the pipeline: its check is made unless it is left out, and it can fail."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.tables.schemas import TABLES

BENCH = Path(__file__).parents[2] / "bench"
EVENTS = "few"
WALLS_S = {"spark": 90.0, "duckdb": 10.0}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark, with engines that have made their tables: empty ones, but for a run."""
    module = _loaded("pipeline", monkeypatch)
    for engine in WALLS_S:
        _make_tables(tmp_path / f"{engine}-{EVENTS}")
    monkeypatch.setattr(module, "PLACE", tmp_path)
    monkeypatch.setattr(module, "archive_of", lambda events: tmp_path / "archive")
    monkeypatch.setattr(
        module, "run", lambda engine, *_: module.Taken(engine, wall_s=WALLS_S[engine])
    )
    return module


def _loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script of the benchmarks, under a name that no package of tests has."""
    monkeypatch.syspath_prepend(str(BENCH))
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where its dataclasses look for names
    spec.loader.exec_module(module)
    return module


def _make_tables(directory: Path) -> None:
    for name, schema in TABLES.items():
        (directory / name).mkdir(parents=True)
        rows = [{"run": "r1", "state": "completed"}] if name == "runs" else []
        _write(directory, name, pa.Table.from_pylist(rows, schema))


def _write(directory: Path, name: str, rows: pa.Table) -> None:
    pq.write_table(rows, directory / name / "part-0.parquet")


def _differing(tmp_path: Path) -> None:
    rows = [{"run": "r1", "state": "failed"}]
    _write(tmp_path / f"spark-{EVENTS}", "runs", pa.Table.from_pylist(rows, TABLES["runs"]))


def _report_of(bench: ModuleType, tmp_path: Path, *more: str) -> tuple[int, Any]:
    kept = tmp_path / "figures.json"
    arguments = ["--events", EVENTS, "--engines", *WALLS_S, "--json", str(kept), *more]
    code = bench.main(arguments)
    return code, json.loads(kept.read_text())["results"]["sizes"][0]


def test_tables_that_are_the_same_are_a_success(bench: ModuleType, tmp_path: Path) -> None:
    code, size = _report_of(bench, tmp_path)

    assert code == 0
    assert size["checks"] == [{"engine": "spark", **dict.fromkeys(TABLES, "ok")}]


def test_one_value_that_differs_ends_with_an_error_after_all_is_told(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _differing(tmp_path)

    code, size = _report_of(bench, tmp_path)

    out = capsys.readouterr().out
    assert code == 1
    assert size["checks"][0]["runs"]["differing"] == {"state": 1}
    assert "state of ('r1',): 'failed' beside 'completed'" in out
    assert out.rstrip().endswith("DIFFERENT: spark of few events: runs")


def test_a_table_that_only_one_has_is_a_difference(
    bench: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"spark-{EVENTS}" / "estimates" / "part-0.parquet").unlink()
    (tmp_path / f"spark-{EVENTS}" / "estimates").rmdir()

    code, _ = _report_of(bench, tmp_path)

    assert code == 1
    assert "DIFFERENT: spark of few events: estimates" in capsys.readouterr().out


def test_a_row_that_is_there_twice_is_a_difference(bench: ModuleType, tmp_path: Path) -> None:
    rows = [{"run": "r1", "state": "completed"}] * 2
    _write(tmp_path / f"spark-{EVENTS}", "runs", pa.Table.from_pylist(rows, TABLES["runs"]))

    code, size = _report_of(bench, tmp_path)

    assert code == 1
    assert (size["checks"][0]["runs"]["ours"], size["checks"][0]["runs"]["theirs"]) == (2, 1)


def test_a_job_that_did_not_come_to_its_end_has_not_the_same_tables(
    bench: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failed(engine: str, *_: object) -> Any:
        return bench.Taken(engine, wall_s=1.0, failed="exit code 1" if engine == "spark" else "")

    monkeypatch.setattr(bench, "run", failed)

    code, _ = _report_of(bench, tmp_path)

    assert code == 1
    assert "DIFFERENT: spark of few events: all, it has none" in capsys.readouterr().out


def test_the_check_can_be_left_out(bench: ModuleType, tmp_path: Path) -> None:
    _differing(tmp_path)

    left_out, size = _report_of(bench, tmp_path, "--no-check")
    named, _ = _report_of(bench, tmp_path, "--check")

    assert (left_out, named) == (0, 1)
    assert "checks" not in size


def test_a_ratio_over_the_target_is_marked_and_stays_a_measurement(
    bench: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = {}
    for target in (8.0, 10.0):
        monkeypatch.setitem(bench.RATIO_MAX, EVENTS, target)
        code, size = _report_of(bench, tmp_path)
        assert (code, size["spark_over_duckdb"]) == (0, 9.0)
        said[target] = capsys.readouterr().out, size["over_target"]

    assert "Spark over DuckDB: 9.0 (at most 8): OVER THE TARGET" in said[8.0][0]
    assert "OVER THE TARGET" not in said[10.0][0]
    assert (said[8.0][1], said[10.0][1]) == (True, False)


def test_two_places_without_tables_are_not_the_same(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH / "pipeline_check.py")]
    places = ["--ours", str(tmp_path / "one"), "--theirs", str(tmp_path / "other")]

    done = subprocess.run([*command, *places], capture_output=True, text=True)

    assert done.returncode == 1, done.stderr
    assert done.stdout.count(": not there") == len(TABLES)


@pytest.mark.parametrize("code", [0, 1])
def test_a_benchmark_that_fails_does_not_stop_the_others_and_is_named(
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = _loaded("all", monkeypatch)
    scripts, out = tmp_path / "bench", tmp_path / "out"
    scripts.mkdir()
    (scripts / "first.py").write_text(f"raise SystemExit({code})")
    (scripts / "second.py").write_text(f"open({str(tmp_path / 'second')!r}, 'w')")
    monkeypatch.setattr(every, "HERE", scripts)
    monkeypatch.setattr(every, "OUT", out)
    monkeypatch.setattr(every, "RATIOS", ())
    monkeypatch.setattr(every, "BENCHMARKS", [("first", "", False), ("second", "", False)])
    monkeypatch.setattr(sys, "argv", ["all.py"])

    ended = every.main()

    assert ended == code
    assert (tmp_path / "second").exists()
    assert ("FAILED: python bench/first.py" in capsys.readouterr().out) == bool(code)

"""`tocsin evaluate discovery`: its files and tables, and the same numbers from Spark and Python."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import java_here
from tocsin.cli.evaluate.discovery import command, plots, records
from tocsin.cli.main import run
from tocsin.sim.discovery.figures import QUICK

MONITORING = Path(__file__).parents[3] / "shared/data/monitoring"
TINY = replace(
    QUICK,
    resources=50,
    requests=40,
    similarities=(100,),
    few_similarities=(100,),
    rates=(10,),
    registrations=20,
    updates=2,
    cache_s=(0.0, 100.0),
    matches=(2,),
    matching_requests=10,
)


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("readings") / "cpu.csv"
    random = Random(1)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["timestamp", "value"])
        lines.writerows([f"2026-11-18 {number}", random.uniform(5, 90)] for number in range(600))
    return str(path)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(TINY, id="tiny"),
        pytest.param(QUICK, marks=[pytest.mark.slow, pytest.mark.timeout(900)], id="quick"),
    ],
)
def out(
    request: pytest.FixtureRequest, readings: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """An evaluation with few workloads, its records and its summary by Python."""
    place = tmp_path_factory.mktemp("discovery")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "QUICK", request.param)
        options = ["--quick", "--summary", "python", "--json", "--hosts", readings]
        assert run(["evaluate", "discovery", "--out", str(place), *options]) == 0
    return place


def test_every_figure_has_a_plot_and_rows(out: Path) -> None:
    report = json.loads((out / "summary.json").read_text())

    figures = {row["figure"] for row in report["rows"]}
    assert figures >= {"9", "10", "11", "12a", "12b", "12c", "12d", "14", "cache", "hosts"}
    assert report["seed"] == 1
    assert 0 < report["hosts"]["similarity"] <= 1
    if plots.can_plot():
        for number in (7, 8, 9, 10, 11, 12, 13, 14):
            assert (out / f"figure-{number}.png").stat().st_size > 10_000
        assert (out / "cache.png").stat().st_size > 10_000


def test_the_summary_adds_up_the_records(out: Path) -> None:
    report = json.loads((out / "summary.json").read_text())
    raw = records.read_records(out / records.RECORDS)

    for row in report["rows"]:
        mine = [each for each in raw if all(each[n] == row[n] for n in records.SETTING_COLUMNS)]
        assert row["requests"] == len(mine)
        assert row["subscription_hops"] == sum(each["subscription_hops"] for each in mine)
        assert row["valid"] == sum(each["results"] > 0 for each in mine)


@pytest.mark.java
@pytest.mark.skipif(bool(java_here.missing()), reason=java_here.missing())
def test_spark_and_python_agree_on_every_row(out: Path) -> None:
    path = out / records.RECORDS

    by_spark, by_python = records.summarised_by_spark(path), records.summarised_by_python(path)

    assert len(by_spark) == len(by_python) > 20
    for one, other in zip(by_spark, by_python, strict=True):
        assert one.keys() == other.keys()
        for name, value in one.items():
            if isinstance(value, float):
                assert value == pytest.approx(other[name], rel=1e-9)
            else:
                assert value == other[name], name


def test_tables_are_shown_for_people(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command._show(json.loads((out / "summary.json").read_text()))

    shown = capsys.readouterr().out
    assert "Figure 9: uniform in space, uniform in time" in shown
    assert "Figure 13: messages between brokers" in shown
    assert "Requests for real hosts, by their readings" in shown


@pytest.mark.parametrize("text", ["value\n1\n", "time,value\n1,none\n", "no header"])
def test_a_file_without_enough_readings_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(text)

    code = run(["evaluate", "discovery", "--out", str(tmp_path), "--hosts", str(bad)])

    assert code != 0
    assert str(bad) in capsys.readouterr().err


@pytest.mark.skipif(not MONITORING.is_dir(), reason="no recorded readings of hosts are here")
def test_readings_of_real_hosts_are_read() -> None:
    from tocsin.cli.evaluate.discovery.readings import read_series

    series = read_series(sorted(MONITORING.glob("*.csv")))

    assert len(series) >= 3
    assert all(len(values) > 4_000 for values in series.values())

"""A workflow that notifications drive (paper 000, section VIII), against a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from served import ROOT, Served, served
from tocsin.client import Publisher

sys.path.insert(0, str(ROOT / "examples"))

from forecast import engine, services
from forecast.engine import Report, own_topic, run_forecast
from forecast.steps import FORECAST, Inputs, Step, due

MOVIE = '"::--::"'  # the rain in the middle cells has spread


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


def left_behind(broker: Served) -> list[object]:
    return [
        each
        for path in ("subscriptions", "boxes")
        for each in broker.call("GET", f"/{path}")[1][path]
    ]


def place(parent: Path, name: str) -> Path:
    directory = parent / name
    directory.mkdir()
    return directory


def assert_whole(report: Report) -> None:
    assert report.failed is None
    assert Counter(report.invoked) == dict.fromkeys(FORECAST, 1)
    assert report.catalogue == {step: str(path) for step, path in report.finished.items()}
    assert report.monitor[-1] == "forecast workflow ended"


def watched(monkeypatch: pytest.MonkeyPatch, seen: Callable[[str], None]) -> None:
    """Have `seen` called with the name of each step, each time that its work is done."""

    def noted(name: str, step: Step) -> Step:
        def work(inputs: Inputs) -> object:
            seen(name)
            return step.work(inputs)

        return replace(step, work=work)

    monkeypatch.setattr(engine, "FORECAST", {n: noted(n, step) for n, step in FORECAST.items()})


def test_each_step_follows_on_those_that_it_waits_for(broker: Served, tmp_path: Path) -> None:
    report = run_forecast(broker.url, own_topic("ann", "forecast"), tmp_path)

    assert_whole(report)
    for name, step in FORECAST.items():
        started = report.monitor.index(f"{name} started")
        assert all(report.monitor.index(f"{need} finished") < started for need in step.needs)
    assert (tmp_path / "movie.json").read_text() == MOVIE


def test_subscriptions_last_as_long_as_the_run(
    broker: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile: list[int] = []
    watched(monkeypatch, lambda _: meanwhile.append(len(left_behind(broker))))

    run_forecast(broker.url, own_topic("ann", "forecast"), tmp_path)

    # The engine, the catalogue and the monitor.
    assert meanwhile == [3] * len(FORECAST)
    assert left_behind(broker) == []


def test_two_users_run_at_once_and_do_not_see_each_other(broker: Served, tmp_path: Path) -> None:
    # One of them is called what in a subscription means everybody.
    topics = {user: own_topic(user, "forecast") for user in ("ann", "**")}

    with ThreadPoolExecutor() as both:
        running = {
            user: both.submit(run_forecast, broker.url, topic, place(tmp_path, str(number)))
            for number, (user, topic) in enumerate(topics.items())
        }
        reports = {user: future.result() for user, future in running.items()}

    for number, report in enumerate(reports.values()):
        assert_whole(report)
        assert set(Counter(report.monitor).values()) == {1}
        places = {str(Path(output).parent) for output in report.catalogue.values()}
        assert places == {str(tmp_path / str(number))}
    assert left_behind(broker) == []


class Stutterer(Publisher):
    """Says everything twice, in one breath, as a network might."""

    def publish(self, topic: str, data: object = None, **_: object) -> int:  # type: ignore[override]
        return self.publish_many([(topic, data), (topic, data)])


def test_a_step_whose_notification_comes_twice_starts_once(
    broker: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[str] = []
    watched(monkeypatch, worked.append)
    monkeypatch.setattr(services, "Publisher", Stutterer)

    report = run_forecast(broker.url, own_topic("ann", "forecast"), tmp_path)

    assert_whole(report)
    reported = Counter(report.monitor[:-1])
    assert reported == {
        f"{step} {state}": 2 for step in FORECAST for state in ("started", "finished")
    }
    assert Counter(worked) == dict.fromkeys(FORECAST, 1)


def test_a_step_that_fails_ends_the_run_and_nothing_is_left(
    broker: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {**FORECAST, "forecast": replace(FORECAST["forecast"], work=lambda _: 1 / 0)}
    monkeypatch.setattr(engine, "FORECAST", broken)

    report = run_forecast(broker.url, own_topic("ann", "forecast"), tmp_path)

    assert report.failed == "forecast: ZeroDivisionError('division by zero')"
    assert "movie" not in report.invoked
    assert left_behind(broker) == []


def test_nothing_is_due_twice() -> None:
    assert due(FORECAST, [], []) == ["decode_radar", "decode_stations"]
    assert due(FORECAST, ["decode_radar"], ["decode_radar", "decode_stations"]) == []


def test_two_users_never_share_a_topic() -> None:
    users = ["ann", "Ann", "a/nn", "a.nn", "**", "*", "", "a nn", "ánn", "_", "_2a_"]

    assert len({own_topic(user, "forecast", "1") for user in users}) == len(users)


def test_the_example_runs_as_its_readers_run_it(broker: Served) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "forecast_orchestration.py"), "bob"],
        env={**os.environ, "TOCSIN_BROKER": broker.url},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("topic lead/bob/forecast/")
    assert "catalogue: movie" in done.stdout

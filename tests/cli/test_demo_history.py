"""The demo's part with recorded runs: what it publishes and shows, and what it does without."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine_streams import SHARED, check, fold
from java_here import without_java
from recordings.make_demo_messages import all_messages
from tocsin.cli.demo import history
from tocsin.cli.demo.context import DemoContext
from tocsin.ontology import built_in

RECORDINGS = Path(__file__).parent.parent / "recordings"
REPEATS = SHARED / "engines" / "snakemake_repeats"


def test_the_recording_is_ten_whole_runs_that_a_broker_takes() -> None:
    messages = history.recorded()

    for message in messages:
        check(message)
        assert message.pairs.keys() <= built_in().concepts.keys()
    runs = fold(messages)
    assert sorted(run.state for run in runs.values()) == ["completed"] * 9 + ["failed"]
    assert sum(run.attempts for run in runs.values()) == 545


def test_the_recording_does_not_tell_where_it_was_made() -> None:
    texts = [text for each in history.recorded() for text in each.pairs.values()]

    assert not [text for text in texts if "/srv/" in text or "/root" in text or "/tmp" in text]
    assert {each.pairs.get("Host", "node1") for each in history.recorded()} == {"node1"}


def test_the_recording_is_what_snakemakes_logs_come_to() -> None:
    if not REPEATS.exists():
        pytest.skip("the logs of the eight repeated runs are not here")
    logs = [*REPEATS.glob("ev_*.jsonl"), *RECORDINGS.glob("snakemake9_*.jsonl")]

    assert all_messages(logs) == history.recorded()


def test_without_java_the_part_says_what_to_install_and_the_demo_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_java(monkeypatch, tmp_path)
    demo = DemoContext(tmp_path, quiet=False)

    history.run(demo)

    assert "Install Java 17 or newer" in capsys.readouterr().out
    assert "none was found" in demo.results["history"]["left_out"]


@pytest.mark.slow
@pytest.mark.java
def test_the_broker_answers_from_tables_that_spark_made_of_its_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyspark")
    with DemoContext(tmp_path / "data", quiet=False, keeps_data=True) as demo:
        history.run(demo)

    found = demo.results["history"]
    assert found["learned"]["through"] >= found["messages"] == 1_121
    assert found["learned"]["attempts"] == 126
    assert found["tables"]["runs"] == 10
    assert found["tables"]["failures"] == 4
    assert Path(found["report"]).read_text().startswith("<!doctype html>")
    shown = capsys.readouterr().out
    for words in ("samples xz", "s/MB", "4 times", "answers from the tables"):
        assert words in shown

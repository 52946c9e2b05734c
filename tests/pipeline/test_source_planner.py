"""What Java is told: which files, how far, and what is wrong."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.archives import add_fresh, add_sealed, merge
from tocsin.archive.catalog import Piece
from tocsin.pipeline.source import file_checks as sound
from tocsin.pipeline.source import planner as planning
from tocsin.pipeline.source.planner import Planner


def ask(planner: Planner, what: str, archive: Path, **more: Any) -> dict[str, Any]:
    options = {"path": str(archive), **more.pop("options", {})}
    answer = planner.apply(json.dumps({"ask": what, "options": options, **more}))
    return json.loads(answer)


def covered(files: list[list[Any]]) -> list[tuple[int, int]]:
    """The events that files hold, by their names."""
    names = [Path(unquote(urlsplit(uri).path)).stem for uri, _, _ in files]
    return [(int(name[:20]), int(name[21:])) for name in names]


Growth = list[tuple[int, bool]]  # so many events more, and whether what is fresh is then merged


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    growth=st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=6),
    rows=st.integers(1, 8),
    pauses=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_batches_are_every_event_once_however_the_archive_grows(
    tmp_path_factory: pytest.TempPathFactory, growth: Growth, rows: int, pauses: list[bool]
) -> None:
    archive = tmp_path_factory.mktemp("archive")
    planner, start, last = Planner(), None, 0
    read: list[int] = []

    def take_all() -> None:
        nonlocal start
        while True:
            reported = ask(planner, "latest", archive, start=start, target=None, rows=rows)
            if reported["offset"] in (None, start):
                return
            batch = ask(planner, "range", archive, start=start, end=reported["offset"])
            after, through = batch["after"], batch["through"]
            assert 0 < through - after <= rows
            if batch["files"] is not None:
                first_last = covered(batch["files"])
                assert (first_last[0][0], first_last[-1][1]) == (after + 1, through)
            read.extend(range(after + 1, through + 1))
            start = reported["offset"]

    for (more, is_merged), pause in zip(growth, pauses, strict=False):
        add_fresh(archive, last + 1, last + more)
        last += more
        if is_merged:
            merge(archive)
        if pause:
            take_all()
    take_all()

    assert read == list(range(1, last + 1))


def test_a_batch_of_whole_files_names_them_and_one_that_cuts_them_does_not(tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 10)
    add_fresh(tmp_path, 11, 30)
    planner = Planner()

    whole = ask(planner, "range", tmp_path, start='{"seq": 10}', end='{"seq": 30}')
    cut = ask(planner, "range", tmp_path, start='{"seq": 10}', end='{"seq": 29}')

    assert covered(whole["files"]) == [(11, 30)]
    assert whole["condition"] is None
    assert cut["files"] is None
    assert cut["condition"] == "seq > 10 AND seq <= 29"


def test_of_a_batch_that_was_planned_nothing_may_be_missing(tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 10)
    path = add_fresh(tmp_path, 11, 20)
    planner = Planner()
    ask(planner, "size", tmp_path)
    path.unlink()

    planned = ask(planner, "range", tmp_path, start='{"seq": 5}', end='{"seq": 20}')
    reported = ask(planner, "files", tmp_path, **planned)

    assert planned["files"] is None
    assert "events 11 to 20 are not in" in reported["error"]


def test_files_are_told_with_their_size_and_age(tmp_path: Path) -> None:
    path = add_sealed(tmp_path, 1, 10)
    (reported,) = ask(Planner(), "files", tmp_path)["files"]
    assert reported == [path.as_uri(), path.stat().st_size, path.stat().st_mtime_ns // 1_000_000]
    assert ask(Planner(), "size", tmp_path) == {"bytes": path.stat().st_size}


def test_a_file_is_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    real = sound.check_records
    monkeypatch.setattr(sound, "check_records", lambda p: (looked.append(p.first), real(p)))
    planner = Planner()

    add_sealed(tmp_path, 1, 10)
    ask(planner, "files", tmp_path)
    add_sealed(tmp_path, 11, 20)
    ask(planner, "files", tmp_path)
    ask(planner, "files", tmp_path)

    assert looked == [1, 11]


def test_files_that_are_merged_while_they_are_looked_at_are_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_fresh(tmp_path, 1, 20)
    add_fresh(tmp_path, 21, 40)
    real = sound.check_records
    looks: list[Piece] = []

    def merged_first(piece: Piece) -> None:
        if not looks:
            looks.append(piece)
            merge(tmp_path)
        real(piece)

    monkeypatch.setattr(sound, "FILES_AT_ONCE", 1)
    monkeypatch.setattr(sound, "check_records", merged_first)

    assert covered(ask(Planner(), "files", tmp_path)["files"]) == [(1, 40)]


def test_what_goes_through_python_is_not_looked_at(tmp_path: Path) -> None:
    for options in ({"bad_files": "skip"}, {"nulls": "keep"}, {"path": "http://127.0.0.1:1"}):
        reported = ask(Planner(), "opening", tmp_path / "nowhere", schema=None, options=options)
        assert reported["is_plain"] is False
        assert json.loads(reported["schema"])["fields"][0]["name"] == "seq"


def test_an_error_is_told_in_its_own_words(tmp_path: Path) -> None:
    nowhere = ask(Planner(), "opening", tmp_path / "nowhere", schema=None)
    bad = add_sealed(tmp_path, 1, 10)
    bad.write_bytes(b"PAR1")
    damaged = ask(Planner(), "files", tmp_path)

    assert "[T412]. Name the archive of a broker" in nowhere["error"]
    assert f"{bad}: it cannot be read" in damaged["error"]
    assert "bad_files=skip" in damaged["error"]


def test_a_file_that_is_not_read_is_named_and_not_called_damaged(tmp_path: Path) -> None:
    path = add_sealed(tmp_path, 1, 10)
    planner = Planner()
    ask(planner, "size", tmp_path)  # it was there
    path.unlink()
    path.symlink_to(path.name)  # nobody, not even root, can follow it

    reported = ask(planner, "files", tmp_path)["error"]

    assert f"{path} could not be read" in reported
    assert "[T415]" in reported


def test_an_archive_that_is_not_listed_is_told_with_what_to_do(tmp_path: Path) -> None:
    path = add_sealed(tmp_path, 1, 10)
    path.unlink()
    path.symlink_to(path.name)

    reported = ask(Planner(), "opening", tmp_path, schema=None)["error"]

    assert f"{path} could not be read" in reported
    assert "[T415]. Check the disk" in reported


def test_what_nobody_expected_is_an_answer_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_self: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(planning.Directory, "extent", fail)
    assert ask(Planner(), "size", tmp_path) == {"error": "RuntimeError: the disk is on fire"}
    assert "a question of Spark's could not be answered" in caplog.text


def test_of_many_archives_only_the_last_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "ARCHIVES_MAX", 2)
    planner = Planner()
    for number in range(5):
        add_sealed(tmp_path / str(number), 1, 5)
        assert covered(ask(planner, "files", tmp_path / str(number))["files"]) == [(1, 5)]
    assert len(planner._archives) == 2


def test_a_poll_does_not_wait_for_files_that_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_sealed(tmp_path, 1, 10)
    planner, is_looking, is_polled = Planner(), threading.Event(), threading.Event()

    def look(_piece: Piece) -> None:
        is_looking.set()
        assert is_polled.wait(30)

    monkeypatch.setattr(sound, "check_records", look)
    with ThreadPoolExecutor(1) as pool:
        files = pool.submit(ask, planner, "files", tmp_path)
        assert is_looking.wait(30)
        reported = ask(planner, "latest", tmp_path, start=None, target=None)
        is_polled.set()

    assert reported["offset"] == '{"seq": 10}'
    assert covered(files.result()["files"]) == [(1, 10)]


def test_what_lies_around_an_archive_or_within_is_none(tmp_path: Path) -> None:
    date = add_sealed(tmp_path / "archive", 1, 10).parent

    around = ask(Planner(), "opening", tmp_path, schema=None)["error"]
    within = ask(Planner(), "opening", date, schema=None)["error"]

    assert f"Name its archive: {tmp_path / 'archive'}." in around
    assert f"Name {tmp_path / 'archive'}." in within


def test_an_archive_that_went_away_is_not_one_that_became_empty(tmp_path: Path) -> None:
    archive, planner = tmp_path / "archive", Planner()
    add_sealed(archive, 1, 10)
    start = ask(planner, "latest", archive, start=None, target=None)["offset"]
    archive.rename(tmp_path / "elsewhere")

    for reported in (
        ask(planner, "files", archive),
        ask(planner, "latest", archive, start=start, target=None),
    ):
        assert "there is no directory" in reported["error"]


def test_an_address_of_a_file_is_its_path(tmp_path: Path) -> None:
    add_sealed(tmp_path, 1, 10)
    for path in (f"file://{tmp_path}", f"file:{tmp_path}"):
        reported = ask(Planner(), "files", tmp_path, options={"path": path})
        assert covered(reported["files"]) == [(1, 10)]


def test_several_places_are_refused_with_what_to_do(tmp_path: Path) -> None:
    reported = ask(Planner(), "opening", tmp_path, schema=None, options={"paths": "[]"})
    assert "Load each, and put the frames together with union." in reported["error"]

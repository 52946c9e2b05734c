"""What a log keeps, and what it gives back."""

from __future__ import annotations

import contextlib
import shutil
import threading
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_samples import SECOND_NS, append, log_of, make_event, make_events, read_all

from tocsin.errors import BadEvent
from tocsin.event.event import Event
from tocsin.event.stored import Batch, Stored
from tocsin.store import schema
from tocsin.store import store as store_module
from tocsin.store.directory import LOG_NAME
from tocsin.store.reader import Reader
from tocsin.store.store import TRIM_BYTES_MAX, TRIM_ROWS_MAX, Store


@pytest.fixture
def store(tmp_path: Path):
    opened = Store.open(tmp_path / "data")
    yield opened
    opened.close()


@pytest.mark.parametrize("count", [1, 3, 4, 63, 64, 65, 149])
def test_events_come_back_as_they_were_written(store: Store, count: int) -> None:
    written = append(store, count)

    assert read_all(store.reader()) == written
    assert (store.first_seq, store.last_seq) == (1, count)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    events = make_events(1, 5)
    store.write(Batch(events, subscriptions={"a": b"{}"}, cursors={"a": 3}, dead={"d": b"[1]"}))
    store.write(Batch(service_state={"k": b"\x00", "l": b"gone", "m": b""}))
    store.write(Batch(service_state={"l": None, "never": None}))
    store.close()

    again = Store.open(tmp_path)
    reader = again.reader()

    assert read_all(reader) == events
    assert reader.subscriptions() == {"a": b"{}"}
    assert reader.cursors() == {"a": 3}
    assert reader.dead_letters().letters == {"d": b"[1]"}
    assert reader.service_state() == {"k": b"\x00", "m": b""}
    reader.close()
    again.close()


def test_after_a_clean_close_all_is_in_one_file(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    append(store, 10)
    store.close()

    sidecars = [path for path in tmp_path.glob("log.sqlite-wal") if path.stat().st_size]

    assert sidecars == []


def test_a_reader_sees_a_batch_as_soon_as_it_is_written(store: Store) -> None:
    reader = store.reader()
    assert reader.read(0, 10).events == []

    append(store, 2)

    assert [stored.seq for stored in reader.read(0, 10).events] == [1, 2]


def test_a_reader_works_in_another_thread(store: Store) -> None:
    written = append(store, 50)
    reader = store.reader()
    found: list[Stored] = []

    thread = threading.Thread(target=lambda: found.extend(read_all(reader)))
    thread.start()
    thread.join()

    assert found == written


def test_a_page_goes_on_where_the_last_one_ended(store: Store) -> None:
    append(store, 10)
    reader = store.reader()

    first = reader.read(0, 4)
    second = reader.read(first.next, 100)
    third = reader.read(second.next, 100)

    assert [stored.seq for stored in first.events] == [1, 2, 3, 4]
    assert [stored.seq for stored in second.events] == [5, 6, 7, 8, 9, 10]
    assert (third.events, third.next) == ([], 10)


def test_a_page_stops_at_its_size_but_has_one_event_at_least(store: Store) -> None:
    append(store, 10, data_bytes=1000)
    reader = store.reader()

    assert len(reader.read(0, 10, bytes_max=3000).events) == 3
    assert len(reader.read(0, 10, bytes_max=1).events) == 1


def test_one_event_can_be_read_by_its_number(store: Store) -> None:
    append(store, 3)
    reader = store.reader()

    assert reader.read_one(2) == make_event(2)
    assert reader.read_one(4) is None


def test_the_latest_keys_are_oldest_first(store: Store) -> None:
    append(store, 5)

    keys = store.reader().recent_keys(3)

    assert keys == [((f"urn:source:{seq % 3}", f"id-{seq}"), seq) for seq in (3, 4, 5)]


def test_none_removes_a_subscription_with_its_cursor_and_a_dead_letter(store: Store) -> None:
    store.write(
        Batch(
            subscriptions={"a": b"1", "b": b"2"},
            cursors={"a": 1, "b": 2},
            dead={"x": b"3", "y": b"4"},
        )
    )

    store.write(Batch(subscriptions={"a": None}, dead={"x": None, "never": None}))
    reader = store.reader()

    assert reader.subscriptions() == {"b": b"2"}
    assert reader.cursors() == {"b": 2}
    assert reader.dead_letters().letters == {"y": b"4"}


def test_dead_letters_are_paged_by_id(store: Store) -> None:
    store.write(Batch(dead={f"d{number}": b"%d" % number for number in range(5)}))
    reader = store.reader()

    first = reader.dead_letters(limit=3)
    second = reader.dead_letters(after=first.next or "", limit=3)

    assert list(first.letters) == ["d0", "d1", "d2"]
    assert (list(second.letters), second.next) == (["d3", "d4"], None)
    assert reader.dead_letter("d4") == b"4"
    assert reader.dead_letter("d9") is None
    assert reader.dead_count() == 5


def test_hundreds_of_cursors_move_in_one_batch(store: Store) -> None:
    cursors = {f"subscription-{number}": number for number in range(333)}

    store.write(Batch(cursors=cursors))

    assert store.reader().cursors() == cursors


def test_an_empty_batch_changes_nothing(store: Store) -> None:
    append(store, 2)

    store.write(Batch())

    assert Batch().is_empty()
    assert len(read_all(store.reader())) == 2


def test_an_event_that_cannot_be_stored_is_refused_and_changes_nothing(store: Store) -> None:
    append(store, 1)
    monster = Stored(2, 0, Event("big", "s", "t", extensions={"n": 1 << 70}))

    with pytest.raises(BadEvent, match="big"):
        store.write(Batch(events=[monster], cursors={"a": 1}))

    assert store.reader().cursors() == {}
    assert append(store, 1)[0].seq == 2


# Retention


def test_trimming_takes_the_oldest_first(store: Store) -> None:
    append(store, 10)

    store.write(Batch(trim_to=4))

    assert store.first_seq == 5
    assert [stored.seq for stored in read_all(store.reader())] == [5, 6, 7, 8, 9, 10]


def test_one_batch_trims_a_bounded_number_of_events(store: Store) -> None:
    append(store, TRIM_ROWS_MAX + 10, data_bytes=1)

    store.write(Batch(trim_to=TRIM_ROWS_MAX + 5))
    assert store.first_seq == TRIM_ROWS_MAX + 1
    store.write(Batch(trim_to=TRIM_ROWS_MAX + 5))

    assert store.first_seq == TRIM_ROWS_MAX + 6


def test_one_batch_trims_a_bounded_number_of_bytes(store: Store) -> None:
    large = [
        Stored(seq, 1, Event(str(seq), "/s", "t", data=bytes(1 << 20))) for seq in range(1, 65)
    ]
    store.write(Batch(events=large))

    store.write(Batch(trim_to=64))

    assert 1 < store.first_seq <= TRIM_BYTES_MAX >> 20
    for _ in range(64):
        store.write(Batch(trim_to=64))
    assert store.first_seq == 65


def test_a_number_is_never_used_again_though_everything_was_trimmed(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    append(store, 7)
    store.write(Batch(trim_to=100))
    store.close()

    again = Store.open(tmp_path)
    written = append(again, 1)
    reader = again.reader()

    assert written[0].seq == 8
    assert (again.first_seq, again.last_seq) == (8, 8)
    assert read_all(reader) == written
    reader.close()
    again.close()


def test_a_batch_may_bring_events_and_trim_at_once(store: Store) -> None:
    append(store, 3)

    store.write(Batch(events=make_events(4, 2), trim_to=4))

    assert [stored.seq for stored in read_all(store.reader())] == [5]


def test_an_event_is_found_by_the_time_it_came(store: Store) -> None:
    append(store, 10)
    store.write(Batch(trim_to=2))
    reader = store.reader()

    assert reader.seq_at(7 * SECOND_NS) == 6
    assert reader.seq_at(7 * SECOND_NS + 1) == 7
    assert reader.seq_at(0) == 2
    assert reader.seq_at(100 * SECOND_NS) == 10


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=30),
    trimmed=st.integers(0, 30),
    bytes_max=st.integers(0, 80_000),
)
def test_trimming_for_a_size_takes_no_event_too_many_and_none_too_few(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], trimmed: int, bytes_max: int
) -> None:
    store = Store.open(tmp_path_factory.mktemp("size"), synchronous="OFF")
    events = [make_event(number + 1, size) for number, size in enumerate(sizes)]
    store.write(Batch(events=events))
    store.write(Batch(trim_to=trimmed))
    reader = store.reader()
    before = store.first_seq

    through = reader.seq_for_size(bytes_max)
    if through >= before:
        store.write(Batch(trim_to=through - 1))
        one_less_bytes = reader.size_bytes()
        store.write(Batch(trim_to=through))
        assert one_less_bytes > bytes_max

    assert reader.size_bytes() <= bytes_max or through == store.last_seq
    assert (reader.size_bytes() == 0) == (store.first_seq > store.last_seq)
    reader.close()
    store.close()


# The whole


def test_a_sound_log_is_found_sound(store: Store) -> None:
    append(store, 2500)
    store.write(Batch(trim_to=100, subscriptions={"a": b"1"}, dead={"d": b"2"}))
    reported: list[tuple[int, int]] = []
    reader = store.reader()

    report = reader.check(lambda done, total: reported.append((done, total)))

    assert report.ok
    assert (report.first_seq, report.last_seq) == (101, 2500)
    assert reported == [(1000, 2400), (2000, 2400), (2400, 2400)]
    assert report.size_bytes == reader.size_bytes() > 2400 * 40


def test_a_log_can_be_read_beside_a_running_broker_and_after_it(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    written = append(store, 3)
    beside = Reader.open(tmp_path)
    assert read_all(beside) == written
    beside.close()
    store.close()

    after = Reader.open(tmp_path)

    assert read_all(after) == written
    assert after.check().ok
    after.close()


def test_what_a_crash_leaves_can_be_read_without_starting_a_broker(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "running")
    written = append(store, 3)
    shutil.copytree(tmp_path / "running", tmp_path / "left", ignore=lambda *_: ["log.sqlite-shm"])
    store.close()

    left = Reader.open(tmp_path / "left")

    assert read_all(left) == written
    left.close()


def test_somebody_who_reads_for_long_keeps_the_broker_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "BUSY_WAIT_MS_MAX", 20)
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", 2)
    store = Store.open(tmp_path)
    append(store, 3)
    shell = apsw.Connection(str(log_of(tmp_path)))
    shell.execute("BEGIN; SELECT count(*) FROM events")

    for _ in range(5):
        append(store, 10)
    store.close()
    again = Store.open(tmp_path)
    append(again, 1)
    reader = again.reader()

    assert len(read_all(reader)) == 54
    reader.close()
    again.close()
    shell.close()


def test_every_setting_of_a_connection_takes_effect(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    file = tmp_path / LOG_NAME
    with contextlib.closing(schema.connect_reader(str(file))) as reader:
        assert reader.pragma("page_size") == schema.PAGE_BYTES
        assert reader.pragma("cell_size_check") == 1
        assert reader.pragma("mmap_size") == 0

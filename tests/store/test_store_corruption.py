"""A bit that changes on the disk is noticed: what is served is what was written."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest
from store_samples import append, log_of, make_events

from tocsin.broker.log import Page
from tocsin.errors import CorruptLog, TocsinError
from tocsin.event.stored import Batch, Stored
from tocsin.store import reader as reader_module
from tocsin.store.schema import PAGE_BYTES
from tocsin.store.store import Store

EVENTS = make_events(1, 60, data_bytes=500) + make_events(61, 3, data_bytes=9000)
SUBSCRIPTIONS = {f"s{number}": b"definition %d" % number for number in range(5)}
CURSORS = {f"s{number}": number * 7 for number in range(5)}
DEAD = {f"d{number}": b"reason %d" % number for number in range(5)}
KEPT = {f"k{number}": b"value %d" % number for number in range(5)}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The database file of a log that was trimmed and closed."""
    directory = tmp_path_factory.mktemp("image")
    store = Store.open(directory)
    store.write(Batch(EVENTS, subscriptions=dict(SUBSCRIPTIONS), cursors=CURSORS, dead=dict(DEAD)))
    store.write(Batch(trim_to=8, service_state=dict(KEPT)))
    store.close()
    return log_of(directory).read_bytes()


def flipped(image: bytes, bit: int) -> bytes:
    damaged = bytearray(image)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def read_to_the_end(store: Store) -> list[Page]:
    pages = [store.reader().read(0, 20)]
    while pages[-1].next < store.last_seq:
        pages.append(store.reader().read(pages[-1].next, 20))
    return pages


def serves_only_the_truth(directory: Path, content: bytes) -> bool:
    """Look at everything. Returns False if the store refused to open or to read on."""
    directory.mkdir(exist_ok=True)
    for path in directory.iterdir():
        path.unlink()
    log_of(directory).write_bytes(content)
    try:
        store = Store.open(directory)
    except TocsinError:
        return False
    try:
        assert_the_truth(store)
    except CorruptLog:
        return False
    finally:
        store.close()
    return True


def assert_the_truth(store: Store) -> None:
    reader = store.reader()
    try:
        assert (store.first_seq, store.last_seq) == (9, 63)
        pages = read_to_the_end(store)
        served: list[Stored] = [stored for page in pages for stored in page.events]
        lost = [seq for page in pages for seq in page.corrupt]
        assert served == [stored for stored in EVENTS[8:] if stored.seq not in lost]
        assert len(served) + len(lost) == 63 - 8
        assert reader.subscriptions() == SUBSCRIPTIONS
        assert reader.cursors() == CURSORS
        assert reader.service_state() == KEPT
        letters = reader.dead_letters().letters
        assert letters.items() <= DEAD.items()
        if lost or letters != DEAD:
            assert not reader.check().ok
    finally:
        reader.close()


def test_flips_anywhere_are_never_served(image: bytes, tmp_path: Path) -> None:
    random = Random(1)
    assert serves_only_the_truth(tmp_path / "whole", image)

    for bit in random.sample(range(len(image) * 8), 250):
        serves_only_the_truth(tmp_path / "flipped", flipped(image, bit))


def test_flips_where_pages_are_described_are_never_served(image: bytes, tmp_path: Path) -> None:
    random = Random(2)
    pages = len(image) // PAGE_BYTES
    described = [
        bit
        for page in range(pages)
        for bit in range(page * PAGE_BYTES * 8, page * PAGE_BYTES * 8 + 200)
    ]
    described += range(100 * 8)

    for bit in random.sample(described, 350):
        serves_only_the_truth(tmp_path / "flipped", flipped(image, bit))


def test_without_checksums_the_same_flips_would_be_served(
    image: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "is_intact", lambda row: True)

    with pytest.raises((AssertionError, msgspec.DecodeError)):
        test_flips_anywhere_are_never_served(image, tmp_path)


@pytest.mark.slow
def test_twenty_thousand_flips_are_never_served(image: bytes, tmp_path: Path) -> None:
    random = Random(3)
    for bit in random.sample(range(len(image) * 8), 20_000):
        serves_only_the_truth(tmp_path / "flipped", flipped(image, bit))


def test_a_damaged_record_costs_that_event_only(image: bytes, tmp_path: Path) -> None:
    at = image.index(EVENTS[30].event.id.encode())
    log_of(tmp_path).write_bytes(flipped(image, at * 8))
    store = Store.open(tmp_path)

    pages = read_to_the_end(store)
    reader = store.reader()

    assert [seq for page in pages for seq in page.corrupt] == [31]
    assert len([stored for page in pages for stored in page.events]) == 63 - 8 - 1
    assert reader.read_one(31) is None
    assert reader.check().corrupt == (31,)
    assert [seq for _, seq in reader.recent_keys(40)] == [*range(24, 31), *range(32, 64)]
    reader.close()
    store.close()


def test_a_destroyed_page_costs_the_events_on_it_only(image: bytes, tmp_path: Path) -> None:
    page = image.index(EVENTS[30].event.id.encode()) // PAGE_BYTES
    damaged = image[: page * PAGE_BYTES] + bytes(PAGE_BYTES) + image[(page + 1) * PAGE_BYTES :]
    log_of(tmp_path).write_bytes(damaged)
    store = Store.open(tmp_path)

    pages = read_to_the_end(store)

    lost = [seq for page in pages for seq in page.corrupt]
    assert 31 in lost
    assert 2 <= len(lost) <= PAGE_BYTES // 500
    assert store.reader().check().damage
    store.close()


def test_trimming_past_damaged_records_keeps_the_size_right(image: bytes, tmp_path: Path) -> None:
    at = image.index(EVENTS[30].event.id.encode())
    log_of(tmp_path).write_bytes(flipped(image, at * 8))
    store = Store.open(tmp_path)
    reader = store.reader()
    size_bytes = reader.size_bytes()

    store.write(Batch(trim_to=30))
    store.write(Batch(trim_to=31))
    store.write(Batch(trim_to=62))

    assert 9000 < reader.size_bytes() < 9500 < size_bytes
    reader.close()
    store.close()


def test_damage_does_not_stop_new_events(image: bytes, tmp_path: Path) -> None:
    at = image.index(EVENTS[62].event.id.encode())
    log_of(tmp_path).write_bytes(flipped(image, at * 8))
    store = Store.open(tmp_path)

    written = append(store, 2)
    page = store.reader().read(60, 10)

    assert page.corrupt == [63]
    assert page.events[-2:] == written
    store.close()


def test_a_damaged_subscription_is_refused_by_name(image: bytes, tmp_path: Path) -> None:
    at = image.index(b"definition 3") + 11
    log_of(tmp_path).write_bytes(flipped(image, at * 8))
    store = Store.open(tmp_path)

    with pytest.raises(CorruptLog, match="s3"):
        store.reader().subscriptions()
    store.close()


def test_a_damaged_kept_value_is_refused_by_name(image: bytes, tmp_path: Path) -> None:
    at = image.index(b"value 3") + 6
    log_of(tmp_path).write_bytes(flipped(image, at * 8))
    store = Store.open(tmp_path)

    with pytest.raises(CorruptLog, match="k3"):
        store.reader().service_state()
    assert any("k3" in line for line in store.reader().check().damage)
    store.close()

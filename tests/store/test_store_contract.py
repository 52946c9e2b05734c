"""What every store promises, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.broker.effects import Accepted
from tocsin.broker.log import EventStore
from tocsin.event.event import Event
from tocsin.event.stored import START_AT_END, Append, Arrival, StateChange, Stored
from tocsin.event.topic import TopicPattern
from tocsin.store.memory import SharedEvents, memory_store
from tocsin.store.store import Store

S = 1_000_000_000
WINDOW = 4
NO_CHANGE = StateChange()


def sqlite(directory: Path) -> EventStore:
    return Store.open(directory)


def memory(_: Path) -> EventStore:
    return memory_store()


def ready(store: EventStore) -> EventStore:
    store.open_window(duplicates_window=WINDOW, clock_jump_ns=86_400 * S)
    return store


@pytest.fixture(params=[sqlite, memory], ids=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path):  # type: ignore[no-untyped-def]
    opened = ready(request.param(tmp_path))
    yield opened
    opened.close()


def event(number: int, topic: str = "t") -> Event:
    return Event(id=str(number), source="/test", type="test", topic=topic, data=b"x" * 100)


def offer(store: EventStore, *offers: list[int], at_s: int = 1) -> list[Accepted]:
    append = Append([[event(n) for n in each] for each in offers], at_s * S)
    return store.commit(append, StateChange()).answers


def save(store: EventStore, **changes: object) -> None:
    store.commit(Append(), StateChange(**changes))  # type: ignore[arg-type]


def numbers(store: EventStore) -> list[int]:
    return [stored.seq for stored in store.reader().read(0, 100).events]


def test_events_are_numbered_when_they_are_applied(store: EventStore) -> None:
    append = Append([[event(1)], [event(2), event(3)]], 5 * S)

    applied = store.commit(append, NO_CHANGE)

    assert [(s.seq, s.received_ns, s.event) for s in applied.events] == [
        (n, 5 * S, event(n)) for n in (1, 2, 3)
    ]
    assert applied.answers == [Accepted(1, 1, 1), Accepted(2, 2, 3)]
    assert applied.last_seq == store.last_seq == 3
    assert store.reader().read(0, 100).events == applied.events


def test_a_repeat_has_its_first_number_and_is_not_stored(store: EventStore) -> None:
    offer(store, [1])

    answers = offer(store, [1, 2], [2])

    assert answers == [Accepted(2, 1, 2, 1), Accepted(1, 2, 2, 1)]
    assert numbers(store) == [1, 2]


def test_the_log_remembers_by_which_broker_an_event_came(store: EventStore) -> None:
    arrivals = [Arrival("far", "far-log", n, 4 * S, "near", 2) for n in (1, 2)]
    offer(store, [1])

    append = Append([[event(1), event(2)], [event(3)]], 5 * S, arrivals={0: arrivals})
    applied = store.commit(append, NO_CHANGE)

    assert applied.answers[0] == Accepted(2, 2, 3)
    assert [s.arrival for s in store.reader().read(0, 9).events] == [None, *arrivals, None]
    assert store.reader().recent_keys(2) == [(("far-log", 2), 3), (("/test", "3"), 4)]


def relayed(store: EventStore, *events: tuple[int, str, int]) -> Accepted:
    """Each is the id of an event, the log it was first stored in, and its number there."""
    arrivals = [Arrival("far", log, number, S, "near", 1) for _, log, number in events]
    append = Append([[event(each) for each, _, _ in events]], S, arrivals={0: arrivals})
    return store.commit(append, StateChange()).answers[0]


def test_events_of_different_brokers_with_the_same_source_and_id_are_all_kept(
    store: EventStore,
) -> None:
    offer(store, [1])

    assert relayed(store, (1, "log a", 5), (1, "log b", 5), (1, "log b", 6)) == Accepted(3, 2, 4)
    assert offer(store, [1]) == [Accepted(1, 1, 1, 1)], "a publisher's own repeat is still one"


def test_a_relayed_event_is_a_repeat_by_the_log_it_comes_from_and_its_number_there(
    store: EventStore,
) -> None:
    relayed(store, (1, "log a", 5))

    assert relayed(store, (1, "log a", 5), (2, "log a", 6)) == Accepted(2, 1, 2, 1)
    assert numbers(store) == [1, 2]


def test_a_relayed_event_does_not_make_one_that_is_published_here_a_repeat(
    store: EventStore,
) -> None:
    relayed(store, (1, "log a", 5))

    assert offer(store, [1]) == [Accepted(1, 2, 2)]


def test_repeats_alone_change_nothing(store: EventStore) -> None:
    offer(store, [1])

    assert offer(store, [1]) == [Accepted(1, 1, 1, 1)]
    assert (store.first_seq, store.last_seq) == (1, 1)


def test_the_window_has_exactly_so_many_events(store: EventStore) -> None:
    offer(store, [1], [2], [3], [4], [5])

    assert offer(store, [2]) == [Accepted(1, 2, 2, 1)]
    assert offer(store, [1]) == [Accepted(1, 6, 6)]


def test_time_does_not_go_back(store: EventStore) -> None:
    offer(store, [1], at_s=10)
    offer(store, [2], at_s=7)

    assert [s.received_ns for s in store.reader().read(0, 9).events] == [10 * S, 10 * S]


def test_a_new_subscription_begins_where_the_commit_ends(store: EventStore) -> None:
    offer(store, [1])
    starts = {"end": START_AT_END, "early": 1, "late": 99}

    change = StateChange(subscriptions=dict.fromkeys(starts, b"{}"), starts=starts)
    store.commit(Append([[event(2), event(3)]], S), change)

    assert store.reader().cursors() == {"early": 1, "end": 3, "late": 3}


def test_what_is_removed_is_gone_and_its_cursor_too(store: EventStore) -> None:
    save(store, subscriptions={"a": b"1", "b": b"2"}, cursors={"a": 1, "b": 2, "*": 3})
    save(store, subscriptions={"a": None, "never": None}, cursors={"a": 9})

    assert store.reader().subscriptions() == {"b": b"2"}
    assert store.reader().cursors() == {"*": 3, "b": 2}


def test_dead_letters_come_in_pages(store: EventStore) -> None:
    save(store, dead={f"d{n}": b"%d" % n for n in range(5)})
    save(store, dead={"d1": None, "never": None})
    reader = store.reader()

    first = reader.dead_letters(limit=3)
    second = reader.dead_letters(first.next or "", limit=3)

    assert (list(first.letters), first.next) == (["d0", "d2", "d3"], "d3")
    assert (second.letters, second.next) == ({"d4": b"4"}, None)
    assert (reader.dead_count(), reader.dead_letter("d2"), reader.dead_letter("d1")) == (
        4,
        b"2",
        None,
    )


def test_service_state_is_replaced_and_removed(store: EventStore) -> None:
    save(store, service_state={"a": b"1", "b": b""})
    save(store, service_state={"a": b"2", "b": None, "never": None})

    assert store.reader().service_state() == {"a": b"2"}


def test_a_trimmed_log_goes_on_with_its_numbers(store: EventStore) -> None:
    offer(store, [1, 2, 3])
    save(store, trim_to=2)
    assert (store.first_seq, store.last_seq, numbers(store)) == (3, 3, [3])
    save(store, trim_to=1)
    save(store, trim_to=3)
    reader = store.reader()

    assert (store.first_seq, reader.bounds(), numbers(store)) == (4, (4, 3), [])
    assert reader.read(0, 10).next == 3
    assert offer(store, [4]) == [Accepted(1, 4, 4)]
    assert offer(store, [3]) == [Accepted(1, 3, 3, 1)], "the window outlives what is trimmed"


def test_reading_stops_at_each_limit(store: EventStore) -> None:
    offer(store, [1, 2, 3, 4, 5])
    reader = store.reader()

    assert [s.seq for s in reader.read(1, 2).events] == [2, 3]
    assert [s.seq for s in reader.read(1, 9, through=4).events] == [2, 3, 4]
    assert [s.seq for s in reader.read(1, 9, 1).events] == [2]
    assert reader.read(5, 9).next == 5


def test_one_event_is_found_by_its_number(store: EventStore) -> None:
    offer(store, [1, 2])
    save(store, trim_to=1)
    reader = store.reader()

    found = reader.read_one(2)

    assert found is not None
    assert found.event == event(2)
    assert reader.read_one(1) is reader.read_one(3) is None


def test_the_last_event_of_a_range_is_found(store: EventStore) -> None:
    topics = ["a/b", "a/c", "d", "a/b"]
    store.commit(Append([[event(n, topic) for n, topic in enumerate(topics)]], S), NO_CHANGE)
    reader, pattern = store.reader(), TopicPattern.parse("a/*")

    def seq(holds: Callable[[Event], bool], above: int, through: int) -> int | None:
        found = reader.last_where(holds, above, through)
        return None if found is None else found.seq

    assert seq(lambda e: e.topic == "d", 0, 4) == 3
    assert seq(lambda e: e.topic == "d", 3, 4) is None
    last = reader.last_on(pattern, 0, 3)
    assert last is not None
    assert last.seq == 2


def test_times_and_sizes_lead_to_numbers(store: EventStore) -> None:
    for number, at_s in enumerate((10, 20, 20, 30), 1):
        offer(store, [number], at_s=at_s)
    reader = store.reader()
    size = reader.size_bytes()

    assert [reader.seq_at(at_s * S) for at_s in (10, 11, 20, 21, 99)] == [0, 1, 1, 3, 4]
    assert [reader.seq_for_size(share) for share in (size, size - 1, size // 4, 0)] == [0, 1, 3, 4]


def test_recent_keys_come_oldest_first(store: EventStore) -> None:
    offer(store, [1, 2, 3])

    assert store.reader().recent_keys(2) == [(("/test", "2"), 2), (("/test", "3"), 3)]


def test_a_durable_store_knows_relayed_events_again_after_it_was_closed(tmp_path: Path) -> None:
    store = ready(Store.open(tmp_path))
    offer(store, [1])
    relayed(store, (1, "log a", 5))
    store.close()

    store = ready(Store.open(tmp_path))

    assert relayed(store, (1, "log a", 5), (1, "log b", 5)) == Accepted(2, 2, 3, 1)
    store.close()


def test_a_durable_store_goes_on_after_it_was_closed(tmp_path: Path) -> None:
    store = ready(Store.open(tmp_path))
    offer(store, [1], [2], [3], [4], [5], at_s=10)
    save(store, service_state={"a": b"1"})
    store.close()

    again = ready(Store.open(tmp_path))

    assert offer(again, [1], [2], [6], at_s=3) == [
        Accepted(1, 6, 6),
        Accepted(1, 2, 2, 1),
        Accepted(1, 7, 7),
    ]
    assert [s.received_ns for s in again.reader().read(5, 9).events] == [10 * S, 10 * S]
    assert again.reader().service_state() == {"a": b"1"}
    again.close()


def test_a_broker_hears_nothing_of_what_it_appends_itself(store: EventStore) -> None:
    heard: list[list[Stored]] = []
    store.follow(0, heard.append)

    offer(store, [1])

    assert heard == []


@pytest.mark.parametrize("after", [0, 1])
def test_who_follows_hears_of_what_others_append_in_order(after: int) -> None:
    """SQLite has one writer, so there is no other to hear of."""
    shared = SharedEvents()
    one, two = ready(memory_store(shared)), ready(memory_store(shared))
    offer(two, [1])
    heard: list[int] = []

    one.follow(after, lambda events: heard.extend(stored.seq for stored in events))
    offer(two, [2, 3])
    offer(one, [4])
    offer(two, [4], [5])

    assert heard == [seq for seq in (1, 2, 3, 5) if seq > after]


def test_another_listener_takes_the_place_of_the_former() -> None:
    shared = SharedEvents()
    one, two = ready(memory_store(shared)), ready(memory_store(shared))
    former: list[list[Stored]] = []
    heard: list[list[Stored]] = []
    one.follow(0, former.append)
    one.follow(0, heard.append)

    offer(two, [1])

    assert former == []
    assert [stored.seq for stored in heard[0]] == [1]

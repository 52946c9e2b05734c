"""Looking something up: the index is as good as looking at everything, and forgets nobody."""

from __future__ import annotations

import pytest
from directory_entries import S, entry, registration
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFilter
from tocsin.event.filter_text import parse_filter
from tocsin.event.value import Quantity
from tocsin.wire.directory.entry import Entry
from tocsin.wire.directory.listing import Listing, Wanted, check_filter
from tocsin.wire.gma.names import EventName, read_name

KINDS = st.sampled_from(["producer", "consumer"])
HOSTS = st.sampled_from(["node7", "Node7", "node8"])
EVENTS = st.sets(st.sampled_from(["UptimeCPULoad", "Memory", "{urn:lab}Memory"]))
ENTRIES = st.lists(
    st.builds(
        lambda number, name, kind, host, events, lease_s, cores: entry(
            f"e{number}",
            registration(name, *events, kind=kind, host=host, lease_s=lease_s, cores=cores),
        ),
        st.integers(0, 20),
        st.sampled_from("abc"),
        KINDS,
        HOSTS,
        EVENTS,
        st.integers(10, 20),
        st.integers(1, 4),
    ),
    max_size=20,
)
WANTED = st.builds(
    Wanted,
    kind=st.none() | KINDS,
    event=st.none() | st.sampled_from([read_name("Memory"), EventName("Memory", "urn:lab")]),
    local_name=st.none() | st.just("Memory"),
    host=st.none() | HOSTS,
    filter=st.sampled_from(["", "cores >= 3", "name = a or host = node8"]).map(parse_filter),
)


def listing(*entries: Entry) -> Listing:
    found = Listing()
    for each in entries:
        found.put(each)
    return found


def ids(entries: list[Entry]) -> list[str]:
    return [each.id for each in entries]


def listed_by_scan(wanted: Wanted, entries: dict[str, Entry], now_ns: int) -> list[str]:
    """The same answer, by looking at every entry."""
    tests = {
        "": lambda about: True,
        "cores >= 3": lambda about: about.attributes["cores"] >= 3,
        "name = a or host = node8": lambda about: about.name == "a" or about.host == "node8",
    }
    [passes] = [test for text, test in tests.items() if parse_filter(text) == wanted.filter]
    return sorted(
        each.id
        for each in entries.values()
        for about in [each.registration]
        if each.expires_ns is not None
        and now_ns < each.expires_ns
        and wanted.kind in (None, about.kind)
        and wanted.event in (None, *(offered.name for offered in about.events))
        and wanted.local_name in (None, *(offered.name.local for offered in about.events))
        and (wanted.host is None or wanted.host.lower() == about.host.lower())
        and passes(about)
    )


@given(ENTRIES, st.sets(st.integers(0, 20)), WANTED, st.integers(5, 25))
def test_the_index_finds_what_looking_at_everything_finds(
    entries: list[Entry], removed: set[int], wanted: Wanted, now_s: int
) -> None:
    listed, plain = Listing(), {}
    for each in entries:
        listed.put(each)
        same = [
            i for i, e in plain.items() if e.registration.identity == each.registration.identity
        ]
        for other in same:
            del plain[other]
        plain[each.id] = each
    for number in removed:
        listed.remove(f"e{number}")
        plain.pop(f"e{number}", None)

    found = listed.look_up(wanted, now_s * S)

    assert ids(found.entries) == listed_by_scan(wanted, plain, now_s * S)
    assert found.next is None
    assert len(listed) == len(plain)


@given(ENTRIES, WANTED, st.integers(1, 5), st.none() | st.integers(1, 5))
def test_pages_hold_everybody_once(
    entries: list[Entry], wanted: Wanted, limit: int, looked_at_max: int | None
) -> None:
    listed = listing(*entries)
    whole = listed.look_up(wanted, 0)

    paged: list[Entry] = []
    after: str | None = ""
    while after is not None:
        page = listed.look_up(wanted, 0, after=after, limit=limit, looked_at_max=looked_at_max)
        assert len(page.entries) <= limit
        paged += page.entries
        after = page.next

    assert paged == whole.entries


def test_a_lapsed_entry_is_not_answered_with_from_the_very_moment() -> None:
    listed = listing(entry("a", registration(lease_s=10)))

    assert ids(listed.look_up(Wanted(), 10 * S - 1).entries) == ["a"]
    assert ids(listed.look_up(Wanted(), 10 * S).entries) == []
    assert ids(listed.lapsed(10 * S)) == ["a"]


def test_a_renewed_entry_has_its_whole_lease_before_it() -> None:
    renewed = entry("a", registration(lease_s=10)).renewed(8 * S)

    assert renewed.is_live(18 * S - 1)
    assert not renewed.is_live(18 * S)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cores > 32", ["big"]),
        ("memory >= 1000 MB", ["big"]),
        ("site = ohio", ["big", "small"]),
        ("not site exists", ["other"]),
        ("name prefix up and kind = producer", ["big", "small"]),
        ("address contains 8401 and host = node8", ["small"]),
        ("sql \"cores > 32 OR host = 'node8'\"", ["big", "small"]),
    ],
)
def test_attributes_are_asked_in_the_one_filter_language(text: str, found: list[str]) -> None:
    memory = Quantity(2, "GB")
    listed = listing(
        entry("big", registration(cores=64, memory=memory, site="ohio")),
        entry("small", registration(host="node8", cores=4, site="ohio")),
        entry("other", registration("rain", kind="consumer", address=None)),
    )

    wanted = Wanted(filter=check_filter(parse_filter(text)))

    assert ids(listed.look_up(wanted, 0).entries) == found


@pytest.mark.parametrize("text", ["topic a/b", "site = ohio and not topic a/**", "xpath '/a'"])
def test_what_can_only_be_asked_of_an_event_is_refused(text: str) -> None:
    with pytest.raises(BadFilter, match="directory"):
        check_filter(parse_filter(text))

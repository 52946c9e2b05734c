"""The subscriber lookup index is that of the paper, at a cost that is the profile's alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.matching.lookup_index import LookupIndex

addresses = st.sampled_from(["http://a", "http://b", "http://c", "http://d"])
profiles = st.frozensets(st.sampled_from([f"Concept{n}" for n in range(8)]), max_size=6)
messages = st.dictionaries(st.sampled_from([f"Concept{n}" for n in range(10)]), st.text(max_size=3))
operations = st.lists(st.tuples(addresses, st.one_of(st.none(), profiles)), max_size=30)


class Paper:
    """Figures 5 to 8, as they are printed."""

    def __init__(self) -> None:
        self.sub_store: dict[str, set[str]] = {}
        self.sli: dict[str, set[str]] = {}

    def subscribe(self, address: str, profile: set[str]) -> None:
        self.sub_store[address] = set(profile)
        profile = set(profile)
        for concept in list(self.sli):
            if concept in profile:
                self.sli[concept].add(address)
                profile.remove(concept)
            elif address in self.sli[concept]:
                self.sli[concept].remove(address)
                if not self.sli[concept]:
                    del self.sli[concept]
        for concept in profile:
            self.sli[concept] = {address}

    def unsubscribe(self, address: str) -> None:
        for concept in self.sub_store.pop(address, set()):
            if address in self.sli.get(concept, set()):
                self.sli[concept].remove(address)
                if not self.sli[concept]:
                    del self.sli[concept]

    def send(self, message: dict[str, str]) -> dict[str, dict[str, str]]:
        outgoing: dict[str, dict[str, str]] = {}
        for concept, value in message.items():
            for address in self.sli.get(concept, set()):
                outgoing.setdefault(address, {})[concept] = value
        return outgoing


@given(operations, messages)
def test_it_does_what_the_figures_of_the_paper_do(
    asked: list[tuple[str, frozenset[str] | None]], message: dict[str, str]
) -> None:
    ours: LookupIndex[str] = LookupIndex()
    theirs = Paper()
    for address, profile in asked:
        before = ours.aggregate()
        if profile is None:
            changed = ours.unsubscribe(address)
            theirs.unsubscribe(address)
        else:
            changed = ours.subscribe(address, profile)
            theirs.subscribe(address, set(profile))
        assert changed == (ours.aggregate() != before)
        assert ours.aggregate() == theirs.sli.keys()
        assert {who: set(ours.profile(who)) for who in theirs.sub_store} == theirs.sub_store
    assert ours.split(message) == theirs.send(message)
    assert len(ours) == len(theirs.sub_store)


@given(st.dictionaries(addresses, profiles))
def test_one_that_is_loaded_is_as_one_that_grew(store: dict[str, frozenset[str]]) -> None:
    grown: LookupIndex[str] = LookupIndex()
    for address, profile in store.items():
        grown.subscribe(address, profile)

    loaded = LookupIndex(store)

    assert loaded.aggregate() == grown.aggregate()
    assert all(loaded.profile(address) == profile for address, profile in store.items())


def test_subscribing_looks_at_nothing_but_the_profile() -> None:
    class Counted(str):
        hashed = 0

        def __hash__(self) -> int:
            Counted.hashed += 1
            return str.__hash__(self)

        def __eq__(self, other: object) -> bool:
            return str.__eq__(self, other)

    def cost(others: int) -> int:
        index: LookupIndex[str] = LookupIndex()
        for number in range(others):
            index.subscribe(f"s{number}", {Counted(f"c{number}-{n}") for n in range(5)})
        Counted.hashed = 0
        index.subscribe("me", {Counted(f"mine-{n}") for n in range(5)})
        index.unsubscribe("me")
        return Counted.hashed

    assert cost(10) == cost(1_000)


def test_pairs_keep_their_order() -> None:
    index = LookupIndex({"a": {"x", "z", "y"}})

    assert list(index.split({"z": "1", "x": "2", "w": "3", "y": "4"})["a"]) == ["z", "x", "y"]

"""Filters by concept: what they mean, how they are written, and that the index finds the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors import BadFilter
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.concept_filter import concepts_filter
from tocsin.event.event import Event
from tocsin.event.filter_eval import matches
from tocsin.event.filter_text import format_filter, parse_filter
from tocsin.matching.covering import covers
from tocsin.matching.matcher import Matcher
from tocsin.ontology import built_in

names = st.sampled_from(sorted(built_in().concepts))
pairs = st.dictionaries(names, st.text(max_size=3), max_size=5)


def message(pairs: dict[str, str]) -> Event:
    import msgspec

    return Event(id="1", source="/s", type="bb.Message", data=msgspec.json.encode(pairs))


@given(names, pairs)
def test_an_event_passes_if_it_has_a_value_for_the_concept_or_one_below(
    wanted: str, given_pairs: dict[str, str]
) -> None:
    passes = any(name in built_in().below(wanted) for name in given_pairs)

    assert matches(concepts_filter([wanted]), message(given_pairs)) is passes


@given(st.lists(st.lists(names, min_size=1, max_size=5), min_size=1, max_size=6), pairs)
def test_the_index_finds_who_asked_by_concept(
    profiles: list[list[str]], given_pairs: dict[str, str]
) -> None:
    matcher = Matcher(use_numba=False)
    filters = [concepts_filter(profile) for profile in profiles]
    for key, wanted in enumerate(filters):
        matcher.add(key, wanted)
    event = message(given_pairs)

    assert matcher.match(event) == [k for k, w in enumerate(filters) if matches(w, event)]
    for key in range(len(filters)):
        matcher.remove(key)
    assert matcher.match(event) == []
    assert matcher.holdings().rows == 0


def test_a_profile_of_many_concepts_is_looked_up_and_not_asked_of_every_event() -> None:
    matcher = Matcher(use_numba=False)
    matcher.add(1, concepts_filter(["Concept"]))

    assert matcher.holdings().residuals == 0
    assert matcher.holdings().rows == len(built_in().below("Concept")) > 100


def test_people_write_it_as_a_condition_like_any_other() -> None:
    wanted = parse_filter("concept ActivityProblem and not concept 'prov:Start'")

    assert matches(wanted, message({"ActivityHeld": "now"}))
    assert not matches(wanted, message({"ActivityHeld": "now", "ActivityExecuting": "now"}))
    assert parse_filter("concept = 5") == parse_filter("`concept` = 5")


def test_an_unknown_concept_is_named_with_the_nearest() -> None:
    with pytest.raises(BadFilter, match="ActivityProblem"):
        parse_filter("concept ActivityProblm")


def test_a_concept_covers_what_is_below_it() -> None:
    wide, narrow = concepts_filter(["ActivityEvent"]), concepts_filter(["ActivityFailed"])

    assert covers(wide, narrow)
    assert not covers(narrow, wide)


def test_the_same_is_meant_in_a_list_of_filters() -> None:
    assert read_filters([{"concepts": ["prov:End"]}]) == concepts_filter(["prov:End"])
    assert matches(
        parse_filter(format_filter(concepts_filter(["Cpu"]))), message({"CpuSeconds": "1"})
    )

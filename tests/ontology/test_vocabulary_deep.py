"""Profiles over ontologies of a site that are deep, or go in circles."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tocsin.ontology import Terms, Vocabulary

CLASSES = [f"http://site.example/C{number}" for number in range(12)]
of_classes = st.sampled_from(CLASSES)


def vocabulary(edges: list[tuple[str, str]], classes: list[str]) -> Vocabulary:
    terms = Terms()
    for iri in classes:
        terms.add(iri)
    for below, above in edges:
        terms.add(below)[above] = None
    return Vocabulary([terms])


@given(st.lists(st.tuples(of_classes, of_classes), max_size=30), st.lists(of_classes, max_size=6))
def test_a_profile_asks_for_what_each_of_its_concepts_stands_for(
    edges: list[tuple[str, str]], names: list[str]
) -> None:
    fresh, asked_before = vocabulary(edges, CLASSES), vocabulary(edges, CLASSES)
    each = frozenset[str]().union(*map(asked_before.below, names))

    assert fresh.expanded(names) == each
    assert asked_before.expanded(names) == each


def test_many_concepts_of_a_deep_ontology_are_walked_once_and_not_all_kept() -> None:
    chain = [f"http://site.example/D{number}" for number in range(5_000)]
    deep = vocabulary(list(pairwise(chain)), chain)

    assert deep.expanded(chain) == frozenset(chain)
    for number in range(0, len(chain), 10):
        assert len(deep.below(chain[number])) == number + 1
    assert deep._below_kept <= 1_000_000

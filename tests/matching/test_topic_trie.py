"""The trie of topic patterns finds what each pattern, asked alone, says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.event.topic import TopicPattern
from tocsin.matching.topic_trie import TopicTrie

levels = st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=6).map(tuple)
topics = st.lists(st.sampled_from(["a", "b", "c"]), max_size=6).map("/".join)


@given(stored=st.lists(levels, unique=True), topics=st.lists(topics, max_size=5), data=st.data())
def test_the_trie_finds_the_patterns_that_fit_and_forgets_those_that_left(
    stored: list[tuple[str, ...]], topics: list[str], data: st.DataObject
) -> None:
    trie = TopicTrie()
    for number, pattern in enumerate(stored):
        trie.add(pattern, number)
    for gone in data.draw(st.sets(st.sampled_from(stored))) if stored else ():
        trie.remove(gone)
        stored[stored.index(gone)] = ()

    assert len(trie) == len([pattern for pattern in stored if pattern])
    for topic in topics:
        fitting = [
            number
            for number, pattern in enumerate(stored)
            if pattern and TopicPattern(pattern).matches(topic)
        ]
        assert sorted(trie.find(topic)) == fitting


def test_patterns_made_to_be_slow_are_not() -> None:
    trie = TopicTrie()
    depth = 16
    for number in range(1, depth + 1):
        trie.add(("**", "a") * number, number)
        trie.add(("**", "*", "**", "a") * (number // 2) + ("**",), 100 + number)

    assert 1 in trie.find("/".join(["a"] * 32))
    assert trie.find("/".join(["a"] * 31 + ["b"])) == trie.find("/".join(["a"] * 31 + ["c"]))

"""Topics as trees: TopicSet, TopicNamespace, and what can be in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from schemas import validator
from tocsin.wire.soap.names import TOPICS13
from tocsin.wire.soap.topics import TopicName
from tocsin.wire.wstopics.tree import UNNAMED, Step, TopicTree, steps_of
from tocsin.wire.wstopics.write import EMPTY_TOPIC_SET, expressions, topic_namespace, topic_set

IS_TOPIC = f"{{{TOPICS13}}}topic"
NAMES = st.sampled_from(["a", "b", "Ärger", "x-1", "_y"])
URIS = st.sampled_from(["urn:one", "urn:two?a=1&b='2'", "http://three.example/"])
ROOTS = st.tuples(URIS, NAMES)
LEVELS = st.tuples(st.one_of(st.just(""), URIS), NAMES)
PATHS = st.builds(lambda root, rest: (root, *rest), ROOTS, st.lists(LEVELS, max_size=3))


def grown(*paths: tuple[Step, ...]) -> TopicTree:
    tree = TopicTree()
    for path in paths:
        assert tree.add(path)
    return tree


def read_set(element: etree._Element, above: tuple[Step, ...] = ()) -> set[tuple[Step, ...]]:
    """The topics that a TopicSet names, as whoever gets it reads it."""
    found: set[tuple[Step, ...]] = set()
    for child in element:
        name = etree.QName(child)
        path = (*above, (name.namespace or "", name.localname))
        if child.get(IS_TOPIC) == "true":
            found.add(path)
        found |= read_set(child, path)
    return found


@given(st.lists(PATHS, max_size=8))
def test_a_topic_set_names_exactly_the_topics_there_are(paths: list[tuple[Step, ...]]) -> None:
    tree = grown(*paths)

    written = topic_set(tree)

    validator("wsn13")(written)
    assert read_set(etree.fromstring(written)) == set(paths) == set(tree.topics())


@given(st.lists(PATHS, min_size=1, max_size=8))
def test_every_name_is_defined_in_its_own_namespace_once(paths: list[tuple[Step, ...]]) -> None:
    tree = grown(*paths)
    defined: list[tuple[str, str]] = []

    for uri in tree.namespaces:
        written = topic_namespace(tree, uri)
        assert written is not None
        validator("wsn13")(written)
        root = etree.fromstring(written)
        assert root.get("targetNamespace") == uri
        defined += [(uri, topic.get("name", "")) for topic in root]

    levels = {path[:length] for path in paths for length in range(1, len(path) + 1)}
    assert sorted(defined) == sorted({path[-1] for path in levels if path[-1][0]})
    assert topic_namespace(tree, "urn:none") is None


def test_a_topic_of_another_namespace_names_its_parent() -> None:
    tree = grown((("urn:d", "Device"), ("urn:acme", "Input"), ("", "Level")))

    written = topic_namespace(tree, "urn:acme")

    assert written is not None
    root = etree.fromstring(written)
    [topic] = root
    prefix, name = topic.get("parent", "").split(":")
    assert (root.nsmap[prefix], name) == ("urn:d", "Device")
    assert [child.get("name") for child in topic] == ["Level"]


def test_levels_have_the_namespaces_that_their_prefixes_stand_for() -> None:
    topic = TopicName("p:a/b/q:c", (("p", "urn:p"), ("q", "urn:q")))

    assert steps_of(topic) == (("urn:p", "a"), ("", "b"), ("urn:q", "c"))
    assert steps_of(TopicName("plain/b")) == ((UNNAMED, "plain"), ("", "b"))


def test_what_cannot_be_an_element_is_in_no_tree() -> None:
    for text in ("1st", "a/2", "a b", "a/<", "a//b", "", "p:²"):
        assert steps_of(TopicName(text)) is None, text
    for uri in ("urn:a b", 'urn:"<&>', "urn:\ud800", "u" * 2_000):
        assert steps_of(TopicName("p:a", (("p", uri),))) is None, uri


@given(st.text(max_size=12), st.text(max_size=12))
def test_whatever_a_topic_is_called_the_set_is_well_formed(text: str, uri: str) -> None:
    steps = steps_of(TopicName(f"p:{text}", (("p", uri),)))
    tree = TopicTree()
    if steps is not None:
        tree.add(steps)

    etree.fromstring(topic_set(tree))


def test_a_full_tree_takes_no_more_and_says_so() -> None:
    tree = TopicTree(nodes_max=2)

    assert tree.add((("urn:a", "a"), ("", "b")))
    assert not tree.add((("urn:a", "a"), ("", "c")))
    assert tree.add((("urn:a", "a"),))

    assert len(tree) == 2
    assert tree.is_full


def test_without_topics_the_set_is_empty() -> None:
    assert topic_set(TopicTree()) == EMPTY_TOPIC_SET
    validator("wsn13")(EMPTY_TOPIC_SET)


def test_each_root_with_all_below_stands_for_everything() -> None:
    tree = grown((("urn:a", "a"), ("", "b")), (("urn:a", "a"), ("", "c")))

    [expression] = expressions(tree, "urn:full")

    assert (expression.text, expression.namespaces) == ("tns:a//.", (("tns", "urn:a"),))

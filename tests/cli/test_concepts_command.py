"""`tocsin concepts`: with a broker, without one, and with a site's own words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from served import served
from tocsin.cli.concepts.tree import loaded, nested, tree_lines
from tocsin.ontology import Vocabulary, built_in, read_turtle

SITE = b"""
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix bb: <urn:blackboard:wf#> .
@prefix lab: <urn:lab#> .
lab:MirrorMoved a owl:Class ; rdfs:subClassOf bb:Event ; rdfs:comment "the mirror was moved" .
"""
NOBODY = "http://127.0.0.1:9"

Tocsin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tocsin(in_process: Tocsin, monkeypatch: pytest.MonkeyPatch) -> Tocsin:
    """Runs `tocsin concepts` where there is no broker; its exit code, output and errors."""
    monkeypatch.setenv("TOCSIN_BROKER", NOBODY)
    return lambda *arguments: in_process("concepts", *arguments)


def test_the_built_in_concepts_need_no_broker(tocsin: Tocsin) -> None:
    code, out, words = tocsin("ls")

    assert code == 0
    assert len(out.splitlines()) == len(built_in()) + 1
    assert words.startswith(f"no broker at {NOBODY}: these are the built-in concepts\n")


def test_a_broker_that_was_named_and_is_not_there_is_an_error(tocsin: Tocsin) -> None:
    code, out, words = tocsin("ls", "--broker", NOBODY)

    assert (code, out) == (3, "")
    assert "T601" in words


def test_what_a_broker_has_loaded_is_what_is_shown(tocsin: Tocsin, tmp_path: Path) -> None:
    site = tmp_path / "lab.ttl"
    site.write_bytes(SITE)
    config = tmp_path / "tocsin.toml"
    config.write_text(f'[blackboard]\nontology = ["{site}"]\n')

    with served("--config", str(config)) as broker:
        code, out, words = tocsin("ls", "--json", "--broker", broker.url)

    names = [json.loads(line)["name"] for line in out.splitlines()]
    assert (code, words) == (0, "")
    assert set(names) == {*built_in().concepts, "lab:MirrorMoved"}


def test_a_list_can_be_cut_down_to_a_word(tocsin: Tocsin) -> None:
    code, out, _ = tocsin("ls", "OOM-kill", "--json")

    assert code == 0
    assert [json.loads(line)["name"] for line in out.splitlines()] == ["ActivityOutOfMemory"]


def test_a_word_that_no_concept_has_is_exit_code_five(tocsin: Tocsin) -> None:
    code, out, words = tocsin("ls", "zebra")

    assert (code, out) == (5, "")
    assert "no concept has 'zebra'" in words


def test_a_tree_opens_each_concept_once(tocsin: Tocsin) -> None:
    code, out, words = tocsin("tree", "ActivityEvent")

    assert code == 0
    assert out.startswith("ActivityEvent\n├─ ActivityLifecycleEvent\n│  ├─ ActivityExecuting\n")
    assert out.count("ActivityTimedOut") == 1
    assert "├─ ActivityFailed (see above)\n" in out
    assert f"covers {len(built_in().below('ActivityEvent'))} concepts" in words


def test_one_concept_is_found_by_any_of_its_names(tocsin: Tocsin) -> None:
    shown = [
        tocsin("show", name, "--json")[1]
        for name in ("MemoryPeak", "bb:MemoryPeak", "urn:blackboard:wf#MemoryPeak")
    ]

    assert len(set(shown)) == 1
    view = json.loads(shown[0])
    assert view["unit"] == "BYTE"
    assert {"MemoryRss", "Memory", "Resource", "Concept"} <= set(view["above"])


def test_an_unknown_name_tells_the_nearest_ones(tocsin: Tocsin) -> None:
    for action in ("show", "tree"):
        code, out, words = tocsin(action, "ActivtyFailed")

        assert (code, out) == (5, "")
        assert "Did you mean ActivityFailed" in words


def test_a_site_adds_its_own(tocsin: Tocsin, tmp_path: Path) -> None:
    file = tmp_path / "lab.ttl"
    file.write_bytes(SITE)

    code, out, words = tocsin("show", "MirrorMoved", "--ontology", str(file))

    assert (code, words) == (0, "")
    assert "lab:MirrorMoved" in out
    assert "the mirror was moved" in out
    assert "lab:MirrorMoved" in tocsin("tree", "Event", "--ontology", str(file))[1]


@pytest.mark.parametrize("text", [b"this is no turtle", None])
def test_a_file_that_cannot_be_used_is_named(
    tocsin: Tocsin, tmp_path: Path, text: bytes | None
) -> None:
    file = tmp_path / "lab.ttl"
    if text is not None:
        file.write_bytes(text)

    code, out, words = tocsin("ls", "--ontology", str(file))

    assert (code, out) == (2, "")
    assert "lab.ttl" in words


def test_what_a_broker_tells_of_its_concepts_is_all_that_they_are() -> None:
    known = Vocabulary([read_turtle(SITE, "lab.ttl")])
    for vocabulary in (built_in(), known):
        views = [
            {
                "name": each.name,
                "iri": each.iri,
                "label": each.label,
                "comment": each.comment,
                "parents": list(each.parents),
                "unit": each.unit,
            }
            for each in vocabulary
        ]

        assert dict(loaded(views).concepts) == dict(vocabulary.concepts)


@given(
    edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30),
    root=st.integers(0, 9),
)
def test_a_tree_of_any_graph_ends_and_shows_all_that_is_below(
    edges: list[tuple[int, int]], root: int
) -> None:
    classes = "".join(f"<urn:c#{n}> a owl:Class .\n" for n in range(10))
    below = "".join(f"<urn:c#{a}> rdfs:subClassOf <urn:c#{b}> .\n" for a, b in edges)
    prefixes = b"\n".join(SITE.splitlines()[:4]).decode()
    known = Vocabulary([read_turtle(f"{prefixes}\n{classes}{below}".encode(), "graph")])
    name = f"urn:c#{root}"

    shown = {
        line.split("─ ")[-1].removesuffix(" (see above)") for line in tree_lines(known, [name])
    }

    assert shown == known.below(name)
    assert set(_names(nested(known, name))) == known.below(name)


def _names(tree: dict[str, object]) -> list[str]:
    below = tree.get("below", [])
    assert isinstance(below, list)
    return [str(tree["name"]), *(name for each in below for name in _names(each))]

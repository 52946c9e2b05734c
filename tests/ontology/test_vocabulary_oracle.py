"""The vocabulary against an independent reader: rdflib's SPARQL on the same Turtle."""

from __future__ import annotations

from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Graph, URIRef

from tocsin.errors import BadOntology, UnknownConcept
from tocsin.ontology import Vocabulary, built_in, read_turtle

LAB = "http://lab.example/terms#"
OTHER = "http://other.example/"
OWN = "urn:blackboard:wf#"
HEAD = f"""
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix lab: <{LAB}> .
@prefix laboratory: <{LAB}> .
@prefix other: <{OTHER}> .
@prefix bb: <{OWN}> .
"""
# One step up, as we understand it: a subclass, or the same class under another name.
UP = "(rdfs:subClassOf|owl:equivalentClass|^owl:equivalentClass)*"

classes = st.sampled_from(
    [f"{prefix}:{word}" for prefix in ("lab", "laboratory", "other", "bb") for word in "ABCD"]
    + ["<urn:no-prefix:A>", "<http://lab.example/terms>"]
)
graphs = st.lists(
    st.tuples(classes, st.sampled_from(["rdfs:subClassOf"] * 4 + ["owl:equivalentClass"]), classes),
    min_size=1,
    max_size=25,
)


def iris(vocabulary: Vocabulary, names: frozenset[str]) -> set[str]:
    return {vocabulary.concepts[name].iri for name in names}


def asked(graph: Graph, iri: str, *, above: bool = False) -> set[str]:
    """What SPARQL finds below a class, or above it, and the class itself."""
    path = f"<{iri}> {UP} ?found" if above else f"?found {UP} <{iri}>"
    rows = graph.query(f"SELECT DISTINCT ?found WHERE {{ {path} }}")
    return {iri, *(str(row[0]) for row in rows if isinstance(row[0], URIRef))}


def both(text: str) -> tuple[Vocabulary, Graph]:
    return Vocabulary([read_turtle(text.encode(), "test.ttl")]), Graph().parse(
        data=text, format="turtle"
    )


def test_the_built_in_ontology_subsumes_as_sparql_says() -> None:
    text = files("tocsin.ontology").joinpath("bb-workflow.ttl").read_text()
    graph = Graph().parse(data=text, format="turtle")
    vocabulary = built_in()

    for name in ("Concept", "Event", "EvolutionEvent", "ActivityProblem", "Resource", "prov:End"):
        iri = vocabulary.concepts[name].iri
        assert iris(vocabulary, vocabulary.below(name)) == asked(graph, iri), name
    for name in ("ActivityOutOfMemory", "GpuPower", "WorkflowAborted", "VersionForked"):
        iri = vocabulary.concepts[name].iri
        assert iris(vocabulary, vocabulary.above(name)) == asked(graph, iri, above=True), name


def test_every_class_of_the_built_in_ontology_is_a_concept_with_a_label() -> None:
    text = files("tocsin.ontology").joinpath("bb-workflow.ttl").read_text()
    graph = Graph().parse(data=text, format="turtle")
    rows = graph.query("SELECT ?c ?l WHERE { ?c a owl:Class OPTIONAL { ?c rdfs:label ?l } }")

    known = {concept.iri: concept for concept in built_in()}
    for iri, label in rows:  # type: ignore[misc]
        assert str(iri) in known
        if str(iri).startswith(OWN):
            assert known[str(iri)].label == str(label)


@settings(max_examples=60)
@given(graphs)
def test_any_graph_of_classes_subsumes_as_sparql_says(edges: list[tuple[str, str, str]]) -> None:
    vocabulary, graph = both(HEAD + "".join(f"{a} {verb} {b} .\n" for a, verb, b in edges))

    # The first few: SPARQL is slow, and the graphs are many.
    for concept in list(vocabulary)[:4]:
        assert iris(vocabulary, vocabulary.below(concept.name)) == asked(graph, concept.iri)
        assert iris(vocabulary, vocabulary.above(concept.name)) == asked(
            graph, concept.iri, above=True
        )


@given(graphs)
def test_every_name_of_a_concept_leads_to_it(edges: list[tuple[str, str, str]]) -> None:
    text = HEAD + "".join(f"{a} {verb} {b} .\n" for a, verb, b in edges)
    vocabulary = Vocabulary([read_turtle(text.encode(), "test.ttl")])

    for concept in vocabulary:
        assert vocabulary.resolve(concept.name) == concept.name
        assert vocabulary.resolve(concept.iri) == concept.name
        assert concept.name in vocabulary.below(concept.name)
        assert all(concept.name in vocabulary.below(parent) for parent in concept.parents)


@given(graphs)
def test_a_profile_of_several_is_all_that_each_of_them_stands_for(
    edges: list[tuple[str, str, str]],
) -> None:
    text = HEAD + "".join(f"{a} {verb} {b} .\n" for a, verb, b in edges)
    vocabulary = Vocabulary([read_turtle(text.encode(), "test.ttl")])
    names = [concept.name for concept in vocabulary][:3]

    together = frozenset().union(*(vocabulary.below(name) for name in names))

    assert vocabulary.expanded(names) == together
    assert vocabulary.expanded(together) == together


def test_two_prefixes_of_one_namespace_name_the_same_concept() -> None:
    vocabulary, _ = both(HEAD + "lab:Radar rdfs:subClassOf bb:Event .\n")

    assert vocabulary.resolve("lab:Radar") == vocabulary.resolve("laboratory:Radar")


def test_a_site_may_hang_its_concepts_under_ours_and_ours_stay_as_they_are() -> None:
    ours = read_turtle(
        files("tocsin.ontology").joinpath("bb-workflow.ttl").read_bytes(), "bb-workflow.ttl"
    )
    site = read_turtle(
        (
            HEAD + "lab:Radar a owl:Class ; rdfs:subClassOf bb:ActivityProblem .\n"
            'bb:ActivityFailed a owl:Class ; rdfs:label "nothing of the kind" .\n'
        ).encode(),
        "site.ttl",
    )

    vocabulary = Vocabulary([ours, site])

    before, now = built_in().concepts["ActivityFailed"], vocabulary.concepts["ActivityFailed"]
    assert now == before
    assert vocabulary.below("ActivityProblem") == built_in().below("ActivityProblem") | {
        vocabulary.resolve("lab:Radar")
    }


def test_another_prefix_for_a_namespace_of_ours_renames_nothing() -> None:
    ours = read_turtle(
        files("tocsin.ontology").joinpath("bb-workflow.ttl").read_bytes(), "bb-workflow.ttl"
    )
    site = read_turtle(b"@prefix zprov: <http://www.w3.org/ns/prov#> . zprov:X a <urn:y> .", "s")

    vocabulary = Vocabulary([ours, site])

    assert vocabulary.concepts.keys() >= built_in().concepts.keys()
    assert vocabulary.resolve("zprov:End") == "prov:End"


def test_a_circle_through_a_built_in_concept_ends() -> None:
    ours = read_turtle(
        files("tocsin.ontology").joinpath("bb-workflow.ttl").read_bytes(), "bb-workflow.ttl"
    )
    circle = read_turtle((HEAD + "bb:Event rdfs:subClassOf bb:ActivityFailed .\n").encode(), "c")

    vocabulary = Vocabulary([ours, circle])

    assert vocabulary.below("Event") == vocabulary.below("ActivityFailed")


@pytest.mark.parametrize(
    "data",
    [
        b"lab:A a owl:Class .",  # prefixes that nobody declared
        b"<a b> <c> <d> .",
        b"<urn:a> <urn:b> ",
        b"\xff\xfe\x00",
        b'<urn:a> <urn:b> """never closed .',
        b"{ not turtle }",
        b"@prefix : <" + b"x" * 100,
        b"[" * 100_000,
        b"(" * 100_000,
        b"<urn:a> <urn:b> " + b"[ <urn:c> " * 50_000,
    ],
)
def test_what_is_no_turtle_is_refused_with_its_name(data: bytes) -> None:
    with pytest.raises(BadOntology, match=r"site\.ttl"):
        read_turtle(data, "site.ttl")


def test_a_prefix_that_means_two_things_is_refused() -> None:
    one = read_turtle(b"@prefix lab: <urn:one#> . lab:A a <urn:x> .", "one.ttl")
    two = read_turtle(b"@prefix lab: <urn:two#> . lab:A a <urn:x> .", "two.ttl")

    with pytest.raises(BadOntology, match="lab:"):
        Vocabulary([one, two])


def test_an_unknown_name_is_told_with_its_neighbours() -> None:
    with pytest.raises(UnknownConcept, match="ActivityClosd") as refused:
        built_in().resolve("ActivityClosd")

    assert "ActivityClosed" in refused.value.remedy
    for hostile in ("", "x" * 100_000, "\0", "bb:", "<>", "prov:"):
        with pytest.raises(UnknownConcept):
            built_in().resolve(hostile)


def test_ten_thousand_classes_are_one_chain_and_one_fan() -> None:
    lines = [f"lab:C{n + 1} rdfs:subClassOf lab:C{n} .\n" for n in range(5_000)]
    lines += [f"lab:F{n} rdfs:subClassOf lab:C5000 .\n" for n in range(5_000)]

    vocabulary = Vocabulary([read_turtle((HEAD + "".join(lines)).encode(), "large.ttl")])

    top, last = vocabulary.resolve("lab:C0"), vocabulary.resolve("lab:F4999")
    assert len(vocabulary.below(top)) == 10_001
    assert len(vocabulary.above(last)) == 5_002

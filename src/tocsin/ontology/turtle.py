"""Turtle in: the classes that a file names, and what it says of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from tocsin.errors import BadOntology

BYTES_MAX = 64 << 20
CLASSES_MAX = 200_000

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"
_A = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_UNIT = "http://qudt.org/schema/qudt/hasUnit"
_CLASS = frozenset({_OWL + "Class", _RDFS + "Class"})
_SUBCLASS = _RDFS + "subClassOf"
_SAME = _OWL + "equivalentClass"
_WORDS = {_RDFS + "label": "label", _RDFS + "comment": "comment", _UNIT: "unit"}


@dataclass(slots=True)
class Terms:
    """What was read: classes by their IRI, with their parents' IRIs; prefixes by their name."""

    parents: dict[str, dict[str, None]] = field(default_factory=dict)  # in the order of the file
    words: dict[str, dict[str, str]] = field(default_factory=dict)  # label, comment and unit
    prefixes: dict[str, str] = field(default_factory=dict)

    def add(self, iri: str) -> dict[str, None]:
        return self.parents.setdefault(iri, {})


def read_turtle(data: bytes, where: str) -> Terms:
    """The terms of a file; BadOntology, with its name, if it is none that can be used."""
    if len(data) > BYTES_MAX:
        raise BadOntology(f"{where} has {len(data)} bytes", remedy=f"At most {BYTES_MAX} are read.")
    terms = Terms()
    try:
        parser = parse(data, format=RdfFormat.TURTLE)
        for triple in parser:
            subject, what, value = triple.subject, triple.predicate.value, triple.object
            if isinstance(
                subject, NamedNode
            ):  # restrictions and other nameless classes say no name
                _take(terms, subject.value, what, value)
            if len(terms.parents) > CLASSES_MAX:
                raise BadOntology(
                    f"{where} names more than {CLASSES_MAX} classes",
                    remedy="Load the part that your messages use.",
                )
        terms.prefixes.update(_fit_prefixes(parser.prefixes))
    except SyntaxError as error:
        place = f" line {error.lineno}" if error.lineno else ""
        raise BadOntology(
            f"{where}{place} is not valid Turtle: {error.msg}",
            remedy="Fix the file, or do not load it.",
        ) from None
    except (ValueError, OSError) as error:
        raise BadOntology(f"{where} is not valid Turtle: {error}", remedy="Fix the file.") from None
    return terms


def _take(terms: Terms, subject: str, what: str, value: object) -> None:
    if what == _A and isinstance(value, NamedNode) and value.value in _CLASS:
        terms.add(subject)
    elif what == _SUBCLASS and isinstance(value, NamedNode):
        terms.add(subject)[value.value] = None
        terms.add(value.value)
    elif what == _SAME and isinstance(value, NamedNode):
        terms.add(subject)[value.value] = None
        terms.add(value.value)[subject] = None
    elif what in _WORDS and isinstance(value, NamedNode | Literal):
        terms.words.setdefault(subject, {}).setdefault(_WORDS[what], value.value)


def _fit_prefixes(prefixes: Mapping[str, str]) -> dict[str, str]:
    """Without the nameless prefix: a name that begins with a colon is nobody's."""
    return {prefix: namespace for prefix, namespace in prefixes.items() if prefix}

"""PROV-O (W3C Recommendation, 30 April 2013) in Turtle, for SPARQL and for graphs.

A relation is written by its plain property, which is what people ask for, and by a qualified one
beside it only where there is more to say than the property can.
"""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.monitor.provenance.chunks import chunks
from tocsin.monitor.provenance.names import Name, prefixes
from tocsin.monitor.provenance.run_statements import statements
from tocsin.monitor.provenance.statements import LABEL, TYPE, Attributes, Role, Statement, Value
from tocsin.monitor.provenance.view import RunView
from tocsin.monitor.provenance.write_n import quoted


def turtle(view: RunView) -> bytes:
    """The provenance of a run as RDF."""
    return b"".join(turtle_chunks(view))


def turtle_chunks(view: RunView) -> Iterator[bytes]:
    """The same, piece by piece."""
    return chunks(_pieces(view))


def _pieces(view: RunView) -> Iterator[str]:
    for prefix, iri in prefixes(view.run.id, view.run.workflow).items():
        yield f"@prefix {prefix}: <{iri}> .\n"
    yield "\n"
    for statement in statements(view):
        yield _element(statement) if statement.kind.is_element else _relation(statement)


def _element(statement: Statement) -> str:
    filled = zip(statement.kind.roles, statement.places, strict=True)
    properties = [f"prov:{role.property} {_object(role, place)}" for role, place in filled if place]
    kinds, rest = _described(statement.kind.influence, statement.attributes)
    return f"{statement.name} " + " ;\n    ".join([kinds, *properties, *rest]) + " .\n"


def _relation(statement: Statement) -> str:
    kind = statement.kind
    subject, obj, *_ = statement.places
    properties = [f"prov:{kind.other_property or kind.keyword} {obj}"] if obj is not None else []
    is_more = any(place is not None for place in statement.places[2:])
    if is_more or statement.attributes or kind.is_always_qualified:
        properties.append(f"prov:qualified{kind.influence} {_influence(statement)}")
    return f"{subject} " + " ;\n    ".join(properties) + " .\n"


def _influence(statement: Statement) -> str:
    filled = list(zip(statement.kind.roles, statement.places, strict=True))[1:]
    properties = [f"prov:{role.property} {_object(role, place)}" for role, place in filled if place]
    kinds, rest = _described(statement.kind.influence, statement.attributes)
    return "[ " + " ; ".join([kinds, *properties, *rest]) + " ]"


def _described(kind: str, attributes: Attributes) -> tuple[str, list[str]]:
    """What it is, and its other properties."""
    kinds = {f"prov:{kind}": None}
    rest: list[str] = []
    for name, value in attributes:
        if name == TYPE:
            kinds[str(value)] = None
        else:
            rest.append(f"{'rdfs:label' if name == LABEL else name} {_value(value)}")
    return f"a {', '.join(kinds)}", rest


def _object(role: Role, place: Name | str) -> str:
    return f'"{place}"^^xsd:dateTime' if role.is_time else str(place)


def _value(value: Value) -> str:
    if isinstance(value, Name):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    kind = "xsd:integer" if isinstance(value, int) else "xsd:double"
    return f'"{value!r}"^^{kind}'

"""PROV-JSON (W3C Member Submission, 24 April 2013)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tocsin.monitor.provenance.chunks import chunks
from tocsin.monitor.provenance.names import Name, prefixes
from tocsin.monitor.provenance.run_statements import statements
from tocsin.monitor.provenance.statements import Statement, Value
from tocsin.monitor.provenance.view import RunView


def prov_json(view: RunView) -> bytes:
    """The provenance of a run as one JSON object."""
    return b"".join(prov_json_chunks(view))


def prov_json_chunks(view: RunView) -> Iterator[bytes]:
    """The same, piece by piece."""
    return chunks(_pieces(view))


def _pieces(view: RunView) -> Iterator[str]:
    yield f'{{"prefix":{_json(prefixes(view.run.id, view.run.workflow))}'
    keyword = ""
    for number, statement in enumerate(statements(view)):
        if statement.kind.keyword != keyword:
            yield "}," if keyword else ","
            keyword = statement.kind.keyword
            yield f"\n{_json(keyword)}:{{\n"
        else:
            yield ",\n"
        # Relations have no name; the member's is only good within this document.
        name = str(statement.name) if statement.name else f"_:id{number}"
        yield f"{_json(name)}:{_json(_members(statement))}"
    yield "}}\n" if keyword else "}\n"


def _members(statement: Statement) -> dict[str, object]:
    members: dict[str, object] = {
        f"prov:{role.member}": str(place)
        for role, place in zip(statement.kind.roles, statement.places, strict=True)
        if place is not None
    }
    several: dict[str, list[object]] = {}
    for attribute, value in statement.attributes:
        several.setdefault(str(attribute), []).append(_value(value))
    for attribute_name, values in several.items():
        members[attribute_name] = values[0] if len(values) == 1 else values
    return members


def _value(value: Value) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, Name):
        return {"$": str(value), "type": "prov:QUALIFIED_NAME"}
    if isinstance(value, bool):
        return {"$": "true" if value else "false", "type": "xsd:boolean"}
    kind = "xsd:integer" if isinstance(value, int) else "xsd:double"
    return {"$": repr(value), "type": kind}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()

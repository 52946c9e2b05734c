"""PROV-N (W3C Recommendation, 30 April 2013), for people and for other programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tocsin.monitor.provenance.chunks import chunks
from tocsin.monitor.provenance.names import Name, prefixes
from tocsin.monitor.provenance.run_statements import statements
from tocsin.monitor.provenance.statements import Statement, Value
from tocsin.monitor.provenance.view import RunView

# The notation knows these by itself, and forbids to declare them.
_KNOWN: Final = frozenset({"prov", "xsd"})
_ESCAPES: Final = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
}
_ESCAPED: Final = re.compile(r'[\\"\n\r\t\x08\f]')


def prov_n(view: RunView) -> bytes:
    """The provenance of a run, a statement a line."""
    return b"".join(prov_n_chunks(view))


def prov_n_chunks(view: RunView) -> Iterator[bytes]:
    """The same, piece by piece."""
    return chunks(_pieces(view))


def _pieces(view: RunView) -> Iterator[str]:
    yield "document\n"
    for prefix, iri in prefixes(view.run.id, view.run.workflow).items():
        if prefix not in _KNOWN:
            yield f"  prefix {prefix} <{iri}>\n"
    yield "\n"
    for statement in statements(view):
        yield f"  {_line(statement)}\n"
    yield "endDocument\n"


def _line(statement: Statement) -> str:
    places = [str(place) if place is not None else "-" for place in statement.places]
    if statement.name is not None:
        places.insert(0, str(statement.name))
    if statement.attributes:
        pairs = ", ".join(f"{name}={_value(value)}" for name, value in statement.attributes)
        places.append(f"[{pairs}]")
    return f"{statement.kind.keyword}({', '.join(places)})"


def _value(value: Value) -> str:
    if isinstance(value, Name):
        return f"'{value}'"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return f'"{"true" if value else "false"}" %% xsd:boolean'
    kind = "xsd:integer" if isinstance(value, int) else "xsd:double"
    return f'"{value!r}" %% {kind}'


def quoted(text: str) -> str:
    """The text as a string on one line; so it is spelled in PROV-N and in Turtle."""
    return '"' + _ESCAPED.sub(lambda found: _ESCAPES[found[0]], text) + '"'

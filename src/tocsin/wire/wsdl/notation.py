"""A short notation for XML Schema, in which this package writes down the messages it serves.

The content of an element is a text of one particle a line:

    Filter?  b:FilterType            an element, with ? * + for how often, and its type
    TerminationTime  xs:dateTime nil an element that may be xsi:nil
    Demand?  xs:boolean =false       an element with a default
    =b:Topic?                        a global element, by reference
    any* / other*                    elements of any, or of any other, namespace (never judged)
    @Dialect!  xs:anyURI             an attribute; ! if it must be there
    @=xml:lang                       a global attribute, by reference
    @*                               attributes of other namespaces
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import quoteattr

XS: Final = "http://www.w3.org/2001/XMLSchema"

_TIMES: Final = {
    "?": ' minOccurs="0"',
    "*": ' minOccurs="0" maxOccurs="unbounded"',
    "+": ' maxOccurs="unbounded"',
}
_ANY_ATTRIBUTE: Final = '<xs:anyAttribute namespace="##other" processContents="lax"/>'


@dataclass(frozen=True, slots=True)
class Schema:
    """One namespace's schema: the name it is served under, and what it declares."""

    name: str
    prefix: str
    namespace: str
    declarations: tuple[str, ...]
    imports: tuple[Schema, ...] = ()

    def text(self) -> str:
        """The schema document; its imports are addressed beside it."""
        bound = {self.prefix: self.namespace, **{s.prefix: s.namespace for s in self.imports}}
        # The prefix xml is bound by XML itself, and may be bound to nothing else.
        bindings = "".join(f' xmlns:{p}="{uri}"' for p, uri in bound.items() if p != "xml")
        imports = "".join(
            f'<xs:import namespace="{s.namespace}" schemaLocation="{location(s.name)}"/>\n'
            for s in self.imports
        )
        return (
            f'<xs:schema xmlns:xs="{XS}"{bindings} targetNamespace="{self.namespace}" '
            f'elementFormDefault="qualified">\n{imports}'
            + "\n".join(self.declarations)
            + "\n</xs:schema>\n"
        )


def location(name: str) -> str:
    """Where a schema is, seen from any other document of this door."""
    return f"soap?xsd={name}"


def element(name: str, kind: str) -> str:
    """A global element of a named type."""
    return f'<xs:element name="{name}" type="{kind}"/>'


def message(name: str, content: str = "", *, mixed: bool = False) -> str:
    """A global element with content of its own."""
    return f'<xs:element name="{name}">{_complex("", content, mixed=mixed)}</xs:element>'


def record(name: str, content: str, *, mixed: bool = False) -> str:
    """A named type."""
    return _complex(f' name="{name}"', content, mixed=mixed)


def text(name: str, base: str, attributes: str = "@*") -> str:
    """A named type of text that carries attributes."""
    return (
        f'<xs:complexType name="{name}"><xs:simpleContent><xs:extension base="{base}">'
        f"{_attributes(_lines(attributes))}"
        "</xs:extension></xs:simpleContent></xs:complexType>"
    )


def derived(name: str, base: str, content: str = "") -> str:
    """A global element of the type `base` with something added at its end."""
    lines = _lines(content)
    return (
        f'<xs:element name="{name}"><xs:complexType><xs:complexContent>'
        f'<xs:extension base="{base}">{_sequence(lines)}{_attributes(lines)}</xs:extension>'
        "</xs:complexContent></xs:complexType></xs:element>"
    )


def union(name: str, *members: str) -> str:
    """A named type that is any of some simple ones."""
    return (
        f'<xs:simpleType name="{name}"><xs:union memberTypes="{" ".join(members)}"/>'
        "</xs:simpleType>"
    )


def restriction(name: str, base: str, facets: Iterable[tuple[str, str]]) -> str:
    """A named simple type narrowed by facets: (minInclusive, value), (enumeration, value)..."""
    inner = "".join(f"<xs:{facet} value={quoteattr(value)}/>" for facet, value in facets)
    return (
        f'<xs:simpleType name="{name}"><xs:restriction base="{base}">{inner}</xs:restriction>'
        "</xs:simpleType>"
    )


def unordered(name: str, content: str) -> str:
    """A global element whose children may come in any order."""
    lines = _lines(content)
    inner = "".join(_particle(line) for line in lines if not line.startswith("@"))
    return (
        f'<xs:element name="{name}"><xs:complexType><xs:all>{inner}</xs:all>'
        f"{_attributes(lines)}</xs:complexType></xs:element>"
    )


def _lines(content: str) -> list[str]:
    return [line.strip() for line in content.splitlines() if line.strip()]


def _complex(name: str, content: str, *, mixed: bool) -> str:
    lines = _lines(content)
    mixture = ' mixed="true"' if mixed else ""
    return f"<xs:complexType{name}{mixture}>{_sequence(lines)}{_attributes(lines)}</xs:complexType>"


def _sequence(lines: list[str]) -> str:
    inner = "".join(_particle(line) for line in lines if not line.startswith("@"))
    return f"<xs:sequence>{inner}</xs:sequence>" if inner else ""


def _attributes(lines: list[str]) -> str:
    declared = [line[1:] for line in lines if line.startswith("@") and line != "@*"]
    return "".join(map(_attribute, declared)) + (_ANY_ATTRIBUTE if "@*" in lines else "")


def _attribute(line: str) -> str:
    if line.startswith("="):
        return f'<xs:attribute ref="{line[1:]}"/>'
    name, kind = line.split()
    use = ' use="required"' if name.endswith("!") else ""
    return f'<xs:attribute name="{name.rstrip("!")}" type="{kind}"{use}/>'


def _particle(line: str) -> str:
    name, *rest = line.split()
    times = _TIMES.get(name[-1], "")
    name = name[:-1] if times else name
    if name in ("any", "other"):
        return f'<xs:any namespace="##{name}" processContents="lax"{times}/>'
    if name.startswith("="):
        return f'<xs:element ref="{name[1:]}"{times}/>'
    kind, *words = rest
    nillable = ' nillable="true"' if "nil" in words else ""
    default = "".join(f' default="{word[1:]}"' for word in words if word.startswith("="))
    return f'<xs:element name="{name}" type="{kind}"{times}{nillable}{default}/>'

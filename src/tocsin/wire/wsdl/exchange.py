"""WS-MetadataExchange, of 2004/09 and of 2011/03: what a client asks of a service that it knows
nothing of. The metadata there is are the WSDL documents and the schemas of `GET /soap?wsdl`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree

from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import escaped, quoted
from tocsin.wire.soap.names import MEX04, MEX11, TOCSIN
from tocsin.wire.wsdl.documents import WSDL, schema, schemas, services, wsdl

Element = etree._Element

XS: Final = "http://www.w3.org/2001/XMLSchema"
GET_METADATA: Final = "GetMetadata"
_ROOTS: Final = {WSDL: "definitions", XS: "schema"}  # 2011/03 names a dialect by its root element
_URI_CONTENT: Final = f"{MEX11}/Content/URI"


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """One kind of metadata that is asked for; what is None is not asked for in particular."""

    dialect: str | None = None  # the namespace of its documents
    identifier: str | None = None  # the target namespace of one
    as_address: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One document."""

    dialect: str
    identifier: str
    address: str
    content: bytes


def read_get_metadata(envelope: Envelope) -> tuple[MetadataRequest, ...]:
    """What GetMetadata of either version asks for."""
    element = envelope.message
    if split(element.tag)[0] == MEX04:
        dialect = element.findtext(f"{{{MEX04}}}Dialect")
        identifier = element.findtext(f"{{{MEX04}}}Identifier")
        return (MetadataRequest(_stripped(dialect), _stripped(identifier)),)
    content = element.get("Content", "")
    asked = tuple(
        MetadataRequest(
            _dialect_of(child),
            child.get("Identifier"),
            child.get("Content", content).strip() == _URI_CONTENT,
        )
        for child in elements(element)
        if split(child.tag) == (MEX11, "Dialect")
    )
    return asked or (MetadataRequest(as_address=content.strip() == _URI_CONTENT),)


def _stripped(text: str | None) -> str | None:
    return None if text is None else text.strip() or None


def _dialect_of(element: Element) -> str:
    """The namespace of a dialect: 2011/03 writes the name of a root element, many write a URI."""
    written = (element.get("Type") or text_of(element)).strip()
    prefix, colon, _ = written.partition(":")
    return element.nsmap.get(prefix, written) if colon else element.nsmap.get(None, written)


def metadata(asked: tuple[MetadataRequest, ...], namespace: str, base: str) -> bytes:
    """The answer in the version of the namespace; no section for what there is not."""
    found = b""
    for wanted in asked:
        for section in _sections(base):
            if wanted.dialect in (None, section.dialect) and wanted.identifier in (
                None,
                section.identifier,
            ):
                found += _written(section, namespace, as_address=wanted.as_address)
    inside = b'<mex:Metadata xmlns:mex="%b">%b</mex:Metadata>' % (namespace.encode(), found)
    if namespace == MEX04:
        return inside
    start = b'<mex:GetMetadataResponse xmlns:mex="%b">' % namespace.encode()
    return start + inside + b"</mex:GetMetadataResponse>"


def response_action(namespace: str) -> str:
    """What wsa:Action says of the answer."""
    end = "GetMetadata/Response" if namespace == MEX04 else "GetMetadataResponse"
    return f"{namespace}/{end}"


def _sections(base: str) -> Iterator[Section]:
    """The document of all services, that of each, and their schemas."""
    whole = wsdl(base)
    assert whole is not None
    yield Section(WSDL, f"{TOCSIN}:wsdl", f"{base}/soap?wsdl", _undeclared(whole))
    for name in services():
        document = wsdl(base, name)
        assert document is not None
        address = f"{base}/soap?wsdl={name}"
        yield Section(WSDL, f"{TOCSIN}:wsdl:{name}", address, _undeclared(document))
    for name, target in schemas().items():
        text = schema(name)
        assert text is not None
        yield Section(XS, target, f"{base}/soap?xsd={name}", _undeclared(text))


def _undeclared(document: bytes) -> bytes:
    """A document as it may stand inside of another: without the XML declaration."""
    return document.partition(b"?>")[2] if document.startswith(b"<?xml") else document


def _written(section: Section, namespace: str, *, as_address: bool) -> bytes:
    dialect = b'"%b"' % quoted(section.dialect)
    if namespace == MEX11:
        dialect = b'"d:%b" xmlns:d=%b' % (_ROOTS[section.dialect].encode(), dialect)
    content = section.content
    if as_address:
        content = b"<mex:Location>%b</mex:Location>" % escaped(section.address)
    return b'<mex:MetadataSection Dialect=%b Identifier="%b">%b</mex:MetadataSection>' % (
        dialect,
        quoted(section.identifier),
        content,
    )

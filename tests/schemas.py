"""The published schemas of the Web-services specifications, as judges of what we send.

`validator("wsn13")(message)` raises `AssertionError` unless the SOAP envelope, or the bare body
element, is what that specification's schema describes: the envelope itself, the header blocks of
the specification and of WS-Addressing, the body's content, a fault's details.

The schemas are read from ../shared, or from packages that carry some of them; nothing touches the
network. Specifications whose schema was never published here (`OWN`) are judged by our own.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lxml import etree

ROOT = Path(__file__).parent.parent
PUBLISHED = ROOT.parent / "shared" / "data" / "ws" / "fixtures"
CAPTURES = ROOT / "tests" / "captures" / "ws"

XS = "http://www.w3.org/2001/XMLSchema"
XML = "http://www.w3.org/XML/1998/namespace"
XSI_TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
SOAP_11 = "http://schemas.xmlsoap.org/soap/envelope/"
SOAP_12 = "http://www.w3.org/2003/05/soap-envelope"
WSA_2003 = "http://schemas.xmlsoap.org/ws/2003/03/addressing"
WSA_2004_03 = "http://schemas.xmlsoap.org/ws/2004/03/addressing"
WSA_2004_08 = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
WSA_2005 = "http://www.w3.org/2005/08/addressing"
WSAS = (WSA_2003, WSA_2004_03, WSA_2004_08, WSA_2005)

Validator = Callable[[bytes | etree._Element], None]


@dataclass(frozen=True, slots=True)
class Source:
    """Files of one specification: a directory of ../shared, else a package's directory."""

    shared: str
    files: tuple[str, ...]
    package: str = ""
    package_dir: str = ""
    package_files: tuple[str, ...] = ()

    def paths(self) -> list[Path]:
        """The files that are there; empty if the specification cannot be had whole or in part."""
        shared = [PUBLISHED / self.shared / name for name in self.files]
        if all(path.exists() for path in shared):
            return shared
        found = importlib.util.find_spec(self.package) if self.package else None
        if found is None or found.origin is None:
            return []
        directory = Path(found.origin).parent / self.package_dir
        paths = [directory / name for name in self.package_files or self.files]
        return [path for path in paths if path.exists()]


SOURCES = {
    "wse04": Source("wse2004_dpws", ("eventing.xsd", "ws-addr.xsd"), "sdc11073", "xsd"),
    "wse11": Source("wse2011_w3c", ("eventing.xsd", "ws-addr.xsd")),
    "wsn13": Source(
        "wsn13_oasis",
        ("b-2.xsd", "br-2.xsd", "t-1.xsd", "bf-2.xsd", "r-2.xsd", "rp-2.xsd", "ws-addr.xsd"),
        "onvif",
        "wsdl",
    ),
    "wsn12": Source(
        "wsn12_gt4",
        (
            "wsrf/notification/WS-BaseN.xsd",
            "wsrf/notification/WS-BaseN.wsdl",
            "wsrf/notification/WS-Topics.xsd",
            "wsrf/lifetime/WS-ResourceLifetime.xsd",
            "wsrf/lifetime/WS-ResourceLifetime.wsdl",
            "wsrf/properties/WS-ResourceProperties.xsd",
            "wsrf/properties/WS-ResourceProperties.wsdl",
            "wsrf/faults/WS-BaseFaults.xsd",
        ),
    ),
    "wsen": Source("wsn12_gt4", ("ws/enumeration/enumeration.xsd",)),
    "wsrm10": Source("wsrm", ("wsrm-1.0.xsd",)),
    "wsrm11": Source("wsrm", ("wsrm-1.1.xsd",)),
    "onvif": Source(
        "",
        ("events.wsdl",),
        "onvif",
        "wsdl",
        (
            "events.wsdl",
            "devicemgmt.wsdl",
            "onvif.xsd",
            "b-2.xsd",
            "bf-2.xsd",
            "t-1.xsd",
            "r-2.xsd",
            "ws-addr.xsd",
        ),
    ),
    "wsdl": Source("", ("wsdl.xsd",), "sdc11073", "xsd"),
    "soap12": Source("wse2004_dpws", ("soap-envelope.xsd",), "sdc11073", "xsd"),
}

_XML_ATTRIBUTES = f"""<xs:schema xmlns:xs="{XS}" targetNamespace="{XML}">
<xs:attribute name="lang" type="xs:string"/><xs:attribute name="base" type="xs:anyURI"/>
<xs:attribute name="space" type="xs:NCName"/><xs:attribute name="id" type="xs:ID"/></xs:schema>"""

# What onvif.xsd borrows from schemas that its package does not carry.
_XMIME = f"""<xs:schema xmlns:xs="{XS}" targetNamespace="http://www.w3.org/2005/05/xmlmime">
<xs:attribute name="contentType" type="xs:string"/></xs:schema>"""
_XOP = f"""<xs:schema xmlns:xs="{XS}" targetNamespace="http://www.w3.org/2004/08/xop/include">
<xs:element name="Include"/></xs:schema>"""

SOAP_11_SCHEMA = f"""<xs:schema xmlns:xs="{XS}" targetNamespace="{SOAP_11}" xmlns:s="{SOAP_11}"
    elementFormDefault="unqualified">
<xs:element name="Envelope" type="s:Envelope"/>
<xs:complexType name="Envelope"><xs:sequence>
  <xs:element ref="s:Header" minOccurs="0"/><xs:element ref="s:Body"/>
</xs:sequence><xs:anyAttribute namespace="##other" processContents="lax"/></xs:complexType>
<xs:complexType name="Blocks"><xs:sequence>
  <xs:any namespace="##any" processContents="lax" minOccurs="0" maxOccurs="unbounded"/>
</xs:sequence><xs:anyAttribute namespace="##any" processContents="lax"/></xs:complexType>
<xs:element name="Header" type="s:Blocks"/><xs:element name="Body" type="s:Blocks"/>
<xs:element name="Fault" type="s:Fault"/>
<xs:complexType name="Fault"><xs:sequence>
  <xs:element name="faultcode" type="xs:QName"/><xs:element name="faultstring" type="xs:string"/>
  <xs:element name="faultactor" type="xs:anyURI" minOccurs="0"/>
  <xs:element name="detail" type="s:Blocks" minOccurs="0"/>
</xs:sequence></xs:complexType>
<xs:attribute name="mustUnderstand"><xs:simpleType><xs:restriction base="xs:boolean">
  <xs:pattern value="0|1"/></xs:restriction></xs:simpleType></xs:attribute>
<xs:attribute name="actor" type="xs:anyURI"/>
<xs:attribute name="encodingStyle" type="xs:anyURI"/></xs:schema>"""


def _older_addressing(namespace: str) -> str:
    """WS-Addressing before 2005, as wide as its three drafts together: Globus sends the reference
    parameters of 2004/08 under the namespace of 2004/03."""
    return f"""<xs:schema xmlns:xs="{XS}" targetNamespace="{namespace}" xmlns:a="{namespace}"
    elementFormDefault="qualified">
<xs:complexType name="Uri"><xs:simpleContent><xs:extension base="xs:anyURI">
  <xs:anyAttribute namespace="##other" processContents="lax"/></xs:extension></xs:simpleContent>
</xs:complexType>
<xs:complexType name="Name"><xs:simpleContent><xs:extension base="xs:QName">
  <xs:attribute name="PortName" type="xs:NCName"/>
  <xs:anyAttribute namespace="##other" processContents="lax"/></xs:extension></xs:simpleContent>
</xs:complexType>
<xs:complexType name="References"><xs:sequence>
  <xs:any processContents="lax" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>
</xs:complexType>
<xs:complexType name="EndpointReferenceType"><xs:sequence>
  <xs:element name="Address" type="a:Uri"/>
  <xs:element name="ReferenceProperties" type="a:References" minOccurs="0"/>
  <xs:element name="ReferenceParameters" type="a:References" minOccurs="0"/>
  <xs:element name="PortType" type="a:Name" minOccurs="0"/>
  <xs:element name="ServiceName" type="a:Name" minOccurs="0"/>
  <xs:any namespace="##other" processContents="lax" minOccurs="0" maxOccurs="unbounded"/>
</xs:sequence><xs:anyAttribute namespace="##other" processContents="lax"/></xs:complexType>
<xs:element name="EndpointReference" type="a:EndpointReferenceType"/>
<xs:element name="From" type="a:EndpointReferenceType"/>
<xs:element name="ReplyTo" type="a:EndpointReferenceType"/>
<xs:element name="FaultTo" type="a:EndpointReferenceType"/>
<xs:element name="MessageID" type="a:Uri"/><xs:element name="To" type="a:Uri"/>
<xs:element name="Action" type="a:Uri"/>
<xs:element name="RelatesTo"><xs:complexType><xs:simpleContent><xs:extension base="xs:anyURI">
  <xs:attribute name="RelationshipType" type="xs:QName"/>
  <xs:anyAttribute namespace="##other" processContents="lax"/></xs:extension></xs:simpleContent>
</xs:complexType></xs:element>
<xs:element name="RetryAfter" type="xs:nonNegativeInteger"/>
<xs:element name="ProblemHeaderQName" type="a:Name"/>
</xs:schema>"""


def _schemas_in(path: Path) -> Iterator[etree._Element]:
    """The schemas of a file: it is one, or it is a WSDL that holds some."""
    parser = etree.XMLParser(no_network=True, load_dtd=False, resolve_entities=False)
    root = etree.parse(str(path), parser).getroot()
    for schema in [root] if root.tag == f"{{{XS}}}schema" else root.iter(f"{{{XS}}}schema"):
        yield etree.fromstring(etree.tostring(schema), parser)


class Catalogue(etree.Resolver):
    """Schemas by target namespace; every import is answered from here, whatever it says."""

    def __init__(self, schemas: list[etree._Element]) -> None:
        super().__init__()
        self.documents: dict[str, bytes] = {}
        self.namespaces: dict[str, list[str]] = {}
        for number, schema in enumerate(schemas):
            self.namespaces.setdefault(schema.get("targetNamespace", ""), []).append(
                f"doc:{number}"
            )
        for number, schema in enumerate(schemas):
            self.documents[f"doc:{number}"] = self._with_own_locations(schema)
        for number, (namespace, names) in enumerate(self.namespaces.items()):
            includes = "".join(f'<xs:include schemaLocation="{name}"/>' for name in names)
            self.documents[f"ns:{number}"] = (
                f'<xs:schema xmlns:xs="{XS}" targetNamespace="{namespace}">{includes}</xs:schema>'
            ).encode()

    def _location(self, namespace: str) -> str:
        return f"ns:{list(self.namespaces).index(namespace)}"

    def _with_own_locations(self, schema: etree._Element) -> bytes:
        for include in schema.findall(f"{{{XS}}}include"):
            schema.remove(include)
        # A strict wildcard asks for a schema of every payload, which nobody has.
        for wildcard in schema.iter(f"{{{XS}}}any"):
            wildcard.set("processContents", "lax")
        for imported in schema.findall(f"{{{XS}}}import"):
            namespace = imported.get("namespace", "")
            if namespace in self.namespaces:
                imported.set("schemaLocation", self._location(namespace))
            else:
                schema.remove(imported)
        return etree.tostring(schema)

    def resolve(self, system_url: str | None, public_id: str | None, context: object) -> object:
        document = self.documents.get(system_url or "", b"")
        assert document, f"a schema asks for {system_url}, which is not at hand"
        return self.resolve_string(document, context, base_url=system_url)

    def compiled(self) -> etree.XMLSchema:
        imports = "".join(
            f'<xs:import namespace="{namespace}" schemaLocation="{self._location(namespace)}"/>'
            for namespace in self.namespaces
        )
        parser = etree.XMLParser(no_network=True)
        parser.resolvers.add(self)
        driver = etree.fromstring(f'<xs:schema xmlns:xs="{XS}">{imports}</xs:schema>', parser)
        return etree.XMLSchema(driver)


def _bound_to(schema: etree._Element, wsa: str) -> etree._Element:
    """The schema with its endpoint references in another WS-Addressing."""
    if schema.get("targetNamespace") in WSAS:
        return schema
    text = etree.tostring(schema)
    for other in WSAS:
        text = text.replace(f'"{other}"'.encode(), f'"{wsa}"'.encode())
    return etree.fromstring(text)


def catalogue(schemas: list[etree._Element], wsa: str) -> Catalogue:
    """The schemas bound to one WS-Addressing, with what they all borrow."""
    bound = [_bound_to(schema, wsa) for schema in schemas]
    kept = [s for s in bound if s.get("targetNamespace") not in set(WSAS) - {wsa}]
    targets = {schema.get("targetNamespace") for schema in kept}
    if wsa not in targets:
        kept.append(etree.fromstring(_older_addressing(wsa)))
    borrowed = map(etree.fromstring, (_XML_ATTRIBUTES, _XMIME, _XOP, SOAP_11_SCHEMA))
    return Catalogue([*kept, *(s for s in borrowed if s.get("targetNamespace") not in targets)])


def own_schemas(kind: str) -> list[etree._Element]:
    """Our own schemas, which the broker serves, for a service of `tocsin.wire.wsdl`."""
    from tocsin.wire.wsdl import schema, wsdl

    document = wsdl("http://broker.example", kind)
    assert document is not None
    found: dict[str, etree._Element] = {}
    waiting = [etree.fromstring(document)]
    while waiting:
        for imported in waiting.pop().iter(f"{{{XS}}}import"):
            name = imported.get("schemaLocation", "").partition("?xsd=")[2]
            if name not in found:
                text = schema(name)
                assert text is not None, f"no schema is served as {name}"
                found[name] = etree.fromstring(text)
                waiting.append(found[name])
    return list(found.values())


OWN = ("wsn10", "msgbox", "wsman")
# What no package carries: without ../shared, messages of these namespaces are not judged.
SHARED_ONLY = ("http://docs.oasis-open.org/wsn/br-2", "http://docs.oasis-open.org/wsrf/rp-2")


def missing(kind: str) -> str | None:
    """Why there is no validator of this kind, or None if there is one."""
    if kind in OWN or SOURCES[kind].paths():
        return None
    return f"the schemas of {kind} are neither in ../shared nor in an installed package"


@functools.cache
def _compiled(kind: str, wsa: str) -> tuple[etree.XMLSchema, frozenset[str]]:
    if kind in OWN:
        schemas = own_schemas(kind)
    else:
        schemas = [schema for path in SOURCES[kind].paths() for schema in _schemas_in(path)]
    found = catalogue(schemas, wsa)
    return found.compiled(), frozenset(found.namespaces)


@functools.cache
def _envelope_schema(soap: str) -> etree.XMLSchema | None:
    if soap == SOAP_11:
        return Catalogue([etree.fromstring(SOAP_11_SCHEMA)]).compiled()
    schemas = [schema for path in SOURCES["soap12"].paths() for schema in _schemas_in(path)]
    return Catalogue([*schemas, etree.fromstring(_XML_ATTRIBUTES)]).compiled() if schemas else None


def validator(kind: str, *, foreign: bool = False) -> Validator:
    """A judge of messages of one specification: wse04, wse11, wsn13, wsn12, wsn10, wsen, wsman,
    msgbox, onvif, wsrm10, wsrm11. With `foreign`, a body of no namespace of the specification (a
    raw delivery) is let pass, and only its envelope judged. Skips the test where the schemas are
    not at hand."""
    reason = missing(kind)
    if reason is not None:
        pytest.skip(reason)
    return functools.partial(_validate, kind, foreign)


def _validate(kind: str, foreign: bool, message: bytes | etree._Element) -> None:
    parser = etree.XMLParser(no_network=True, resolve_entities=False)
    root = etree.fromstring(message, parser) if isinstance(message, bytes) else message
    schema, namespaces = _compiled(kind, _wsa_of(root, kind))
    soap = str(etree.QName(root).namespace)
    contents = [root]
    if soap in (SOAP_11, SOAP_12):
        _judge_envelope(root, soap)
        _judge_header(schema, namespaces, root.iterfind(f"{{{soap}}}Header/*"), soap)
        contents = root.findall(f"{{{soap}}}Body/*")
    for content in contents:
        for element in _judged_parts(content, soap):
            if etree.QName(element).namespace in namespaces:
                _judge(schema, _without_foreign_types(element, namespaces))
            elif element is content and not (foreign or is_unjudged(kind, content)):
                raise AssertionError(f"{content.tag} is no message of {kind}")


def _judge_header(
    schema: etree.XMLSchema,
    namespaces: frozenset[str],
    header: Iterable[etree._Element],
    soap: str,
) -> None:
    for block in header:
        if etree.QName(block).namespace in namespaces:
            _judge(schema, _without_soap_attributes(block, soap))


def is_unjudged(kind: str, content: etree._Element) -> bool:
    """True if the message is of the specification, but its schema is not at hand."""
    return kind == "wsn13" and etree.QName(content).namespace in SHARED_ONLY


def _judged_parts(content: etree._Element, soap: str) -> list[etree._Element]:
    if content.tag != f"{{{soap}}}Fault":
        return [content]
    detail = content.find("detail" if soap == SOAP_11 else f"{{{soap}}}Detail")
    return [] if detail is None else list(detail)


def _wsa_of(root: etree._Element, kind: str) -> str:
    for element in root.iter(*(f"{{{wsa}}}*" for wsa in WSAS)):
        return str(etree.QName(element).namespace)
    return {"wsn12": WSA_2004_03, "wsrm10": WSA_2004_08, "wsen": WSA_2004_08}.get(kind, WSA_2005)


def _without_soap_attributes(block: etree._Element, soap: str) -> etree._Element:
    """The block as its own schema sees it: what SOAP and WS-Addressing put on it is theirs."""
    block = copy.deepcopy(block)
    for name in block.attrib:
        if etree.QName(name).namespace == soap or str(name).endswith("}IsReferenceParameter"):
            del block.attrib[name]
    return block


def _without_foreign_types(element: etree._Element, namespaces: frozenset[str]) -> etree._Element:
    """The element without the xsi:type of payloads, whose types no schema here knows."""
    element = copy.deepcopy(element)
    for inner in element.iter("*"):
        if etree.QName(inner).namespace not in namespaces:
            inner.attrib.pop(XSI_TYPE, None)
    return element


def _judge_envelope(root: etree._Element, soap: str) -> None:
    schema = _envelope_schema(soap)
    if schema is not None:
        _judge(schema, _without_foreign_types(root, frozenset((soap,))))


def _judge(schema: etree.XMLSchema, element: etree._Element) -> None:
    document = etree.ElementTree(copy.deepcopy(element))
    if not schema.validate(document):
        problems = "\n  ".join(str(error.message) for error in schema.error_log)
        raise AssertionError(f"{problems}\nin {etree.tostring(element).decode()[:4000]}")


def capture_body(path: Path) -> bytes:
    """The XML of a recorded HTTP message (its chunks put together) or of an .xml file."""
    data = path.read_bytes()
    if path.suffix != ".http":
        return data
    head, _, body = data.replace(b"\r\n", b"\n").partition(b"\n\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return body.strip()
    start, end = body.index(b"<"), body.rindex(b">") + 1
    return body[start:end]

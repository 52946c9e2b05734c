"""The WSDL and the schemas that the broker serves: loaded, used, and held against the published."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from lxml import etree
from zeep import Client

import schemas
import wsdl_calls
from tocsin.wire import wsdl

WSDL = "{http://schemas.xmlsoap.org/wsdl/}"
XS = f"{{{schemas.XS}}}"
SERVICES = wsdl.services()
OPERATIONS = [
    (service, port, operation.name)
    for service in SERVICES
    for port, operation in wsdl_calls.operations(service)
]
PUBLISHED = {"wsman": "wsen"}  # of WS-Management's messages, Pull is WS-Enumeration's
NEVER_PUBLISHED = ("wsn10", "msgbox")


@pytest.fixture(scope="module")
def clients() -> dict[str, Client]:
    return {service: wsdl_calls.client_from_memory(service) for service in SERVICES}


def _own_judge(service: str, message: etree._Element) -> None:
    wsa = schemas._wsa_of(message, service)
    judge = schemas.catalogue(schemas.own_schemas(service), wsa).compiled()
    schemas._judge(judge, message)


def _written(client: Client, service: str, port: str, operation: str) -> etree._Element:
    """The body that zeep makes from our WSDL."""
    proxy = client.bind(service, port)
    given = wsdl_calls.arguments(service, operation)
    if isinstance(given, dict):
        envelope = client.create_message(proxy, operation, **given)
    else:
        envelope = client.create_message(proxy, operation, given)
    body = envelope.find("{*}Body")
    assert body is not None
    return body[0]


@pytest.mark.parametrize(("service", "port", "operation"), OPERATIONS)
@pytest.mark.parametrize("soap", ["", "12"])
def test_zeep_writes_every_message_as_both_schemas_want_it(
    clients: dict[str, Client], service: str, port: str, operation: str, soap: str
) -> None:
    message = _written(clients[service], service, port + soap, operation)

    _own_judge(service, message)
    published = PUBLISHED.get(service, service)
    if service not in NEVER_PUBLISHED and schemas.missing(published) is None:
        schemas.validator(published)(message)


def test_one_document_offers_all_services() -> None:
    client = wsdl_calls.client_from_memory()

    assert tuple(client.wsdl.services) == SERVICES
    for service, port, operation in OPERATIONS:
        bound = client.wsdl.services[service].ports[port]
        assert operation in bound.binding._operations
        assert bound.binding_options["address"] == f"{wsdl_calls.BASE}/soap"


@pytest.mark.parametrize(("service", "port"), sorted({(s, p) for s, p, _ in OPERATIONS}))
def test_a_port_has_a_document_of_its_own(service: str, port: str) -> None:
    client = wsdl_calls.client_from_memory(f"{service}.{port}")

    assert sorted(client.wsdl.services[service].ports) == [port, f"{port}12"]


@pytest.mark.parametrize(
    "unknown",
    ["wsn14", "wsn13.Producer", ".", "wsn13.PullPoint.x", "../wsn13", "wsn13.PullPoint12"],
)
def test_there_is_no_document_of_an_unknown_name(unknown: str) -> None:
    assert wsdl.wsdl(wsdl_calls.BASE, unknown) is None
    assert wsdl.schema(unknown) is None


def test_an_address_with_an_ampersand_stays_well_formed() -> None:
    document = wsdl.wsdl('http://h/a&b"c', "wsn13")

    assert document is not None
    address = etree.fromstring(document).find(".//{http://schemas.xmlsoap.org/wsdl/soap/}address")
    assert address is not None
    assert address.get("location") == 'http://h/a&b"c/soap'


def test_every_file_is_served_and_every_schema_is_imported_by_a_service() -> None:
    shipped = {file.name for file in files("tocsin.wire.wsdl").joinpath("documents").iterdir()}
    imported = {
        schema.get("targetNamespace") for kind in SERVICES for schema in schemas.own_schemas(kind)
    }

    assert shipped == {f"{s}.wsdl" for s in SERVICES} | {f"{x}.xsd" for x in wsdl.schemas()}
    assert imported == set(wsdl.schemas().values())


@pytest.mark.parametrize("service", SERVICES)
def test_every_message_of_a_service_is_declared_in_its_schemas(service: str) -> None:
    document = wsdl.wsdl(wsdl_calls.BASE, service)
    assert document is not None
    declared = {
        etree.QName(schema.get("targetNamespace"), element.get("name"))
        for schema in schemas.own_schemas(service)
        for element in schema.iterfind(f"{XS}element")
    }

    parts = list(etree.fromstring(document).iter(f"{WSDL}part"))

    assert parts
    for part in parts:
        prefix, _, local = part.get("element", "").partition(":")
        assert etree.QName(part.nsmap[prefix], local) in declared


@pytest.mark.parametrize("service", SERVICES)
def test_our_schemas_compile_with_every_ws_addressing(service: str) -> None:
    for wsa in schemas.WSAS:
        schemas.catalogue(schemas.own_schemas(service), wsa).compiled()


@pytest.mark.parametrize("service", ["", *SERVICES])
def test_a_document_is_what_the_schema_of_wsdl_describes(service: str) -> None:
    document = wsdl.wsdl(wsdl_calls.BASE, service or None)
    assert document is not None

    schemas.validator("wsdl")(document)


# The published WSDLs, held against ours.

PUBLISHED_WSDLS = [
    ("wsn13", schemas.PUBLISHED / "wsn13_oasis" / "bw-2.wsdl"),
    ("wsn13", schemas.PUBLISHED / "wsn13_oasis" / "brw-2.wsdl"),
    ("wsn13", schemas.PUBLISHED / "wsn13_oasis" / "rpw-2.wsdl"),
    ("wsn12", schemas.PUBLISHED / "wsn12_gt4" / "wsrf" / "notification" / "WS-BaseN.wsdl"),
    ("wsman", schemas.PUBLISHED / "wsn12_gt4" / "ws" / "enumeration" / "enumeration.wsdl"),
    ("wse11", schemas.PUBLISHED / "wse2011_w3c" / "eventing.wsdl"),
    *(("onvif", path) for path in schemas.SOURCES["onvif"].paths() if path.suffix == ".wsdl"),
]


def _port_types(document: etree._Element) -> dict[tuple[str, str], dict[str, str]]:
    """For each operation of each port type: its faults, and its actions where it gives some."""
    return {
        (port.get("name", ""), operation.get("name", "")): {
            **{fault.get("name", ""): "" for fault in operation.iterfind(f"{WSDL}fault")},
            **{
                way: str(value)
                for way in ("input", "output")
                for child in operation.iterfind(f"{WSDL}{way}")
                for name, value in child.attrib.items()
                if str(name).endswith("}Action")
            },
        }
        for port in document.iterfind(f"{WSDL}portType")
        for operation in port.iterfind(f"{WSDL}operation")
    }


@pytest.mark.parametrize(("service", "path"), PUBLISHED_WSDLS, ids=lambda x: getattr(x, "name", x))
def test_ports_have_the_published_operations_faults_and_actions(service: str, path: Path) -> None:
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand")
    document = wsdl.wsdl(wsdl_calls.BASE, service)
    assert document is not None
    ours = _port_types(etree.fromstring(document))
    theirs = _port_types(etree.parse(str(path)).getroot())

    shared = ours.keys() & theirs.keys()

    assert shared
    ports = {port for port, _ in shared}
    ours_only = {key for key in ours.keys() - theirs.keys() if key[0] in ports}
    assert not ours_only
    for key in shared:
        said = {name: ours[key].get(name) for name in theirs[key]}
        assert (key, said) == (key, theirs[key])
        assert {n for n in ours[key] if n.endswith("Fault")} <= theirs[key].keys()


@pytest.mark.skipif(not schemas.PUBLISHED.exists(), reason="../shared is not here")
@pytest.mark.parametrize("service", ["wsn13"])
def test_every_port_is_one_of_the_published(service: str) -> None:
    published = {
        key
        for name, path in PUBLISHED_WSDLS
        if name == service
        for key in _port_types(etree.parse(str(path)).getroot())
    }

    assert {(port, operation) for s, port, operation in OPERATIONS if s == service} <= published


# The captures, held against our schemas.

RECORDED = {"gt403": "wsn12", "zeep43": "wsn13", "onvif": "onvif", "sdc11073": "wse04"}
RECORDED["wsmancli"] = "wse04"
CAPTURED = sorted(
    (path.name, service)
    for sender, service in RECORDED.items()
    for path in schemas.CAPTURES.glob(f"{sender}*")
    if "EpisodicMetricReport" not in path.name
)
ORIGINALS = [
    ("wsmessenger02_client_04_req.http", "wsn10"),
    ("wsmessenger02_client_04_resp.http", "wsn10"),
    ("wsmessenger02_client_05_req.http", "wsn10"),
    ("wsmessenger02_delivery_01_Notify.http", "wsn10"),
    ("wsmessenger02_delivery_03_Notify.http", "wsn10"),
    ("wsmessenger02_client_06_req.http", "msgbox"),
    ("wsmessenger02_client_06_resp.http", "msgbox"),
]


@pytest.mark.skipif(not CAPTURED, reason="there are no captures here")
@pytest.mark.parametrize(("name", "service"), CAPTURED + ORIGINALS)
def test_what_a_real_program_sent_is_what_our_schemas_describe(name: str, service: str) -> None:
    envelope = etree.fromstring(schemas.capture_body(schemas.CAPTURES / name))
    body = envelope.find("{*}Body")
    assert body is not None

    for content in body:
        _own_judge(service, content)


# The published schemas, held against ours, element by element.


def _shape(particle: etree._Element, home: schemas.Catalogue) -> list[tuple[str, str, str]]:
    """What may be inside: (name or wildcard, least, most), in order."""
    if particle.tag == f"{XS}element":
        name = particle.get("name") or particle.get("ref", "").rpartition(":")[2]
        return [(name, particle.get("minOccurs", "1"), particle.get("maxOccurs", "1"))]
    if particle.tag == f"{XS}any":
        return [("*", particle.get("minOccurs", "1"), particle.get("maxOccurs", "1"))]
    return [row for child in particle for row in _shape(child, home)]


def _content(element: etree._Element, home: schemas.Catalogue) -> list[tuple[str, str, str]]:
    kind = element.get("type")
    if kind is not None and kind.endswith(":anyType"):
        return [("*", "0", "unbounded")]
    if kind is None:
        found = element.find(f"{XS}complexType")
    else:
        found = _find(home, element, kind, "complexType")
    return [] if found is None else _content_of_type(found, home)


def _content_of_type(found: etree._Element, home: schemas.Catalogue) -> list[tuple[str, str, str]]:
    inherited: list[tuple[str, str, str]] = []
    base = found.find(f"{XS}complexContent/{XS}extension")
    if base is not None:
        parent = _find(home, base, base.get("base", ""), "complexType")
        inherited = [] if parent is None else _content_of_type(parent, home)
    groups = list(found.iter(f"{XS}sequence", f"{XS}choice", f"{XS}all"))[:1]
    return inherited + [row for group in groups for row in _shape(group, home)]


def _find(
    home: schemas.Catalogue, at: etree._Element, name: str, tag: str
) -> etree._Element | None:
    prefix, _, local = name.rpartition(":")
    namespace = at.nsmap.get(prefix or None, "")
    if namespace in schemas.WSAS:  # an endpoint reference is one in every version
        return None
    for document in home.namespaces.get(namespace, []):
        for found in etree.fromstring(home.documents[document]).iterfind(f"{XS}{tag}"):
            if found.get("name") == local:
                return found
    return None


def _elements(home: schemas.Catalogue) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
    return {
        (namespace, element.get("name", "")): _content(element, home)
        for namespace, documents in home.namespaces.items()
        for document in documents
        for element in etree.fromstring(home.documents[document]).iterfind(f"{XS}element")
    }


# Where ours is deliberately other than theirs.
EXPRESSIONS = {  # text only, because tools write no text into mixed content
    "TopicExpression", "Topic", "ProducerProperties", "MessageContent", "QueryExpression",
    "Precondition", "Selector",
}  # fmt: skip
WIDER = {
    "EnumerationContext",  # WS-Management sends it in SubscribeResponse, so it is global
    "Capabilities",
}


@pytest.mark.parametrize("service", [s for s in SERVICES if s not in NEVER_PUBLISHED])
def test_each_of_our_elements_has_the_published_content_in_the_published_order(
    service: str,
) -> None:
    published = PUBLISHED.get(service, service)
    if (reason := schemas.missing(published)) is not None:
        pytest.skip(reason)
    wsa = schemas.WSA_2005
    theirs = _elements(
        schemas.catalogue(
            [s for p in schemas.SOURCES[published].paths() for s in schemas._schemas_in(p)], wsa
        )
    )
    ours = _elements(schemas.catalogue(schemas.own_schemas(service), wsa))
    known = {namespace for namespace, _ in theirs}
    compared = {key: rows for key, rows in ours.items() if key[0] in known}

    assert len(compared) > 5
    for key, rows in compared.items():
        if key[0] != wsa and key[1] not in EXPRESSIONS | WIDER:
            assert (key, rows) == (key, theirs.get(key))

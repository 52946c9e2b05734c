"""What a broker says to requests of other specifications: it answers what clients ask first, and
takes none of them for an event."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator

import pytest
from lxml import etree

import tocsin
from served import Served, served
from soap.notification_peers import post
from tocsin.wire.dime import Decoder, DimeLimits, envelope_message, read_envelope_message
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.envelope import http_headers, write_envelope
from tocsin.wire.soap.names import PROPERTIES12, WSA2005, WSA200408, WSE04, WSMAN, WSMAN_URI

WSMID = "http://schemas.dmtf.org/wbem/wsman/identity/1/wsmanidentity.xsd"
MEX04 = "http://schemas.xmlsoap.org/ws/2004/09/mex"
MEX11 = "http://www.w3.org/2011/03/ws-mex"
WSDL = "http://schemas.xmlsoap.org/wsdl/"
XSD = "http://www.w3.org/2001/XMLSchema"
ENVELOPE12 = "http://www.w3.org/2003/05/soap-envelope"
PATHS = ("/soap", "/wsman", "/onvif/device_service", "/axis2/services/EventingService")


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


def ask(
    broker: Served, path: str, body: str, *, soap: str = "1.2", header: bytes = b""
) -> tuple[int, bytes]:
    message = write_envelope(soap, header=header, body=body.encode())
    return post(f"{broker.url}{path}", message, http_headers(soap, ""))


def head(broker: Served) -> int:
    """The number of the last event."""
    connection = http.client.HTTPConnection(broker.address, timeout=20)
    connection.request("GET", "/events?after=0&limit=1000")
    events = json.loads(connection.getresponse().read())["events"]
    connection.close()
    return len(events)


# Identify


@pytest.mark.parametrize("soap", ["1.1", "1.2"])
@pytest.mark.parametrize("path", [*PATHS, "/wsman-anon/identify"])
def test_identify_is_answered_with_protocol_vendor_and_version(
    broker: Served, path: str, soap: str
) -> None:
    status, answer = ask(broker, path, f'<i:Identify xmlns:i="{WSMID}"/>', soap=soap)

    reported = etree.fromstring(answer).find(f".//{{{WSMID}}}IdentifyResponse")
    assert status == 200
    assert reported is not None
    assert reported.findtext(f"{{{WSMID}}}ProtocolVersion") == WSMAN
    assert reported.findtext(f"{{{WSMID}}}ProductVendor") == "Tocsin"
    assert reported.findtext(f"{{{WSMID}}}ProductVersion") == tocsin.__version__


# Metadata


@pytest.mark.parametrize("path", PATHS)
def test_metadata_of_2004_is_the_wsdl_of_every_service(broker: Served, path: str) -> None:
    status, answer = ask(broker, path, f'<m:GetMetadata xmlns:m="{MEX04}"/>')

    root = etree.fromstring(answer)
    assert status == 200
    assert root.find(f".//{{{ENVELOPE12}}}Body/{{{MEX04}}}Metadata") is not None
    described = {
        str(section.get("Identifier")): section.find(f"{{{WSDL}}}definitions")
        for section in root.iter(f"{{{MEX04}}}MetadataSection")
        if section.get("Dialect") == WSDL
    }
    assert {"urn:tocsin:2026:wsdl", "urn:tocsin:2026:wsdl:wsn13"} <= set(described)
    for namespace, definitions in described.items():
        assert definitions is not None
        assert definitions.get("targetNamespace") == namespace


def test_metadata_of_2011_is_answered_in_its_own_wrapper(broker: Served) -> None:
    asked = (
        f'<m:GetMetadata xmlns:m="{MEX11}" xmlns:w="{WSDL}">'
        '<m:Dialect Type="w:definitions" Identifier="urn:tocsin:2026:wsdl:wsn13"/></m:GetMetadata>'
    )
    header = write_headers(WSA2005, action=f"{MEX11}/GetMetadata", message_id="urn:m:1")

    status, answer = ask(broker, "/soap", asked, header=header)

    root = etree.fromstring(answer)
    sections = root.findall(f".//{{{MEX11}}}GetMetadataResponse/{{{MEX11}}}Metadata/*")
    assert status == 200
    assert root.findtext(f".//{{{WSA2005}}}Action") == f"{MEX11}/GetMetadataResponse"
    [section] = sections
    prefix, _, name = str(section.get("Dialect")).partition(":")
    assert (section.nsmap[prefix], name) == (WSDL, "definitions")
    assert section[0].get("targetNamespace") == "urn:tocsin:2026:wsdl:wsn13"


def test_metadata_may_be_asked_for_by_dialect_and_identifier(broker: Served) -> None:
    def sections(inside: str) -> list[etree._Element]:
        asked = f'<m:GetMetadata xmlns:m="{MEX04}">{inside}</m:GetMetadata>'
        _, answer = ask(broker, "/soap", asked)
        return etree.fromstring(answer).findall(f".//{{{MEX04}}}MetadataSection")

    schemas = sections(f"<m:Dialect>{XSD}</m:Dialect>")
    one = sections(f"<m:Dialect>{XSD}</m:Dialect><m:Identifier>{WSE04}</m:Identifier>")
    none = sections("<m:Dialect>urn:nobodys</m:Dialect>")

    assert len(schemas) > 10
    assert all(each[0].tag == f"{{{XSD}}}schema" for each in schemas)
    assert [each.get("Identifier") for each in one] == [WSE04]
    assert none == []


def test_who_wants_addresses_of_metadata_gets_addresses_that_lead_there(broker: Served) -> None:
    asked = (
        f'<m:GetMetadata xmlns:m="{MEX11}" Content="{MEX11}/Content/URI">'
        f'<m:Dialect xmlns:w="{WSDL}" Type="w:definitions"/></m:GetMetadata>'
    )

    _, answer = ask(broker, "/soap", asked)

    places = [each.text for each in etree.fromstring(answer).iter(f"{{{MEX11}}}Location")]
    assert f"{broker.url}/soap?wsdl=wse04" in places
    connection = http.client.HTTPConnection(broker.address, timeout=20)
    connection.request("GET", "/soap?wsdl=wse04")
    assert b"definitions" in connection.getresponse().read()
    connection.close()


# What is refused

FOREIGN = {
    "ONVIF media": '<t:GetProfiles xmlns:t="http://www.onvif.org/ver10/media/wsdl"/>',
    "ONVIF media 2": '<t:GetProfiles xmlns:t="http://www.onvif.org/ver20/media/wsdl"/>',
    "ONVIF device": '<t:SetHostname xmlns:t="http://www.onvif.org/ver10/device/wsdl"/>',
    "an older WS-Eventing": '<e:Subscribe xmlns:e="http://schemas.xmlsoap.org/ws/2004/01/eventing"/>',
    "a Subscribe of nobody": '<e:Subscribe xmlns:e="urn:nobodys"/>',
    "a Subscribe of no namespace": "<Subscribe/>",
    "WS-Transfer": '<t:Create xmlns:t="http://schemas.xmlsoap.org/ws/2004/09/transfer"/>',
    "WS-Enumeration": '<n:Enumerate xmlns:n="http://schemas.xmlsoap.org/ws/2004/09/enumeration"/>',
    "WS-Discovery": '<d:Hello xmlns:d="http://docs.oasis-open.org/ws-dd/ns/discovery/2009/01"/>',
    "WS-Trust": '<t:RequestSecurityToken xmlns:t="http://docs.oasis-open.org/ws-sx/ws-trust/200512"/>',
    "WSRF": '<p:SetResourceProperties xmlns:p="http://docs.oasis-open.org/wsrf/rp-2"/>',
    "Windows remote shell": '<r:Shell xmlns:r="http://schemas.microsoft.com/wbem/wsman/1/windows/shell"/>',
    "an encrypted body": '<e:EncryptedData xmlns:e="http://www.w3.org/2001/04/xmlenc#"/>',
    "SOAP in SOAP": f'<s:Envelope xmlns:s="{ENVELOPE12}"/>',
}


@pytest.mark.parametrize("path", ["/soap", "/axis2/services/EventingService"])
@pytest.mark.parametrize("body", FOREIGN.values(), ids=FOREIGN)
def test_a_request_of_another_specification_is_refused_and_published_nowhere(
    broker: Served, body: str, path: str
) -> None:
    before = head(broker)
    header = write_headers(WSA200408, action="urn:a", message_id="urn:m:1")

    status, answer = ask(broker, path, body, header=header)

    assert status in (400, 500)
    assert b"ActionNotSupported" in answer
    assert head(broker) == before


def test_an_onvif_client_is_refused_in_the_words_of_onvif(broker: Served) -> None:
    status, answer = ask(broker, "/onvif/device_service", FOREIGN["ONVIF media"])

    subcode = etree.fromstring(answer).find(f".//{{{ENVELOPE12}}}Subcode/{{{ENVELOPE12}}}Value")
    assert subcode is not None
    prefix, _, name = (subcode.text or "").partition(":")
    assert (subcode.nsmap[prefix], name) == (
        "http://www.onvif.org/ver10/error",
        "ActionNotSupported",
    )
    assert status == 500


@pytest.mark.parametrize("path", ["/wsman", "/wsman/topic/a", "/onvif/event_service"])
def test_a_bare_body_is_published_at_soap_and_not_where_other_protocols_live(
    broker: Served, path: str
) -> None:
    before = head(broker)

    status, answer = ask(broker, path, '<a xmlns="urn:mine"/>')

    assert status == 400
    assert b"/soap" in answer
    assert head(broker) == before
    assert ask(broker, "/soap", '<a xmlns="urn:mine"/>')[0] == 202
    assert head(broker) == before + 1


@pytest.mark.parametrize(
    "body",
    [
        '<c:CIM_AlertIndication xmlns:c="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_A"/>',
        '<t:Message xmlns:t="http://www.onvif.org/ver10/schema" UtcTime="2026-01-01T00:00:00Z"/>',
        f'<p:ResourcePropertyValueChangeNotification xmlns:p="{PROPERTIES12}"/>',
        '<m:ManagementEvent xmlns:m="http://docs.oasis-open.org/wsdm/muws1-2.xsd"/>',
        "<Renewal/>",
    ],
)
def test_what_specifications_define_as_the_content_of_events_is_an_event(
    broker: Served, body: str
) -> None:
    before = head(broker)

    assert ask(broker, "/soap", body)[0] == 202
    assert head(broker) == before + 1


def test_an_empty_body_is_refused_by_the_action_that_it_came_with(broker: Served) -> None:
    get = "http://schemas.xmlsoap.org/ws/2004/09/transfer/Get"
    header = write_headers(WSA200408, action=get, message_id="urn:m:1")

    status, answer = ask(broker, "/wsman", "", header=header)

    assert status == 400
    assert b"ActionNotSupported" in answer
    assert b"Get" in answer


def test_a_body_that_belies_the_action_of_a_request_is_no_event(broker: Served) -> None:
    before = head(broker)
    header = write_headers(WSA2005, action=f"{WSE04}/Subscribe", message_id="urn:m:1")

    status, answer = ask(broker, "/soap", '<a xmlns="urn:mine"/>', header=header)

    assert status == 400
    assert b"ActionNotSupported" in answer
    assert head(broker) == before


def test_the_heartbeat_of_a_source_is_taken_and_is_no_event(broker: Served) -> None:
    before = head(broker)
    header = write_headers(WSA200408, action=f"{WSMAN_URI}/Heartbeat", message_id="urn:m:1")
    beat = f'<w:Events xmlns:w="{WSMAN}"><w:Event Action="{WSMAN_URI}/Heartbeat"/></w:Events>'

    assert ask(broker, "/soap", "", header=header)[0] == 202
    assert ask(broker, "/soap", beat, header=header)[0] == 202
    assert head(broker) == before


def test_soap_tcp_refuses_what_http_refuses(broker: Served) -> None:
    before = head(broker)
    body = FOREIGN["ONVIF media"]
    message = write_envelope("1.2", body=body.encode())
    host, _, port = broker.soap_tcp.rpartition(":")
    decoder = Decoder(DimeLimits(1 << 20, 10))

    with socket.create_connection((host, int(port)), timeout=20) as line:
        line.sendall(envelope_message("1.2", message))
        while (answer := decoder.next_message()) is None:
            decoder.receive(line.recv(65536))

    assert b"ActionNotSupported" in read_envelope_message(answer)[1]
    assert head(broker) == before

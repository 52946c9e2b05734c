"""Envelopes, addressing headers, references and faults, in every version."""

from __future__ import annotations

from itertools import product

import pytest
from lxml import etree

from tocsin.errors import BadXml, NoSuchSubscription
from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import (
    EndpointReference,
    anonymous,
    epr_content,
    read_addressing,
    read_epr,
    reference_headers,
    write_headers,
)
from tocsin.wire.soap.detect import detect, http_action
from tocsin.wire.soap.envelope import check_understood, http_headers, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault, fault_action, fault_of, http_status, write_fault

SOAPS = ("1.1", "1.2")
both = pytest.mark.parametrize("soap", SOAPS)
combinations = pytest.mark.parametrize(
    ("soap", "wsa"), list(product(SOAPS, names.WSA_NAMESPACES)), ids=str
)
TAG = b'<k:tag xmlns:k="urn:k">t1</k:tag>'


@combinations
def test_headers_are_read_as_they_are_written(soap: str, wsa: str) -> None:
    header = write_headers(
        wsa, action="urn:do", message_id="urn:1", to="http://h/?a&b", reply_to=anonymous(wsa)
    )
    found = read_addressing(read_envelope(write_envelope(soap, header=header, body=b"<x/>")))

    assert (found.wsa, found.action, found.message_id) == (wsa, "urn:do", "urn:1")
    assert found.to == "http://h/?a&b"
    assert found.reply_to is not None
    assert found.reply_to.is_anonymous


@combinations
def test_references_are_kept_and_echoed(soap: str, wsa: str) -> None:
    reference = EndpointReference("http://h/p", wsa, parameters=(TAG,))
    body = b"<to>%b</to>" % epr_content(reference, wsa)
    envelope = read_envelope(write_envelope(soap, body=body))
    assert envelope.content is not None

    found = read_epr(envelope, envelope.content)
    echoed = read_envelope(write_envelope(soap, header=reference_headers(found, wsa)))

    assert (found.address, found.wsa) == ("http://h/p", wsa)
    assert found.properties + found.parameters == (TAG,)
    assert echoed.header is not None
    [block] = echoed.header
    assert (block.tag, block.text) == ("{urn:k}tag", "t1")
    marked = block.get(f"{{{names.WSA2005}}}IsReferenceParameter")
    assert marked == ("true" if wsa == names.WSA2005 else None)


def test_globus_writes_both_kinds_of_references() -> None:
    body = (
        f'<c xmlns:a="{names.WSA200403}"><a:Address>http://h</a:Address><a:ReferenceProperties>'
        f"{TAG.decode()}</a:ReferenceProperties><a:ReferenceParameters/></c>"
    )
    envelope = read_envelope(write_envelope("1.1", body=body.encode()))
    assert envelope.content is not None

    assert read_epr(envelope, envelope.content).properties == (TAG,)


@combinations
def test_a_reference_without_an_address_is_a_fault_of_its_version(soap: str, wsa: str) -> None:
    header = f'<a:ReplyTo xmlns:a="{wsa}"/>'.encode()

    with pytest.raises(SoapFault) as caught:
        read_addressing(read_envelope(write_envelope(soap, header=header)))

    assert caught.value.subcode is not None
    assert caught.value.subcode[0] == wsa


@both
def test_a_header_that_comes_twice_is_refused(soap: str) -> None:
    header = write_headers(names.WSA2005, action="urn:a") * 2

    with pytest.raises(SoapFault, match="twice"):
        read_addressing(read_envelope(write_envelope(soap, header=header)))


@both
def test_what_must_be_understood_and_is_not_is_refused(soap: str) -> None:
    one = "1" if soap == "1.1" else "true"
    block = (
        f'<z:Z xmlns:z="urn:z" xmlns:e="{names.SOAP_NAMESPACES[soap]}" e:mustUnderstand="{one}"/>'
    )

    with pytest.raises(SoapFault) as caught:
        check_understood(read_envelope(write_envelope(soap, header=block.encode())))

    assert caught.value.code == "MustUnderstand"
    assert (b"NotUnderstood" in caught.value.headers) == (soap == "1.2")


@both
@pytest.mark.parametrize("namespace", [names.WSSE, names.WSMAN, names.WSA200408, names.WSE04])
def test_what_can_be_passed_over_safely_is(soap: str, namespace: str) -> None:
    block = (
        f'<z:Z xmlns:z="{namespace}" xmlns:e="{names.SOAP_NAMESPACES[soap]}" e:mustUnderstand="1"/>'
    )

    check_understood(read_envelope(write_envelope(soap, header=block.encode())))


def test_a_block_for_somebody_else_is_not_ours_to_understand() -> None:
    block = (
        f'<z:Z xmlns:z="urn:z" xmlns:e="{names.SOAP12}" e:mustUnderstand="true" e:role="urn:them"/>'
    )

    check_understood(read_envelope(write_envelope("1.2", header=block.encode())))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"<a/>", "not a SOAP envelope"),
        (b'<e:Envelope xmlns:e="urn:soap:9"><e:Body/></e:Envelope>', "neither SOAP"),
        (f'<e:Envelope xmlns:e="{names.SOAP11}"/>'.encode(), "no Body"),
    ],
)
def test_what_is_no_envelope_is_told_so(message: bytes, words: str) -> None:
    with pytest.raises(SoapFault, match=words):
        read_envelope(message)


@pytest.mark.parametrize("message", [b"", b"<a>", b"\xff\xfe", b"{}", b"<!DOCTYPE a><a/>"])
def test_what_is_no_xml_is_told_so(message: bytes) -> None:
    with pytest.raises(BadXml):
        read_envelope(message)


@both
def test_a_fault_is_told_in_the_callers_version(soap: str) -> None:
    fault = SoapFault("Sender", "no <way>", subcode=("urn:s", "Odd"), detail=b"<d/>")
    element = etree.fromstring(write_fault(fault, soap))
    text = etree.tostring(element)

    assert etree.QName(element).namespace == names.SOAP_NAMESPACES[soap]
    assert b"no &lt;way&gt;" in text
    assert b":Odd" in text
    assert http_status(fault, soap) == (500 if soap == "1.1" else 400)


@both
def test_an_error_of_ours_keeps_its_code_and_words(soap: str) -> None:
    error = NoSuchSubscription("there is none", remedy="Make one.")

    text = write_fault(fault_of(error), soap)

    assert b'code="T302"' in text
    assert b"there is none. Make one." in text


def test_the_action_of_a_fault_is_the_versions_own() -> None:
    plain = SoapFault("Receiver", "x")

    assert fault_action(plain, names.WSA2005) == f"{names.WSA2005}/soap/fault"
    assert fault_action(plain, names.WSA200408) == f"{names.WSA200408}/fault"


def test_the_body_decides_before_the_action_and_the_action_before_http() -> None:
    def detected(header: bytes, body: bytes, http: str = "") -> tuple[str, str]:
        envelope = read_envelope(write_envelope("1.2", header=header, body=body))
        found = detect(envelope, read_addressing(envelope), http)
        return found.namespace, found.operation

    subscribe = b'<w:Subscribe xmlns:w="%b"/>' % names.WSN13.encode()
    renew = write_headers(names.WSA2005, action=f"{names.WSE04}/Renew")

    assert detected(renew, subscribe) == (names.WSN13, "Subscribe")
    assert detected(renew, b"") == (names.WSE04, "Renew")
    assert detected(b"", b"", f"{names.WSE11}/GetStatus") == (names.WSE11, "GetStatus")
    assert detected(renew, b"<anything/>") == ("", "publish")


def test_the_action_may_be_in_either_place_of_http() -> None:
    assert http_action('"urn:a"', "text/xml") == "urn:a"
    assert http_action("", 'application/soap+xml; charset=utf-8; action="urn:b"') == "urn:b"
    assert http_action('""', "text/xml") == ""


def test_an_action_cannot_break_out_of_its_header() -> None:
    for name, value in http_headers("1.1", 'a"\r\nx: y') + http_headers("1.2", 'a"\r\nx: y'):
        assert "\r" not in value, name
        assert value.count('"') in (0, 2)

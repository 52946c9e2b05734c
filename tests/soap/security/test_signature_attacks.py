"""Signatures that are genuine, over something that is not what would be read."""

from __future__ import annotations

import copy

import pytest
from altered import DS, Element, fault, local, signature_of
from lxml import etree

from soap.security.rewriting import sign_again
from soap.security.signers import (
    NOW_NS,
    PATH,
    TO,
    Site,
    find,
    issued,
    plain,
    signed,
    tree,
)
from tocsin.wire.soap.envelope import read_envelope
from tocsin.wire.soap.names import SOAP12
from tocsin.wire.wss import names
from tocsin.wire.wss.write import timestamp

S12 = f"{{{SOAP12}}}"
EVIL = b'<e:state xmlns:e="urn:example">evil</e:state>'


def forged_body(root: Element) -> tuple[Element, Element]:
    """The genuine Body, taken out, and a forged one in its place."""
    genuine = find(root, "Body")
    forged = etree.Element(f"{S12}Body")
    forged.append(tree(EVIL))
    root.replace(genuine, forged)
    return genuine, forged


# The signed element is there, and is not the one that is read


@pytest.mark.parametrize(
    "place", ["header", "wrapper", "security", "envelope", "body", "object", "deep"]
)
def test_a_body_that_was_moved_is_not_the_body(place: str) -> None:
    root = tree(signed())
    genuine, forged = forged_body(root)
    header = find(root, "Header")
    match place:
        case "header":
            header.append(genuine)
        case "wrapper":
            etree.SubElement(header, "{urn:x}Wrapper").append(genuine)
        case "security":
            find(header, "Security").append(genuine)
        case "envelope":
            root.append(genuine)
        case "body":
            forged.append(genuine)
        case "object":
            etree.SubElement(signature_of(root), f"{DS}Object").append(genuine)
        case "deep":
            inner = etree.SubElement(forged, f"{S12}Envelope")
            inner.append(genuine)

    expected = {"FailedCheck", "InvalidSecurity", "UnsupportedSecurityToken"}
    assert fault(root) in expected


def test_the_signed_body_in_a_second_envelope_does_not_count() -> None:
    """The whole genuine envelope, as a header block of a forged one."""
    genuine = tree(signed())
    outer = tree(plain(body=EVIL))
    etree.SubElement(find(outer, "Header"), "{urn:x}Wrapper").append(genuine)
    assert not Site().session(etree.tostring(outer)).is_signed_in

    find(outer, "Header").append(copy.deepcopy(find(genuine, "Header", "Security")))
    assert fault(outer) == "FailedCheck"


@pytest.mark.parametrize("attribute", [names.ID, "Id", "ID", "id", "{urn:x}Id"])
@pytest.mark.parametrize("place", ["first", "last"])
def test_an_id_that_two_elements_have_is_refused(attribute: str, place: str) -> None:
    root = tree(signed())
    other = etree.Element("{urn:x}Block", {attribute: find(root, "Body").get(names.ID, "")})
    header = find(root, "Header")
    header.insert(0 if place == "first" else len(header), other)
    assert fault(root) == "FailedCheck"


def test_the_forged_body_with_the_id_of_the_genuine_one_is_refused() -> None:
    root = tree(signed())
    genuine, forged = forged_body(root)
    forged.set(names.ID, genuine.get(names.ID, ""))
    etree.SubElement(find(root, "Header"), "{urn:x}Wrapper").append(genuine)
    assert fault(root) == "FailedCheck"


@pytest.mark.parametrize(
    "attribute", ["Id", "ID", "id", "{http://www.w3.org/XML/1998/namespace}id"]
)
def test_only_the_id_of_ws_security_is_one(attribute: str) -> None:
    root = tree(signed())
    body = find(root, "Body")
    body.set(attribute, body.attrib.pop(names.ID))
    assert fault(sign_again(root, issued("alice"))) == "FailedCheck"


def test_two_ids_of_one_element_are_two() -> None:
    root = tree(signed())
    body = find(root, "Body")
    body.set("Id", body.get(names.ID, ""))
    assert fault(sign_again(root, issued("alice"))) == "FailedCheck"


def test_a_part_of_the_body_is_not_the_body() -> None:
    root = tree(signed())
    body = find(root, "Body")
    find(body, "state").set(names.ID, body.attrib.pop(names.ID))
    etree.SubElement(body, "more")
    assert fault(sign_again(root, issued("alice"))) == "FailedCheck"


# Of what has to be signed, something is not


def references(root: Element) -> list[Element]:
    return list(signature_of(root).iter(f"{DS}Reference"))


def only(root: Element, *names_: str) -> Element:
    """Signed are these parts alone."""
    wanted = {f"#{part.get(names.ID)}" for part in root.iter() if local(part) in names_}
    for reference in references(root):
        if reference.get("URI") not in wanted:
            parent = reference.getparent()
            assert parent is not None
            parent.remove(reference)
    return sign_again(root, issued("alice"))


def test_body_and_timestamp_have_to_be_signed() -> None:
    assert Site().principal(etree.tostring(only(tree(signed()), "Body", "Timestamp"))) == "alice"
    assert fault(only(tree(signed()), "Timestamp")) == "FailedCheck"
    assert fault(only(tree(signed()), "Body")) == "FailedCheck"
    assert fault(only(tree(signed()), "Action", "To")) == "FailedCheck"
    assert fault(only(tree(signed()))) == "InvalidSecurity"


def test_the_signed_timestamp_has_to_be_the_one_that_is_read() -> None:
    old = tree(signed(at_ns=NOW_NS - 3_600 * 10**9))
    header = find(old, "Header", "Security")
    genuine = find(header, "Timestamp")
    header.replace(genuine, tree(timestamp(NOW_NS)))
    find(old, "Header").append(genuine)
    assert fault(old) == "FailedCheck"

    header.append(genuine)
    assert fault(old) == "InvalidSecurity"


def test_a_reference_of_its_own_kind_twice_is_refused() -> None:
    root = tree(signed())
    info = find(root, "Header", "Security", "Signature", "SignedInfo")
    info.append(copy.deepcopy(references(root)[0]))
    assert fault(sign_again(root, issued("alice"))) == "InvalidSecurity"


def test_too_many_references_are_refused() -> None:
    root = tree(signed())
    header = find(root, "Header")
    for number in range(20):
        etree.SubElement(header, "{urn:x}B", {names.ID: f"b{number}"})
        again = copy.deepcopy(references(root)[0])
        again.set("URI", f"#b{number}")
        find(root, "Header", "Security", "Signature", "SignedInfo").append(again)
    assert fault(sign_again(root, issued("alice"))) == "InvalidSecurity"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "#",
        "#xpointer(/)",
        "#xpointer(id('a'))",
        "file:///etc/passwd",
        "http://127.0.0.1:1/x",
        "cid:part",
        "##id",
        "#a|b",
        "# a",
    ],
)
def test_a_reference_elsewhere_is_not_followed(uri: str) -> None:
    root = tree(signed())
    references(root)[0].set("URI", uri)
    assert fault(sign_again(root, issued("alice"))) == "InvalidSecurity"


def test_a_reference_to_nothing_is_refused() -> None:
    root = tree(signed())
    references(root)[0].set("URI", "#nothing")
    assert fault(sign_again(root, issued("alice"))) == "FailedCheck"


# What a parser might do


def test_entities_and_document_types_are_read_by_nobody() -> None:
    message = signed().replace(b"one", b"&who;")
    declared = b'<!DOCTYPE x [<!ENTITY who "one">]>' + message
    for each in (message, declared):
        with pytest.raises(Exception, match=r"not well-formed|document type"):
            read_envelope(each)


def test_a_header_for_another_comes_first_and_ours_is_verified() -> None:
    root = tree(signed())
    other = copy.deepcopy(find(tree(signed(issued("bob"))), "Header", "Security"))
    other.set(f"{S12}role", "http://elsewhere.example/")
    find(root, "Header").insert(0, other)
    assert Site().principal(etree.tostring(root)) == "alice"


def test_of_two_headers_and_bodies_those_that_are_read_count() -> None:
    """The last Header before the first Body, here and for all services."""
    header = tree(b'<s:Header xmlns:s="%b"/>' % SOAP12.encode())
    body = tree(b'<s:Body xmlns:s="%b">%b</s:Body>' % (SOAP12.encode(), EVIL))
    first = tree(signed())
    first.insert(0, copy.deepcopy(header))
    first.append(copy.deepcopy(body))
    assert Site().principal(etree.tostring(first)) == "alice"

    later = tree(signed())
    later.insert(1, header)
    before = tree(signed())
    before.insert(0, body)
    for root in (later, before):
        assert not Site().session(etree.tostring(root)).is_signed_in


def test_a_signature_goes_with_the_place_it_names() -> None:
    assert TO.endswith(PATH)
    assert fault(tree(signed()), is_private=False, path="/soap/boxes/7") == "FailedCheck"

"""A payload is kept to the byte, and means the same alone as it did in its message."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tocsin.wire.soap.envelope import elements, read_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.slices import cut_out

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"

names = st.sampled_from(["a", "b", "Body", "Message", "Header", "x-y", "é"])
prefixes = st.sampled_from(["", "", "p:", "q:", "s:"])
texts = st.text("ab<&>\"' \n]é", max_size=6)


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    name = draw(prefixes) + draw(names)
    attributes = ""
    if draw(st.booleans()):
        attributes += " q:k='p:value > 1'"
    if draw(st.booleans()):
        attributes += ' xmlns="urn:inner"'
    if draw(st.booleans()):
        attributes += " xmlns:p='urn:other'"
    inside = []
    for _ in range(draw(st.integers(0, 2 if depth else 0))):
        inside.append(draw(documents(depth=depth - 1)))
    for filler in draw(
        st.lists(
            st.sampled_from(["<!-- <s:Body> -->", "<![CDATA[</s:Body><p:a>]]>", "<?pi <x>?>"]),
            max_size=1,
        )
    ):
        inside.append(filler)
    text = draw(texts).replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "")
    inside.insert(0, text.replace(">", "&gt;"))
    content = "".join(inside)
    if not content and draw(st.booleans()):
        return f"<{name}{attributes}/>"
    return f"<{name}{attributes}>{content}</{name}\n>"


def meaning(element: etree._Element) -> bytes:
    return etree.tostring(element, method="c14n", exclusive=True, with_comments=False)


@given(payload=documents(), default=st.sampled_from(["", ' xmlns="urn:outer"']))
def test_a_payload_alone_means_what_it_meant_in_the_message(payload: str, default: str) -> None:
    message = (
        f'<s:Envelope xmlns:s="{SOAP}" xmlns:p="urn:p" xmlns:q="urn:q"{default}>'
        f"<s:Header><q:Body>no</q:Body></s:Header><s:Body> {payload}\n</s:Body></s:Envelope>"
    )
    envelope = read_envelope(message.encode())

    [piece] = cut_out(envelope, elements(envelope.body)[:1])

    assert meaning(etree.fromstring(piece, etree.XMLParser(remove_pis=True))) == meaning(
        elements(envelope.body)[0]
    )


@pytest.mark.parametrize(
    "payload",
    [
        b"<c><b><a>via-wse</a></b></c>",
        b"<x:c xmlns:x='urn:x'  a = \"1 > 0\"><!-- kept --><![CDATA[<]]></x:c >",
        b"<empty/>",
        "<größe>µ</größe>".encode(),
        b"<c>&#13;&amp;&lt;</c>",
    ],
)
def test_what_declares_all_it_uses_is_kept_to_the_byte(payload: bytes) -> None:
    message = b'<s:Envelope xmlns:s="%b"><s:Body>\n  %b  </s:Body></s:Envelope>'
    envelope = read_envelope(message % (SOAP.encode(), payload))

    assert cut_out(envelope, elements(envelope.body)) == [payload]


def test_a_prefix_used_only_in_a_value_stays_in_scope() -> None:
    message = (
        f'<s:Envelope xmlns:s="{SOAP}" xmlns:dom="urn:dom" xmlns:xsi="urn:xsi" xmlns:no="urn:no">'
        '<s:Body><m xsi:type="dom:Numeric"/></s:Body></s:Envelope>'
    )
    envelope = read_envelope(message.encode())

    [piece] = cut_out(envelope, elements(envelope.body))

    assert piece == b'<m xmlns:dom="urn:dom" xmlns:xsi="urn:xsi" xsi:type="dom:Numeric"/>'


def test_another_encoding_is_told_in_utf8() -> None:
    message = (
        '<?xml version="1.0" encoding="utf-16"?>'
        f'<s:Envelope xmlns:s="{SOAP}"><s:Body><é>ü</é></s:Body></s:Envelope>'
    )
    envelope = read_envelope(message.encode("utf-16"))

    assert cut_out(envelope, elements(envelope.body)) == ["<é>ü</é>".encode()]


def test_many_payloads_of_one_message_are_each_their_own() -> None:
    inside = "".join(f"<n:Message><m>{n}</m></n:Message>" for n in range(50))
    message = f'<s:Envelope xmlns:s="{SOAP}"><s:Body><n:N xmlns:n="urn:n">{inside}</n:N></s:Body>'
    envelope = read_envelope(f"{message}</s:Envelope>".encode())
    assert envelope.content is not None

    pieces = cut_out(envelope, [child[0] for child in envelope.content])

    assert pieces == [b"<m>%d</m>" % n for n in range(50)]


@pytest.mark.parametrize(
    "body",
    [
        "<p:c z=' xmlns:p=' p:q='1'/>",
        "<c/>text that ends like a tag>",
        "<!-- a name of the fifth edition --><\U00010000 \u0370='1'/>",
        "<c><!-- > ' --><![CDATA[</c>]]><?pi </c>?></c>",
    ],
)
def test_no_payload_can_be_written_that_is_not_one_element_alone(body: str) -> None:
    message = f'<s:Envelope xmlns:s="{SOAP}" xmlns:p="urn:p"><s:Body>{body}</s:Body></s:Envelope>'
    envelope = read_envelope(message.encode())

    [piece] = cut_out(envelope, elements(envelope.body))

    alone = etree.fromstring(piece, etree.XMLParser(remove_pis=True))
    assert meaning(alone) == meaning(elements(envelope.body)[0])


def test_thousands_of_namespaces_around_a_payload_are_refused() -> None:
    declared = "".join(f' xmlns:n{n}="urn:n"' for n in range(200))
    message = (
        f'<s:Envelope xmlns:s="{SOAP}"{declared}><s:Body{declared.replace(":n", ":o")}><c/>'
        "</s:Body></s:Envelope>"
    )
    envelope = read_envelope(message.encode())

    with pytest.raises(SoapFault, match="401 namespace declarations"):
        cut_out(envelope, elements(envelope.body))


def test_a_large_payload_in_the_scope_of_many_namespaces_is_cut_out_quickly() -> None:
    declared = "".join(f' xmlns:n{n}="urn:n"' for n in range(250))
    text = "n1:a " * 1_000_000
    message = f'<s:Envelope xmlns:s="{SOAP}"{declared}><s:Body><c>{text}</c></s:Body></s:Envelope>'
    envelope = read_envelope(message.encode())

    began = time.process_time()
    [piece] = cut_out(envelope, elements(envelope.body))

    assert time.process_time() - began < 1.0
    assert etree.fromstring(piece).nsmap["n1"] == "urn:n"

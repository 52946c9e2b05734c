"""WS-Addressing 2003/03, 2004/03, 2004/08 and 2005/08: headers and endpoint references."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec
from lxml import etree

from tocsin import safexml
from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import Envelope, elements, split, text_of
from tocsin.wire.soap.fault import addressing_fault, escaped, quoted
from tocsin.wire.soap.names import (
    SOAP11,
    SOAP12,
    WSA2005,
    WSA200408,
    WSA_NAMESPACES,
    WSRM10,
    WSRM11,
)
from tocsin.wire.soap.slices import cut_out

Element = etree._Element

ADDRESS_CHARS_MAX: Final = 2_048
REFERENCES_BYTES_MAX: Final = 16 << 10  # all that one reference asks to be echoed
REFERENCES_MAX: Final = 32

_TAG_NAME = re.compile(rb"<[^\s/>]+")
_MARK: Final = b"IsReferenceParameter"
_NAMESPACES: Final = frozenset(WSA_NAMESPACES)
# Whose header blocks say something of a message itself, and come once.
_NOT_REFERENCES: Final = frozenset({*WSA_NAMESPACES, SOAP11, SOAP12, WSRM10, WSRM11})


def anonymous(wsa: str) -> str:
    """The address that means: back on the same connection."""
    return f"{wsa}/anonymous" if wsa == WSA2005 else f"{wsa}/role/anonymous"


NONE_ADDRESS: Final = f"{WSA2005}/none"
_ANONYMOUS: Final = frozenset(anonymous(wsa) for wsa in WSA_NAMESPACES)


class EndpointReference(msgspec.Struct, frozen=True):
    """Where to send, and what to put into the header there. References are XML, ready to send."""

    address: str
    wsa: str = WSA2005
    properties: tuple[bytes, ...] = ()
    parameters: tuple[bytes, ...] = ()

    @property
    def is_anonymous(self) -> bool:
        return not self.address or self.address in _ANONYMOUS

    @property
    def is_none(self) -> bool:
        return self.address == NONE_ADDRESS


class Addressing(msgspec.Struct, frozen=True):
    """The addressing headers of one message; `wsa` is empty if it has none."""

    wsa: str = ""
    action: str | None = None
    message_id: str | None = None
    to: str | None = None
    relates_to: str | None = None
    reply_to: EndpointReference | None = None
    fault_to: EndpointReference | None = None
    sender: EndpointReference | None = None


def read_addressing(envelope: Envelope) -> Addressing:
    """The headers; a SoapFault for one that comes twice or a reference without an address."""
    if envelope.header is None:
        return Addressing()
    found: dict[str, Element] = {}
    wsa = ""
    for block in envelope.header:
        namespace, name = split(block.tag)
        if namespace not in _NAMESPACES:
            continue
        wsa = wsa or namespace
        if name in found and name != "RelatesTo":
            raise addressing_fault(wsa, "InvalidAddressingHeader", f"wsa:{name} comes twice")
        found.setdefault(name, block)
    if not wsa:
        return Addressing()

    def text(name: str) -> str | None:
        return (text_of(found[name]) or None) if name in found else None

    def reference(name: str) -> EndpointReference | None:
        return read_epr(envelope, found[name]) if name in found else None

    return Addressing(
        wsa,
        text("Action"),
        text("MessageID"),
        text("To"),
        text("RelatesTo"),
        reference("ReplyTo"),
        reference("FaultTo"),
        reference("From"),
    )


def read_epr(envelope: Envelope, element: Element) -> EndpointReference:
    """The reference that an element of the message holds, in whichever version it is written."""
    address: str | None = None
    own = split(element.tag)[0]
    wsa = own if own in _NAMESPACES else ""
    properties: list[Element] = []
    parameters: list[Element] = []
    for child in elements(element):
        namespace, name = split(child.tag)
        if namespace not in _NAMESPACES:
            continue
        wsa = wsa or namespace
        if name == "Address":
            address = text_of(child)
        elif name == "ReferenceProperties":
            properties.extend(elements(child))
        elif name == "ReferenceParameters":
            parameters.extend(elements(child))
    name = split(element.tag)[1]
    if address is None:
        raise addressing_fault(wsa, "InvalidAddressingHeader", f"{name} has no wsa:Address")
    if len(address) > ADDRESS_CHARS_MAX:
        raise addressing_fault(wsa, "InvalidAddressingHeader", f"the address in {name} is too long")
    for each in (*properties, *parameters):
        space, block = split(each.tag)
        if space in _NOT_REFERENCES:
            # Echoed in a header it would stand there beside the one that belongs to the message.
            raise addressing_fault(
                wsa, "InvalidAddressingHeader", f"{name} has {block[:80]} among its references"
            )
    if len(properties) + len(parameters) > REFERENCES_MAX:
        raise addressing_fault(wsa, "InvalidAddressingHeader", f"{name} has too many references")
    reference = EndpointReference(
        address, wsa, _kept(envelope, properties), _kept(envelope, parameters)
    )
    if sum(map(len, (*reference.properties, *reference.parameters))) > REFERENCES_BYTES_MAX:
        raise addressing_fault(wsa, "InvalidAddressingHeader", f"the references of {name} are long")
    return reference


def _kept(envelope: Envelope, wanted: list[Element]) -> tuple[bytes, ...]:
    return tuple(cut_out(envelope, wanted))


def epr_content(reference: EndpointReference, wsa: str) -> bytes:
    """What stands inside an element of the type of a reference, in the given version."""
    parameters, properties = reference.parameters, reference.properties
    if wsa == WSA2005:
        parameters, properties = properties + parameters, ()
    elif wsa != WSA200408:
        parameters, properties = (), properties + parameters
    out = b'<a:Address xmlns:a="%b">%b</a:Address>' % (wsa.encode(), escaped(reference.address))
    for name, blocks in (
        (b"ReferenceProperties", properties),
        (b"ReferenceParameters", parameters),
    ):
        if blocks:
            out += b'<a:%b xmlns:a="%b">%b</a:%b>' % (name, wsa.encode(), b"".join(blocks), name)
    return out


def reference_headers(reference: EndpointReference, wsa: str) -> bytes:
    """The header blocks that a message to the reference carries; 2005/08 marks them as such."""
    blocks = reference.properties + reference.parameters
    if wsa != WSA2005:
        return b"".join(blocks)
    return b"".join(map(_marked, blocks))


def _marked(block: bytes) -> bytes:
    """The block with the mark, unless whoever wrote it has put that there."""
    if _MARK in block and safexml.parse(block).get(f"{{{WSA2005}}}{_MARK.decode()}") is not None:
        return block
    prefix = b"wsaref"
    while prefix in block:
        prefix += b"0"
    mark = b' xmlns:%b="%b" %b:%b="true"' % (prefix, WSA2005.encode(), prefix, _MARK)
    return _TAG_NAME.sub(lambda tag: tag[0] + mark, block, count=1)


def write_headers(
    wsa: str,
    *,
    action: str,
    message_id: str | None = None,
    to: str | None = None,
    relates_to: str | None = None,
    reply_to: str | None = None,
) -> bytes:
    """Addressing header blocks; nothing at all for a peer that knows no addressing."""
    if not wsa:
        return b""
    out = b""
    for name, text in (
        ("To", to),
        ("Action", action),
        ("MessageID", message_id),
        ("RelatesTo", relates_to),
    ):
        if text is not None:
            out += element("a", wsa, name, escaped(text))
    if reply_to is not None:
        out += b'<a:ReplyTo xmlns:a="%b"><a:Address>%b</a:Address></a:ReplyTo>' % (
            wsa.encode(),
            escaped(reply_to),
        )
    return out


def header_text(envelope: Envelope, namespace: str, name: str) -> str | None:
    """The text of a header block, if there is such a block."""
    if envelope.header is None:
        return None
    block = envelope.header.find(f"{{{namespace}}}{name}")
    return None if block is None else text_of(block)


def attribute(name: str, value: str) -> bytes:
    """An attribute with a space before it."""
    return b' %b="%b"' % (name.encode(), quoted(value))


@dataclass(frozen=True, slots=True)
class Versions:
    """The two versions, independent of each other and of the specification."""

    soap: str  # "1.1" or "1.2"
    wsa: str = ""  # the namespace of WS-Addressing; empty if the peer sends no such headers

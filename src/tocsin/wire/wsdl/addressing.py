"""Schemas of WS-Addressing, in the versions that the services are described with."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import WSA2005, WSA200403, WSA200408, XML
from tocsin.wire.wsdl.notation import Schema, element, record, text

XML_ATTRIBUTES: Final = Schema(
    "xml",
    "xml",
    XML,
    ('<xs:attribute name="lang" type="xs:string"/>',),
)

_REFERENCES = "any*\n@*"


def _addressing(name: str, namespace: str, reference: str, *more: str) -> Schema:
    """A version of WS-Addressing with the content that its endpoint references have."""
    endpoints = ("EndpointReference", "From", "ReplyTo", "FaultTo")
    texts = ("MessageID", "To", "Action")
    return Schema(
        name,
        "wsa",
        namespace,
        (
            text("AttributedURI", "xs:anyURI"),
            record("ReferencesType", _REFERENCES),
            record("EndpointReferenceType", reference),
            *(element(local, "wsa:EndpointReferenceType") for local in endpoints),
            *(element(local, "wsa:AttributedURI") for local in texts),
            *more,
        ),
    )


WS_ADDR: Final = _addressing(
    "ws-addr",
    WSA2005,
    """Address wsa:AttributedURI
       ReferenceParameters? wsa:ReferencesType
       Metadata? wsa:ReferencesType
       other*
       @*""",
    text("RelatesToType", "xs:anyURI", "@RelationshipType xs:anyURI\n@*"),
    element("RelatesTo", "wsa:RelatesToType"),
    element("Metadata", "wsa:ReferencesType"),
    '<xs:attribute name="IsReferenceParameter" type="xs:boolean"/>',
)

# Its drafts also had a port type and a service name, which nobody here reads or writes; Globus
# sends the reference parameters of 2004/08 under the namespace of 2004/03.
_EARLY_REFERENCE = """Address wsa:AttributedURI
    ReferenceProperties? wsa:ReferencesType
    ReferenceParameters? wsa:ReferencesType
    PortType? wsa:AttributedQName
    ServiceName? wsa:ServiceNameType
    other*
    @*"""
_EARLY_NAMES = (
    text("AttributedQName", "xs:QName"),
    text("ServiceNameType", "xs:QName", "@PortName xs:NCName\n@*"),
    text("RelationshipType", "xs:anyURI", "@RelationshipType xs:QName\n@*"),
    element("RelatesTo", "wsa:RelationshipType"),
)
WSA_2004_08: Final = _addressing("wsa-2004-08", WSA200408, _EARLY_REFERENCE, *_EARLY_NAMES)
WSA_2004_03: Final = _addressing("wsa-2004-03", WSA200403, _EARLY_REFERENCE, *_EARLY_NAMES)

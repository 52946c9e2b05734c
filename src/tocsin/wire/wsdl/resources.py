"""The parts of WSRF 1.2 that WS-Notification 1.3 leans on: base faults, resources, properties."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import BASE_FAULTS13, PROPERTIES13, RESOURCE13
from tocsin.wire.wsdl.addressing import WS_ADDR, XML_ATTRIBUTES
from tocsin.wire.wsdl.notation import Schema, derived, element, message, record, text

_FAULT = "bf:BaseFaultType"

BASE_FAULTS: Final = Schema(
    "bf-2",
    "bf",
    BASE_FAULTS13,
    (
        record("ErrorCodeType", "any*\n@dialect! xs:anyURI\n@*", mixed=True),
        text("DescriptionType", "xs:string", "@=xml:lang"),
        record("FaultCauseType", "other"),
        record(
            "BaseFaultType",
            """other*
               Timestamp xs:dateTime
               Originator? wsa:EndpointReferenceType
               ErrorCode? bf:ErrorCodeType
               Description* bf:DescriptionType
               FaultCause? bf:FaultCauseType
               @*""",
        ),
        element("BaseFault", "bf:BaseFaultType"),
    ),
    (WS_ADDR, XML_ATTRIBUTES),
)

RESOURCES: Final = Schema(
    "r-2",
    "r",
    RESOURCE13,
    (derived("ResourceUnknownFault", _FAULT), derived("ResourceUnavailableFault", _FAULT)),
    (BASE_FAULTS,),
)

PROPERTIES: Final = Schema(
    "rp-2",
    "rp",
    PROPERTIES13,
    (
        text("QueryExpressionType", "xs:string", "@Dialect xs:anyURI"),
        element("QueryExpression", "rp:QueryExpressionType"),
        element("QueryExpressionDialect", "xs:anyURI"),
        message("GetResourcePropertyDocument"),
        message("GetResourcePropertyDocumentResponse", "any"),
        element("GetResourceProperty", "xs:QName"),
        message("GetResourcePropertyResponse", "any*"),
        message("GetMultipleResourceProperties", "ResourceProperty+ xs:QName"),
        message("GetMultipleResourcePropertiesResponse", "any*"),
        message("QueryResourceProperties", "=rp:QueryExpression"),
        message("QueryResourcePropertiesResponse", "any+", mixed=True),
        derived("InvalidResourcePropertyQNameFault", _FAULT),
        derived("UnknownQueryExpressionDialectFault", _FAULT),
        derived("InvalidQueryExpressionFault", _FAULT),
        derived("QueryEvaluationErrorFault", _FAULT),
    ),
    (BASE_FAULTS,),
)

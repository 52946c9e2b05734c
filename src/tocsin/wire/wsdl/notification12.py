"""WS-Notification 1.2 as Globus speaks it, with the WSRF drafts it leans on."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import (
    BASE_FAULTS12,
    LIFETIME12,
    LIFETIME12_ACTIONS,
    PROPERTIES12,
    PROPERTIES12_ACTIONS,
    WSA200403,
    WSN12,
    WSN12_ACTIONS,
)
from tocsin.wire.wsdl.addressing import WSA_2004_03, XML_ATTRIBUTES
from tocsin.wire.wsdl.notation import Schema, derived, element, message, record, text
from tocsin.wire.wsdl.ports import Operation, Port, Service, asked_and_answered, one_way

_FAULT = "bf:BaseFaultType"
_EXPRESSION = "@Dialect xs:anyURI"

BASE_FAULTS: Final = Schema(
    "wsrf12-faults",
    "bf",
    BASE_FAULTS12,
    (
        record("ErrorCodeType", "any*\n@dialect! xs:anyURI\n@*", mixed=True),
        text("DescriptionType", "xs:string", "@=xml:lang"),
        record(
            "BaseFaultType",
            """Timestamp xs:dateTime
               Originator? wsa:EndpointReferenceType
               ErrorCode? bf:ErrorCodeType
               Description* bf:DescriptionType
               FaultCause* bf:BaseFaultType""",
        ),
        element("BaseFault", "bf:BaseFaultType"),
    ),
    (WSA_2004_03, XML_ATTRIBUTES),
)

PROPERTIES: Final = Schema(
    "wsrf12-properties",
    "rp",
    PROPERTIES12,
    (
        text("QueryExpressionType", "xs:string", _EXPRESSION),
        element("QueryExpression", "rp:QueryExpressionType"),
        element("GetResourceProperty", "xs:QName"),
        message("GetResourcePropertyResponse", "any*"),
        message("GetMultipleResourceProperties", "ResourceProperty+ xs:QName"),
        message("GetMultipleResourcePropertiesResponse", "any*"),
        message("QueryResourceProperties", "=rp:QueryExpression"),
        message("QueryResourcePropertiesResponse", "any+", mixed=True),
        derived("ResourceUnknownFault", _FAULT),
        derived("InvalidResourcePropertyQNameFault", _FAULT),
        derived("UnknownQueryExpressionDialectFault", _FAULT),
        derived("InvalidQueryExpressionFault", _FAULT),
        derived("QueryEvaluationErrorFault", _FAULT),
    ),
    (BASE_FAULTS,),
)

LIFETIME: Final = Schema(
    "wsrf12-lifetime",
    "rl",
    LIFETIME12,
    (
        element("CurrentTime", "xs:dateTime"),
        '<xs:element name="TerminationTime" type="xs:dateTime" nillable="true"/>',
        message("Destroy"),
        message("DestroyResponse"),
        message("SetTerminationTime", "RequestedTerminationTime xs:dateTime nil"),
        message(
            "SetTerminationTimeResponse",
            "NewTerminationTime xs:dateTime nil\nCurrentTime xs:dateTime",
        ),
        derived("ResourceUnknownFault", _FAULT),
        derived("ResourceNotDestroyedFault", _FAULT),
        derived("UnableToSetTerminationTimeFault", _FAULT),
        derived("TerminationTimeChangeRejectedFault", _FAULT),
    ),
    (BASE_FAULTS,),
)

_PLAIN_FAULTS = (
    "ResourceUnknownFault",
    "SubscribeCreationFailedFault",
    "TopicPathDialectUnknownFault",
    "InvalidTopicExpressionFault",
    "TopicNotSupportedFault",
    "NoCurrentMessageOnTopicFault",
    "PauseFailedFault",
    "ResumeFailedFault",
)

BASE: Final = Schema(
    "wsn12-base",
    "b",
    WSN12,
    (
        text("TopicExpressionType", "xs:string", _EXPRESSION),
        record("AnythingType", "any*\n@*", mixed=True),
        record(
            "NotificationMessageHolderType",
            """Topic b:TopicExpressionType
               ProducerReference? wsa:EndpointReferenceType
               Message b:AnythingType""",
        ),
        element("TopicExpression", "b:TopicExpressionType"),
        element("Topic", "b:TopicExpressionType"),
        element("FixedTopicSet", "xs:boolean"),
        element("TopicExpressionDialects", "xs:anyURI"),
        element("ConsumerReference", "wsa:EndpointReferenceType"),
        element("UseNotify", "xs:boolean"),
        element("Precondition", "rp:QueryExpressionType"),
        element("Selector", "rp:QueryExpressionType"),
        element("SubscriptionPolicy", "b:AnythingType"),
        element("CreationTime", "xs:dateTime"),
        message(
            "NotificationProducerRP",
            "=b:Topic+\n=b:FixedTopicSet\n=b:TopicExpressionDialects+",
        ),
        message(
            "SubscriptionManagerRP",
            """=rl:CurrentTime
               =rl:TerminationTime
               =b:ConsumerReference
               =b:TopicExpression
               =b:UseNotify
               =b:Precondition?
               =b:Selector?
               =b:SubscriptionPolicy?
               =b:CreationTime?""",
        ),
        message(
            "Subscribe",
            """ConsumerReference wsa:EndpointReferenceType
               TopicExpression b:TopicExpressionType
               UseNotify? xs:boolean =true
               Precondition? rp:QueryExpressionType
               Selector? rp:QueryExpressionType
               SubscriptionPolicy? b:AnythingType
               InitialTerminationTime? xs:dateTime""",
        ),
        message("SubscribeResponse", "SubscriptionReference? wsa:EndpointReferenceType"),
        message("Notify", "NotificationMessage+ b:NotificationMessageHolderType"),
        message("GetCurrentMessage", "Topic b:TopicExpressionType"),
        message("GetCurrentMessageResponse", "any"),
        message("PauseSubscription"),
        message("PauseSubscriptionResponse"),
        message("ResumeSubscription"),
        message("ResumeSubscriptionResponse"),
        *(derived(name, _FAULT) for name in _PLAIN_FAULTS),
    ),
    (WSA_2004_03, BASE_FAULTS, PROPERTIES, LIFETIME),
)

_UNKNOWN = "b:ResourceUnknownFault"
_TOPIC_FAULTS = ("b:InvalidTopicExpressionFault", "b:TopicNotSupportedFault")
_GET_PROPERTY = asked_and_answered(
    "rp",
    PROPERTIES12_ACTIONS,
    "GetResourceProperty",
    ("rp:ResourceUnknownFault", "rp:InvalidResourcePropertyQNameFault"),
)


def _base(name: str, *faults: str) -> Operation:
    return asked_and_answered("b", WSN12_ACTIONS, name, (_UNKNOWN, *faults))


def _lifetime(name: str, *faults: str) -> Operation:
    return asked_and_answered("rl", LIFETIME12_ACTIONS, name, ("rl:ResourceUnknownFault", *faults))


WSN_1_2: Final = Service(
    "wsn12",
    (BASE, LIFETIME, PROPERTIES, BASE_FAULTS),
    (
        Port(
            "NotificationProducer",
            (
                _base(
                    "Subscribe",
                    "b:SubscribeCreationFailedFault",
                    "b:TopicPathDialectUnknownFault",
                    *_TOPIC_FAULTS,
                ),
                _base("GetCurrentMessage", *_TOPIC_FAULTS, "b:NoCurrentMessageOnTopicFault"),
                _GET_PROPERTY,
            ),
        ),
        Port("NotificationConsumer", (one_way("b", WSN12_ACTIONS, "Notify"),)),
        Port(
            "SubscriptionManager",
            (
                _base("PauseSubscription", "b:PauseFailedFault"),
                _base("ResumeSubscription", "b:ResumeFailedFault"),
                _lifetime("Destroy", "rl:ResourceNotDestroyedFault"),
                _lifetime(
                    "SetTerminationTime",
                    "rl:UnableToSetTerminationTimeFault",
                    "rl:TerminationTimeChangeRejectedFault",
                ),
                _GET_PROPERTY,
            ),
        ),
    ),
    actions=WSA200403,
)

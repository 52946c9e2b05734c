"""Schemas of WS-Notification 1.3: topics, base, brokered."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import BR13, TOPICS13, WSN13
from tocsin.wire.wsdl.addressing import WS_ADDR
from tocsin.wire.wsdl.notation import Schema, derived, element, message, record, text, union
from tocsin.wire.wsdl.resources import BASE_FAULTS

_FAULT = "bf:BaseFaultType"
# The standard leaves room for an element beside the text; no dialect has one, and tools that
# ignore mixed content (zeep) could then write no expression at all.
_EXPRESSION = "@Dialect! xs:anyURI"

_DOCUMENTED = "documentation? t:Documentation"
TOPICS: Final = Schema(
    "t-1",
    "t",
    TOPICS13,
    (
        record("Documentation", "any*", mixed=True),
        text("QueryExpressionType", "xs:string", _EXPRESSION),
        '<xs:simpleType name="NamesType"><xs:list itemType="xs:QName"/></xs:simpleType>',
        record(
            "TopicType",
            f"""{_DOCUMENTED}
                MessagePattern? t:QueryExpressionType
                Topic* t:TopicType
                other*
                @name! xs:NCName
                @messageTypes t:NamesType
                @final xs:boolean
                @parent xs:token
                @*""",
        ),
        message(
            "TopicNamespace",
            f"""{_DOCUMENTED}
                Topic* t:TopicType
                other*
                @name xs:NCName
                @targetNamespace! xs:anyURI
                @final xs:boolean
                @*""",
        ),
        message("TopicSet", f"{_DOCUMENTED}\nother*\n@*"),
        '<xs:attribute name="topic" type="xs:boolean"/>',
        '<xs:attribute name="topicNamespaceLocation" type="xs:anyURI"/>',
    ),
)

_PLAIN_FAULTS = (
    "SubscribeCreationFailedFault",
    "TopicExpressionDialectUnknownFault",
    "InvalidTopicExpressionFault",
    "TopicNotSupportedFault",
    "MultipleTopicsSpecifiedFault",
    "InvalidProducerPropertiesExpressionFault",
    "InvalidMessageContentExpressionFault",
    "NotifyMessageNotSupportedFault",
    "NoCurrentMessageOnTopicFault",
    "UnableToGetMessagesFault",
    "UnableToDestroyPullPointFault",
    "UnableToCreatePullPointFault",
    "UnableToDestroySubscriptionFault",
    "PauseFailedFault",
    "ResumeFailedFault",
)
_TIME_BOUNDS = "MinimumTime xs:dateTime\nMaximumTime? xs:dateTime"

BASE: Final = Schema(
    "b-2",
    "b",
    WSN13,
    (
        text("QueryExpressionType", "xs:string", _EXPRESSION),
        text("TopicExpressionType", "xs:string", f"{_EXPRESSION}\n@*"),
        record("FilterType", "any*"),
        record("SubscriptionPolicyType", "any*"),
        record("MessageType", "any"),
        record("EmptyType", ""),
        union("AbsoluteOrRelativeTimeType", "xs:dateTime", "xs:duration"),
        record(
            "NotificationMessageHolderType",
            """=b:SubscriptionReference?
               =b:Topic?
               =b:ProducerReference?
               Message b:MessageType""",
        ),
        element("TopicExpression", "b:TopicExpressionType"),
        element("Topic", "b:TopicExpressionType"),
        element("FixedTopicSet", "xs:boolean"),
        element("TopicExpressionDialect", "xs:anyURI"),
        element("ProducerProperties", "b:QueryExpressionType"),
        element("MessageContent", "b:QueryExpressionType"),
        element("UseRaw", "b:EmptyType"),
        element("Filter", "b:FilterType"),
        element("SubscriptionPolicy", "b:SubscriptionPolicyType"),
        element("CreationTime", "xs:dateTime"),
        element("CurrentTime", "xs:dateTime"),
        '<xs:element name="TerminationTime" type="xs:dateTime" nillable="true"/>',
        element("ConsumerReference", "wsa:EndpointReferenceType"),
        element("SubscriptionReference", "wsa:EndpointReferenceType"),
        element("ProducerReference", "wsa:EndpointReferenceType"),
        element("NotificationMessage", "b:NotificationMessageHolderType"),
        message(
            "NotificationProducerRP",
            """=b:TopicExpression*
               =b:FixedTopicSet?
               =b:TopicExpressionDialect*
               =t:TopicSet?""",
        ),
        message(
            "SubscriptionManagerRP",
            """=b:ConsumerReference
               =b:Filter?
               =b:SubscriptionPolicy?
               =b:CreationTime?""",
        ),
        message("Notify", "=b:NotificationMessage+\nother*"),
        message(
            "Subscribe",
            """ConsumerReference wsa:EndpointReferenceType
               Filter? b:FilterType
               InitialTerminationTime? b:AbsoluteOrRelativeTimeType nil
               SubscriptionPolicy? b:SubscriptionPolicyType
               other*""",
        ),
        message(
            "SubscribeResponse",
            """SubscriptionReference wsa:EndpointReferenceType
               =b:CurrentTime?
               =b:TerminationTime?
               other*""",
        ),
        message("GetCurrentMessage", "Topic b:TopicExpressionType\nother*"),
        # The standard says ##other; a message of no namespace, or of ours, is a message too.
        message("GetCurrentMessageResponse", "any*"),
        message("GetMessages", "MaximumNumber? xs:nonNegativeInteger\nother*\n@*"),
        message("GetMessagesResponse", "=b:NotificationMessage*\nother*\n@*"),
        message("CreatePullPoint", "other*\n@*"),
        message("CreatePullPointResponse", "PullPoint wsa:EndpointReferenceType\nother*\n@*"),
        message("DestroyPullPoint", "other*\n@*"),
        message("DestroyPullPointResponse", "other*\n@*"),
        message("Renew", "TerminationTime b:AbsoluteOrRelativeTimeType nil\nother*"),
        message("RenewResponse", "=b:TerminationTime\n=b:CurrentTime?\nother*"),
        *(
            message(f"{name}{end}", "other*")
            for name in ("Unsubscribe", "PauseSubscription", "ResumeSubscription")
            for end in ("", "Response")
        ),
        *(derived(name, _FAULT) for name in _PLAIN_FAULTS),
        derived("InvalidFilterFault", _FAULT, "UnknownFilter+ xs:QName"),
        derived("UnrecognizedPolicyRequestFault", _FAULT, "UnrecognizedPolicy* xs:QName"),
        derived("UnsupportedPolicyRequestFault", _FAULT, "UnsupportedPolicy* xs:QName"),
        derived("UnacceptableInitialTerminationTimeFault", _FAULT, _TIME_BOUNDS),
        derived("UnacceptableTerminationTimeFault", _FAULT, _TIME_BOUNDS),
    ),
    (WS_ADDR, BASE_FAULTS, TOPICS),
)

BROKERED: Final = Schema(
    "br-2",
    "br",
    BR13,
    (
        element("RequiresRegistration", "xs:boolean"),
        element("PublisherReference", "wsa:EndpointReferenceType"),
        element("ConsumerReference", "wsa:EndpointReferenceType"),
        element("Topic", "b:TopicExpressionType"),
        element("Demand", "xs:boolean"),
        element("CreationTime", "xs:dateTime"),
        message(
            "NotificationBrokerRP",
            """=b:TopicExpression*
               =b:FixedTopicSet?
               =b:TopicExpressionDialect*
               =t:TopicSet?
               =br:RequiresRegistration""",
        ),
        message(
            "PublisherRegistrationRP",
            "=br:PublisherReference?\n=br:Topic*\n=br:Demand\n=br:CreationTime?",
        ),
        message(
            "RegisterPublisher",
            """PublisherReference? wsa:EndpointReferenceType
               Topic* b:TopicExpressionType
               Demand? xs:boolean =false
               InitialTerminationTime? xs:dateTime
               other*""",
        ),
        message(
            "RegisterPublisherResponse",
            """PublisherRegistrationReference wsa:EndpointReferenceType
               ConsumerReference? wsa:EndpointReferenceType""",
        ),
        message("DestroyRegistration", "other*\n@*"),
        message("DestroyRegistrationResponse", "other*\n@*"),
        derived("PublisherRegistrationRejectedFault", _FAULT),
        derived("PublisherRegistrationFailedFault", _FAULT),
        derived("ResourceNotDestroyedFault", _FAULT),
    ),
    (WS_ADDR, BASE_FAULTS, TOPICS, BASE),
)

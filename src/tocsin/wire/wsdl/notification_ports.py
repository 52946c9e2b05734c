"""The ports of WS-Notification 1.3, and their faults."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import BR13_ACTIONS, PROPERTIES13_ACTIONS, WSN13_ACTIONS
from tocsin.wire.wsdl.notification import BASE, BROKERED, TOPICS
from tocsin.wire.wsdl.ports import Operation, Port, Service, one_way, request_response
from tocsin.wire.wsdl.resources import BASE_FAULTS, PROPERTIES, RESOURCES

_UNKNOWN = "r:ResourceUnknownFault"
_GONE = (_UNKNOWN, "r:ResourceUnavailableFault")
SUBSCRIBE_FAULTS: Final = (
    _UNKNOWN,
    "b:InvalidFilterFault",
    "b:TopicExpressionDialectUnknownFault",
    "b:InvalidTopicExpressionFault",
    "b:TopicNotSupportedFault",
    "b:InvalidProducerPropertiesExpressionFault",
    "b:InvalidMessageContentExpressionFault",
    "b:UnacceptableInitialTerminationTimeFault",
    "b:UnrecognizedPolicyRequestFault",
    "b:UnsupportedPolicyRequestFault",
    "b:NotifyMessageNotSupportedFault",
    "b:SubscribeCreationFailedFault",
)
_CURRENT_FAULTS = (
    _UNKNOWN,
    "b:TopicExpressionDialectUnknownFault",
    "b:InvalidTopicExpressionFault",
    "b:TopicNotSupportedFault",
    "b:NoCurrentMessageOnTopicFault",
    "b:MultipleTopicsSpecifiedFault",
)
_REGISTER_FAULTS = (
    _UNKNOWN,
    "b:InvalidTopicExpressionFault",
    "b:TopicNotSupportedFault",
    "br:PublisherRegistrationRejectedFault",
    "br:PublisherRegistrationFailedFault",
    "b:UnacceptableInitialTerminationTimeFault",
)
_QUERY_FAULTS = (
    *_GONE,
    "rp:InvalidResourcePropertyQNameFault",
    "rp:UnknownQueryExpressionDialectFault",
    "rp:InvalidQueryExpressionFault",
    "rp:QueryEvaluationErrorFault",
)


def _base(port: str, *operations: tuple[str, tuple[str, ...]]) -> tuple[Operation, ...]:
    uri = f"{WSN13_ACTIONS}/{port}"
    return tuple(request_response("b", uri, name, faults) for name, faults in operations)


def _property_port(name: str, faults: tuple[str, ...]) -> Port:
    return Port(name, (request_response("rp", f"{PROPERTIES13_ACTIONS}/{name}", name, faults),))


def subscription_manager(port: str) -> tuple[Operation, ...]:
    """Renew and Unsubscribe, as the given port type names their actions."""
    return _base(
        port,
        ("Renew", (_UNKNOWN, "b:UnacceptableTerminationTimeFault")),
        ("Unsubscribe", (_UNKNOWN, "b:UnableToDestroySubscriptionFault")),
    )


PRODUCER: Final = Port(
    "NotificationProducer",
    _base(
        "NotificationProducer",
        ("Subscribe", SUBSCRIBE_FAULTS),
        ("GetCurrentMessage", _CURRENT_FAULTS),
    ),
)
_PULL_POINT = Port(
    "PullPoint",
    (
        *_base(
            "PullPoint",
            ("GetMessages", (_UNKNOWN, "b:UnableToGetMessagesFault")),
            ("DestroyPullPoint", (_UNKNOWN, "b:UnableToDestroyPullPointFault")),
        ),
        one_way("b", f"{WSN13_ACTIONS}/PullPoint", "Notify"),
    ),
)
_PAUSABLE = "PausableSubscriptionManager"
_MANAGER = Port(
    _PAUSABLE,
    (
        *subscription_manager(_PAUSABLE),
        *_base(
            _PAUSABLE,
            ("PauseSubscription", (_UNKNOWN, "b:PauseFailedFault")),
            ("ResumeSubscription", (_UNKNOWN, "b:ResumeFailedFault")),
        ),
    ),
)
_CONSUMER = f"{WSN13_ACTIONS}/NotificationConsumer"
_BROKER = f"{BR13_ACTIONS}/NotificationBroker"
_REGISTRATION = f"{BR13_ACTIONS}/PublisherRegistrationManager"

WSN_1_3: Final = Service(
    "wsn13",
    (BASE, BROKERED, TOPICS, BASE_FAULTS, RESOURCES, PROPERTIES),
    (
        PRODUCER,
        Port(
            "NotificationConsumer",
            (one_way("b", f"{WSN13_ACTIONS}/NotificationConsumer", "Notify"),),
        ),
        Port("SubscriptionManager", subscription_manager("SubscriptionManager")),
        _MANAGER,
        Port(
            "CreatePullPoint",
            _base("CreatePullPoint", ("CreatePullPoint", ("b:UnableToCreatePullPointFault",))),
        ),
        _PULL_POINT,
        Port(
            "NotificationBroker",
            (
                one_way("b", _BROKER, "Notify"),
                request_response("b", _BROKER, "Subscribe", SUBSCRIBE_FAULTS),
                request_response("b", _BROKER, "GetCurrentMessage", _CURRENT_FAULTS),
                request_response("br", _BROKER, "RegisterPublisher", _REGISTER_FAULTS),
            ),
        ),
        Port(
            "RegisterPublisher",
            (
                request_response(
                    "br", f"{BR13_ACTIONS}/RegisterPublisher", "RegisterPublisher", _REGISTER_FAULTS
                ),
            ),
        ),
        Port(
            "PublisherRegistrationManager",
            (
                request_response(
                    "br",
                    _REGISTRATION,
                    "DestroyRegistration",
                    (_UNKNOWN, "br:ResourceNotDestroyedFault"),
                ),
            ),
        ),
        _property_port("GetResourcePropertyDocument", _GONE),
        _property_port("GetResourceProperty", (*_GONE, "rp:InvalidResourcePropertyQNameFault")),
        _property_port(
            "GetMultipleResourceProperties", (*_GONE, "rp:InvalidResourcePropertyQNameFault")
        ),
        _property_port("QueryResourceProperties", _QUERY_FAULTS),
    ),
)

"""The original WS-Messenger's services, as the copy in Apache Airavata speaks them."""

from __future__ import annotations

from typing import Final

from tocsin.wire.soap.names import MSGBOX, WSN10
from tocsin.wire.wsdl.addressing import WS_ADDR
from tocsin.wire.wsdl.notation import Schema, element, message, record, text, unordered
from tocsin.wire.wsdl.ports import Operation, Port, Service

_TRACKED = "other*\n@trackId xs:string\n@*"

NOTIFICATION: Final = Schema(
    "wsn10",
    "b",
    WSN10,
    (
        # Dialect is qualified in its subscriptions and unqualified in its deliveries.
        '<xs:attribute name="Dialect" type="xs:anyURI"/>',
        text("ExpressionType", "xs:string", "@Dialect xs:anyURI\n@=b:Dialect\n@*"),
        record("AnythingType", "any*\n@*", mixed=True),
        record(
            "NotificationMessageHolderType",
            """Topic? b:ExpressionType
               ProducerReference? wsa:EndpointReferenceType
               Message b:AnythingType""",
        ),
        element("Topic", "b:ExpressionType"),
        element("TopicExpression", "b:ExpressionType"),
        element("MessageContent", "b:ExpressionType"),
        element("Identifier", "xs:string"),
        unordered(
            "SubscribeRequest",
            """ConsumerReference wsa:EndpointReferenceType
               TopicExpression? b:ExpressionType
               UseNotify? xs:boolean =true
               Precondition? b:ExpressionType
               Selector? b:ExpressionType
               SubscriptionPolicy? b:AnythingType
               InitialTerminationTime? xs:string""",
        ),
        message("SubscribeResponse", "SubscriptionReference wsa:EndpointReferenceType\nother*"),
        message("GetCurrentMessageRequest", "Topic b:ExpressionType\nother*"),
        message("GetCurrentMessageResponse", "any*"),
        message("Notify", "NotificationMessage+ b:NotificationMessageHolderType\nother*"),
        message("NotifyResponse", _TRACKED),
        *(
            message(f"{name}{end}", "any*")
            for name in (
                "UnsubsribeRequest",
                "PauseSubsriptionRequest",
                "ResumeSubsriptionRequest",
            )
            for end in ("", "Response")
        ),
    ),
    (WS_ADDR,),
)


def _boxes(name: str, prefix: str, namespace: str) -> Schema:
    return Schema(
        name,
        prefix,
        namespace,
        (
            record("MessagesType", "any*"),
            *(
                message(local, "MsgBoxId? xs:string\n@*")
                for local in ("createMsgBox", "takeMessages", "destroyMsgBox")
            ),
            message("createMsgBoxResponse", "MsgBoxId xs:string"),
            message("storeMessages", "any*\n@*"),
            message("storeMessagesResponse", "status xs:boolean"),
            message("takeMessagesResponse", f"messages? {prefix}:MessagesType"),
            message("destroyMsgBoxResponse", "status xs:boolean"),
        ),
    )


BOXES: Final = _boxes("msgbox", "box", MSGBOX)
# Its clients leave out the last slash of the namespace that its server answers in.
BOXES_AS_CLIENTS_ASK: Final = _boxes("msgbox-2011", "ask", MSGBOX.rstrip("/"))


def _ask(name: str, request: str, reply: str) -> Operation:
    return Operation(
        name, f"{WSN10}/{request}", f"b:{request}", f"b:{reply}", f"{WSN10}/{request}Response"
    )


def _box(name: str) -> Operation:
    return Operation(
        name,
        f"{MSGBOX}{name}",
        f"box:{name}",
        f"box:{name}Response",
        f"{MSGBOX}MsgBoxPT/{name}Response",
    )


# The spelling of the names is the original's.
SERVICES: Final = (
    Service(
        "wsn10",
        (NOTIFICATION,),
        (
            Port(
                "NotificationService",
                (
                    _ask("Subscribe", "SubscribeRequest", "SubscribeResponse"),
                    _ask("Unsubscribe", "UnsubsribeRequest", "UnsubsribeRequestResponse"),
                    _ask(
                        "PauseSubscription",
                        "PauseSubsriptionRequest",
                        "PauseSubsriptionRequestResponse",
                    ),
                    _ask(
                        "ResumeSubscription",
                        "ResumeSubsriptionRequest",
                        "ResumeSubsriptionRequestResponse",
                    ),
                    _ask(
                        "GetCurrentMessage",
                        "GetCurrentMessageRequest",
                        "GetCurrentMessageResponse",
                    ),
                    _ask("Notify", "Notify", "NotifyResponse"),
                ),
            ),
        ),
    ),
    Service(
        "msgbox",
        (BOXES, BOXES_AS_CLIENTS_ASK),
        (
            Port(
                "MsgBoxPT",
                tuple(
                    map(_box, ("createMsgBox", "storeMessages", "takeMessages", "destroyMsgBox"))
                ),
            ),
        ),
    ),
)

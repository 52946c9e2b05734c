"""The operations of WS-BaseNotification: what each version calls them, and their actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from tocsin.wire.soap.names import (
    BR13_ACTIONS,
    LIFETIME12,
    LIFETIME12_ACTIONS,
    WSN10,
    WSN12,
    WSN12_ACTIONS,
    WSN13,
    WSN13_ACTIONS,
)
from tocsin.wire.wsn.messages import Name


class Operation(Enum):
    """What a subscriber may ask."""

    SUBSCRIBE = auto()
    RENEW = auto()
    UNSUBSCRIBE = auto()
    PAUSE = auto()
    RESUME = auto()
    CURRENT_MESSAGE = auto()


@dataclass(frozen=True, slots=True)
class OperationNames:
    """One operation in one version."""

    namespace: str
    request: str
    response: str
    request_action: str
    response_action: str


def _wsn13(port: str, name: str) -> OperationNames:
    actions = f"{WSN13_ACTIONS}/{port}/{name}"
    return OperationNames(WSN13, name, f"{name}Response", f"{actions}Request", f"{actions}Response")


def _wsn12(name: str, namespace: str = WSN12, actions: str = WSN12_ACTIONS) -> OperationNames:
    action = f"{actions}/{name}"
    return OperationNames(namespace, name, f"{name}Response", action, f"{action}Response")


def _wsn10(request: str, response: str) -> OperationNames:
    action = f"{WSN10}/{request}"
    return OperationNames(WSN10, request, response, action, f"{action}Response")


# Version 1.0 has no renewal. Its misspelt names are the original's own.
WORDINGS: Final[Mapping[str, Mapping[Operation, OperationNames]]] = {
    "wsn13": {
        Operation.SUBSCRIBE: _wsn13("NotificationProducer", "Subscribe"),
        Operation.RENEW: _wsn13("SubscriptionManager", "Renew"),
        Operation.UNSUBSCRIBE: _wsn13("SubscriptionManager", "Unsubscribe"),
        Operation.PAUSE: _wsn13("PausableSubscriptionManager", "PauseSubscription"),
        Operation.RESUME: _wsn13("PausableSubscriptionManager", "ResumeSubscription"),
        Operation.CURRENT_MESSAGE: _wsn13("NotificationProducer", "GetCurrentMessage"),
    },
    "wsn12": {
        Operation.SUBSCRIBE: _wsn12("Subscribe"),
        Operation.RENEW: _wsn12("SetTerminationTime", LIFETIME12, LIFETIME12_ACTIONS),
        Operation.UNSUBSCRIBE: _wsn12("Destroy", LIFETIME12, LIFETIME12_ACTIONS),
        Operation.PAUSE: _wsn12("PauseSubscription"),
        Operation.RESUME: _wsn12("ResumeSubscription"),
        Operation.CURRENT_MESSAGE: _wsn12("GetCurrentMessage"),
    },
    "wsn10": {
        Operation.SUBSCRIBE: _wsn10("SubscribeRequest", "SubscribeResponse"),
        Operation.UNSUBSCRIBE: _wsn10("UnsubsribeRequest", "UnsubsribeRequestResponse"),
        Operation.PAUSE: _wsn10("PauseSubsriptionRequest", "PauseSubsriptionRequestResponse"),
        Operation.RESUME: _wsn10("ResumeSubsriptionRequest", "ResumeSubsriptionRequestResponse"),
        Operation.CURRENT_MESSAGE: _wsn10("GetCurrentMessageRequest", "GetCurrentMessageResponse"),
    },
}

NOTIFY_ACTIONS: Final = {
    "wsn13": f"{WSN13_ACTIONS}/NotificationConsumer/Notify",
    "wsn12": f"{WSN12_ACTIONS}/Notify",
    "wsn10": f"{WSN10}/Notify",
}


def _spellings(name: str) -> set[str]:
    """The name as the original spells it and as it is meant to be, with and without `Request`."""
    right = name.replace("ubsription", "ubscription").replace("nsubsribe", "nsubscribe")
    return {each for word in (name, right) for each in (word, word.removesuffix("Request"))}


def _requests() -> Iterator[tuple[Name, tuple[str, Operation]]]:
    for spec, wordings in WORDINGS.items():
        for operation, wording in wordings.items():
            for name in _spellings(wording.request) if spec == "wsn10" else {wording.request}:
                yield (wording.namespace, name), (spec, operation)


REQUESTS: Final[Mapping[Name, tuple[str, Operation]]] = dict(_requests())
"""What the name of a body's element asks for, and in which version."""

RESPONSES: Final[Mapping[Name, tuple[str, Operation]]] = {
    (wording.namespace, wording.response): (spec, operation)
    for spec, wordings in WORDINGS.items()
    for operation, wording in wordings.items()
}


def response_action(spec: str, operation: Operation, asked: str | None) -> str:
    """The action of an answer, of the port type that was asked.

    In 1.3 several port types have the same operation, each with an action of its own.
    """
    if asked and asked.startswith((f"{WSN13_ACTIONS}/", f"{BR13_ACTIONS}/")):
        port, _, name = asked.rpartition("/")
        wording = WORDINGS[spec].get(operation)
        if wording is not None and name == f"{wording.request}Request":
            return f"{port}/{wording.response}"
    return WORDINGS[spec][operation].response_action

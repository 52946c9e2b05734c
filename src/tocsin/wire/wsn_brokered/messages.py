"""The messages that WS-BrokeredNotification adds, and their names by version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.names import BR12, BR12_ACTIONS, BR13, BR13_ACTIONS
from tocsin.wire.wsn.messages import Expression, Never

REGISTER: Final = "RegisterPublisher"
DESTROY: Final = "DestroyRegistration"

NAMESPACES: Final = {"wsn13": BR13, "wsn12": BR12}
# 1.2 ends registrations by WS-ResourceLifetime.
OPERATIONS: Final = {"wsn13": (REGISTER, DESTROY), "wsn12": (REGISTER,)}

_PORTS: Final = {
    REGISTER: f"{BR13_ACTIONS}/{REGISTER}",
    DESTROY: f"{BR13_ACTIONS}/PublisherRegistrationManager",
}


@dataclass(frozen=True, slots=True)
class RegisterPublisher:
    """Who will publish on what. `termination` is as it was written."""

    publisher: EndpointReference | None = None
    topics: tuple[Expression, ...] = ()
    demand: bool = False
    termination: str | Never | None = None


@dataclass(frozen=True, slots=True)
class RegisterPublisherResponse:
    """The registration, and where its publisher sends notifications."""

    registration: EndpointReference
    consumer: EndpointReference | None = None


@dataclass(frozen=True, slots=True)
class DestroyRegistration:
    pass


@dataclass(frozen=True, slots=True)
class DestroyRegistrationResponse:
    pass


Message = (
    RegisterPublisher
    | RegisterPublisherResponse
    | DestroyRegistration
    | DestroyRegistrationResponse
)


def request_action(spec: str, operation: str) -> str:
    return (
        f"{_PORTS[operation]}/{operation}Request"
        if spec == "wsn13"
        else f"{BR12_ACTIONS}/{operation}"
    )


def response_action(spec: str, operation: str, asked: str | None = None) -> str:
    """The action of an answer, of the port type that was asked: 1.3 has two that register."""
    if spec != "wsn13":
        return f"{BR12_ACTIONS}/{operation}Response"
    if asked and asked.startswith(f"{BR13_ACTIONS}/") and asked.endswith(f"/{operation}Request"):
        return f"{asked.removesuffix('Request')}Response"
    return f"{_PORTS[operation]}/{operation}Response"

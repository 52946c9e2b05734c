"""The faults of WS-Security (SOAP Message Security 1.1, section 12), with our code and words."""

from __future__ import annotations

from typing import Literal

from tocsin.errors import NotSignedIn
from tocsin.wire.soap.fault import SoapFault, detail_of
from tocsin.wire.soap.names import WSSE

FaultName = Literal[
    "UnsupportedSecurityToken",
    "UnsupportedAlgorithm",
    "InvalidSecurity",
    "InvalidSecurityToken",
    "FailedAuthentication",
    "FailedCheck",
    "SecurityTokenUnavailable",
    "MessageExpired",
]


def security_fault(name: FaultName, problem: str, remedy: str) -> SoapFault:
    """The fault for a message whose Security header signs nobody in."""
    error = NotSignedIn(problem, remedy=remedy)
    return SoapFault(
        "Sender", f"{problem}. {remedy}", subcode=(WSSE, name), detail=detail_of(error)
    )

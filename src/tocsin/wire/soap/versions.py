"""Versions: which SOAP and which WS-Addressing a peer uses; it is answered in the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Versions:
    """The two versions, independent of each other and of the specification."""

    soap: str  # "1.1" or "1.2"
    wsa: str = ""  # the namespace of WS-Addressing; empty if the peer sends no such headers

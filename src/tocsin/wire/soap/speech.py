"""Speech: which SOAP and which WS-Addressing a peer uses, so that it is answered in kind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Speech:
    """The two versions, independent of each other and of the specification spoken."""

    soap: str  # "1.1" or "1.2"
    wsa: str = ""  # the namespace of WS-Addressing; empty if the peer sends no such headers

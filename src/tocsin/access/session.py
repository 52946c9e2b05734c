"""Session: who asks, by which endpoint, and from where. It goes along in every call of the port."""

from __future__ import annotations

import msgspec


class Principal(msgspec.Struct, frozen=True):
    """Somebody who can be granted rights: a person, a program, or the broker itself."""

    name: str


ANONYMOUS = Principal("anonymous")
BROKER = Principal("broker")


class Session(msgspec.Struct, frozen=True):
    """One caller. The endpoint is the listener's name, the peer its address as host:port."""

    principal: Principal
    endpoint: str
    peer: str = ""


def anonymous(endpoint: str, peer: str = "") -> Session:
    """Somebody who has shown no credential."""
    return Session(ANONYMOUS, endpoint, peer)


def internal(service: str) -> Session:
    """A service of the broker that acts by itself: a sweep, a heartbeat, a renewal."""
    return Session(BROKER, service)

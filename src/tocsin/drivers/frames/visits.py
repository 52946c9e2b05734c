"""Visits: sessions of those who come with one message at a time, by HTTP.

A producer that subscribed is known again by the id that it was given, for as long as it is heard
of; whoever only asks is forgotten with the answer.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from tocsin.drivers.frames.session import Session
from tocsin.errors import Busy, TocsinError
from tocsin.wire.framing import HEAD, HEAD_BYTES
from tocsin.wire.gma.messages import EventMessage, UnsubscribeRequest
from tocsin.wire.gma.plain import route
from tocsin.wire.gma.read import read

if TYPE_CHECKING:
    from tocsin.drivers.frames.desk import PerformanceDesk


class Visit:
    """One visitor; what is said to it waits for the answer it is in."""

    def __init__(self, desk: PerformanceDesk, peer: str) -> None:
        # Whoever names an id is taken for who was given it: it must not be guessed.
        self.session = Session(
            desk, self, peer, carries_events=False, new_id=lambda: secrets.token_hex(12)
        )
        self.heard_ns = 0
        self._said: list[bytes] = []

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        self._said += messages
        return True

    def said(self) -> list[bytes]:
        said, self._said = self._said, []
        return said


class Visits:
    """Those that are known, by the ids of their subscriptions."""

    def __init__(self, desk: PerformanceDesk) -> None:
        self._desk = desk
        self._known: dict[str, Visit] = {}

    async def answer(self, data: bytes, peer: str) -> bytes | None:
        """The reply to one message, or None if it was an event, which is now on disk."""
        data = unframed(data)
        now_ns = self._desk.node.now_ns()
        self._forget_silent(now_ns)
        named = _subscription_named(data)
        visit = self._known.get(named) if named else None
        if visit is None:
            if b"SubscribeRequest" in data:
                self._check_room()
            visit = Visit(self._desk, peer)
        visit.heard_ns = now_ns
        await visit.session.take([data])
        said = visit.said()
        for own_id in visit.session.subscription_ids:
            self._known[own_id] = visit
        if named and named not in visit.session.subscription_ids:
            self._known.pop(named, None)
        return said[0] if said else None

    def _check_room(self) -> None:
        most = self._desk.limits.datagram_subscriptions_max
        if len(self._known) >= most:
            raise Busy(
                f"{most} producers are already subscribed by HTTP",
                remedy="Subscribe by TCP, or try again later.",
            )

    def _forget_silent(self, now_ns: int) -> None:
        before_ns = now_ns - int(self._desk.limits.datagram_lease_s * 1e9)
        for own_id in [own for own, each in self._known.items() if each.heard_ns < before_ns]:
            del self._known[own_id]


def unframed(data: bytes) -> bytes:
    """The message, without the length in front that it needs elsewhere."""
    if len(data) > HEAD_BYTES and HEAD.unpack_from(data)[0] == len(data) - HEAD_BYTES:
        return data[HEAD_BYTES:]
    return data


def _subscription_named(data: bytes) -> str | None:
    """Which of our subscriptions a message is about."""
    routed = route(data)
    if routed is not None:
        return routed.subscription_id
    try:
        message = read(data)
    except TocsinError:
        return None  # the session says what is wrong with it
    if isinstance(message, EventMessage | UnsubscribeRequest):
        return message.subscription_id
    return None

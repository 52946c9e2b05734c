"""HttpSessions: sessions of those who send one message in each HTTP request.

A producer that subscribed is found again by the id that it was given, until it was silent for too
long; whoever only asks is forgotten with the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.access.session import Session
from tocsin.errors import Busy, TocsinError
from tocsin.services.performance.session import PerformanceSession
from tocsin.wire.framing import HEAD, HEAD_BYTES
from tocsin.wire.gma.messages import EventMessage, UnsubscribeRequest
from tocsin.wire.gma.plain import route
from tocsin.wire.gma.read import read

if TYPE_CHECKING:
    from tocsin.services.performance.service import PerformanceService


class _HttpPeer:
    """One peer; what is sent to it waits for the answer it is in."""

    def __init__(self, service: PerformanceService, caller: Session) -> None:
        self.caller = caller
        # Whoever names an id is taken for who was given it: it must not be guessed.
        self.session = PerformanceSession(
            service, self, caller, carries_events=False, new_id=service.runtime.new_id
        )
        self.last_request_ns = 0
        self._outgoing: list[bytes] = []

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        self._outgoing += messages
        return True

    async def wait_writable(self) -> None:
        """An answer is sent whole."""

    def take_outgoing(self) -> list[bytes]:
        outgoing, self._outgoing = self._outgoing, []
        return outgoing


class HttpSessions:
    """Those that are subscribed, by the ids of their subscriptions."""

    def __init__(self, service: PerformanceService) -> None:
        self._service = service
        self._peers: dict[str, _HttpPeer] = {}

    async def answer(self, data: bytes, caller: Session) -> bytes | None:
        """The reply to one message, or None if it was an event, which is now on disk."""
        data = unframed(data)
        now_ns = self._service.runtime.now_ns()
        self._forget_silent(now_ns)
        named = _subscription_named(data)
        peer = self._peers.get(named) if named else None
        if peer is not None and peer.caller.principal != caller.principal:
            peer = None  # somebody else's: as one that is not there
        if peer is None:
            if b"SubscribeRequest" in data:
                self._check_room()
            peer = _HttpPeer(self._service, caller)
        peer.last_request_ns = now_ns
        await peer.session.take([data], caller=caller)
        outgoing = peer.take_outgoing()
        for own_id in peer.session.subscription_ids:
            self._peers[own_id] = peer
        is_over = named and named not in peer.session.subscription_ids
        if named and is_over and self._peers.get(named) is peer:
            del self._peers[named]
        return outgoing[0] if outgoing else None

    def _check_room(self) -> None:
        most = self._service.options.leased_peers_max
        if len(self._peers) >= most:
            raise Busy(
                f"{most} producers are already subscribed by HTTP",
                remedy="Subscribe by TCP, or try again later.",
            )

    def _forget_silent(self, now_ns: int) -> None:
        before_ns = now_ns - int(self._service.options.lease_s * 1e9)
        silent = [own for own, each in self._peers.items() if each.last_request_ns < before_ns]
        for own_id in silent:
            del self._peers[own_id]


def unframed(data: bytes) -> bytes:
    """The message, without the length in front that it needs elsewhere."""
    return data[HEAD_BYTES:] if has_length(data) else data


def has_length(data: bytes) -> bool:
    """True if this is one message with its length in front."""
    return len(data) > HEAD_BYTES and HEAD.unpack_from(data)[0] == len(data) - HEAD_BYTES


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

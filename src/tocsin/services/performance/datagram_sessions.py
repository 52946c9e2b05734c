"""DatagramSessions: peers that send one message a datagram, with or without its length in front.

Nothing proves where a datagram came from, and a small one can ask for a large answer. So only hosts
on this machine, or that the operator trusts, are answered. A subscription is a lease: to ask for
the very same again renews it, and gets the same reply.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from tocsin.access.session import anonymous
from tocsin.broker.runtime import Tasks, Timer, run_all
from tocsin.errors import TocsinError
from tocsin.services.limited_log import LimitedLog
from tocsin.services.performance.http_sessions import has_length
from tocsin.services.performance.session import PerformanceSession
from tocsin.wire.framing import HEAD_BYTES, framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.read import read
from tocsin.wire.gma.write import write

if TYPE_CHECKING:
    from tocsin.services.performance.service import PerformanceService

ENDPOINT: Final = "datagrams"
DATAGRAM_BYTES_MAX: Final = 65_507  # of UDP on IPv4
WAITING_MAX: Final = 4_096  # datagrams that came faster than they are stored; the rest is lost
SWEEP_S: Final = 1.0

Address = tuple[str, int]
Send = Callable[[bytes, Address], None]


class _DatagramPeer:
    """One peer, and its address."""

    def __init__(self, service: PerformanceService, send: Send, address: Address) -> None:
        self._send = send
        self._address = address
        self.last_datagram_s = 0.0
        self._has_lengths = False  # its datagrams have their length in front, so ours have
        self.session = PerformanceSession(service, self, anonymous(ENDPOINT, _text(address)))

    def send(self, messages: list[bytes], *, paced: bool = False) -> bool:
        for message in messages:
            data = framed(message) if self._has_lengths else message
            if len(data) > DATAGRAM_BYTES_MAX:
                data = _too_long(message)
            self._send(data, self._address)
        return True

    async def wait_writable(self) -> None:
        """Nothing holds datagrams back."""

    async def take(self, datagrams: list[bytes], on_error: Callable[[TocsinError], None]) -> None:
        """As the session does, but that a request may come twice where its reply was lost."""
        new: list[bytes] = []
        for data in datagrams:
            self._has_lengths = has_length(data)
            message = data[HEAD_BYTES:] if self._has_lengths else data
            reply = self._repeated(message) if b"SubscribeRequest" in message else None
            if reply is None:
                new.append(message)
            else:
                self.send([write(reply)])
        await self.session.take(new, on_error)

    def _repeated(self, message: bytes) -> m.SubscribeReply | None:
        try:
            request = read(message)
        except TocsinError:
            return None  # the session says what is wrong with it
        return self.session.repeated(request) if isinstance(request, m.SubscribeRequest) else None


class DatagramSessions:
    """All peers that one socket hears of."""

    def __init__(
        self, service: PerformanceService, send: Send, is_trusted: Callable[[str], bool]
    ) -> None:
        self._service = service
        self._options = service.options
        self._runtime = service.runtime
        self._send = send
        self._is_trusted = is_trusted
        self._peers: dict[Address, _DatagramPeer] = {}
        self._waiting: list[tuple[Address, bytes]] = []
        self._log = LimitedLog(service.runtime)  # anybody can send any number of datagrams
        self._tasks = Tasks(service.runtime)
        self._sweep: Timer = self._runtime.call_later(SWEEP_S, self._end_silent)

    def close(self) -> None:
        self._sweep.cancel()
        for peer in self._peers.values():
            peer.session.end()
            peer.session.lost()
        self._peers.clear()
        self._tasks.cancel()

    def received(self, data: bytes, address: Address) -> None:
        """A datagram came. It is taken after those of its peer that came before it."""
        if not self._is_trusted(address[0]):
            self._warn("a datagram came from a host that is not in delivery.trusted", address)
        elif len(self._waiting) >= WAITING_MAX:
            self._warn("datagrams come faster than they can be stored; some are lost", address)
        else:
            self._waiting.append((address, data))
            if not self._tasks:
                self._tasks.spawn(self._work())
            return
        self._service.datagrams_lost += 1

    async def _work(self) -> None:
        """Take what waits, the datagrams of each peer in their order."""
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            by_peer: dict[Address, list[bytes]] = {}
            for address, data in waiting:
                by_peer.setdefault(address, []).append(data)
            await run_all(self._runtime, [self._take(*each) for each in by_peer.items()])

    async def _take(self, address: Address, datagrams: list[bytes]) -> None:
        peer = self._peers.get(address)
        if peer is None:
            if len(self._peers) >= self._options.leased_peers_max:
                self._service.datagrams_lost += len(datagrams)
                self._warn("the limit of peers that subscribe by UDP is reached", address)
                return
            peer = self._peers[address] = _DatagramPeer(self._service, self._send, address)
        peer.last_datagram_s = self._runtime.elapsed_s()
        on_error = partial(self._warn_of, address)
        try:
            await peer.take(datagrams, on_error)
        except TocsinError as error:  # nothing of it could be stored
            on_error(error)
        if not peer.session.is_subscribed:
            self._forget(address)

    def _forget(self, address: Address) -> None:
        peer = self._peers.pop(address, None)
        if peer is not None:
            peer.session.lost()

    def _end_silent(self) -> None:
        self._sweep = self._runtime.call_later(SWEEP_S, self._end_silent)
        before_s = self._runtime.elapsed_s() - self._options.lease_s
        silent = [at for at, each in self._peers.items() if each.last_datagram_s < before_s]
        for address in silent:
            self._peers[address].session.end()
            self._forget(address)

    def _warn_of(self, address: Address, error: TocsinError) -> None:
        self._warn(error.problem, address, code=error.code, remedy=error.remedy)

    def _warn(self, problem: str, address: Address, **fields: object) -> None:
        self._log.warn(problem, peer=_text(address), **fields)


def _text(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _too_long(message: bytes) -> bytes:
    """What is sent in place of a message that no datagram can hold."""
    detail = f"it has {len(message)} bytes, and a datagram holds {DATAGRAM_BYTES_MAX}: ask by TCP"
    sent = read(message)
    if isinstance(sent, m.EventMessage):
        return write(
            m.EventMessage(sent.subscription_id, error="EventTooLong", error_detail=detail)
        )
    assert isinstance(sent, m.Reply), "requests of ours are short"
    return write(type(sent)(sent.request_id, m.FAILURE, detail))

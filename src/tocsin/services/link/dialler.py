"""Dialler: connects to the peers that the settings name, again and again, each in its time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tocsin.broker.runtime import Runtime, Tasks, Timer
from tocsin.errors import BadFrame, LinkRefused, LinkTwice, PeerFailed, TocsinError
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.routing.peers import Dial, PeerGroup, PeerOptions
from tocsin.services.link.connection import Connection
from tocsin.services.link.transport import Connector, Transport
from tocsin.services.link.views import AddressProblem, LinkProblem, PeerInfo
from tocsin.services.repeated_log import RepeatedLog


@dataclass(eq=False, slots=True)
class _Peers:
    """One setting: its addresses, and how it goes with them."""

    addresses: tuple[str, ...]
    group: PeerGroup
    used: Connection | None = None
    tried: Connection | None = None  # that is there, and has not become a link
    last_used: str = ""  # address
    trying: str = ""
    error: TocsinError | None = None
    errors: dict[str, TocsinError] = field(default_factory=dict)  # the last one of each address
    noted: dict[str, str] = field(default_factory=dict)  # address -> problem, as in the log
    timer: Timer | None = None


class Dialler:
    """The peers of one broker. `open` makes the connection of a transport."""

    def __init__(
        self,
        runtime: Runtime,
        connector: Connector,
        peers: tuple[str, ...],
        options: PeerOptions,
        open: Callable[[Transport, str, str], Connection],
        has_another: Callable[[Connection], bool],
    ) -> None:
        """`open` is given the transport, the peer's address, and the id of the neighbour that is
        left if this one accepts, if any. `has_another`: a connection with the same broker."""
        self._runtime = runtime
        self._connector = connector
        self._open = open
        self._has_another = has_another
        self._tasks = Tasks(runtime)
        self._log = RepeatedLog(runtime)
        self._is_closed = False
        self._settings = [_new_peers(setting, options) for setting in peers]
        self._of: dict[Connection, _Peers] = {}

    def __len__(self) -> int:
        return len(self._settings)

    def start(self) -> None:
        for peers in self._settings:
            self._dial_if_due(peers)

    def _now_ns(self) -> int:
        return int(self._runtime.elapsed_s() * NS_PER_S)

    def _dial_if_due(self, peers: _Peers) -> None:
        if peers.timer is not None:
            peers.timer.cancel()
            peers.timer = None
        if self._is_closed or self._runtime.is_stopping:
            return
        now_ns = self._now_ns()
        dial = peers.group.due(now_ns)
        if dial is not None:
            peers.trying = dial.peer
            self._tasks.spawn(self._connect(peers, dial))
            return
        wake_ns = peers.group.wake_ns
        if wake_ns is not None:
            delay_s = max(0.0, (wake_ns - now_ns) / NS_PER_S) + 0.001
            peers.timer = self._runtime.call_later(delay_s, lambda: self._dial_if_due(peers))

    async def _connect(self, peers: _Peers, dial: Dial) -> None:
        leaving = peers.used.broker if dial.replacing and peers.used is not None else ""

        def opened(transport: Transport) -> Connection:
            connection = self._open(transport, dial.peer, leaving)
            self._of[connection] = peers
            peers.tried = connection
            return connection

        try:
            await self._connector.connect(dial.peer, opened)
        except TocsinError as error:
            self._failed(peers, dial.peer, error, error.code)

    def _failed(
        self, peers: _Peers, address: str, error: TocsinError | None, code: str = ""
    ) -> None:
        peers.errors.pop(address, None)
        if error is not None:
            peers.errors[address] = error
            self._note(peers, address, error)
        if peers.trying == address:
            peers.trying = ""
        peers.error = error
        peers.group.failed(address, self._now_ns(), self._runtime.jitter(), code)
        self._dial_if_due(peers)

    def _note(self, peers: _Peers, address: str, error: TocsinError) -> None:
        """Once for each address and reason, not for each attempt; and seldom of one that accepts
        and ends the link, or says something else each time."""
        if peers.noted.get(address) != error.problem:
            peers.noted[address] = error.problem
            self._log.note(
                "warning",
                "no link to a peer",
                (address, error.code),
                peer=address,
                code=error.code,
                why=error.problem,
                remedy=error.remedy,
            )

    # What the service says

    def linked(self, connection: Connection) -> None:
        """The peer at the other end has accepted; it is a neighbour now."""
        peers = self._of.get(connection)
        if peers is None:
            return
        peers.used, peers.tried, peers.trying, peers.error = connection, None, "", None
        peers.last_used = connection.peer_address
        peers.noted.pop(connection.peer_address, None)
        first = peers.addresses[0]  # while another one is used it is tried, and no other is
        is_first = connection.peer_address == first
        peers.errors = {} if is_first else {k: v for k, v in peers.errors.items() if k == first}
        peers.group.linked(connection.peer_address, self._now_ns())
        self._dial_if_due(peers)

    def ended(self, connection: Connection) -> None:
        """The connection is over, or never became a link."""
        peers = self._of.pop(connection, None)
        if peers is None:
            return
        if peers.used is connection:
            peers.used = None
        elif peers.tried is connection:
            peers.tried = None
        else:
            return  # it was left for another one; by now its peer may be tried again
        error, address = connection.error, connection.peer_address
        if isinstance(error, BadFrame) and not connection.broker:
            error = PeerFailed(
                f"{address} is not where a broker takes links: {error.problem}",
                remedy="Name the address of that broker's --link in --peer, not that of HTTP.",
            )
        code = error.refusal_code if isinstance(error, LinkRefused) else error.code if error else ""
        is_elsewhere = address != peers.last_used and not self._has_another(connection)
        if code == LinkTwice.code and is_elsewhere:
            code = ""  # not with this peer, so another one may be tried
        self._failed(peers, address, error, code)

    def close(self) -> None:
        self._is_closed = True
        self._tasks.cancel()
        for peers in self._settings:
            if peers.timer is not None:
                peers.timer.cancel()

    def info(self) -> tuple[PeerInfo, ...]:
        return tuple(self._info(peers) for peers in self._settings)

    def _info(self, peers: _Peers) -> PeerInfo:
        used, wake_ns = peers.used, peers.group.wake_ns
        state = "linked" if used is not None else "connecting" if peers.trying else "waiting"
        waits = used is None and not peers.trying and wake_ns is not None
        next_s = max(0.0, ((wake_ns or 0) - self._now_ns()) / NS_PER_S) if waits else None
        return PeerInfo(
            addresses=peers.addresses,
            state=state,
            used=None if used is None else used.peer_address,
            broker=None if used is None else used.broker,
            next_attempt_s=next_s,
            error=None if peers.error is None else problem_of(peers.error),
            problems=tuple(
                AddressProblem(address=each, error=problem_of(peers.errors[each]))
                for each in peers.addresses
                if each in peers.errors
            ),
        )


def problem_of(error: TocsinError) -> LinkProblem:
    return LinkProblem(code=error.code, problem=error.problem, remedy=error.remedy)


def _new_peers(setting: str, options: PeerOptions) -> _Peers:
    addresses = tuple(each.strip() for each in setting.split(","))
    return _Peers(addresses, PeerGroup(addresses, options))

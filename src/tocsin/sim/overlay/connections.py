"""LinkNetwork: connections between simulated brokers, as the service of links uses them.

A connection carries bytes in their order, cut anywhere, each piece after its own delay. It may
break: then what is on its way is lost, and each side learns of it in its own time, or only by the
silence. While two hosts are cut off from each other nothing arrives, and nothing is lost before one
side has had enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Protocol

from tocsin.access.session import Session
from tocsin.errors import PeerFailed
from tocsin.event.instant import NS_PER_MS
from tocsin.services.link.transport import Receiver, Transport
from tocsin.sim.checks.link_access import LinkEndCheck
from tocsin.sim.network import Network
from tocsin.sim.process import Process
from tocsin.sim.runtime import SimSignal
from tocsin.sim.world import World

CONNECT_MS = 300  # then an attempt has failed
NOTICED_MS_MAX = 60  # until a side learns that a connection has broken, if it does
PIECES_MAX = 3  # that one write arrives in


class LinkHost(Protocol):
    """A machine whose broker takes connections from others."""

    host: str
    process: Process | None

    def link_session(self, host: str, peer: str) -> Session | None:
        """Who is at the other end; None if it is refused by what it shows."""

    def link_end_check(self, session: Session) -> LinkEndCheck | None:
        """What looks at all that is written for whoever this is."""

    def accept_link(self, transport: Transport) -> Receiver | None:
        """None while nobody listens."""


class LinkNetwork:
    """Between all brokers of one world."""

    def __init__(self, world: World, network: Network, breaks: float) -> None:
        """`breaks`: how likely a connection breaks at each write, while there are faults."""
        self.world = world
        self.network = network
        self.breaks = breaks
        self.hosts: dict[str, LinkHost] = {}
        self._apart: dict[frozenset[str], int] = {}  # pairs of hosts, and until when
        self._numbers = 40_000

    def separate(self, one: str, other: str, milliseconds: float) -> None:
        """Nothing arrives between these two for so long."""
        until_ns = self.world.now_ns + int(milliseconds * NS_PER_MS)
        pair = frozenset((one, other))
        self._apart[pair] = max(until_ns, self._apart.get(pair, 0))
        self.world.seen["hosts are cut off from each other"] += 1
        self.world.trace(f"{one} and {other} are cut off from each other")

    def together_ns(self, one: str, other: str) -> int:
        """When something sent between the two can arrive at the earliest."""
        if self.world.calm:
            return 0
        return self._apart.get(frozenset((one, other)), 0)

    def connect(
        self, process: Process, host: str, address: str, opened: Callable[[Transport], Receiver]
    ) -> Awaitable[None]:
        """A broker connects to another one."""
        answer = SimSignal()

        def fail() -> None:
            if process.is_alive:
                failure = PeerFailed(f"{address} does not answer", remedy="Is it running?")
                answer.answer(failure)

        called = self.hosts[address.partition(":")[0]]
        if self.network.loses() or self.together_ns(host, called.host) > self.world.now_ns:
            self.world.after_ms(CONNECT_MS, fail)
            return answer

        def arrive() -> None:
            self._numbers += 1
            if called.process is None or not process.is_alive:
                fail()
                return
            caller, name = self.hosts[host], f"{host}:{self._numbers}"
            theirs = caller.link_session(called.host, address)
            ours = called.link_session(host, name)
            if theirs is None or ours is None:
                self.world.seen["access: a link was refused by its certificate"] += 1
                fail()
                return
            near = LinkEnd(self, process, caller, theirs)
            far = LinkEnd(self, called.process, called, ours)
            near.other, far.other = far, near
            receiver = called.accept_link(far)
            if receiver is None:
                near.forget()
                far.forget()
                fail()
                return
            far.receiver = receiver
            self.world.after_ms(self.network.delay_ms(), connected(near))

        def connected(near: LinkEnd) -> Callable[[], None]:
            def happen() -> None:
                if near.is_ended:
                    fail()
                elif process.is_alive:
                    near.begin(opened(near))
                    answer.answer(None)

            return happen

        self.world.after_ms(self.network.delay_ms(), arrive)
        return answer


class SimConnector:
    """What the service of links of one process connects with."""

    def __init__(self, network: LinkNetwork, process: Process, host: str) -> None:
        self._network = network
        self._process = process
        self._host = host

    def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> Awaitable[None]:
        return self._network.connect(self._process, self._host, address, opened)


class LinkEnd:
    """One side of a connection; it ends with its process."""

    def __init__(
        self, network: LinkNetwork, process: Process, at: LinkHost, session: Session
    ) -> None:
        """`session`: who is at the other side."""
        self.session = session
        self.check = at.link_end_check(session)
        self.other: LinkEnd | None = None
        self.receiver: Receiver | None = None
        self.is_ended = False
        self.waiting = 0
        self._network = network
        self._world = network.world
        self._process = process
        self._host = at.host
        self._is_closing = False
        self._is_broken = False  # nothing goes through any more, in either direction
        self._early: deque[bytes] = deque()  # came before there was a receiver
        self._to_other_ns = 0
        process.connections[self] = None

    @property
    def peer(self) -> str:
        return self.session.peer

    def begin(self, receiver: Receiver) -> None:
        """The connection is known to whoever asked for it."""
        self.receiver = receiver
        while self._early and not self.is_ended:
            receiver.received(self._early.popleft())

    # What the service calls

    def write(self, data: bytes) -> None:
        if self.is_ended or self._is_closing:
            return
        self._world.seen["bytes over links"] += len(data)
        if self.check is not None:
            self.check.wrote(data)
        for piece in self._cut(data):
            self._to_other(lambda far, piece=piece: far._receive(piece))  # type: ignore[misc]
        if self._world.fault(self._network.breaks):
            self._break()

    def close(self) -> None:
        if not self._is_closing and not self.is_ended:
            self._is_closing = True
            self._to_other(lambda far: far._end("the other side closed the connection"))
            self._process.later(0, NOTICED_MS_MAX, lambda: self._end(""))

    def abort(self) -> None:
        if not self.is_ended:
            self._to_other(lambda far: far._end("the connection was reset"))
            self._process.later(0, 0, lambda: self._end(""))

    # What the process calls

    def stop(self) -> None:
        """The service says goodbye by itself."""

    def process_ended(self) -> None:
        """The machine tells the other side, or has no time to."""
        if not self._world.fault(0.5):
            self._to_other(lambda far: far._end("the connection was reset"))
        else:
            self._world.seen["link half open"] += 1
        self.forget()

    def forget(self) -> None:
        self.is_ended = True
        self._process.connections.pop(self, None)

    # On the way

    def _cut(self, data: bytes) -> list[bytes]:
        random = self._world.random
        if random.random() < 0.7 or len(data) < 2:
            return [data]
        places = sorted(random.randrange(1, len(data)) for _ in range(PIECES_MAX - 1))
        cuts = [0, *places, len(data)]
        return [data[a:b] for a, b in pairwise(cuts) if a < b]

    def _to_other(self, action: Callable[[LinkEnd], None]) -> None:
        """In the order of the calls."""
        far = self.other
        if far is None or self._is_broken:
            return
        due_ns = self._world.now_ns + int(self._network.network.delay_ms() * NS_PER_MS)
        self._to_other_ns = max(due_ns, self._to_other_ns)
        self._arrive_at(self._to_other_ns, far, action)

    def _arrive_at(self, due_ns: int, far: LinkEnd, action: Callable[[LinkEnd], None]) -> None:
        def arrive() -> None:
            if self._is_broken or far.is_ended:
                return
            together_ns = self._network.together_ns(self._host, far._host)
            if together_ns > self._world.now_ns:
                self._to_other_ns = max(self._to_other_ns, together_ns)
                self._arrive_at(together_ns, far, action)
            else:
                action(far)

        self._world.at(due_ns, arrive)

    def _receive(self, piece: bytes) -> None:
        if self.receiver is None:
            self._early.append(piece)
        else:
            self.receiver.received(piece)

    def _break(self) -> None:
        """What is on its way is lost."""
        assert self.other is not None
        self._world.seen["link broken"] += 1
        for end in (self, self.other):
            end._is_broken = True
            if self._world.fault(0.3):
                self._world.seen["link half open"] += 1
            else:
                end._process.later(0, NOTICED_MS_MAX, end._learn_of_break)

    def _learn_of_break(self) -> None:
        self._end("the connection broke")

    def _end(self, reason: str) -> None:
        if self.is_ended:
            return
        self.forget()
        if self.receiver is not None:
            self.receiver.ended(reason)

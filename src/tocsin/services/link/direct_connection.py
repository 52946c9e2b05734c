"""DirectConnection: a connection to leave results by, and what the other side does not have yet.

TCP says nothing of a host that has crashed, until something is sent there and not even then if it
does not come back. So a heartbeat follows the results, with how many there are, and the reply says
that so many have come. What is not answered for in time has to be sent again by another connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tocsin.broker.runtime import Runtime, Timer
from tocsin.errors import BadLinkMessage, LinkRefused, PeerFailed, TocsinError
from tocsin.services.link.transport import Transport
from tocsin.wire.link.codec import LinkMessage, LinkReader, encode
from tocsin.wire.link.messages import Heartbeat, HeartbeatReply, Refuse

IDLE_S: Final = 10.0  # then it is closed
ANSWER_BYTES_MAX: Final = 64 << 10  # a heartbeat, its reply, or why this is refused


@dataclass(frozen=True, slots=True)
class Package:
    """Some results, as a frame."""

    frame: bytes
    is_again: bool = False  # it was sent by another connection before


@dataclass(frozen=True, slots=True)
class Lost:
    """What a connection that is over has not delivered, and why. `is_final`: nor would another."""

    packages: tuple[Package, ...]
    error: TocsinError
    is_final: bool = False


class DirectConnection:
    """Takes packages from the first moment on; `begin` follows once there is a connection."""

    def __init__(
        self, runtime: Runtime, acknowledge_s: float, on_over: Callable[[Lost], None]
    ) -> None:
        """`acknowledge_s`: so long nothing may be acknowledged. `on_over` is called once, unless
        `close` was."""
        self._runtime = runtime
        self._acknowledge_s = acknowledge_s
        self._on_over = on_over
        self._transport: Transport | None = None
        self._reader = LinkReader(ANSWER_BYTES_MAX)
        self._packages: deque[Package] = deque()  # not acknowledged
        self._acknowledged = 0
        self._is_asking = False  # a heartbeat is on its way
        self._timer: Timer | None = None
        self._is_over = False
        self.waiting_bytes = 0  # of what is not acknowledged

    @property
    def waiting_for_connection(self) -> int:
        """How many packages are not sent yet."""
        return 0 if self._transport is not None else len(self._packages)

    def put(self, package: Package) -> None:
        self._packages.append(package)
        self.waiting_bytes += len(package.frame)
        if self._transport is not None:
            self._transport.write(package.frame)
            self._ask()

    def begin(self, transport: Transport, greeting: LinkMessage) -> None:
        if self._is_over:
            transport.close()
            return
        self._transport = transport
        transport.write(encode(greeting))
        for package in self._packages:
            transport.write(package.frame)
        self._ask()

    def fail(self, error: TocsinError) -> None:
        """It could not be opened."""
        self._end(error, is_final=True)

    def close(self) -> None:
        """This broker stops."""
        self._is_over = True
        self._cancel_timer()
        if self._transport is not None:
            self._transport.close()

    # What the transport calls

    @property
    def is_busy(self) -> bool:
        return False

    def received(self, data: bytes) -> None:
        try:
            for message in self._reader.read(data):
                if not self._is_over:
                    self._receive(message)
            if self._reader.refusal is not None:
                raise self._reader.refusal
        except TocsinError as error:
            self._end(error, is_final=True)

    def written(self) -> None:
        pass

    def ended(self, reason: str) -> None:
        self._end(_lost(reason))

    # Ours

    def _receive(self, message: LinkMessage) -> None:
        match message:
            case Heartbeat() if self._transport is not None:
                self._transport.write(encode(HeartbeatReply(message.sent_ns)))
            case HeartbeatReply(through):
                self._acknowledge(through)
            case Refuse(code, reason):
                self._end(LinkRefused.by(code, reason), is_final=True)
            case _:
                raise BadLinkMessage(
                    f"{type(message).__name__} from the receiver of results",
                    remedy="Both sides have to be Tocsin brokers of versions that fit each other.",
                )

    def _acknowledge(self, through: int) -> None:
        while self._packages and self._acknowledged < through:
            self.waiting_bytes -= len(self._packages.popleft().frame)
            self._acknowledged += 1
        self._is_asking = False
        self._ask()

    def _ask(self) -> None:
        """Whether the packages have come; one question at a time."""
        if self._is_asking or self._transport is None or self._is_over:
            return
        self._cancel_timer()
        if self._packages:
            self._is_asking = True
            sent = self._acknowledged + len(self._packages)
            self._transport.write(encode(Heartbeat(sent)))
            silent = _lost(f"no results were acknowledged for {self._acknowledge_s:g} s")
            self._timer = self._runtime.call_later(self._acknowledge_s, lambda: self._end(silent))
        else:
            idle = _lost("it was idle")
            self._timer = self._runtime.call_later(IDLE_S, lambda: self._end(idle))

    def _end(self, error: TocsinError, *, is_final: bool = False) -> None:
        if self._is_over:
            return
        self._is_over = True
        self._cancel_timer()
        if self._transport is not None:
            if self._packages:
                self._transport.abort()
            else:
                self._transport.close()
        lost, self._packages, self.waiting_bytes = tuple(self._packages), deque(), 0
        self._on_over(Lost(lost, error, is_final))

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _lost(problem: str) -> PeerFailed:
    return PeerFailed(
        problem or "the connection ended",
        remedy="Results are sent once more; else the answer says that it is incomplete.",
    )

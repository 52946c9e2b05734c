"""Connection: one connection to another broker; bytes on one side, messages on the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tocsin.broker.runtime import Runtime
from tocsin.errors import BadLinkMessage, LinkTwice, PeerFailed, RoutingTableFull, TocsinError
from tocsin.services.link.backlog import Share
from tocsin.services.link.options import LinkOptions
from tocsin.services.link.transport import Transport
from tocsin.wire.link.codec import LinkMessage, LinkReader, encode
from tocsin.wire.link.messages import Heartbeat, HeartbeatReply

NS_PER_S = 1_000_000_000


SYNC_S = 600.0  # for the tables of both sides, of which the largest have a million rows


class MessageHandler(Protocol):
    """Who is called about the messages of a connection."""

    def received(self, connection: Connection, message: LinkMessage, size: int) -> None:
        """A message of so many bytes."""

    def refuse(self, connection: Connection, error: TocsinError) -> None:
        """What came is no message; nothing more will be read."""

    def send_piece(self, connection: Connection) -> None:
        """It waits for the next piece of the tables, and everything was taken."""

    def ended(self, connection: Connection) -> None: ...


class Connection:
    """See the module. `number` names it to the router."""

    def __init__(
        self,
        number: int,
        transport: Transport,
        runtime: Runtime,
        options: LinkOptions,
        handler: MessageHandler,
        backlog: Share,
        *,
        peer_address: str = "",
    ) -> None:
        """`backlog`: what came by it and is not handled yet. `peer_address`: that of the setting by
        which we connected, if it was us."""
        self.number = number
        self.peer_address = peer_address
        self.transport = transport
        self.opened_s = self.heard_s = runtime.elapsed_s()
        self.error: TocsinError | None = None  # why it was closed
        self.agent = self.instance = self.broker = ""  # as the other side says in its Hello
        self.is_routed = False  # the router knows it
        self.is_direct = False  # for results of discovery alone
        self.wants_piece = False  # of the tables, when it has taken what was sent
        self.is_synced = False  # both sides have each other's tables
        self.round_trip_ms: float | None = None
        self.is_ended = False
        self.rights_version = 0  # those of the other side when they were last looked at
        self.backlog = backlog
        self.written_bytes = 0  # in all, of which some may wait
        self._runtime = runtime
        self._options = options
        self._handler = handler
        self._reader = LinkReader()
        self._beaten_s = self.opened_s
        self._is_invalid = False

    @property
    def is_outgoing(self) -> bool:
        return bool(self.peer_address)

    # What the transport calls

    @property
    def is_busy(self) -> bool:
        return self.backlog.is_full

    def received(self, data: bytes) -> None:
        if self._is_invalid or self.is_ended:
            return
        self.heard_s = self._runtime.elapsed_s()
        error: TocsinError | None = None
        messages: list[tuple[LinkMessage, int]] = []
        try:
            messages = self._reader.read_sized(data)
            error = self._reader.refusal
        except TocsinError as caught:
            error = caught
        for message, size in messages:
            if self.is_ended:
                return
            self._receive(message, size)
        if error is not None:
            self._is_invalid = True
            self._handler.refuse(self, error)

    def _receive(self, message: LinkMessage, size: int) -> None:
        match message:
            case Heartbeat(sent_ns):
                self.send(HeartbeatReply(sent_ns))
            case HeartbeatReply(sent_ns):
                passed_ns = int(self.heard_s * NS_PER_S) - sent_ns
                if 0 <= passed_ns <= self._options.silence_s * NS_PER_S:
                    self.round_trip_ms = passed_ns / 1e6
            case _:
                self._handler.received(self, message, size)

    def written(self) -> None:
        if self.wants_piece:
            self._handler.send_piece(self)

    def ended(self, reason: str) -> None:
        if not self.is_ended:
            self.is_ended = True
            if self.error is None and reason:
                self.error = _lost(reason)
            self._handler.ended(self)

    # What the service calls

    def send(self, message: LinkMessage) -> None:
        if not self.is_ended:
            data = encode(message)
            self.written_bytes += len(data)
            self.transport.write(data)

    def close(self, error: TocsinError | None) -> None:
        """End it once what was sent has gone out."""
        self.error = self.error or error
        self.transport.close()

    def refuse(self, error: TocsinError) -> None:
        """End it, and tell the other side why."""
        self._handler.refuse(self, error)

    def abort(self, error: TocsinError) -> None:
        self.error = self.error or error
        self.transport.abort()

    def abort_slow(self) -> None:
        self.abort(_lost(f"it reads too slowly: {self.transport.waiting} bytes wait for it"))

    def excuse(self, late_s: float) -> None:
        """For so long this broker could not read what may have come."""
        self.opened_s += late_s
        self.heard_s += late_s

    def tick(self, now_s: float, *, is_greeted: bool) -> None:
        """To be called every second or so: beats, and ends what is silent, stuck or too slow."""
        options = self._options
        if self.is_busy:
            self.heard_s = now_s  # nothing more of it is read
        if not is_greeted and now_s - self.opened_s > options.handshake_s:
            self.abort(_lost(f"no handshake within {options.handshake_s:g} s"))
        elif not self.is_synced and not self.is_direct and now_s - self.opened_s > SYNC_S:
            self.abort(_lost(f"its tables are not complete after {SYNC_S:g} s"))
        elif now_s - self.heard_s > options.silence_s:
            self.abort(_lost(f"nothing came for {options.silence_s:g} s"))
        elif self.is_synced and self.transport.waiting > options.waiting_bytes_max:
            self.abort_slow()
        elif is_greeted and now_s - self._beaten_s >= options.heartbeat_s:
            self._beaten_s = now_s
            self.send(Heartbeat(int(now_s * NS_PER_S)))


def invalid(problem: str) -> BadLinkMessage:
    """What came is not what a broker sends, or not then."""
    return BadLinkMessage(
        problem, remedy="Both sides have to be Tocsin brokers of versions that fit each other."
    )


def _lost(problem: str) -> PeerFailed:
    return PeerFailed(problem, remedy="This broker connects again by itself.")


def slowest_of(connections: Iterable[Connection], bytes_total_max: int) -> Connection | None:
    """The one that most waits for, if more than this waits for all of them together."""
    known = list(connections)
    if sum(each.transport.waiting for each in known) <= bytes_total_max:
        return None
    return max(known, key=lambda each: each.transport.waiting)


def check_only_one(
    connection: Connection, others: Iterable[Connection], alive_since_s: float
) -> None:
    """LinkTwice if something has come since by another connection of the same broker."""
    for other in others:
        if other is connection or other.heard_s <= alive_since_s:
            continue
        if other.instance != connection.instance:
            raise LinkTwice(
                f"a broker with the id {connection.broker} is connected from "
                f"{other.transport.peer}, and this is another one",
                remedy="Start the copy of its data directory with an empty one.",
            )
        if other.is_outgoing == connection.is_outgoing:
            raise LinkTwice(
                f"{connection.broker} is connected already, by {other.transport.peer}",
                remedy="Remove one of the two --peer settings that name it.",
            )


def no_room(links_max: int) -> TocsinError:
    return RoutingTableFull(
        f"this broker is about to start or has {links_max} connections to other brokers",
        remedy="The other side connects again by itself; else raise links_max in [overlay].",
    )

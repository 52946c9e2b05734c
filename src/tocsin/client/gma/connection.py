"""PeerConnection: one connection to a peer, either way: frames, messages, and every limit on them.

What cannot be understood closes it with a reason; so does a message that never becomes whole and a
peer that does not read. A request that can be answered with Failure is, and the connection stays.
Whose requests make work is served in turns, and only while it reads what it asked for.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Final, cast

from tocsin.client.gma.peer_errors import one_line
from tocsin.errors import TocsinError
from tocsin.wire.framing import FrameSplitter, framed
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.conversation import Conversation, Received
from tocsin.wire.gma.peer import receive, reply_to
from tocsin.wire.gma.write import write

FRAME_S_MAX: Final = 30.0  # for a message to come whole once it has begun
STALLED_S_MAX: Final = 60.0  # for a peer to read something when much waits for it
CLOSE_S_MAX: Final = 5.0  # for what was sent last to be read
UNREAD_BYTES_MAX: Final = 256 * 1024  # in our buffer, besides the kernel's; more is held back
TURN_S_MAX: Final = 0.005  # for the requests of one peer, while others wait
_TLS_ALERT: Final = b"\x15\x03"  # the begin of what TLS says to who does not speak it
_SPEAKS_TLS: Final = "if it uses TLS, write gmas://"
_BEHIND: Final = "its request is waiting"
_UNREAD: Final = "what it asked for is not read"
_QUIET_S, _PROBE_S, _PROBES = 60, 15, 4  # a host that vanished is noticed after two minutes

log = logging.getLogger("tocsin.gma")


class PeerConnection(asyncio.Protocol):
    """`accepted`: the peer called us, so that what it asks makes work for us. `in_turns`: so much
    work that it is done while the peer reads what comes of it, and others have their turn.

    A subclass says what to do when it is `opened`, `received` a message, `has_room` or is `closed`.
    """

    def __init__(
        self,
        conversation: Conversation,
        *,
        frame_bytes_max: int,
        accepted: bool,
        in_turns: bool = False,
        partial_messages: PartialMessages | None = None,
    ) -> None:
        self.conversation = conversation
        self._accepted = accepted
        self._in_turns = in_turns
        self._partial_messages = partial_messages or PartialMessages()
        self._partial_bytes = 0
        self._frames: deque[bytes] = deque()  # that wait for their turn
        self._splitter = FrameSplitter(frame_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._why: str | None = None
        self._frame_deadline = Deadline(self._loop)
        self._stall_timer: asyncio.TimerHandle | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self._held: set[str] = set()  # reasons not to read
        self._has_received = False
        self.is_clogged = False
        self.message_bytes = 0  # of the one that is being handled

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._why is None

    @property
    def peer(self) -> str:
        """Who it is, for people."""
        found = self._transport.get_extra_info("peername") if self._transport else None
        return f"{found[0]}:{found[1]}" if found else "somebody"

    @property
    def _is_tls(self) -> bool:
        found = self._transport.get_extra_info("sslcontext") if self._transport else None
        return found is not None

    @property
    def unread_bytes(self) -> int:
        """What we have written and the kernel has not taken."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def opened(self) -> None:
        """It is there. With TLS that may never be, and then nothing more is called."""

    def received(self, received: Received) -> None:
        """The peer sent something. If that has a reply of its own, it is sent already."""

    def has_room(self) -> None:
        """The peer has read on: what was held back can be sent."""

    def closed(self, why: str) -> None:
        """It is over. Called once."""

    # What this side does

    def send(self, message: m.Message) -> None:
        """Send a message, if there is still somebody to send it to."""
        self.send_bytes(write(message))

    def send_bytes(self, message: bytes) -> None:
        """Send a message that is written already."""
        if self.is_open:
            assert self._transport is not None
            self._transport.write(framed(message))

    def hold(self, reason: str) -> None:
        """Read no more until that reason is gone."""
        self._held.add(reason)
        self._frame_deadline.stop()  # what is not read cannot come whole
        if self._transport is not None:
            self._transport.pause_reading()

    def release(self, reason: str) -> None:
        """That reason is gone."""
        self._held.discard(reason)
        if not self._held and self.is_open:
            assert self._transport is not None
            self._frame_deadline.go_on()
            self._transport.resume_reading()

    def close(self, why: str) -> None:
        """Close after what was sent is read, or not read in time."""
        if self._why is None:
            self._why = why
            if self._transport is not None:
                # A second close would take asyncio's TLS transport apart, and the peer's is one.
                if not self._transport.is_closing():
                    self._transport.close()
                self._close_timer = self._loop.call_later(CLOSE_S_MAX, self._transport.abort)

    def abort(self, why: str) -> None:
        """Close at once."""
        if self._why is None:
            self._why = why
        if self._transport is not None:
            self._transport.abort()

    def _fault(self, why: str) -> None:
        """The peer did wrong: close at once, and let people know."""
        words = one_line(why)
        log.warning("closed the connection with %s: %s", self.peer, words)
        self.abort(words)

    # What the network does

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=UNREAD_BYTES_MAX)
        opened = transport.get_extra_info("socket")
        if opened is not None:
            _watch(opened)
        self.opened()

    def data_received(self, data: bytes) -> None:
        frames: list[bytes] = []
        is_first, self._has_received = not self._has_received, True
        if is_first and data.startswith(_TLS_ALERT):
            self._fault(_SPEAKS_TLS)
            return
        try:
            frames = self._splitter.split(data)
        except TocsinError as error:
            self._fault(str(error))
        self._frames.extend(frames)
        self._take_turn()
        self._watch_frame(is_new=bool(frames))

    def _take_turn(self) -> None:
        """Read what has come; in turns, as much as may be now."""
        began_s = self._loop.time()
        try:
            while self._frames and self._why is None and not self._must_wait(began_s):
                self._take(self._frames.popleft())
        except TocsinError as error:
            self._fault(str(error))
        if not self._frames or self._why is not None:
            self._frames.clear()
            if _BEHIND in self._held:
                self.release(_BEHIND)
            return
        self.hold(_BEHIND)
        if not self.is_clogged:
            self._loop.call_soon(self._take_turn)

    def _must_wait(self, began_s: float) -> bool:
        is_over = self.is_clogged or self._loop.time() - began_s > TURN_S_MAX
        return self._in_turns and is_over

    def _take(self, frame: bytes) -> None:
        self.message_bytes = len(frame)
        received = receive(self.conversation, frame)
        reply = reply_to(received)
        if reply is not None:
            self.send(reply)
        self.received(received)

    def _watch_frame(self, *, is_new: bool) -> None:
        """Give a message that has begun its time; bytes that trickle in give it no more."""
        self._count_partial(self._splitter.waiting)
        if is_new or not self._splitter.waiting:
            self._frame_deadline.cancel()
        if not self._frame_deadline.is_set and self._splitter.waiting and self.is_open:
            self._frame_deadline.start(
                FRAME_S_MAX, self._frame_overdue, is_stopped=bool(self._held)
            )

    def _count_partial(self, now: int) -> None:
        before, self._partial_bytes = self._partial_bytes, now
        if not self._partial_messages.changed(before, now):
            self._fault("too many messages have begun that are not whole")

    def _frame_overdue(self) -> None:
        self._fault(f"a message did not come whole within {FRAME_S_MAX:g} s")

    def pause_writing(self) -> None:
        self.is_clogged = True
        if self._accepted:
            self.hold(_UNREAD)
        self._stall_timer = self._loop.call_later(
            STALLED_S_MAX, self._fault, f"it has not read for {STALLED_S_MAX:g} s"
        )

    def resume_writing(self) -> None:
        self.is_clogged = False
        if self._stall_timer is not None:
            self._stall_timer.cancel()
        self.release(_UNREAD)
        if self.is_open:
            self.has_room()
            self._take_turn()

    def connection_lost(self, error: Exception | None) -> None:
        for timer in (self._frame_deadline, self._stall_timer, self._close_timer):
            if timer is not None:
                timer.cancel()
        if self._why is None:
            self._why = str(error) if error else "the other side closed the connection"
            if not self._accepted and not self._has_received and not self._is_tls:
                self._why += f" without an answer; {_SPEAKS_TLS}"
        self.closed(self._why)
        self._let_go()

    def _let_go(self) -> None:
        """Whoever still knows this connection keeps nothing of what went over it: thousands that
        come and go would wait for a collection of garbage."""
        self._count_partial(0)
        self._transport = None
        self._frames.clear()
        self._splitter.refusal = None  # which was raised, and holds what it was raised from
        self._splitter = FrameSplitter(0)


def _watch(opened: socket.socket) -> None:
    """Have the kernel notice a peer that vanished without a word."""
    with suppress(OSError, AttributeError):
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _QUIET_S)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_S)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)


class Deadline:
    """Of the loop's thread alone. It has a receiver only while it is set."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._expired: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._left_s: float | None = None  # while it is stopped

    @property
    def is_set(self) -> bool:
        return self._expired is not None

    def start(
        self, limit_s: float, expired: Callable[[], None], *, is_stopped: bool = False
    ) -> None:
        """From now on, or from when it goes on."""
        self.cancel()
        self._left_s, self._expired = limit_s, expired
        if not is_stopped:
            self.go_on()

    def stop(self) -> None:
        """Time does not count for a while."""
        if self._timer is not None:
            self._left_s = max(0.0, self._timer.when() - self._loop.time())
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """It counts again."""
        if self._left_s is not None:
            self._timer = self._loop.call_later(self._left_s, self._expire)
            self._left_s = None

    def cancel(self) -> None:
        """There is none any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._left_s = self._expired = None

    def _expire(self) -> None:
        expired = self._expired
        self.cancel()
        if expired is not None:
            expired()


ALL_BYTES_MAX: Final = 64 << 20
OWN_BYTES_MAX: Final = 64 << 10  # which everybody may have, whatever the others do


class PartialMessages:
    """Of the loop's thread alone."""

    def __init__(self) -> None:
        self._bytes = 0

    def changed(self, before: int, now: int) -> bool:
        """One of them has so much now; False if that is too much."""
        self._bytes += now - before
        return now <= OWN_BYTES_MAX or self._bytes <= ALL_BYTES_MAX


class IdSource:
    """The ids that one producer or consumer gives, each once, on whichever connection (sections
    4.2.1, 4.2.2). Of the loop's thread alone."""

    def __init__(self) -> None:
        self._requests = count(1)
        self._subscriptions = count(1)
        self._events = count(1)

    def conversation(self, roles: str) -> Conversation:
        """One side of a new conversation, in that role."""
        return Conversation(
            frozenset({roles}),
            lambda: str(next(self._subscriptions)),
            lambda: str(next(self._requests)),
        )

    def event(self) -> str:
        """The number of an event that is to be answered: no other of this producer has it, and
        no request, so that feeds may share a connection."""
        return f"e{next(self._events)}"

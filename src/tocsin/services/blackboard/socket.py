"""`GET /blackboard/socket`: one connection for a publisher, a subscriber, or both.

The client sends one command at a time, as a JSON object: `publish`, `subscribe`, `unsubscribe` or
`register`; `ref` comes back with the answer. What it subscribed to is sent as it is published, and
the aggregate profile, once it has registered, whenever it changes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tocsin.access.session import Session
from tocsin.access.wording import RIGHT_ENDED
from tocsin.broker.effects import Accepted
from tocsin.broker.port import BrokerPort
from tocsin.errors import BadRequest, TocsinError
from tocsin.event.concept_filter import CONCEPTS_MAX, concepts_filter
from tocsin.event.stored import Stored
from tocsin.services.blackboard.board import Board
from tocsin.services.blackboard.messages import message_events
from tocsin.services.streams.transport import SocketLimits, StreamTransport
from tocsin.services.streams.websocket import Reply, UpgradeRequest, WebSocketSession
from tocsin.wire.api.problem import problem_json
from tocsin.wire.api.query import Query
from tocsin.wire.api.stream_request import StreamRequest
from tocsin.wire.blackboard.messages import Profile
from tocsin.wire.blackboard.write import message_of
from tocsin.wire.websocket import text_frame

_FORM = (
    'Send {"publish": [messages]}, {"subscribe": [concepts]}, {"unsubscribe": true} '
    'or {"register": true}.'
)

_encode = msgspec.json.Encoder().encode


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a client may send."""

    publish: msgspec.Raw = None  # type: ignore[assignment]  # msgspec reads no union with Raw
    subscribe: list[str] | None = None
    unsubscribe: bool = False
    register: bool = False
    after: int | None = None  # with subscribe: from there in the log
    ref: str | int | None = None


_decode = msgspec.json.Decoder(Command).decode


class _CommandReply:
    """The answer to one command; for a publish, once its messages are on disk."""

    __slots__ = ("_ref", "_reply")

    def __init__(self, reply: Reply, ref: str | int | None) -> None:
        self._reply = reply
        self._ref = ref

    def answer(self, result: object) -> None:
        members: dict[str, Any]
        if isinstance(result, TocsinError):
            members = {"problem": msgspec.Raw(problem_json(result))}
        elif isinstance(result, Accepted):
            members = msgspec.structs.asdict(result)
        else:
            assert isinstance(result, dict), result
            members = result
        self._reply.send(_encode(members | ({} if self._ref is None else {"ref": self._ref})))


class BoardSocket(WebSocketSession):
    """One publisher, subscriber, or both."""

    subprotocol = "blackboard.json"

    def __init__(
        self,
        port: BrokerPort,
        session: Session,
        limits: SocketLimits,
        transport: StreamTransport,
        request: UpgradeRequest,
        board: Board,
    ) -> None:
        super().__init__(port, session, limits, transport, request)
        self._board = board
        self._profile: frozenset[str] = frozenset()
        self._is_registered = False
        self._profile_due = False  # it changed while the client did not read

    def _begin(self) -> None:
        Query.parse(self._request.query, ())
        self._board.check_read(self._session)  # it may ask for nothing but the profile

    def _message(self, text: str) -> None:
        ref = None
        reply = self._new_reply()
        try:
            command = _read(text)
            ref = command.ref
            self._perform(command, _CommandReply(reply, ref))
        except TocsinError as error:
            self._transport.count_refused()
            _CommandReply(reply, ref).answer(error)

    def _perform(self, command: Command, reply: _CommandReply) -> None:
        if command.publish is not None:
            self._publish(bytes(command.publish), reply)
        elif command.subscribe is not None:
            reply.answer(self._subscribe(command.subscribe, command.after))
        elif command.unsubscribe:
            self._close_stream()
            reply.answer({"subscribed": 0})
        elif command.register:
            self._board.check_read(self._session)
            self._register()
            reply.answer({"profile": self._board.profile})
        else:
            raise BadRequest("the message asks for nothing", remedy=_FORM)

    def _publish(self, body: bytes, reply: _CommandReply) -> None:
        events = message_events(body, self._limits.event, self._port.runtime.new_id)
        if events:
            self._port.submit(self._session, events, reply)
        else:
            reply.answer(Accepted(0, 0, 0))

    def _subscribe(self, concepts: list[str], after: int | None) -> dict[str, int]:
        if not 0 < len(concepts) <= CONCEPTS_MAX:
            raise BadRequest(
                f"the profile has {len(concepts)} concepts", remedy=f"Name 1 to {CONCEPTS_MAX}."
            )
        wanted = concepts_filter(concepts)
        self._close_stream()
        self._profile = wanted.names()
        self._stream = self._port.open_stream(self._session, self, wanted, after, self.name)
        position = StreamRequest(wanted, after).position(self._port.head)
        return {"subscribed": len(self._profile), "after": position}

    def _register(self) -> None:
        if not self._is_registered:
            self._is_registered = True
            self._board.on_profile.append(self._send_profile)

    def _send_profile(self, profile: Profile) -> None:
        """Now, or the latest one when the client reads again: never more than one waits. Who may
        not read it any more is sent none."""
        if not self._board.may_read(self._session):
            self.end(RIGHT_ENDED)
            return
        self._profile_due = self._transport.is_full
        if not self._profile_due:
            self._send_text(_encode({"profile": profile}))

    def writable(self) -> None:
        if self._profile_due and self._is_registered:
            self._send_profile(self._board.profile)
        super().writable()

    def write(self, events: list[Stored]) -> bool:
        if self._is_open:
            frames = [text_frame(message_of(stored, self._profile)) for stored in events]
            self._transport.write(b"".join(frames))
        return not self._transport.is_full

    def lost(self) -> None:
        if self._is_registered:
            self._is_registered = False
            self._board.on_profile.remove(self._send_profile)
        super().lost()


def _read(text: str) -> Command:
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(f"the message cannot be read: {error}", remedy=_FORM) from None

"""`GET /blackboard/socket`: one connection for a publisher, a subscriber, or both.

The client says one thing at a time, as a JSON object: `publish`, `subscribe`, `unsubscribe` or
`register`; `ref` comes back with the answer. What it subscribed to comes as it happens, and the
aggregate profile, once it has registered, whenever it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tocsin.access.session import anonymous
from tocsin.broker.effects import Accepted
from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.frames import text_frame
from tocsin.drivers.http.publication import message_events
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.websocket import Answer, Socket
from tocsin.errors import BadRequest, TocsinError
from tocsin.event.concept_filter import CONCEPTS_MAX, concepts_filter
from tocsin.event.stored import Stored
from tocsin.wire.api.problem import problem_json
from tocsin.wire.api.query import Query
from tocsin.wire.blackboard.messages import Profile
from tocsin.wire.blackboard.write import message_of

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

_FORM = (
    'Send {"publish": [messages]}, {"subscribe": [concepts]}, {"unsubscribe": true} '
    'or {"register": true}.'
)

_encode = msgspec.json.Encoder().encode


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a client may say."""

    publish: msgspec.Raw = None  # type: ignore[assignment]  # msgspec reads no union with Raw
    subscribe: list[str] | None = None
    unsubscribe: bool = False
    register: bool = False
    after: int | None = None  # with subscribe: from there in the log
    ref: str | int | None = None


_read = msgspec.json.Decoder(Said).decode


class Publication:
    """Messages that came in over a socket, until they are on disk."""

    __slots__ = ("_answer", "_ref")

    def __init__(self, answer: Answer, ref: str | int | None) -> None:
        self._answer = answer
        self._ref = ref

    def answer(self, result: object) -> None:
        told: dict[str, Any]
        if isinstance(result, TocsinError):
            told = {"problem": msgspec.Raw(problem_json(result))}
        elif isinstance(result, Accepted):
            told = msgspec.structs.asdict(result)
        else:
            assert isinstance(result, dict), result
            told = result
        self._answer.give(_encode(told | ({} if self._ref is None else {"ref": self._ref})))


class BoardSocket(Socket):
    """One publisher, subscriber, or both."""

    subprotocol = "blackboard.json"

    def __init__(self, connection: Connection, request: Request, node: Node) -> None:
        super().__init__(connection, request, node)
        self._profile: frozenset[str] = frozenset()
        self._session = anonymous("websocket", connection.peer)
        self._is_registered = False
        self._profile_due = False  # it changed while the client did not read

    def _begin(self) -> None:
        Query.parse(self._request.query, ())

    def _text_max(self) -> int:
        return self._connection.door.limits.body_bytes_max  # a batch, as in a POST

    def _text(self, text: str) -> None:
        ref = None
        answer = self._new_answer()
        try:
            said = _said(text)
            ref = said.ref
            self._do(said, Publication(answer, ref))
        except TocsinError as error:
            self._connection.door.unreadable += 1
            Publication(answer, ref).answer(error)

    def _do(self, said: Said, publication: Publication) -> None:
        if said.publish is not None:
            events = message_events(bytes(said.publish), self._connection.door.event_limits)
            if events:
                self._port.submit(self._session, events, publication)
            else:
                publication.answer(Accepted(0, 0, 0))
        elif said.subscribe is not None:
            count = self._subscribe(said.subscribe, said.after)
            # A reader whose socket breaks before its first message must know where to go on.
            head = self._node.broker.head
            place = head if said.after is None else min(said.after, head)
            publication.answer({"subscribed": count, "after": place})
        elif said.unsubscribe:
            self._unsubscribe()
            publication.answer({"subscribed": 0})
        elif said.register:
            self._node.board.check_read(self._session)
            self._register()
            publication.answer({"profile": self._node.board.profile})
        else:
            raise BadRequest("the message asks for nothing", remedy=_FORM)

    def _subscribe(self, concepts: list[str], after: int | None) -> int:
        if not 0 < len(concepts) <= CONCEPTS_MAX:
            raise BadRequest(
                f"the profile has {len(concepts)} concepts", remedy=f"Name 1 to {CONCEPTS_MAX}."
            )
        wanted = concepts_filter(concepts)
        self._unsubscribe()
        self._profile = wanted.names()
        self._stream = self._port.open_stream(self._session, self, wanted, after, self.name)
        return len(self._profile)

    def _unsubscribe(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            self._port.close_stream(stream)

    def _register(self) -> None:
        if not self._is_registered:
            self._is_registered = True
            self._node.board.on_profile.append(self._another_profile)

    def _another_profile(self, profile: Profile) -> None:
        """Told now, or the latest one when the client reads again: never more than one waits."""
        self._profile_due = self._connection.write_paused
        if not self._profile_due:
            self._say(_encode({"profile": profile}))

    def writable(self) -> None:
        if self._profile_due and self._is_registered:
            self._another_profile(self._node.board.profile)
        super().writable()

    def write(self, events: list[Stored]) -> bool:
        if self._open:
            frames = [text_frame(message_of(stored, self._profile)) for stored in events]
            self._connection.write(b"".join(frames))
        return not self._connection.write_paused

    def lost(self) -> None:
        if self._is_registered:
            self._is_registered = False
            self._node.board.on_profile.remove(self._another_profile)
        super().lost()


def _said(text: str) -> Said:
    try:
        return _read(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadRequest(f"the message cannot be read: {error}", remedy=_FORM) from None

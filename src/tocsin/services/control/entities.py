"""Entities: the streams of those who are connected to this broker, and what each of them gets.

An entity gets what is sent to its own topic, and nothing of others; and, if it answers requests
when no topic discovery node does, those that are for everybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.resources import filter_resource
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.errors import Busy, NoEntity
from tocsin.event.control_topic import ENTITY_LEVELS, TOPICS, ControlGroup, ControlTopic
from tocsin.event.filter import TopicIs
from tocsin.event.instant import rfc3339
from tocsin.event.topic import TopicPattern
from tocsin.overlay.control.options import ControlOptions
from tocsin.overlay.control.rates import Rates
from tocsin.services.control.mailbox import Mailbox, Reader, Room
from tocsin.wire.api.control_views import ControlMessage
from tocsin.wire.link.messages import Control
from tocsin.wire.sse import sse_event

SWEEP_S: Final = 30.0

EntityOf = Callable[[Session], str]
"""The id of the entity that has this session; empty for who has not proved to be one."""

_REQUESTS: Final = TopicIs(TopicPattern(tuple(TOPICS.split("/"))))
_encode = msgspec.json.Encoder().encode


class Entities:
    """Of one broker."""

    def __init__(self, port: BrokerPort, options: ControlOptions, entity_of: EntityOf) -> None:
        self._port = port
        self._options = options
        self._entity_of = entity_of
        self._streams: dict[str, list[Mailbox]] = {}  # by entity
        self._with_requests: dict[Mailbox, None] = {}
        self._count = 0
        self._rates = Rates(options.entity_rate, options.streams_max)
        self._room = Room(options.mailbox_bytes_total_max)
        self.dropped = 0
        self._is_sweeping = False

    def __len__(self) -> int:
        """How many streams there are."""
        return self._count

    @property
    def waiting_bytes(self) -> int:
        return self._room.bytes

    def open(self, session: Session, reader: Reader, *, has_requests: bool) -> Mailbox:
        """The messages of the session's entity from now on. NotAllowed, NoEntity, or Busy if there
        are too many streams."""
        entity = self.check(session, has_requests=has_requests)
        own = self._streams.get(entity, ())
        if len(own) >= self._options.streams_per_entity_max or self._count >= (
            self._options.streams_max
        ):
            raise Busy(
                f"{len(own)} streams of this entity are open, and {self._count} in all",
                remedy="Close one of them.",
            )
        mailbox = Mailbox(
            entity, session, reader, self._room, self._options, has_requests=has_requests
        )
        self._streams.setdefault(entity, []).append(mailbox)
        self._count += 1
        if has_requests:
            self._with_requests[mailbox] = None
        self._sweep_later()
        return mailbox

    def close(self, mailbox: Mailbox) -> None:
        own = self._streams.get(mailbox.entity, [])
        if mailbox in own:
            own.remove(mailbox)
            self._count -= 1
            self._with_requests.pop(mailbox, None)
            mailbox.close()
            if not own:
                del self._streams[mailbox.entity]

    def deliver(self, topic: ControlTopic, message: Control, now_ns: int) -> None:
        """To the streams that it is for."""
        if topic.group is ControlGroup.ENTITY:
            mailboxes = list(self._streams.get(topic.name, ()))
        else:
            mailboxes = list(self._with_requests)
        frame = sse_event(_shown(message), name=b"message") if mailboxes else b""
        for mailbox in mailboxes:
            if self._end_without_right(mailbox):
                continue
            if not self._rates.take(mailbox.entity, now_ns):
                mailbox.drop()
                self.dropped += 1
            elif not mailbox.put(frame):
                self.dropped += 1

    def check(self, session: Session, *, has_requests: bool) -> str:
        """The entity that may have such a stream in this session. NotAllowed, NoEntity."""
        entity = self._entity_of(session)
        for wanted in _wanted(entity or "*", has_requests=has_requests):
            self._port.check(session, Action.SUBSCRIBE, filter_resource(wanted), wanted)
        if not entity:
            raise NoEntity(
                f"{session.principal.name} has not proved to be an entity",
                remedy="Connect with a client certificate, or sign in by proof of possession.",
            )
        return entity

    def _end_without_right(self, mailbox: Mailbox) -> bool:
        """True if the right or the credential has ended: then the stream does too."""
        wanted = _wanted(mailbox.entity, has_requests=mailbox.has_requests)
        if all(
            self._port.may(mailbox.session, Action.SUBSCRIBE, filter_resource(each), each)
            for each in wanted
        ):
            return False
        mailbox.close()
        mailbox.end("the right or the credential that it was opened with has ended")
        return True

    def _sweep_later(self) -> None:
        if not self._is_sweeping:
            self._is_sweeping = True
            self._port.runtime.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self._is_sweeping = False
        if self._port.runtime.is_stopping:
            return
        for mailbox in [each for own in self._streams.values() for each in own]:
            self._end_without_right(mailbox)
        if self._count:
            self._sweep_later()


def _wanted(entity: str, *, has_requests: bool) -> list[TopicIs]:
    """What a stream has, as subscriptions would name it."""
    own = TopicIs(TopicPattern((*ENTITY_LEVELS, entity)))
    return [own, _REQUESTS] if has_requests else [own]


def _shown(message: Control) -> bytes:
    return _encode(
        ControlMessage(
            id=message.id,
            topic=message.topic,
            origin=message.origin,
            sent=rfc3339(message.sent_ns),
            kind=message.kind,
            body=message.body,
        )
    )

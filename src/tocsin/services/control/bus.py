"""ControlBus: the control messages of one broker. Clients and services send, and get what is for
them; what goes on to other brokers goes over the links.

They are datagrams: in no log and kept for nobody. One may be lost with a link, or dropped where too
many come; none arrives twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from tocsin.access.decision import Action
from tocsin.access.peers import counted_as, host_of
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Timer
from tocsin.errors import BadControlMessage, TocsinError
from tocsin.event.control_topic import EVERY_BROKER, FLOOD_HOPS_MAX, ControlGroup, ControlTopic
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.control.core import ControlCore, Dropped
from tocsin.overlay.control.effects import Deliver, Effect, Send, Ways
from tocsin.overlay.control.options import ControlOptions
from tocsin.overlay.control.waiting import Waiting
from tocsin.services.control.entities import Entities, EntityOf
from tocsin.services.control.views import ControlInfo, TdnsAt, by_group
from tocsin.wire.api.control_request import ControlRequest
from tocsin.wire.link.messages import HOPS_MAX, TDNS_MAX, Control, Serves

OVERHEAD_BYTES: Final = 256  # of a message beside its body, at most

Listener = Callable[[Control], None]
"""Called with each message, in the order in which they come. What takes long is for later."""


class Links(Ways, Protocol):
    """The links to other brokers, and where these are."""

    def send(self, neighbour: str, message: Control | Serves) -> None: ...

    def written(self, neighbour: str) -> int:
        """Bytes on its connection since it is there, of whatever."""

    def taken(self, neighbour: str) -> int:
        """Of those, the ones that do not wait any more."""

    def check_tdns(self, neighbour: str, broker: str) -> None:
        """Raise NotAllowed if the neighbour may not speak of topic discovery nodes there."""

    def may_have(self, neighbour: str, topic: str) -> bool:
        """Whether the neighbour has the right to get messages on this topic."""

    def ignored(self, neighbour: str, error: TocsinError) -> None:
        """What the neighbour has sent is dropped: it and people have to know."""


class Sent(msgspec.Struct, frozen=True):
    """What became of one. `tdns`: the brokers with topic discovery nodes that it is for."""

    id: str
    tdns: int
    neighbours: int  # to which it was sent
    dropped: int  # neighbours for which too much waits already


class ControlBus:
    """See the module."""

    def __init__(
        self, port: BrokerPort, broker: str, options: ControlOptions, entity_of: EntityOf
    ) -> None:
        """`broker`: the id of this one."""
        self.core = ControlCore(broker, options)
        self.entities = Entities(port, options, entity_of)
        self._port = port
        self._runtime = port.runtime
        self._options = options
        self._entity_of = entity_of
        self._links: Links | None = None
        self._waiting = Waiting(
            options.waiting_bytes_max, options.waiting_bytes_total_max, self._taken
        )
        self._tdns: dict[str, Listener] = {}
        self._listeners: dict[ControlGroup, list[Listener]] = {}
        self._timer: Timer | None = None
        self._shared_ns = 0  # when neighbours were last told of topic discovery nodes

    def info(self) -> ControlInfo:
        """How it is, for people."""
        core, counts = self.core, self.core.counts
        dropped = {**counts.dropped, Dropped.MAILBOX: self.entities.dropped}
        return ControlInfo(
            tdns=tuple(TdnsAt(each.broker, each.tdns) for each in core.serving.brokers()),
            sent=by_group(counts.sent),
            received=by_group(counts.received),
            forwarded=by_group(counts.forwarded),
            delivered=by_group(counts.delivered),
            dropped={each.value: dropped.get(each, 0) for each in Dropped},
            repeats=counts.repeats,
            remembered=core.remembered,
            waiting_bytes=self._waiting.total,
            streams=len(self.entities),
            mailbox_bytes=self.entities.waiting_bytes,
        )

    # Services of this broker

    def serve(self, tdn: str, listener: Listener) -> Callable[[], None]:
        """There is a topic discovery node with this id here. Call what is returned when there is
        none any more."""
        if tdn in self._tdns or len(self._tdns) >= TDNS_MAX:
            raise BadControlMessage(
                f"{tdn} is here already, or {TDNS_MAX} topic discovery nodes are",
                remedy="Give each an id of its own, and start others at another broker.",
            )
        self._tdns[tdn] = listener
        self._set_own()

        def stop() -> None:
            if self._tdns.get(tdn) is listener:
                del self._tdns[tdn]
                self._set_own()

        return stop

    def _set_own(self) -> None:
        self.core.serving.set_own(tuple(self._tdns), self._port.lower_bound_ns)
        self.share()

    def listen(self, group: ControlGroup, listener: Listener) -> Callable[[], None]:
        """Get what is for every broker. Call what is returned to get nothing more."""
        listeners = self._listeners.setdefault(group, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    # Sending

    def send(self, session: Session, asked: ControlRequest) -> Sent:
        """Send it now. NotAllowed; BadControlMessage; ControlRateReached; NoSuchBroker."""
        topic = ControlTopic.parse(asked.topic)
        self._port.check(session, Action.PUBLISH, asked.topic)
        now_ns = self._now_ns()
        if not session.principal.is_internal:
            if topic.group is ControlGroup.RIGHTS:
                raise BadControlMessage(
                    "what brokers say about rights is sent by them alone",
                    remedy="Present a grant by POST /topics/grants.",
                )
            self.core.check_rate(self._sender(session), now_ns)
        is_near = asked.to == EVERY_BROKER and topic.group is not ControlGroup.RIGHTS
        message = Control(
            id=self._runtime.new_id(),
            topic=asked.topic,
            origin=self.core.broker,
            to=asked.to,
            ttl=asked.ttl or (FLOOD_HOPS_MAX if is_near else HOPS_MAX),
            sent_ns=max(0, self._runtime.now_ns()),
            kind=asked.kind,
            body=asked.body,
        )
        effects = self.core.send(message, now_ns)
        tdns = 0 if asked.to else sum(1 for _ in self.core.serving.brokers(topic.name))
        sent, dropped = self._perform(effects, "")
        return Sent(message.id, tdns, sent, dropped)

    def _sender(self, session: Session) -> str:
        """Whose rate counts."""
        entity = self._entity_of(session)
        return entity or f"{session.principal.name} {counted_as(host_of(session.peer))}"

    # What the links call

    def use(self, links: Links) -> None:
        """From now on there are links."""
        self._links = links
        self.core.use(links)

    def link_up(self, neighbour: str) -> None:
        self._waiting.forget(neighbour)
        self.core.link_up(neighbour)
        self.share()

    def link_down(self, neighbour: str) -> None:
        self._waiting.forget(neighbour)
        self.core.link_down(neighbour)
        self.share()

    def receive(self, neighbour: str, message: Control | Serves) -> None:
        """A neighbour that has the right to has sent it."""
        try:
            if isinstance(message, Serves):
                self.core.serving.receive(neighbour, message)
                self._look_at_right(neighbour, message.broker)
                self.share()
            else:
                self._perform(self.core.receive(neighbour, message, self._now_ns()), neighbour)
        except TocsinError as error:
            self._ignore(neighbour, error)

    def rights_changed(self, neighbour: str) -> None:
        """It may speak of other brokers than before."""
        for broker in self.core.serving.said_by(neighbour):
            with suppress(TocsinError):
                self._look_at_right(neighbour, broker)
        self.share()

    def _look_at_right(self, neighbour: str, broker: str) -> None:
        """What it says of a broker counts while it has the right to. NotAllowed if it has none."""
        serving = self.core.serving
        try:
            if self._links is not None:
                self._links.check_tdns(neighbour, broker)
        except TocsinError:
            serving.bar(neighbour, broker, is_barred=True)
            raise
        serving.bar(neighbour, broker, is_barred=False)

    def share(self) -> None:
        """Other brokers may have to be told of topic discovery nodes: soon, and not too often."""
        if self._links is None or self._timer is not None or not self.core.serving.has_news:
            return
        due_ns = self._shared_ns + self._options.share_pause_ns
        delay_s = max(0, due_ns - self._now_ns()) / NS_PER_S
        self._timer = self._runtime.call_later(delay_s, self._share)

    def _share(self) -> None:
        self._timer = None
        self._shared_ns = self._now_ns()
        if self._links is not None and not self._runtime.is_stopping:
            for neighbour, message in self.core.serving.news():
                self._links.send(neighbour, message)

    def close(self) -> None:
        """Nothing is sent any more."""
        self._links = None
        if self._timer is not None:
            self._timer.cancel()

    # What is to be done

    def _perform(self, effects: list[Effect], came_by: str) -> tuple[int, int]:
        """To how many neighbours it was sent, and for how many it was dropped."""
        sent = dropped = 0
        for effect in effects:
            match effect:
                case Deliver(topic, message):
                    self._deliver(topic, message)
                case Send(neighbour, message):
                    is_sent = self._send(neighbour, message, came_by)
                    sent, dropped = sent + is_sent, dropped + (not is_sent)
        return sent, dropped

    def _send(self, neighbour: str, message: Control, came_by: str) -> bool:
        links, size = self._links, len(message.body) + OVERHEAD_BYTES
        if links is None:
            return False
        if not links.may_have(neighbour, message.topic):
            self.core.counts.dropped[Dropped.RIGHT] += 1
            return False
        if not self._waiting.has_room(neighbour, size):
            error = self.core.dropped(neighbour)
            if came_by:
                self._ignore(came_by, error)
            return False
        links.send(neighbour, message)
        self._waiting.add(neighbour, size, links.written(neighbour))
        self.core.forwarded(message)
        return True

    def _deliver(self, topic: ControlTopic, message: Control) -> None:
        if topic.group in (ControlGroup.TOPICS, ControlGroup.NODES):
            for tdn, listener in list(self._tdns.items()):
                if topic.name in ("", tdn):
                    self._call(listener, message)
        for listener in list(self._listeners.get(topic.group, ())):
            self._call(listener, message)
        is_for_entities = topic.group is ControlGroup.ENTITY or (
            topic.group is ControlGroup.TOPICS and message.to == EVERY_BROKER
        )
        if is_for_entities:
            self.entities.deliver(topic, message, self._now_ns())

    def _call(self, listener: Listener, message: Control) -> None:
        """A bug in a service costs this message alone."""
        try:
            listener(message)
        except Exception as error:
            words = f"{type(error).__name__}: {error}"
            self._runtime.note(
                "error", "a control message was not handled", kind=message.kind, error=words
            )

    def _ignore(self, neighbour: str, error: TocsinError) -> None:
        if self._links is not None:
            self._links.ignored(neighbour, error)

    def _taken(self, neighbour: str) -> int:
        return 0 if self._links is None else self._links.taken(neighbour)

    def _now_ns(self) -> int:
        return int(self._runtime.elapsed_s() * NS_PER_S)

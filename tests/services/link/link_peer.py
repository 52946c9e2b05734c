"""A broker's service of links run by hand, and neighbours that a test plays itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from manual_runtime import ManualRuntime
from tocsin.access.decision import EVERYBODY, Access
from tocsin.access.session import Session, anonymous
from tocsin.broker.effects import Accepted
from tocsin.broker.options import BrokerOptions
from tocsin.errors import PeerFailed
from tocsin.event.event import Event
from tocsin.overlay.control.options import ControlOptions
from tocsin.services.control.bus import ControlBus
from tocsin.services.discovery.factory import open_discovery
from tocsin.services.link.identity import ids_of
from tocsin.services.link.neighbour import Neighbour
from tocsin.services.link.options import LinkOptions
from tocsin.services.link.service import LinkService
from tocsin.services.link.transport import Connector, Receiver, Transport
from tocsin.wire.link import messages as m
from tocsin.wire.link.codec import LinkMessage, LinkReader, encode

T = TypeVar("T")
SESSION = anonymous("test", "tester")
OPTIONS = LinkOptions()
DEFAULTS = ControlOptions()


class NoConnector:
    """Nobody can be reached."""

    async def connect(self, address: str, opened: Callable[[Transport], Receiver]) -> None:
        raise PeerFailed("nobody is there", remedy="Start it.")


class LinkedBroker:
    """One broker; `accept` plays another one that connects to it."""

    def __init__(
        self,
        options: LinkOptions = OPTIONS,
        broker_options: BrokerOptions | None = None,
        connector: Connector | None = None,
        access: Access = EVERYBODY,
        control: ControlOptions = DEFAULTS,
    ) -> None:
        self.sessions: dict[str, Session] = {}  # of neighbours that sign in
        self.runtime = ManualRuntime(options=broker_options, access=access)
        port = self.runtime.port
        self.ids = self.runtime.run(ids_of(port))
        self.discovery = open_discovery(port, self.ids.broker, lambda name: None)
        self.control = ControlBus(port, self.ids.broker, control, lambda session: "")
        self.links = LinkService(
            port,
            self.discovery,
            self.control,
            connector or NoConnector(),
            options,
            self.ids,
            "tocsin/test",
        )
        self.runtime.run(self.links.start())
        self.runtime.settle()

    def publish(self, *events: Event) -> Accepted:
        return self.runtime.run(self.runtime.port.publish(SESSION, list(events)))

    def peer(self, broker: str = "peer", log: str = "") -> Peer:
        """Somebody has connected."""
        return Peer(self, broker, log or f"log-{broker}")

    def linked(self, *subscriptions: str, broker: str = "peer") -> Peer:
        """A neighbour that wants these, and that this broker's subscriptions are sent to."""
        peer = self.peer(broker)
        peer.link(*subscriptions)
        return peer

    def neighbour(self, broker: str = "peer") -> Neighbour:
        found = self.links.neighbours.find(broker)
        assert found is not None
        return found

    def stored(self) -> list[Event]:
        return [each.event for each in self.runtime.store.reader().read(0, 10_000).events]

    def said(self, words: str) -> bool:
        return any(words in message for _, message in self.runtime.notes)


class Peer:
    """A Transport; what the broker writes is in `heard`, until it is taken out."""

    def __init__(self, at: LinkedBroker, broker: str, log: str) -> None:
        self.at = at
        self.broker = broker
        self.log = log
        self.peer = f"{broker}.example:8403"
        self.session = at.sessions.get(broker, anonymous("link", self.peer))
        self.waiting = 0
        self.is_over = False
        self.heard: list[LinkMessage] = []
        self._reader = LinkReader()
        self.receiver = at.links.accept(self)

    # What the broker calls

    def write(self, data: bytes) -> None:
        self.heard += self._reader.read(data)

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.at.runtime.call_later(0.0, lambda: self.receiver.ended("it is over"))

    # What a test does

    @property
    def hello(self) -> m.Hello:
        return m.Hello(m.PROTOCOL_VERSION, self.broker, self.log, m.DATA_FORMAT, "test", self.log)

    def say(self, *messages: LinkMessage) -> None:
        for message in messages:
            self.receiver.received(encode(message))
        self.at.runtime.settle()

    def link(self, *subscriptions: str) -> None:
        self.say(self.hello, m.Welcome())
        self.say(m.Advertise(self.broker, "all", ""), m.Synced("advertisements"))
        for number, text in enumerate(subscriptions):
            self.say(m.Subscribe(self.broker, str(number), text))
        self.say(m.Synced("subscriptions"))
        assert self.at.neighbour(self.broker).connection is not None

    def taken(self, kind: type[T]) -> list[T]:
        """What came of this kind of message since the last call."""
        found = [each for each in self.heard if isinstance(each, kind)]
        self.heard = [each for each in self.heard if not isinstance(each, kind)]
        return found

    def got(self) -> list[str]:
        """The ids of the events that came since the last call. Nothing is acknowledged."""
        return [each.event.id for some in self.taken(m.Events) for each in some.events]

    def live_s(self, seconds: float) -> None:
        """Time in which it answers, and no more."""
        for _ in range(int(seconds)):
            self.at.runtime.pass_s(1.0)
            if not self.is_over:
                self.say(m.Heartbeat(1))

    def relay(self, *events: Event, through: int, first: int = 1, origin: str = "") -> None:
        """Send events as if they had been published there."""
        origin = origin or self.broker
        relayed = tuple(
            m.Relayed(origin, f"log-{origin}", number, 1, 0, event)
            for number, event in enumerate(events, first)
        )
        self.say(m.Events(through, relayed))


def event(number: int, topic: str = "t", size: int = 1) -> Event:
    return Event(id=str(number), source="/s", type="t", topic=topic, data=b"x" * size)


def options_with(**changes: object) -> LinkOptions:
    return replace(OPTIONS, **changes)  # type: ignore[arg-type]

"""Clients of the blackboard: publishers and subscribers by `/blackboard/socket`.

A subscriber names a profile of concepts. What it must get is worked out here without the ontology
of the broker: each profile comes with the names that it covers.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec
from wsproto.events import TextMessage

from tocsin.event.event import Event
from tocsin.services.streams.transport import StreamTransport
from tocsin.services.streams.websocket import UpgradeRequest, WebSocketSession
from tocsin.sim.checks.stream import StreamCheck
from tocsin.sim.clients.sockets import PACE_MS, TRY_AGAIN, Message, SocketClient, SocketTransport
from tocsin.sim.machine import Machine
from tocsin.sim.services import Services
from tocsin.sim.workload import PROFILES, BoardProfile, draw_message, pairs_of
from tocsin.sim.world import Violation

SUBSCRIBE: Final = "subscribe"  # the `ref` of that command; a publication has the event's id
REGISTER: Final = "register"
ANOTHER_PROFILE: Final = 0.3  # the chance, after an answer

_encode = msgspec.json.Encoder().encode


class BoardClient(SocketClient):
    """Publishes messages, follows a profile from where it was, and may exchange it for another."""

    kind = "blackboard socket"

    def __init__(self, machine: Machine, number: int, messages: int) -> None:
        random = machine.world.random
        super().__init__(machine, number, messages, random.choice((1, 3)))
        self._name = f"{self.kind} {number}"
        self._is_registered = random.random() < 0.5
        self._aggregate: object = None  # the profile of all subscribers, as it was last told
        self._profile = random.choice(PROFILES)
        self._check = self._new_check(self._profile)
        self._asked: tuple[BoardProfile, StreamCheck, int] | None = None  # and not answered

    def _draw(self, number: int) -> Event:
        return draw_message(self._world.random, self._source, number)

    def _new_check(self, profile: BoardProfile) -> StreamCheck:
        check = StreamCheck(
            self._name,
            self._log,
            lambda event: bool(profile.of(pairs_of(event))),
            self._machine.checks.access,
        )
        check.reads_by(self._session)
        return check

    # Connecting

    def _target(self, services: Services) -> str:
        return "/blackboard/socket"

    def _open(
        self, services: Services, transport: StreamTransport, upgrade: UpgradeRequest
    ) -> WebSocketSession:
        return services.board_socket(self._session, transport, upgrade)

    def _connected(self, transport: SocketTransport) -> None:
        if transport is self._transport:
            self._asked = None
            self._aggregate = None
            self._subscribe(transport, self._profile)
            if self._is_registered:
                self._send(transport, {"register": True, "ref": REGISTER})
            super()._connected(transport)

    def _subscribe(self, transport: SocketTransport, profile: BoardProfile) -> None:
        """Ask for a profile from where the client is; what comes until the answer is by the
        former one."""
        services = self._machine.services
        if services is None:  # the connection is over, and the client does not know it yet
            return
        after = self._check.after
        check = self._new_check(profile)
        check.after = after
        check.connect(services.port.head, services.port.first)
        self._asked = profile, check, services.port.head if after is None else after
        place = {} if after is None else {"after": after}
        self._send(transport, {"subscribe": profile.concepts, **place, "ref": SUBSCRIBE})

    def _send(self, transport: SocketTransport, command: dict[str, Any]) -> None:
        transport.send(TextMessage(data=_encode(command).decode()))

    # Publishing

    def _written(self, event: Event) -> str:
        message = {"id": event.id, "source": event.source, "pairs": pairs_of(event)}
        return _encode({"publish": message, "ref": event.id}).decode()

    def acknowledged(self, event: Event, message: Message) -> None:
        super().acknowledged(event, message)
        if message["ref"] != event.id:
            raise Violation(f"{self._name} was answered {message['ref']} for {event.id}")
        if pairs_of(self._log.events[message["first"]]) != pairs_of(event):
            raise Violation(f"event {message['first']} has not the pairs of {event.id}")

    def is_refusal(self, message: Message) -> bool:
        return "problem" in message and message["ref"] not in (SUBSCRIBE, REGISTER)

    def _problem(self, message: Message) -> Message:
        problem: Message = message["problem"]
        return problem

    def arrived(self, message: Message) -> None:
        super().arrived(message)
        # With an answer under way the new profile's messages could come before its own answer.
        is_idle = "accepted" in message and self._asked is None and not self._unanswered
        if self._transport is not None and is_idle and self._world.fault(ANOTHER_PROFILE):
            self._subscribe(self._transport, self._world.random.choice(PROFILES))

    # Following

    def _event(self, message: Message) -> None:
        if "dropped" in message:
            self._check.dropped(message["dropped"])
        elif "profile" in message:
            self._world.seen["aggregate profile received"] += 1
            self._aggregate = message["profile"]
        elif "subscribed" in message:
            self._subscribed(message)
        elif "problem" in message:
            self._not_subscribed(message)
        else:
            self._received(message)

    def _subscribed(self, message: Message) -> None:
        assert self._asked is not None
        profile, check, place = self._asked
        after = message["after"]
        is_first = self._check.after is None
        if not (place <= after <= self._log.last if is_first else after == place):
            raise Violation(f"{self._name} asked for messages after {place}, and not {after}")
        if profile is not self._profile:
            self._world.seen["blackboard profile exchanged"] += 1
        self._world.trace(f"{self._name} has {profile.concepts} after {after}")
        check.after = after
        self._profile, self._check, self._asked = profile, check, None

    def _not_subscribed(self, message: Message) -> None:
        transport = self._transport
        assert transport is not None
        if self._machine.may_refuse(self._problem(message)["status"]):
            self._world.seen["access: refused by a blackboard"] += 1
            self.sign_in_again()
            return
        if self._problem(message)["status"] not in TRY_AGAIN:
            raise Violation(f"{self._name} may not subscribe: {message}")
        self._world.soon(0, PACE_MS, partial(self._connected, transport))

    def _received(self, message: Message) -> None:
        seq = message["seq"]
        self._world.seen["blackboard message received"] += 1
        self._world.trace(f"{self._name} got {seq}")
        self._check.got(seq, message["source"], message["id"])
        wanted = self._profile.of(pairs_of(self._log.events[seq]))
        if message["pairs"] != wanted:
            raise Violation(f"{self._name} got {message['pairs']} of event {seq}, not {wanted}")

    def what_is_owed(self) -> str | None:
        if self._asked is not None:
            return f"{self._name} has not been answered"
        owed = self._check.what_is_owed()
        return owed if owed is not None or not self._is_registered else self._profile_owed()

    def _profile_owed(self) -> str | None:
        """The client knows what all want, itself included."""
        services, told = self._machine.services, self._aggregate
        if services is None or _encode(told) != _encode(services.board.profile):
            return f"{self._name} was told of the profile {told}"
        assert isinstance(told, dict)
        if not told["everything"] and not set(self._profile.concepts) <= set(told["concepts"]):
            return f"the profile of all is without {self._profile.concepts}"
        return None

"""Handovers on their way: whoever passes one on keeps what it wants of it, before that."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from tocsin.event.event import Event
from tocsin.services.link.handovers import Handovers
from tocsin.wire.link.messages import HandedOver, Handover, Relayed


class Way:
    """Broker B between A, whose handover it is, and C, whom it is for; only topic `lab` is wanted
    at B. Says what happens, in its order."""

    def __init__(self, *, has_room: bool = True) -> None:
        self.said: list[tuple[str, object]] = []
        self._has_room = has_room
        own = SimpleNamespace(is_wanted=lambda event: event.topic == "lab")
        self.port = SimpleNamespace(runtime=None, own=lambda session: own)
        connection = SimpleNamespace(transport=SimpleNamespace(waiting=0), send=self._send)
        self.known = SimpleNamespace(connection=connection)

    def _send(self, message: object) -> None:
        self.said.append(("sent", message))

    async def store(self, events: tuple[Relayed, ...]) -> bool:
        self.said.append(("stored", [each.event.topic for each in events]))
        return self._has_room

    def receive(self, message: Handover) -> None:
        router = SimpleNamespace(way_to=lambda broker: broker)
        neighbours = SimpleNamespace(find=lambda broker: self.known)
        handovers = Handovers(
            cast(Any, self.port), ("B", "log"), cast(Any, router), cast(Any, neighbours), 1
        )
        asyncio.run(handovers._take_over(cast(Any, self), message))


def handover(to: str) -> Handover:
    events = tuple(
        Relayed("A", "log-A", number, 1, 0, Event(id=topic, source="/s", type="t", topic=topic))
        for number, topic in enumerate(("lab", "sky"), 1)
    )
    return Handover("A", to, "1", 1, 0, events)


def test_on_the_way_what_is_wanted_here_is_stored_before_all_of_it_goes_on() -> None:
    way = Way()

    way.receive(handover("C"))

    (stored, (sent, passed_on)) = way.said
    assert stored == ("stored", ["lab"])
    assert sent == "sent"
    assert isinstance(passed_on, Handover)
    assert [each.event.topic for each in passed_on.events] == ["lab", "sky"]


def test_what_cannot_be_stored_on_the_way_does_not_go_on() -> None:
    way = Way(has_room=False)

    way.receive(handover("C"))

    assert way.said == [("stored", ["lab"])]


def test_whom_it_is_for_stores_what_is_wanted_there_and_answers() -> None:
    way = Way()

    way.receive(handover("B"))

    (stored, (_, answer)) = way.said
    assert stored == ("stored", ["lab"])
    assert isinstance(answer, HandedOver)

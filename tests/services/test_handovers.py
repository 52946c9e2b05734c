"""Handovers on their way: whoever passes one on keeps what it wants of it, before that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tocsin.errors import DiskFull
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
        self.known = SimpleNamespace(connection=connection, permitted=self._but("for A alone"))
        self.accepted = self._but("not A's")

    def _but(self, topic: str) -> Callable[[tuple[Relayed, ...]], tuple[Relayed, ...]]:
        """The rights of a neighbour: all but this topic."""
        return lambda events: tuple(each for each in events if each.event.topic != topic)

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


def handover(to: str, *topics: str) -> Handover:
    events = tuple(
        Relayed("A", "log-A", number, 1, 0, Event(id=topic, source="/s", type="t", topic=topic))
        for number, topic in enumerate(topics or ("lab", "sky"), 1)
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


def test_what_a_neighbour_may_not_send_or_have_is_not_passed_on() -> None:
    way = Way()

    way.receive(handover("C", "not A's", "sky", "for A alone"))

    (_, (_, passed_on)) = way.said
    assert isinstance(passed_on, Handover)
    assert [each.event.topic for each in passed_on.events] == ["sky"]


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


class FullDisk:
    """Of a broker where somebody moved: it takes the place of a handover in the log, and nothing
    else while it is full."""

    def __init__(self) -> None:
        self.is_full = True
        self.kept: list[str] = []
        self._made = 0
        self.head = 5
        self.runtime = None

    def own(self, session: object) -> None:
        """Not used."""

    async def subscribe(self, *asked: object) -> object:
        self._made += 1
        self.kept.append(str(self._made))
        return SimpleNamespace(subscription=SimpleNamespace(id=self.kept[-1]))

    async def unsubscribe(self, session: object, link_id: str, kind: object) -> None:
        self._check()
        self.kept.remove(link_id)

    async def keep_table(self, session: object, rows: object) -> None:
        self._check()

    def _check(self) -> None:
        if self.is_full:
            raise DiskFull("the disk is full", remedy="Make room.")


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_a_handover_that_cannot_begin_leaves_no_place_in_the_log_however_long_the_disk_is_full(
    is_forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, forgotten = FullDisk(), list[str]()
    router = SimpleNamespace(is_forgotten=lambda broker: broker in forgotten)
    neighbours = SimpleNamespace(get=lambda broker: SimpleNamespace(hold=lambda link_id: None))
    monkeypatch.setattr(Handovers, "_begin", lambda handovers, link_id, row: None)
    handovers = Handovers(
        cast(Any, disk), ("B", "log"), cast(Any, router), cast(Any, neighbours), 1
    )

    with pytest.raises(DiskFull):
        asyncio.run(handovers.add("A", 1, [""], "C"))
    with pytest.raises(DiskFull):
        asyncio.run(handovers.add("A", 1, [""], "C"))
    assert disk.kept == ["1"]
    disk.is_full = False
    forgotten += ["A"] if is_forgotten else []
    asyncio.run(handovers.add("A", 1, [""], "C"))

    assert disk.kept == ([] if is_forgotten else ["2"])

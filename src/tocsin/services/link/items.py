"""Items: what the performer does, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tocsin.broker.runtime import Signal
from tocsin.overlay.routing.effects import (
    Effect,
    NeighbourDown,
    NeighbourFilter,
    NeighbourForgotten,
    NeighbourUp,
    Save,
    Send,
)
from tocsin.services.link.connection import Connection
from tocsin.wire.link.codec import LinkMessage
from tocsin.wire.link.messages import (
    Acknowledge,
    Control,
    Events,
    HandedOver,
    Handover,
    MessageBase,
    NotStored,
    Resume,
    Serves,
)

PART_ITEMS_MAX: Final = 500  # that are saved together
_OF_NEIGHBOURS: Final = (
    Events,
    Acknowledge,
    NotStored,
    Resume,
    Handover,
    HandedOver,
    Control,
    Serves,
)


def is_of_neighbour(message: LinkMessage) -> bool:
    """True for what only a neighbour that is up may send: the router does nothing about it."""
    return isinstance(message, _OF_NEIGHBOURS) or not isinstance(message, MessageBase)


@dataclass(slots=True, eq=False)
class Received:
    """A message came by this connection. What the router wants done about it is in front of this;
    `message` is there if it is one that a neighbour has to be up for."""

    connection: Connection
    size: int
    message: LinkMessage | None = None
    is_done: bool = False

    def done(self) -> None:
        if not self.is_done:
            self.is_done = True
            self.message = None
            self.connection.backlog.done(self.size)


Item = Effect | Received | Signal
"""What is done next: what the router wants, what a neighbour sent, or somebody waits for all that
came before."""


def parts_of(batch: list[Item]) -> Iterator[list[Item]]:
    """The batch in parts, each of which ends where a neighbour is forgotten (what it wants if it
    comes again is another matter) or, if it is large, after all that follows from a message."""
    part: list[Item] = []
    for item in batch:
        part.append(item)
        is_large = isinstance(item, Received) and len(part) >= PART_ITEMS_MAX
        if is_large or isinstance(item, NeighbourForgotten):
            yield part
            part = []
    yield part


def name_of(item: Item) -> str:
    """Of what was done, for the log: which action, about what or whom."""
    match item:
        case Send(_, message):
            return f"Send {type(message).__name__}"
        case Received(connection):
            return f"a message of {connection.broker or connection.transport.peer}"
        case NeighbourUp(broker) | NeighbourDown(broker) | NeighbourForgotten(broker):
            return f"{type(item).__name__} {broker}"
        case NeighbourFilter(neighbour):
            return f"NeighbourFilter {neighbour}"
        case Save(key):
            return f"Save {key}"
        case _:
            return type(item).__name__

"""`GET /blackboard/stream`: the pairs that a subscriber asked for, as server-sent events."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.frames import Frames
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.streaming import EventStream
from tocsin.event.filter import ByConcept
from tocsin.event.stored import Stored
from tocsin.wire.api.stream_request import read_board_request
from tocsin.wire.blackboard.write import message_of

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

PROFILES_MAX = 32  # whose frames are kept for the next reader with the same profile


class BoardFrames:
    """Frames by profile, for the profiles that were asked for lately."""

    def __init__(self) -> None:
        self._by_profile: OrderedDict[frozenset[str], Frames] = OrderedDict()

    def of(self, profile: frozenset[str]) -> Frames:
        frames = self._by_profile.get(profile)
        if frames is None:
            frames = self._by_profile[profile] = _frames(profile)
            if len(self._by_profile) > PROFILES_MAX:
                self._by_profile.popitem(last=False)
        self._by_profile.move_to_end(profile)
        return frames


def board_stream(
    connection: Connection, request: Request, node: Node, kept: BoardFrames
) -> EventStream:
    """A stream of messages. What is wrong with the profile is told before it begins."""
    asked = read_board_request(request.query, None)
    assert isinstance(asked.filter, ByConcept)
    frames = kept.of(asked.filter.names())
    return EventStream(connection, request, node, frames, read_board_request)


def _frames(profile: frozenset[str]) -> Frames:
    def frame(stored: Stored) -> bytes:
        return b"id: %d\ndata: %b\n\n" % (stored.seq, message_of(stored, profile))

    return Frames(frame)

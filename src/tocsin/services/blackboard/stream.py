"""`GET /blackboard/stream`: the pairs that a subscriber asked for, as server-sent events."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from tocsin.event.filter import ByConcept
from tocsin.event.stored import Stored
from tocsin.services.streams.frame_cache import FrameCache
from tocsin.wire.api.stream_request import StreamRequest
from tocsin.wire.blackboard.write import message_of
from tocsin.wire.sse import sse_event

PROFILES_MAX: Final = 32


class ProfileCaches:
    """A cache of frames for each profile that was asked for recently."""

    def __init__(self) -> None:
        self._caches: OrderedDict[frozenset[str], FrameCache] = OrderedDict()

    def of(self, asked: StreamRequest) -> FrameCache:
        assert isinstance(asked.filter, ByConcept)
        profile = asked.filter.names()
        cache = self._caches.get(profile)
        if cache is None:
            cache = self._caches[profile] = _new_cache(profile)
            if len(self._caches) > PROFILES_MAX:
                self._caches.popitem(last=False)
        self._caches.move_to_end(profile)
        return cache


def _new_cache(profile: frozenset[str]) -> FrameCache:
    def frame(stored: Stored) -> bytes:
        return sse_event(message_of(stored, profile), id=stored.seq)

    return FrameCache(frame)

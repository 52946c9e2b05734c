"""Watch: a continuous request of a client, and the streams that follow it.

A stream is told what changed since it was last written to. One that reads slowly is told of a
resource once, as it is by then: what it missed in between takes no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

import msgspec

from tocsin.access.session import Session
from tocsin.access.wording import RIGHT_ENDED
from tocsin.event.subscription import Owner
from tocsin.overlay.discovery.effects import Change, Resource, Summary
from tocsin.services.discovery.answer import Hit, resource_view
from tocsin.wire.api.resource_request import DiscoveryRequest
from tocsin.wire.api.resource_views import CurrentResources
from tocsin.wire.sse import sse_event

STREAMS_MAX: Final = 100  # of one continuous request
WRITTEN_AT_ONCE: Final = 200  # resources, before it is asked whether the client keeps up

ResourceKey = tuple[str, str]

_encode = msgspec.json.Encoder().encode


class Reader(Protocol):
    """A stream, as its watch sees it."""

    @property
    def is_full(self) -> bool: ...

    def write(self, data: bytes) -> None: ...

    def end(self, reason: str) -> None: ...


class Follower:
    """One stream's place: what it was told of, and what it is to be told of."""

    __slots__ = ("_has_begun", "_is_over", "_may_follow", "_pending", "_reader", "_told", "_watch")

    def __init__(self, watch: Watch, reader: Reader, may_follow: Callable[[], bool]) -> None:
        """`may_follow`: whether whoever reads it may be told more."""
        self._watch = watch
        self._reader = reader
        self._may_follow = may_follow
        self._is_over = False
        self._told: set[ResourceKey] = set()
        self._pending: dict[ResourceKey, None] = dict.fromkeys(watch.resources)
        self._has_begun = False

    def changed(self, key: ResourceKey) -> None:
        self._pending[key] = None

    def forget(self) -> None:
        self._pending.clear()

    def pump(self) -> None:
        """Write as much as the client takes."""
        if not self._is_over and not self._may_follow():
            self.end(RIGHT_ENDED)
        if self._is_over:
            return
        while self._pending and not self._reader.is_full:
            keys = list(self._pending)[:WRITTEN_AT_ONCE]
            frames = [self._frame(key) for key in keys]
            for key in keys:
                del self._pending[key]
            self._reader.write(b"".join(frames))
        if not self._has_begun and not self._pending and self._watch.summary is not None:
            self._has_begun = True
            self._reader.write(sse_event(self._watch.current_data(), name=b"current"))

    def _frame(self, key: ResourceKey) -> bytes:
        resource = self._watch.resources.get(key)
        if resource is None:
            if key not in self._told:
                return b""  # it came and went while the client read something else
            self._told.discard(key)
            id, broker = key
            return _event(Change.REMOVED, {"id": id, "broker": broker})
        change = Change.CHANGED if key in self._told else Change.ADDED
        self._told.add(key)
        return _event(change, resource_view(Hit(resource)))

    def end(self, reason: str) -> None:
        if not self._is_over:
            self._is_over = True
            self._reader.end(reason)


def _event(change: Change, data: object) -> bytes:
    return sse_event(_encode(data), name=change.value.encode())


class Watch:
    """A continuous request, and the resources that match it now."""

    def __init__(
        self,
        id: str,
        asked: DiscoveryRequest,
        created_ns: int,
        idle_since_s: float,
        session: Session,
    ) -> None:
        self.id = id
        self.session = session  # in which it was made
        self.asked = asked
        self.created_ns = created_ns
        self.expires_ns = None if asked.expires_ns is None else created_ns + asked.expires_ns
        self.idle_since_s = idle_since_s  # while no stream follows it
        self.resources: dict[ResourceKey, Resource] = {}
        self.rights_version = 0  # of whoever made it, when what is in `resources` was looked at
        self.summary: Summary | None = None  # once everything that matched at first is there
        self._followers: list[Follower] = []

    def __len__(self) -> int:
        return len(self._followers)

    @property
    def owner(self) -> Owner | None:
        return self.session.owner if self.session.is_signed_in else None

    def forget(self) -> None:
        """Nothing of what was found is to be told any more."""
        self.resources.clear()
        for follower in self._followers:
            follower.forget()

    def follow(self, follower: Follower) -> None:
        self._followers.append(follower)

    def has(self, follower: Follower) -> bool:
        return follower in self._followers

    def leave(self, follower: Follower, now_s: float) -> None:
        if follower in self._followers:
            self._followers.remove(follower)
            self.idle_since_s = now_s

    def add(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            self.notice(Change.ADDED, resource)

    def notice(self, change: Change, resource: Resource) -> None:
        key = (resource.id, resource.broker)
        if change is Change.REMOVED:
            if self.resources.pop(key, None) is None:
                return
        else:
            self.resources[key] = resource
        for follower in self._followers:
            follower.changed(key)

    def withhold(self, may_have: Callable[[Resource], bool]) -> None:
        """Whoever made it may not have the others any more."""
        for resource in [each for each in self.resources.values() if not may_have(each)]:
            self.notice(Change.REMOVED, resource)

    def pump(self) -> None:
        """Tell every stream what it has not been told."""
        for follower in list(self._followers):
            follower.pump()

    def current_data(self) -> bytes:
        """How the first answer came about, for a stream."""
        assert self.summary is not None
        summary = self.summary
        return _encode(
            CurrentResources(
                resources=len(self.resources),
                brokers=list(summary.brokers),
                messages=summary.messages,
                incomplete=summary.incomplete or None,
                why_empty=summary.why_empty or None,
            )
        )

    def end(self, reason: str) -> None:
        """The request has ended: its streams do too."""
        followers, self._followers = self._followers, []
        for follower in followers:
            follower.pump()
            follower.end(reason)

"""The mistakes that the published algorithms invite (ADR 0025: A1 to A8, A10, A17), each put back.

A mistake is a subclass of what ships, so that nothing in the product can switch it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.covers import CoverList
from tocsin.overlay.discovery.one_time import OneTimeRequests
from tocsin.overlay.discovery.paths import Path
from tocsin.overlay.region import Region
from tocsin.wire.link.discovery_messages import Cover, CoverGone, Discover, Result


class A1PayloadPartRunsAlways(OneTimeRequests):
    def _attach(self, path: Path, cover: Path, *, has_payload: bool, now_ns: int) -> None:
        super()._attach(path, cover, has_payload=has_payload, now_ns=now_ns)
        if not has_payload:
            super()._attach(path, cover, has_payload=True, now_ns=now_ns)


class A2BackOverTheSameLink(OneTimeRequests):
    def _awaits(self, waiter: Path, cover: Path, came_from: str) -> bool:
        return waiter.cover_id == cover.id


class A3NoWayBack(OneTimeRequests):
    def _attach(self, path: Path, cover: Path, *, has_payload: bool, now_ns: int) -> None:
        super()._attach(path, cover, has_payload=has_payload, now_ns=now_ns)
        if has_payload and path.upstream and path.id not in cover.waiters:
            del self.paths[path.id]


class A4Unfiltered(OneTimeRequests):
    def _for_waiter(self, waiter: Path, results: Sequence[Result]) -> list[Result]:
        return list(results)


class A5ResultsAtTheHostOnly(OneTimeRequests):
    def _attach(self, path: Path, cover: Path, *, has_payload: bool, now_ns: int) -> None:
        has_results, cover.has_results = cover.has_results, False
        super()._attach(path, cover, has_payload=has_payload, now_ns=now_ns)
        cover.has_results = has_results


class A5LocalResultsDoNotCount(OneTimeRequests):
    def _deliver_local(self, path: Path, now_ns: int) -> None:
        super()._deliver_local(path, now_ns)
        path.has_results = False


class A7EachByItsOwnClock(OneTimeRequests):
    def _add(self, message: Discover, region: Region, last_hop: str, now_ns: int) -> Path:
        expiry_ns = self._context.options.cache_expiry_ns
        until_ns = now_ns + expiry_ns
        own = structs.replace(message, shared_until_ns=until_ns, expires_ns=until_ns)
        return super()._add(own, region, last_hop, now_ns)


class A8NobodySaysThatTheCoverIsGone(OneTimeRequests):
    def _join(self, path: Path, payload: Cover, now_ns: int) -> None:
        if payload.request_id in self.paths:
            super()._join(path, payload, now_ns)
        else:
            self._forget(path, now_ns)


class A8ThePreviousHopGoesOnAlone(OneTimeRequests):
    def receive_cover_gone(self, neighbour: str, message: CoverGone, now_ns: int) -> None:
        path = self.paths.get(message.request_id)
        if path is not None:
            path.attached_by = self._context.broker_id
        super().receive_cover_gone(neighbour, message, now_ns)


class _FromAnyLink(CoverList):
    def _is_usable(self, cover: Path, path: Path, now_ns: int) -> bool:
        return super()._is_usable(cover, replace(path, last_hop="any"), now_ns)


class A10CoverFromTheSameLink(OneTimeRequests):
    """A request waits for one that came over its own link."""

    def _start(self, path: Path, now_ns: int) -> None:
        self._covers.__class__ = _FromAnyLink
        super()._start(path, now_ns)


class A17WhatStopsEarlyIsShared(OneTimeRequests):
    def _add(self, message: Discover, region: Region, last_hop: str, now_ns: int) -> Path:
        if message.first:
            until_ns = message.issued_ns + self._context.options.cache_expiry_ns
            message = structs.replace(message, shared_until_ns=until_ns)
        return super()._add(message, region, last_hop, now_ns)


def make_all(mistake: type[OneTimeRequests], patch: pytest.MonkeyPatch) -> None:
    """Let every broker make this mistake from now on."""

    def mistaken(self: DiscoveryCore, covers: CoverList) -> OneTimeRequests:
        return mistake(self._context, self.advertisements, self.resources, covers)

    patch.setattr(DiscoveryCore, "_make_one_time", mistaken)

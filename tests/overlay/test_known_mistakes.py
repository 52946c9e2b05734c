"""Each mistake that the published algorithms invite is found by the random runs (ADR 0025).

A mistake is a subclass of what ships, so that nothing in the product can switch it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from msgspec import structs

from overlay.discovery_runs import OPTIONS, Watcher, make_plan, problems_of, run
from overlay.network import CoreFactory
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.covers import CoverList
from tocsin.overlay.discovery.one_time import OneTimeRequests
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.paths import Path
from tocsin.overlay.region import Region
from tocsin.wire.link.discovery_messages import Cover, CoverGone, Discover, Result

MS = 1_000_000
# Answers are forgotten at the moment when they are not shared any more, so that covers are gone.
NO_GUARD = replace(OPTIONS, cache_expiry_ns=1_500 * MS, timeout_ns=1_500 * MS, guard_ns=0)


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


def core_with(mistake: type[OneTimeRequests]) -> CoreFactory:
    class Mistaken(DiscoveryCore):
        def _make_one_time(self, covers: CoverList) -> OneTimeRequests:
            return mistake(self._context, self.advertisements, self.resources, covers)

    return Mistaken


@dataclass(frozen=True)
class Case:
    """How a mistake shows: by which runs."""

    make_core: CoreFactory = DiscoveryCore
    options: DiscoveryOptions = OPTIONS
    spread_ms: int = 300
    keeps_order: bool = True


CASES = {
    "A1": Case(core_with(A1PayloadPartRunsAlways)),
    "A2": Case(core_with(A2BackOverTheSameLink)),
    "A3": Case(core_with(A3NoWayBack)),
    "A4": Case(core_with(A4Unfiltered)),
    "A5 at the host": Case(core_with(A5ResultsAtTheHostOnly)),
    "A5 local": Case(core_with(A5LocalResultsDoNotCount)),
    "A6": Case(keeps_order=False),
    "A7": Case(core_with(A7EachByItsOwnClock), NO_GUARD, 2_000),
    "A8 silence": Case(core_with(A8NobodySaysThatTheCoverIsGone), NO_GUARD, 2_000),
    "A8 previous hop": Case(core_with(A8ThePreviousHopGoesOnAlone), NO_GUARD, 2_000),
}


def wrong_in(case: Case, seed: int) -> list[str]:
    plan, watcher = make_plan(seed, spread_ms=case.spread_ms), Watcher()
    try:
        network = run(
            plan,
            seed,
            options=case.options,
            make_core=case.make_core,
            keeps_order=case.keeps_order,
            watcher=watcher,
        )
    except (AssertionError, KeyError) as failure:
        return [f"failed: {failure!r}"]
    return problems_of(plan, network) + watcher.problems


@pytest.mark.parametrize("name", CASES)
def test_a_known_mistake_is_found(name: str) -> None:
    case = CASES[name]

    assert any(wrong_in(case, seed) for seed in range(300))


def test_without_a_guard_covers_are_gone_and_nothing_is_missing() -> None:
    gone = 0
    for seed in range(150):
        plan, watcher = make_plan(seed, spread_ms=2_000), Watcher()

        network = run(plan, seed, options=NO_GUARD, watcher=watcher)

        assert not problems_of(plan, network) + watcher.problems, f"seed {seed}"
        gone += len(network.sent(CoverGone))
    assert gone > 0

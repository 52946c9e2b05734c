"""Each mistake that the published algorithms invite is found by the random runs (ADR 0025)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from overlay.discovery_runs import OPTIONS, make_plan, problems_of, run
from overlay.mistakes import (
    A1PayloadPartRunsAlways,
    A2BackOverTheSameLink,
    A3NoWayBack,
    A4Unfiltered,
    A5LocalResultsDoNotCount,
    A5ResultsAtTheHostOnly,
    A7EachByItsOwnClock,
    A8NobodySaysThatTheCoverIsGone,
    A8ThePreviousHopGoesOnAlone,
    make_all,
)
from tocsin.overlay.discovery.one_time import OneTimeRequests
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.wire.link.discovery_messages import CoverGone

MS = 1_000_000
# Answers are forgotten at the moment when they are not shared any more, so that covers are gone.
NO_GUARD = replace(OPTIONS, cache_expiry_ns=1_500 * MS, timeout_ns=1_500 * MS, guard_ns=0)


@dataclass(frozen=True)
class Case:
    """How a mistake shows: by which runs."""

    mistake: type[OneTimeRequests] = OneTimeRequests
    options: DiscoveryOptions = OPTIONS
    spread_ms: int = 300
    keeps_order: bool = True


CASES = {
    "A1": Case(A1PayloadPartRunsAlways),
    "A2": Case(A2BackOverTheSameLink),
    "A3": Case(A3NoWayBack),
    "A4": Case(A4Unfiltered),
    "A5 at the host": Case(A5ResultsAtTheHostOnly),
    "A5 local": Case(A5LocalResultsDoNotCount),
    "A6": Case(keeps_order=False),
    "A7": Case(A7EachByItsOwnClock, NO_GUARD, 2_000),
    "A8 silence": Case(A8NobodySaysThatTheCoverIsGone, NO_GUARD, 2_000),
    "A8 previous hop": Case(A8ThePreviousHopGoesOnAlone, NO_GUARD, 2_000),
}


def wrong_in(case: Case, seed: int) -> list[str]:
    plan = make_plan(seed, spread_ms=case.spread_ms)
    try:
        network = run(
            plan,
            seed,
            options=case.options,
            keeps_order=case.keeps_order,
        )
    except (AssertionError, KeyError) as failure:
        return [f"failed: {failure!r}"]
    return problems_of(plan, network)


@pytest.mark.parametrize("name", CASES)
def test_a_known_mistake_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES[name]
    make_all(case.mistake, monkeypatch)

    assert any(wrong_in(case, seed) for seed in range(300))


def test_without_a_guard_covers_are_gone_and_nothing_is_missing() -> None:
    gone = 0
    for seed in range(150):
        plan = make_plan(seed, spread_ms=2_000)

        network = run(plan, seed, options=NO_GUARD)

        assert not problems_of(plan, network), f"seed {seed}"
        gone += len(network.sent(CoverGone))
    assert gone > 0

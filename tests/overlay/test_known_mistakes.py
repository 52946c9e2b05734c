"""Each mistake that the published algorithms invite is found by the random runs (ADR 0025)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from overlay.discovery_runs import OPTIONS, make_plan, problems_of, run, stopping_early
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
    A10CoverFromTheSameLink,
    A17WhatStopsEarlyIsShared,
    make_all,
)
from tocsin.overlay.discovery.one_time import OneTimeRequests
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.wire.link.discovery_messages import CoverGone

MS = 1_000_000
# Answers are forgotten at the moment when they are not shared any more, so that covers are gone.
NO_GUARD = replace(OPTIONS, cache_expiry_ns=1_500 * MS, timeout_ns=1_500 * MS, guard_ns=0)
# A broker where a cover has no room for one more sends the request on, to others that have it too.
FEW_WAIT = replace(OPTIONS, waiting_max=1)


@dataclass(frozen=True)
class Case:
    """How a mistake shows: by which runs."""

    mistake: type[OneTimeRequests] = OneTimeRequests
    options: DiscoveryOptions = OPTIONS
    spread_ms: int = 300
    keeps_order: bool = True
    some_stop_early: bool = False
    shows: str = ""  # among what is said of a run


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
    "A10": Case(A10CoverFromTheSameLink, FEW_WAIT, shows="from where it came itself"),
    "A17": Case(A17WhatStopsEarlyIsShared, some_stop_early=True, shows="1: "),
}


def wrong_in(case: Case, seed: int) -> list[str]:
    plan = make_plan(seed, spread_ms=case.spread_ms)
    if case.some_stop_early:
        plan = stopping_early(plan, seed)
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

    assert any(case.shows in each for seed in range(300) for each in wrong_in(case, seed))


def test_without_the_mistake_no_request_waits_for_one_of_its_own_link() -> None:
    case = CASES["A10"]

    for seed in range(100):
        assert not any(case.shows in each for each in wrong_in(case, seed)), f"seed {seed}"


def test_requests_that_stop_early_get_as_many_as_they_ask_for_and_others_get_all() -> None:
    for seed in range(100):
        plan = stopping_early(make_plan(seed), seed)

        assert not problems_of(plan, run(plan, seed)), f"seed {seed}"


def test_without_a_guard_covers_are_gone_and_nothing_is_missing() -> None:
    gone = 0
    for seed in range(150):
        plan = make_plan(seed, spread_ms=2_000)

        network = run(plan, seed, options=NO_GUARD)

        assert not problems_of(plan, network), f"seed {seed}"
        gone += len(network.sent(CoverGone))
    assert gone > 0

"""Two brokers on one log: in simulated runs, with everything that can go wrong between them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from random import Random

import pytest

from sim.mutations import Mutate
from tocsin.broker.broker import Broker
from tocsin.broker.commit.log_order import LogOrder
from tocsin.event.stored import Stored
from tocsin.sim.plan import draw_plan
from tocsin.sim.run import Report, run_seed
from tocsin.store.memory import MemoryLog

SEEDS_MAX = 1_000
SHARING = [seed for seed in range(SEEDS_MAX) if draw_plan(Random(seed), seed).shares_log]
RUNS = 40

MUST_HAPPEN = {
    "published at another broker on the same log",
    "repeat acknowledged",
    "shared log: a process ended before its state was saved",
    "shared log: another broker's events come late",
    "shared log: events wait for those before them",
    "shared log: no room",
    "crash: a commit is being written",
    "crash: a commit is written and the broker does not know",
}


def test_a_sixteenth_of_all_seeds_has_one_log() -> None:
    assert 40 < len(SHARING) < 85


def test_nothing_is_violated_and_all_of_it_happens() -> None:
    reports = [run_seed(seed) for seed in SHARING[:RUNS]]

    assert [report.failure for report in reports if not report.ok] == []
    assert not MUST_HAPPEN - {name for report in reports for name in report.counters}


def hand_on_what_is_heard_as_it_comes(patch: pytest.MonkeyPatch) -> None:
    """Look for no gap before the events of another broker."""

    def hasty(self: LogOrder, head: int, through: int | None = None) -> list[Stored]:
        waiting, self._waiting = self._waiting, {}
        return [waiting[seq] for seq in sorted(waiting)]

    patch.setattr(LogOrder, "take", hasty)


def hear_nothing_while_a_commit_is_under_way(patch: pytest.MonkeyPatch) -> None:
    """Forget what another broker appended while a commit of our own is written."""
    appended = Broker.appended

    def deaf(self: Broker, events: list[Stored], now_ns: int) -> list[Stored]:
        return appended(self, [] if self._committing is not None else events, now_ns)

    patch.setattr(Broker, "appended", deaf)


def keep_a_window_for_each_broker(patch: pytest.MonkeyPatch) -> None:
    """Know a repeat only of what came by the same broker."""
    append = MemoryLog.append

    def private(self: MemoryLog, *args: object) -> object:
        numbering = self.shared.numbering
        assert numbering is not None
        if self.shared.logs[0] is not self:
            numbering._recent.clear()
            numbering._oldest_first.clear()
        return append(self, *args)  # type: ignore[arg-type]

    patch.setattr(MemoryLog, "append", private)


MUTATIONS: dict[Mutate, str] = {
    hand_on_what_is_heard_as_it_comes: "the code broke",
    hear_nothing_while_a_commit_is_under_way: "has not got|waits for the disk|no rest after",
    keep_a_window_for_each_broker: "was stored as",
}
"""Each mistake, and what a run may say of it first."""


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_a_mistake_is_caught_within_a_thousand_seeds(
    mutate: Mutate, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)

    caught = first_failure(SHARING)

    assert caught is not None
    said = str(caught.failure).splitlines()[0]
    print(f"{mutate.__name__} after {caught.seed + 1} seeds: {said}")
    assert re.search(MUTATIONS[mutate], said)


def first_failure(seeds: Iterable[int]) -> Report | None:
    return next((report for report in map(run_seed, seeds) if not report.ok), None)

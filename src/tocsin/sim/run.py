"""Seed in, report out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tocsin.sim.faults.crashes import CrashPoint
from tocsin.sim.network import Network
from tocsin.sim.overlay.overlay import Overlay
from tocsin.sim.plan import Plan, draw_plan
from tocsin.sim.shared_log import SharedLog
from tocsin.sim.site import Site
from tocsin.sim.world import STEPS_MAX, STEPS_PER_BROKER_MAX, Violation, World

STORM_S_MAX = 5.0
CALM_S_MAX = 300.0  # ample: nothing waits longer than a few seconds at a time
LOOK_MS = 50


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one seed."""

    seed: int
    failure: str | None
    steps: int
    virtual_s: float
    brokers: int
    acknowledged: int
    delivered: int
    crashes: int
    trace_hash: int
    counters: dict[str, int]

    @property
    def ok(self) -> bool:
        return self.failure is None


class Simulation:
    """One world with several brokers, and everybody who talks to them."""

    def __init__(self, seed: int, plan: Plan | None = None) -> None:
        self.world = world = World(seed)
        plan = plan or draw_plan(world.random, seed)
        world.steps_max = max(STEPS_MAX, STEPS_PER_BROKER_MAX * len(plan.brokers))
        network = Network(world, plan.weather)
        window = plan.brokers[0].options.duplicates_window
        shared = SharedLog(world, window) if plan.shares_log else None
        self.sites: list[Site] = []
        for number in reversed(range(len(plan.brokers))):
            # A broker pushes into those with higher numbers: a chain, and never a circle.
            others = [site.machine for site in self.sites]
            later = [] if plan.overlay or shared else others
            site = Site(world, plan.brokers[number], network, number, later, shared)
            self.sites.insert(0, site)
            if shared is not None:
                site.may_publish_at(others)
        self.publish_after_s = 0.0  # later, if subscriptions shall hold everywhere by then
        self.overlay: Overlay | None = None
        if plan.overlay is not None:
            machines = [site.machine for site in self.sites]
            self.overlay = Overlay(world, plan.overlay, network, machines)

    def run(self) -> None:
        """Faults until the work is done, then calm until everybody has what they are owed."""
        world = self.world
        for site in self.sites:
            site.start(self.publish_after_s)
        if self.overlay is not None:
            self.overlay.start()
        while not self._is_done and world.elapsed_s < STORM_S_MAX:
            world.step()
            for site in self.sites:
                site.machine.reached(CrashPoint.ANY_STEP)
        world.trace("calm")
        world.calm = True
        for site in self.sites:
            site.wind_up()
        calm_since_s = world.elapsed_s
        while (owed := self._what_is_owed()) is not None:
            if world.elapsed_s - calm_since_s > CALM_S_MAX:
                raise Violation(f"after {CALM_S_MAX:.0f} s without faults: {owed}")
            self._pass(LOOK_MS)
        for site in self.sites:
            site.compare_logs()

    @property
    def _is_done(self) -> bool:
        overlay = self.overlay
        return all(s.is_done for s in self.sites) and (overlay is None or overlay.is_done)

    def _pass(self, milliseconds: float) -> None:
        over: list[bool] = []
        self.world.after_ms(milliseconds, lambda: over.append(True))
        while not over:
            self.world.step()

    def _what_is_owed(self) -> str | None:
        owed = next((owed for site in self.sites if (owed := site.what_is_owed())), None)
        return self.overlay.what_is_owed() if owed is None and self.overlay is not None else owed


def run_seed(seed: int) -> Report:
    """The world of this seed, from beginning to end: always the same."""
    return run_simulation(seed, Simulation(seed))


def run_simulation(seed: int, simulation: Simulation) -> Report:
    """The same of a world that was planned otherwise."""
    world = simulation.world
    failure: str | None = None
    try:
        simulation.run()
    except Violation as violation:
        failure = _failure(seed, str(violation), world)
    except Exception:
        failure = _failure(seed, f"the code broke\n{traceback.format_exc()}", world)
    finally:
        for site in simulation.sites:
            site.close()
    return Report(
        seed=seed,
        failure=failure,
        steps=world.steps,
        virtual_s=world.elapsed_s,
        brokers=len(simulation.sites),
        acknowledged=sum(site.acknowledged for site in simulation.sites),
        delivered=sum(site.delivered for site in simulation.sites),
        crashes=sum(site.machine.crashes for site in simulation.sites),
        trace_hash=world.trace_hash,
        counters=dict(world.seen),
    )


def run_seeds(
    start: int, count: int, progress: Callable[[Report], None] | None = None
) -> Iterator[Report]:
    """One seed after another; `progress` is called with each report."""
    for seed in range(start, start + count):
        report = run_seed(seed)
        if progress is not None:
            progress(report)
        yield report


def _failure(seed: int, what: str, world: World) -> str:
    return "\n".join([f"seed {seed}: {what}", "the last that happened:", *world.last_lines()])

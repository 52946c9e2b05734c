"""Seed in, report out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tocsin.sim.faults.crashes import CrashPoint
from tocsin.sim.network import Network
from tocsin.sim.plan import draw_plan
from tocsin.sim.site import Site
from tocsin.sim.world import Violation, World

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

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        plan = draw_plan(world.random)
        network = Network(world, plan.weather)
        self.sites: list[Site] = []
        for number in reversed(range(len(plan.brokers))):
            # A broker pushes into those with higher numbers: a chain, and never a circle.
            later = [site.machine.host for site in self.sites]
            self.sites.insert(0, Site(world, plan.brokers[number], network, number, later))

    def run(self) -> None:
        """Faults until the work is done, then calm until everybody has what they are owed."""
        world = self.world
        for site in self.sites:
            site.start()
        while not all(site.is_done for site in self.sites) and world.elapsed_s < STORM_S_MAX:
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

    def _pass(self, milliseconds: float) -> None:
        over: list[bool] = []
        self.world.after_ms(milliseconds, lambda: over.append(True))
        while not over:
            self.world.step()

    def _what_is_owed(self) -> str | None:
        return next((owed for site in self.sites if (owed := site.what_is_owed())), None)


def run_seed(seed: int) -> Report:
    """The world of this seed, from beginning to end: always the same."""
    simulation = Simulation(seed)
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

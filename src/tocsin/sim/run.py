"""Seed in, report out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tocsin.sim.checkers import Checkers
from tocsin.sim.disk import FaultyDisk
from tocsin.sim.keepers import Keepers
from tocsin.sim.log_witness import LogWitness
from tocsin.sim.network import Network
from tocsin.sim.owners import Owners
from tocsin.sim.plan import SECONDS_LONG, draw_plan
from tocsin.sim.process import Process
from tocsin.sim.publishers import Publisher
from tocsin.sim.readers import StreamReader
from tocsin.sim.sinks import Sink
from tocsin.sim.strikes import Point
from tocsin.sim.workload import POOL
from tocsin.sim.world import Violation, World

STORM_S_MAX = 5.0
CALM_S_MAX = 300.0  # ample: nothing waits longer than a few seconds at a time
LOOK_MS = 50
DISK_FULL_MS = (50, 400)
ROOM_BYTES_MAX = 30_000


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one seed."""

    seed: int
    failure: str | None
    steps: int
    virtual_s: float
    acknowledged: int
    delivered: int
    crashes: int
    trace_hash: int
    counters: dict[str, int]

    @property
    def ok(self) -> bool:
        return self.failure is None


class Simulation:
    """One world with everybody in it."""

    def __init__(self, seed: int) -> None:
        self.world = world = World(seed)
        self.plan = plan = draw_plan(world.random)
        self.disk = FaultyDisk(f"simulated-{seed}", world.seen)
        self.log = LogWitness(plan.options.duplicates_window)
        self.checkers = Checkers(
            world, self.log, all_may_drop=plan.options.backlog_age_s < SECONDS_LONG
        )
        network = Network(world, plan.weather)
        self.process = Process(world, plan, self.disk, self.checkers)
        for number, temper in enumerate(plan.tempers):
            sink = Sink(world, network, self.checkers, number, temper)
            self.process.outgoing.sinks[sink.url] = sink
        self.owners = Owners(world, plan, network, self.process, self.checkers)
        self.keepers = Keepers(world, network, self.process, plan.keeps)
        self.publishers = [
            Publisher(world, network, self.process, self.log, number, publisher)
            for number, publisher in enumerate(plan.publishers)
        ]
        self.streams = [
            StreamReader(world, network, self.process, self.checkers, world.random.choice(POOL))
            for _ in range(plan.streams)
        ]

    def run(self) -> None:
        """Faults until the work is done, then calm until everybody has what they are owed."""
        self._begin()
        world = self.world
        while not self._work_is_done() and world.elapsed_s < STORM_S_MAX:
            world.step()
            self.process.reached(Point.ANY_STEP)
        world.trace("calm")
        world.calm = True
        self._mend_disk()
        self.owners.wind_up()
        calm_since_s = world.elapsed_s
        while (owed := self._what_is_owed()) is not None:
            if world.elapsed_s - calm_since_s > CALM_S_MAX:
                raise Violation(f"after {CALM_S_MAX:.0f} s without faults: {owed}")
            self._pass(LOOK_MS)
        self.process.compare_log()

    def _begin(self) -> None:
        world, plan = self.world, self.plan
        self.process.start()
        self.owners.start()
        self.keepers.start()
        for publisher in self.publishers:
            publisher.start()
        for stream in self.streams:
            world.soon(0, 60, stream.connect)
        if plan.disk_full_at_ms is not None:
            world.after_ms(plan.disk_full_at_ms, self._fill_disk)
        if plan.sync_fails_at_ms is not None:
            world.after_ms(plan.sync_fails_at_ms, self._break_sync)

    def _work_is_done(self) -> bool:
        others_are = self.owners.is_done and self.keepers.is_done
        return others_are and all(publisher.is_done for publisher in self.publishers)

    def _pass(self, milliseconds: float) -> None:
        world = self.world
        over: list[bool] = []
        world.after_ms(milliseconds, lambda: over.append(True))
        while not over:
            world.step()

    def _fill_disk(self) -> None:
        if not self.world.calm:
            room = self.world.random.randint(0, ROOM_BYTES_MAX)
            self.disk.bytes_max = self.disk.size_bytes() + room
            self.world.soon(*DISK_FULL_MS, self._mend_disk)

    def _break_sync(self) -> None:
        self.disk.sync_fails = not self.world.calm

    def _mend_disk(self) -> None:
        self.disk.bytes_max = None
        if self.world.calm:
            self.disk.sync_fails = False

    def _what_is_owed(self) -> str | None:
        broker = self.process.broker
        if broker is None:
            return "the broker does not run"
        for publisher in self.publishers:
            if not publisher.is_done:
                return "an event is not acknowledged"
        if not broker.is_idle():
            return "something waits for the disk"
        if self.process.dead_letters():
            return "there are dead letters"
        if broker.counters.dead_letters:
            return f"the broker counts {broker.counters.dead_letters} dead letters"
        if (owed := self.keepers.what_is_owed()) is not None:
            return owed
        for stream in self.streams:
            if (owed := stream.is_owed()) is not None:
                return owed
        return self.checkers.what_is_owed(broker, self.process.cursors())


def run_seed(seed: int) -> Report:
    """The world of this seed, from beginning to end: always the same."""
    simulation = Simulation(seed)
    world = simulation.world
    failure: str | None = None
    try:
        simulation.run()
    except Violation as violation:
        failure = _told(seed, str(violation), world)
    except Exception:
        failure = _told(seed, f"the code broke\n{traceback.format_exc()}", world)
    finally:
        simulation.disk.unregister()
    return Report(
        seed=seed,
        failure=failure,
        steps=world.steps,
        virtual_s=world.elapsed_s,
        acknowledged=simulation.log.acknowledged,
        delivered=simulation.checkers.taken,
        crashes=simulation.process.falls,
        trace_hash=world.trace_hash,
        counters=dict(world.seen),
    )


def run_seeds(
    start: int, count: int, progress: Callable[[Report], None] | None = None
) -> Iterator[Report]:
    """One seed after another; `progress` hears of each."""
    for seed in range(start, start + count):
        report = run_seed(seed)
        if progress is not None:
            progress(report)
        yield report


def _told(seed: int, what: str, world: World) -> str:
    return "\n".join([f"seed {seed}: {what}", "the last that happened:", *world.last_lines()])

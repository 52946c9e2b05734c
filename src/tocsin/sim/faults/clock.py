"""MachineClock: a machine's clock, which is set wrong at a start and jumps by days, both ways."""

from __future__ import annotations

from random import Random
from typing import Final

from tocsin.broker.broker import Broker
from tocsin.event.instant import NS_PER_S
from tocsin.sim.world import World

JUMPING: Final = 0.3  # the share of machines whose clock jumps
AT_A_READ: Final = 0.1  # the chance of a jump whenever it is read
BACK: Final = 0.4  # that it is a jump back to the right time
DAYS: Final = (2.0, 60.0)
DAY_NS: Final = 86_400 * NS_PER_S
SET_S_MAX: Final = 2.0


class MachineClock:
    """The time of one machine, as it shows and as it is."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._random = Random(f"clock {world.seed} {name}")
        self._jumps = self._random.random() < JUMPING
        self._ahead_ns = 0  # how wrong the machine was about the time when its broker started
        self._offset_ns = 0  # too little to be noticed
        self._jump_ns = 0  # by how many days it is wrong now
        self._doubted_ns = 0  # when the broker last doubted its clock

    @property
    def steady_ns(self) -> int:
        """The steady time that the broker is given."""
        return self._world.now_ns + self._ahead_ns

    @property
    def wall_ns(self) -> int:
        """What the clock shows."""
        return self._world.now_ns + self._offset_ns + self._jump_ns

    @property
    def fair_ns(self) -> int:
        """The time of day by which leases may end: without a jump by days."""
        return self._world.now_ns + self._offset_ns

    def world_ns(self, steady_ns: int) -> int:
        """When it is so late by the steady time."""
        return steady_ns - self._ahead_ns

    def is_sure_for(self, duration_ns: int) -> bool:
        """True if the broker has not doubted its clock for so long."""
        return self._world.now_ns - self._doubted_ns > duration_ns

    def may_be_set(self, probability: float) -> None:
        """The machine starts: somebody may have set its clock a little wrong."""
        if self._world.fault(probability):
            self._world.seen["clock set"] += 1
            wrong_s = self._world.random.uniform(-SET_S_MAX, SET_S_MAX)
            self._offset_ns = int(wrong_s * NS_PER_S)

    def start(self, *, may_jump: bool) -> None:
        """A broker starts, and takes its steady time from here."""
        if may_jump:
            self.may_jump()
        self._ahead_ns = self._offset_ns + self._jump_ns

    def may_jump(self) -> None:
        """It is about to be read. In calm it is right."""
        world, random = self._world, self._random
        if world.calm:
            self._jump_ns = 0
        elif self._jumps and random.random() < AT_A_READ:
            days = 0.0 if random.random() < BACK else random.choice((1, -1)) * random.uniform(*DAYS)
            self._jump_ns = int(days * DAY_NS)
            world.trace(f"the clock is {days:+.1f} days off")
            world.seen["clock jumped" if days else "clock right again"] += 1

    def observe(self, broker: Broker) -> None:
        """The broker works: remember whether it doubts its clock."""
        if broker.clock.doubt is not None:
            self._doubted_ns = self._world.now_ns
            self._world.seen[f"clock in doubt: {broker.clock.doubt.value}"] += 1

"""A machine's clock that jumps by days, forward and back, at a start and in between."""

from __future__ import annotations

from typing import Final

from tocsin.broker.broker import Broker
from tocsin.sim.world import NS_PER_S, World

JUMPING: Final = 0.3  # the share of runs in which it jumps
AT_A_READ: Final = 0.1  # the chance of a jump whenever it is read
BACK: Final = 0.4  # that it is a jump back to the right time
DAYS: Final = (2.0, 60.0)
DAY_NS: Final = 86_400 * NS_PER_S


class WrongClock:
    """Sets `World.jump_ns`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._jumps = world.clock_random.random() < JUMPING

    def may_jump(self) -> None:
        """It is about to be read. In calm it is right."""
        world, random = self._world, self._world.clock_random
        if world.calm:
            world.jump_ns = 0
        elif self._jumps and random.random() < AT_A_READ:
            days = 0.0 if random.random() < BACK else random.choice((1, -1)) * random.uniform(*DAYS)
            world.jump_ns = int(days * DAY_NS)
            world.trace(f"the clock is {days:+.1f} days off")
            world.seen["clock jumped" if days else "clock right again"] += 1

    def noticed(self, broker: Broker) -> None:
        """The broker works: remember whether it doubts its clock."""
        if broker.clock.doubt is not None:
            self._world.doubted_ns = self._world.now_ns
            self._world.seen[f"clock in doubt: {broker.clock.doubt.value}"] += 1

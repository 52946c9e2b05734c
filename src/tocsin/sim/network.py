"""Network: what is sent arrives later, never, or twice, and not in the order it was sent."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.sim.world import Action, World

CALM_DELAY_MS_MAX = 2.0


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad the network is in one run."""

    loss: float
    duplication: float
    delay_ms_max: float


class Network:
    """Between the broker and everybody else."""

    def __init__(self, world: World, weather: Weather) -> None:
        self._world = world
        self._weather = weather

    def delay_ms(self) -> float:
        longest = CALM_DELAY_MS_MAX if self._world.calm else self._weather.delay_ms_max
        return self._world.random.uniform(0.05, longest)

    def loses(self) -> bool:
        lost = self._world.fault(self._weather.loss)
        if lost:
            self._world.seen["message lost"] += 1
        return lost

    def carry(self, arrive: Action) -> None:
        """Deliver, each time after its own delay: so two messages may overtake each other."""
        if self.loses():
            return
        self._world.after_ms(self.delay_ms(), arrive)
        if self._world.fault(self._weather.duplication):
            self._world.seen["message duplicated"] += 1
            self._world.after_ms(self.delay_ms(), arrive)

"""Keepers: services that keep things in the log by name, change them and let them go."""

from __future__ import annotations

from itertools import count

from tocsin.broker.snapshot import Snapshot
from tocsin.errors import TooMuchKept
from tocsin.sim.account import Doubtful
from tocsin.sim.network import Network
from tocsin.sim.process import Process
from tocsin.sim.world import Violation, World

BEGIN_MS_MAX = 400
NAMES = 4
VALUE_BYTES = (0, 3, 200, 9_000)  # the last spans pages of the log
SPACE = "kept/"


class Keepers:
    """Several that share few names, and what each name must stand for after a crash."""

    def __init__(self, world: World, network: Network, process: Process, asks: int) -> None:
        self._world = world
        self._network = network
        self._process = process
        self._numbers = count(1)
        self._values: dict[str, Doubtful[bytes | None]] = {
            f"{SPACE}{number}": Doubtful(None) for number in range(NAMES)
        }
        self._latest: dict[str, int] = {}  # the last ask that reached a broker, by name
        self._asks = asks
        self.pending = 0
        process.kept = self.recovered

    @property
    def is_done(self) -> bool:
        return self.pending == 0

    def start(self) -> None:
        for _ in range(self._asks):
            self.pending += 1
            self._world.soon(0, BEGIN_MS_MAX, self._ask)

    def _ask(self) -> None:
        self.pending -= 1
        random = self._world.random
        number, key = next(self._numbers), random.choice(list(self._values))
        value = None
        if random.random() < 0.6:
            value = b"%d " % number + b"." * random.choice(VALUE_BYTES)
        self._network.carry(lambda: self._arrive(key, value))

    def _arrive(self, key: str, value: bytes | None) -> None:
        if self._process.broker is None:
            return
        ask = next(self._numbers)  # one that arrives twice is two
        self._world.trace(f"keep {ask}: {key} {'nothing' if value is None else len(value)}")
        self._values[key].ask(ask, value)
        self._latest[key] = ask
        self._process.ask(
            lambda broker, question: broker.keep(key, value, question, self._world.clock_ns),
            lambda result: self._answered(key, ask, value, result),
        )

    def _answered(self, key: str, ask: int, value: bytes | None, result: object) -> None:
        self._world.trace(f"keep {ask} answered {type(result).__name__}")
        if result is None:
            self._world.seen["kept" if value is not None else "kept no longer"] += 1
            self._values[key].confirm(ask, 0)
            broker = self._process.broker
            assert broker is not None
            if self._latest[key] == ask and broker.kept(key).get(key) != value:
                raise Violation(f"{key} was acknowledged and the broker knows another value")
        elif isinstance(result, TooMuchKept):
            self._world.seen["too much to keep"] += 1

    def recovered(self, snapshot: Snapshot) -> None:
        """A process starts: every name stands for what was acknowledged last, or asked since."""
        for key, doubtful in self._values.items():
            found = snapshot.service_state.get(key)
            if found not in doubtful.now():
                raise Violation(f"{key} is kept as {found!r:.40} and was acknowledged otherwise")
            # What a crash has left is what there is: nothing that was asked before comes later.
            settled = next(self._numbers)
            doubtful.ask(settled, found)
            doubtful.confirm(settled, 0)
            if found is not None:
                self._world.seen["kept over a crash"] += 1
        if snapshot.service_state.keys() - self._values.keys():
            raise Violation("something is kept that nobody asked for")

    def what_is_owed(self) -> str | None:
        broker = self._process.broker
        assert broker is not None
        known = broker.kept(SPACE)
        if known != self._process.kept_on_disk():
            return "what services keep is not on disk as the broker knows it"
        for key, doubtful in self._values.items():
            if known.get(key) not in doubtful.now():
                return f"{key} is not as it was acknowledged"
        return None

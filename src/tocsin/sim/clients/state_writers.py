"""State writers: services that keep values by name, change them and delete them."""

from __future__ import annotations

from itertools import count

from tocsin.access.session import internal
from tocsin.broker.snapshot import Snapshot
from tocsin.errors import TooMuchKept
from tocsin.sim.checks.subscription import Uncertain
from tocsin.sim.machine import Machine
from tocsin.sim.world import Violation

BEGIN_MS_MAX = 400
NAMES = 4
VALUE_BYTES = (0, 3, 200, 9_000)  # the last spans pages of the log
PREFIX = "simulated/"
SESSION = internal("simulated")


class StateWriters:
    """Several that share few names, and what each name must stand for after a crash."""

    def __init__(self, machine: Machine, changes: int) -> None:
        self._machine = machine
        self._world = machine.world
        self._network = machine.network
        self._numbers = count(1)
        self._values: dict[str, Uncertain[bytes | None]] = {
            f"{PREFIX}{number}": Uncertain(None) for number in range(NAMES)
        }
        self._latest: dict[str, int] = {}  # the last request that reached a broker, by name
        self._changes = changes
        self.pending = 0
        machine.check_service_state = self.recovered

    @property
    def is_done(self) -> bool:
        return self.pending == 0

    def start(self) -> None:
        for _ in range(self._changes):
            self.pending += 1
            self._world.soon(0, BEGIN_MS_MAX, self._change)

    def _change(self) -> None:
        self.pending -= 1
        random = self._world.random
        number, key = next(self._numbers), random.choice(list(self._values))
        value = None
        if random.random() < 0.6:
            value = b"%d " % number + b"." * random.choice(VALUE_BYTES)
        self._network.carry(lambda: self._arrive(key, value))

    def _arrive(self, key: str, value: bytes | None) -> None:
        if self._machine.process is None:
            return
        request = next(self._numbers)  # one that arrives twice is two
        self._world.trace(f"keep {request}: {key} {'nothing' if value is None else len(value)}")
        self._values[key].request(request, value)
        self._latest[key] = request
        self._machine.call(
            lambda services: services.port.keep(SESSION, key, value),
            lambda result: self._answered(key, request, value, result),
        )

    def _answered(self, key: str, request: int, value: bytes | None, result: object) -> None:
        self._world.trace(f"keep {request} answered {type(result).__name__}")
        if result is None:
            self._world.seen["kept" if value is not None else "kept no longer"] += 1
            self._values[key].confirm(request, 0)
            node = self._machine.node
            assert node is not None
            if self._latest[key] == request and node.port.own(SESSION).kept(key).get(key) != value:
                raise Violation(f"{key} was acknowledged and the broker knows another value")
        elif isinstance(result, TooMuchKept):
            self._world.seen["too much to keep"] += 1

    def recovered(self, snapshot: Snapshot) -> None:
        """A process starts: every name has the value acknowledged last, or requested since."""
        for key, values in self._values.items():
            found = snapshot.service_state.get(key)
            if found not in values.now():
                raise Violation(f"{key} is kept as {found!r:.40} and was acknowledged otherwise")
            # What a crash has left is what there is: nothing that was asked before comes later.
            settled = next(self._numbers)
            values.request(settled, found)
            values.confirm(settled, 0)
            if found is not None:
                self._world.seen["kept over a crash"] += 1
        simulated = {key for key in snapshot.service_state if key.startswith(PREFIX)}
        if simulated - self._values.keys():
            raise Violation("something is kept that nobody asked for")

    def what_is_owed(self) -> str | None:
        node = self._machine.node
        assert node is not None
        known = node.port.own(SESSION).kept("")
        if known != node.reader.service_state():
            return "what services keep is not on disk as the broker knows it"
        for key, values in self._values.items():
            if known.get(key) not in values.now():
                return f"{key} is not as it was acknowledged"
        return None

"""Network: what is sent arrives later, never, or twice, and not in the order it was sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from tocsin.broker.runtime import HttpAnswer
from tocsin.event.stored import Stored
from tocsin.sim.checks.subscription import SubscriptionRecord
from tocsin.sim.world import Action, World

CALM_DELAY_MS_MAX = 2.0


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad the network is in one run."""

    loss: float
    duplication: float
    delay_ms_max: float


class Delivered(Protocol):
    """Whoever sent an answer hears what became of it."""

    is_acknowledged: Callable[[], bool]

    def arrived(self) -> None: ...

    def lost(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, as it arrives."""

    path: str
    body: bytes
    headers: Mapping[str, str]  # names in lower case
    peer: str  # host:port


@dataclass(slots=True)
class Response:
    """One HTTP answer, as it leaves."""

    answer: HttpAnswer
    receipt: Delivered | None = None
    taken: list[tuple[SubscriptionRecord, list[Stored]]] = field(default_factory=list)


class WebHost(Protocol):
    """Something that answers HTTP requests at a name."""

    def handle(self, request: Request, respond: Callable[[Response], None]) -> None: ...


class Network:
    """Between brokers, their clients and their sinks."""

    def __init__(self, world: World, weather: Weather) -> None:
        self._world = world
        self._weather = weather
        self.hosts: dict[str, WebHost] = {}

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

    def request(
        self,
        url: str,
        request: Request,
        timeout_ms: float,
        answered: Callable[[Response | None], None],
        departing: Callable[[Response], None] | None = None,
    ) -> None:
        """POST; `answered` is called once, with None when the time is over. `departing` looks at
        every answer that leaves, also one that will be lost."""
        exchange = _Exchange(self, self._world, answered, departing)
        host = self.hosts[urlsplit(url).hostname or ""]
        self.carry(lambda: host.handle(request, exchange.respond))
        self._world.after_ms(timeout_ms, exchange.time_is_up)


class _Exchange:
    """One request under way, and its answers: there are two if it was duplicated."""

    def __init__(
        self,
        network: Network,
        world: World,
        answered: Callable[[Response | None], None],
        departing: Callable[[Response], None] | None,
    ) -> None:
        self._network = network
        self._world = world
        self._answered = answered
        self._departing = departing
        self._is_over = False

    def respond(self, response: Response) -> None:
        if self._departing is not None:
            self._departing(response)
        if self._network.loses():
            self._lose(response)
        else:
            self._world.after_ms(self._network.delay_ms(), lambda: self._arrive(response))

    def _arrive(self, response: Response) -> None:
        if self._is_over:
            self._lose(response)
            return
        self._is_over = True
        self._answered(response)
        receipt = response.receipt
        if receipt is not None:
            receipt.is_acknowledged = lambda: True
            if self._world.random.random() < 0.7:  # else only the time that passes says so
                self._world.after_ms(self._network.delay_ms(), receipt.arrived)

    def _lose(self, response: Response) -> None:
        """The broker sees the connection end, or never learns anything."""
        if response.receipt is not None and self._world.random.random() < 0.5:
            self._world.after_ms(self._network.delay_ms(), response.receipt.lost)

    def time_is_up(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._answered(None)

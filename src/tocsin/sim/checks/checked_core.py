"""CheckedCore: the core of discovery that ships, looked at after every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tocsin.event.event import Value
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Effect
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.requests import Registration, Request
from tocsin.overlay.region import Regions, RegionTable
from tocsin.sim.checks.discovery import DiscoveryCheck
from tocsin.wire.link.discovery_messages import DiscoveryMessage


class CheckedCore(DiscoveryCore):
    """Does what the core does."""

    def __init__(
        self,
        broker_id: str,
        options: DiscoveryOptions,
        regions: Callable[[], Regions[Any]] = RegionTable,
        *,
        check: DiscoveryCheck,
    ) -> None:
        super().__init__(broker_id, options, regions)
        self._check = check
        check.began(self)

    @property
    def attempts(self) -> int:
        return self._context.attempts

    @property
    def neighbours(self) -> Iterable[str]:
        return self._context.neighbours.keys()

    def _checked(self, effects: list[Effect], now_ns: int) -> list[Effect]:
        self._check.step(self, effects, now_ns)
        return effects

    def register(self, registration: Registration, now_ns: int) -> list[Effect]:
        return self._checked(super().register(registration, now_ns), now_ns)

    def update(self, resource_id: str, values: Mapping[str, Value], now_ns: int) -> list[Effect]:
        return self._checked(super().update(resource_id, values, now_ns), now_ns)

    def withdraw(self, resource_id: str, now_ns: int) -> list[Effect]:
        return self._checked(super().withdraw(resource_id, now_ns), now_ns)

    def discover(self, request: Request, now_ns: int) -> list[Effect]:
        return self._checked(super().discover(request, now_ns), now_ns)

    def cancel(self, request_id: str, now_ns: int) -> list[Effect]:
        return self._checked(super().cancel(request_id, now_ns), now_ns)

    def link_up(self, neighbour: str, now_ns: int) -> list[Effect]:
        before = set(self.one_time.paths)
        self._check.channels.up(self.broker_id, neighbour)
        effects = super().link_up(neighbour, now_ns)
        self._check.forgot(before - self.one_time.paths.keys())
        return self._checked(effects, now_ns)

    def link_down(self, neighbour: str, now_ns: int) -> list[Effect]:
        before = set(self.one_time.paths)
        effects = super().link_down(neighbour, now_ns)
        self._check.forgot(before - self.one_time.paths.keys())
        return self._checked(effects, now_ns)

    def clear(self, now_ns: int) -> list[Effect]:
        before = set(self.one_time.paths)
        effects = super().clear(now_ns)
        self._check.forgot(before - self.one_time.paths.keys())
        return self._checked(effects, now_ns)

    def receive(self, neighbour: str, message: DiscoveryMessage, now_ns: int) -> list[Effect]:
        self._check.received(self, neighbour, message, now_ns)
        return self._checked(super().receive(neighbour, message, now_ns), now_ns)

    def receive_direct(self, message: DiscoveryMessage, now_ns: int) -> list[Effect]:
        return self._checked(super().receive_direct(message, now_ns), now_ns)

    def tick(self, now_ns: int) -> list[Effect]:
        return self._checked(super().tick(now_ns), now_ns)

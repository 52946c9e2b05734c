"""Certificates: by which linked brokers know each other, for a while."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Final

from tocsin.access.session import Credential, CredentialKind, Session
from tocsin.event.instant import NS_PER_S
from tocsin.sim.world import World

LONG_NS: Final = 300 * 86_400 * NS_PER_S
SHORT_S: Final = (0.1, 3.0)
SHORT: Final = 0.4  # the chance that one ends so soon
RENEWED: Final = 0.5  # that one is exchanged that some broker does not take


class Certificates:
    """The one that each broker shows now."""

    def __init__(self, world: World) -> None:
        self.revoked: set[str] = set()  # by some broker
        self._world = world
        self._random = Random(f"certificates {world.seed}")
        self._shown: dict[str, Credential] = {}
        self._issued = 0

    def shown_by(self, host: str) -> Credential:
        """Another one when it has ended, or its owner has heard that it is revoked."""
        shown = self._shown.get(host)
        if shown is None or self._is_exchanged(shown):
            shown = self._shown[host] = self._issue(host)
        return shown

    def end_soon(self, sessions: Iterable[Session]) -> bool:
        """Whether one of these is to end before long."""
        late_ns = self._world.now_ns + LONG_NS // 2
        shown = (each.credential for each in sessions)
        return any(each is not None and (each.expires_ns or 0) < late_ns for each in shown)

    def _is_exchanged(self, shown: Credential) -> bool:
        ends_ns, now_ns = shown.expires_ns or 0, self._world.now_ns
        if shown.key in self.revoked:
            return self._world.calm or self._random.random() < RENEWED
        return ends_ns <= now_ns or (self._world.calm and ends_ns < now_ns + LONG_NS // 2)

    def _issue(self, host: str) -> Credential:
        self._issued += 1
        ends_ns = self._world.now_ns + LONG_NS
        if not self._world.calm and self._random.random() < SHORT:
            ends_ns = self._world.now_ns + int(self._random.uniform(*SHORT_S) * NS_PER_S)
        return Credential(CredentialKind.CERTIFICATE, f"certificate/{self._issued}", ends_ns)

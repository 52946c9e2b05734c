"""Watchers: clients whose requests for resources are continuous, over all crashes of their broker.

What a watcher holds is what the stream told it, frame by frame. When the stream ends it asks anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from tocsin.access.session import Session
from tocsin.event.event import Value
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.discovery.watch import Follower, Watch
from tocsin.sim.checks.resources import ResourceCheck
from tocsin.sim.clients.discovery import ask, draw_wanted, session_of
from tocsin.sim.machine import Machine
from tocsin.sim.process import Process
from tocsin.sim.world import Violation

AGAIN_MS = (20, 200)
SLOW_MS = (5, 300)
SLOW = 0.2  # how likely a client stops reading for a while after something came


class Watcher:
    """A client with one continuous request."""

    def __init__(self, machine: Machine, number: int, check: ResourceCheck) -> None:
        self._machine = machine
        self._world = machine.world
        random = Random(f"watcher {machine.world.seed} {machine.host} {number}")
        self._wanted = draw_wanted(random)
        self._starts_ms = random.uniform(0, 800)
        self._check = check
        self._name = f"watcher {number} of {machine.host} for {self._wanted.text}"
        self._stream: _Stream | None = None
        self._is_over = False

    def start(self) -> None:
        self._world.after_ms(self._starts_ms, self._begin)

    def _begin(self) -> None:
        if self._is_over or self._stream is not None:
            return
        if self._machine.process is None:
            self._world.soon(*AGAIN_MS, self._begin)
            return
        self._stream = stream = _Stream(self, self._machine.process, session_of(self._machine))
        asked = self._wanted.request(continuous=True)

        async def watch(discovery: ResourceDiscovery) -> None:
            watch = discovery.watch(stream.session, asked)
            stream.follow(discovery, watch)

        if not ask(self._machine, watch, stream.answered):
            stream.end("it does not discover yet")

    def ended(self, stream: _Stream) -> None:
        """The broker is gone, or has ended the request."""
        if stream is self._stream:
            self._stream = None
            self._world.seen["continuous request ended"] += 1
            self._world.soon(*AGAIN_MS, self._begin)

    def received(
        self, change: str, data: dict[str, Any], held: dict[str, Any], since_ns: int
    ) -> None:
        """A frame of the stream."""
        id, has = data["id"], data.get("attributes", {})
        what = f"{self._name} was told: {change} {id} {has}"
        self._world.trace(what)
        self._world.seen[f"continuous request: {change}"] += 1
        if (id in held) != (change != "added"):
            raise Violation(f"{what}, and held {sorted(held)}")
        if change == "removed":
            del held[id]
            return
        self._check.check_resource(what, self._wanted, id, has, since_ns)
        held[id] = has

    # The end

    def what_is_owed(self) -> str | None:
        """Once nothing changes any more it holds what there is, with the latest values."""
        stream = self._stream
        if stream is None or not stream.is_current:
            return f"{self._name} has not been told of all that matched"
        matching = self._check.matching(self._wanted)
        want = {record.id: record.history[-1].values for record in matching}
        is_it = (
            stream.held == want if self._wanted.is_dynamic else stream.held.keys() == want.keys()
        )
        return None if is_it else f"{self._name} holds {stream.held}, and not {want}"

    def end(self) -> None:
        """It has seen enough."""
        if not self._is_over:
            self._is_over = True
            if self._stream is not None:
                self._stream.cancel()


class _Stream:
    """What follows a request in one process: the reader that its watch writes to."""

    def __init__(self, watcher: Watcher, process: Process, session: Session) -> None:
        self.session = session
        self.is_current = False
        self.held: dict[str, Mapping[str, Value]] = {}
        self._watcher = watcher
        self._world = process.world
        self._process = process
        self._since_ns = process.world.now_ns
        self._discovery: ResourceDiscovery | None = None
        self._follower: Follower | None = None
        self._watch_id = ""
        self._is_ended = False
        self._full = False
        self._process.connections[self] = None

    def follow(self, discovery: ResourceDiscovery, watch: Watch) -> None:
        self._discovery, self._watch_id = discovery, watch.id
        self._follower = discovery.follow(self.session, watch.id, self)
        self._follower.pump()

    def answered(self, result: object) -> None:
        if isinstance(result, Exception):  # it is stopping, or does not discover yet
            self.end("refused")

    def cancel(self) -> None:
        if not self._is_ended and self._discovery is not None:
            self._discovery.cancel(self.session, self._watch_id)

    # What the request calls

    @property
    def is_full(self) -> bool:
        return self._full

    def write(self, data: bytes) -> None:
        for frame in data.decode().split("\n\n"):
            if frame:
                self._read(frame)
        if self._world.fault(SLOW):
            self._full = True
            self._process.later(*SLOW_MS, self._go_on)

    def _read(self, frame: str) -> None:
        name, _, rest = frame.partition("\n")
        data = json.loads(rest.removeprefix("data: "))
        change = name.removeprefix("event: ")
        if change == "current":
            self.is_current = True
        else:
            self._watcher.received(change, data, self.held, self._since_ns)

    def _go_on(self) -> None:
        self._full = False
        if self._follower is not None and not self._is_ended:
            self._follower.pump()

    def end(self, reason: str) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._process.connections.pop(self, None)
            self._watcher.ended(self)

    # What the process calls

    def stop(self) -> None:
        self.end("the broker is stopping")

    def process_ended(self) -> None:
        self.end("the process is gone")

"""A monitor beside a node without doors, for scripts that publish and ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from tocsin.access.session import internal
from tocsin.config import load
from tocsin.drivers.listeners.own_address import OwnAddresses
from tocsin.drivers.logger import Logger
from tocsin.drivers.monitor.monitor import Monitor
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.node import Node
from tocsin.event.event import Event
from tocsin.ontology import built_in
from tocsin.store.store import Store
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event

PATIENCE_S = 30.0

Script = Callable[[Node, Monitor], Awaitable[None]]


def watch(directory: Path, script: Script, options: MonitorOptions | None = None) -> None:
    """A node without doors and its monitor, from their start to their end."""

    async def main() -> None:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})
        node = Node(settings, Store.open(directory), Logger(), OwnAddresses(settings))
        monitor = Monitor(node.port, node.loop, directory, options)
        monitor.start()
        try:
            await asyncio.wait_for(script(node, monitor), PATIENCE_S)
        finally:
            await monitor.close()
            await node.close()

    uvloop.run(main())


async def say(node: Node, *messages: dict[str, str], first: int = 0) -> None:
    events = [
        to_event(Message(pairs), id=f"{first + n}", source="/test", vocabulary=built_in())
        for n, pairs in enumerate(messages)
    ]
    await publish(node, events)


async def publish(node: Node, events: list[Event]) -> None:
    await node.port.publish(internal("test"), events)

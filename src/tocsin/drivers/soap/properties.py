"""WS-ResourceProperties at the desk: what the broker, a subscription or a registration is like."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

from tocsin.drivers.soap.registrations import Registrations
from tocsin.drivers.soap.request import Handlers, Reply, Request
from tocsin.errors import NoSuchSubscription, TocsinError
from tocsin.wire.soap.names import USUAL_WSA
from tocsin.wire.wsrp import operations as asking
from tocsin.wire.wsrp import resources
from tocsin.wire.wsrp.document import Properties, query
from tocsin.wire.wsrp.faults import PropertyFaults

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

TOPICS_LOOK_S: Final = 10.0  # while 4,096 topics are remembered anyway


def producer_properties(node: Node) -> bytes:
    """The document of the broker's own properties as a producer, by WS-Notification 1.3."""
    return resources.producer("wsn13", node.topics.tree()).document()


class PropertiesService:
    """Answers questions about properties; who asks about nothing in particular means the broker."""

    def __init__(self, node: Node, registrations: Registrations) -> None:
        self._node = node
        self._registrations = registrations
        self.handlers: Handlers = {
            (asking.NAMESPACES[spec], operation): partial(self._answer, spec, operation)
            for spec, operations in asking.OPERATIONS.items()
            for operation in operations
        }
        self._watch = node.loop.create_task(self._watch_topics())

    async def close(self) -> None:
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)

    async def _watch_topics(self) -> None:
        node = self._node
        try:
            await node.topics.look_back(node.broker.head, node.read)
        except TocsinError as error:
            node.note("warning", "the topics in the log are not known", error=error.problem)
        while True:
            await asyncio.sleep(TOPICS_LOOK_S)
            node.topics.tree()

    async def _answer(self, spec: str, operation: str, request: Request) -> Reply:
        faults = PropertyFaults(spec, self._node.now_ns())
        properties = self._properties(spec, request, faults)
        if operation == asking.WHOLE:
            found = properties.document()
        elif operation == asking.QUERY:
            found = query(properties.document(), asking.read_query(request.element), faults)
        else:
            found = _values(properties, asking.read_names(request.element), faults)
        body = asking.response(spec, operation, found)
        return Reply(body, asking.response_action(spec, operation))

    def _properties(self, spec: str, request: Request, faults: PropertyFaults) -> Properties:
        node, wanted = self._node, request.resource
        wsa = request.addressing.wsa or USUAL_WSA[spec]
        if wanted is None:
            return resources.producer(spec, node.topics.tree())
        registration = self._registrations.find(wanted)
        if registration is not None and request.kind != "subscriptions":
            return resources.registration(spec, registration, wsa, faults.now_ns)
        try:
            if request.kind == "registrations":
                raise NoSuchSubscription(
                    f"there is no registration {wanted[:80]!r}", remedy="It may have ended."
                )
            shown = node.broker.view(wanted).subscription
        except NoSuchSubscription as error:
            raise faults.unknown(error) from error
        address = request.address("subscriptions", shown.id)
        return resources.subscription(spec, shown, address, wsa, faults.now_ns)


def _values(properties: Properties, names: list[asking.Asked], faults: PropertyFaults) -> bytes:
    out: list[bytes] = []
    for asked in names:
        found = None if asked.name is None else properties.of(asked.name)
        if found is None:
            raise faults.no_property(asked)
        out += found
    return b"".join(out)

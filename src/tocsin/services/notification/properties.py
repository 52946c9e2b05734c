"""WS-ResourceProperties: what the broker, a subscription or a registration is like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from tocsin.access.decision import Action
from tocsin.access.session import internal
from tocsin.broker.log import Page, StoreReader
from tocsin.errors import NoSuchSubscription, TocsinError
from tocsin.services.brokered.registrations import Registrations
from tocsin.services.soap.call import Handlers, Reply, Request
from tocsin.services.soap.context import SoapContext, topics_for
from tocsin.wire.soap.names import USUAL_WSA
from tocsin.wire.wsrp import operations as asking
from tocsin.wire.wsrp import resources
from tocsin.wire.wsrp.document import Properties, query
from tocsin.wire.wsrp.faults import PropertyFaults
from tocsin.wire.wstopics.tree import TopicTree

SERVICE: Final = internal("topics")
TOPICS_LOOK_S: Final = 10.0  # while 4,096 topics are remembered anyway


def producer_properties(topics: TopicTree) -> bytes:
    """The document of the broker's own properties as a producer, by WS-Notification 1.3."""
    return resources.producer("wsn13", topics).document()


class PropertiesService:
    """Answers questions about properties; who asks about nothing in particular means the broker."""

    def __init__(self, context: SoapContext, registrations: Registrations) -> None:
        self._port = context.port
        self._runtime = context.port.runtime
        self._topics = context.topics
        self._registrations = registrations
        self.handlers: Handlers = {
            (asking.NAMESPACES[spec], operation): partial(self._answer, spec, operation)
            for spec, operations in asking.OPERATIONS.items()
            for operation in operations
        }
        self._watch = self._runtime.spawn(self._watch_topics())

    def close(self) -> None:
        self._watch.cancel()

    async def _watch_topics(self) -> None:
        def read(work: Callable[[StoreReader], Page]) -> Awaitable[Page]:
            return self._port.read(SERVICE, "topics", work)

        try:
            await self._topics.look_back(self._port.head, read)
        except TocsinError as error:
            self._runtime.note(
                "warning", "the topics in the log are not known", error=error.problem
            )
        while True:
            await self._runtime.sleep(TOPICS_LOOK_S)
            self._topics.tree()

    async def _answer(self, spec: str, operation: str, request: Request) -> Reply:
        faults = PropertyFaults(spec, self._runtime.now_ns())
        properties = self._properties(spec, request, faults)
        if operation == asking.WHOLE:
            found = properties.document()
        elif operation == asking.QUERY:
            found = query(properties.document(), asking.read_query(request.envelope), faults)
        else:
            found = _values(properties, asking.read_names(request.envelope), faults)
        body = asking.response(spec, operation, found)
        return Reply(body, asking.response_action(spec, operation))

    def _properties(self, spec: str, request: Request, faults: PropertyFaults) -> Properties:
        wanted = request.resource
        wsa = request.addressing.wsa or USUAL_WSA[spec]
        if wanted is None:
            known = topics_for(self._port, request.session, self._topics)
            return resources.producer(spec, known)
        registration = self._registrations.find(wanted)
        if registration is not None and request.kind != "subscriptions":
            self._registrations.check(request.session, Action.READ, wanted)
            return resources.registration(spec, registration, wsa, faults.now_ns)
        try:
            if request.kind == "registrations":
                raise NoSuchSubscription(
                    f"there is no registration {wanted[:80]!r}", remedy="It may have ended."
                )
            shown = self._port.view(request.session, wanted).subscription
        except NoSuchSubscription as error:
            raise faults.unknown(error) from error
        address = request.address("subscriptions", shown.id)
        return resources.subscription(spec, shown, address, wsa, faults.now_ns)


def _values(
    properties: Properties, names: list[asking.RequestedProperty], faults: PropertyFaults
) -> bytes:
    out: list[bytes] = []
    for asked in names:
        found = None if asked.name is None else properties.of(asked.name)
        if found is None:
            raise faults.no_property(asked)
        out += found
    return b"".join(out)

"""WS-BrokeredNotification: publishers register, publish there, and leave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from tocsin.access.decision import Action
from tocsin.errors import TocsinError
from tocsin.services.brokered.demand import Demand
from tocsin.services.brokered.registrations import Registrations
from tocsin.services.soap.call import Handler, Handlers, Reply, Request
from tocsin.services.soap.context import SoapContext
from tocsin.services.soap.publish import PublishService
from tocsin.wire.soap.addressing import EndpointReference
from tocsin.wire.soap.fault import SoapFault, addressing_fault
from tocsin.wire.soap.names import LIFETIME12, SOAP_NAMESPACES, SPEC_OF, USUAL_WSA
from tocsin.wire.soap.topics import dialect_kind
from tocsin.wire.wsn import messages as base
from tocsin.wire.wsn.expiry import ends_at
from tocsin.wire.wsn.operations import REQUESTS, WORDINGS, Operation
from tocsin.wire.wsn.read import read_request
from tocsin.wire.wsn.write import write as write_base
from tocsin.wire.wsn_brokered import messages as say
from tocsin.wire.wsn_brokered.faults import REJECTED, BrokeredFaults
from tocsin.wire.wsn_brokered.read import read_register
from tocsin.wire.wsn_brokered.registration import Registration, topic_filter
from tocsin.wire.wsn_brokered.write import write

Act = Callable[[str, Request], Awaitable[Reply]]


class BrokeredService:
    """Registers publishers. What is sent to a registration's address is published, unless it is
    about the registration itself."""

    def __init__(
        self, context: SoapContext, registrations: Registrations, properties: Handlers
    ) -> None:
        """`properties`: the operations by which anybody asks for a registration's properties."""
        self._port = context.port
        self._runtime = context.port.runtime
        self._consumers = context.consumers
        self._registrations = registrations
        self._demand = Demand(context.port, registrations, context.consumers)
        self._publishing = PublishService(context)
        acts: dict[str, Act] = {say.REGISTER: self._register, say.DESTROY: self._destroy}
        self.handlers: Handlers = {
            (say.NAMESPACES[spec], operation): partial(acts[operation], spec)
            for spec, operations in say.OPERATIONS.items()
            for operation in operations
        }
        self.takes_all: dict[str, Handler] = {"registrations": self._at_registration}
        self._here: Handlers = {
            **properties,
            **{name: self._lifetime for name in REQUESTS if name[0] == LIFETIME12},
            **{name: self._publish(handler) for name, handler in self._publishing.handlers.items()},
        }

    def close(self) -> None:
        self._demand.close()

    # Registering

    async def _register(self, spec: str, request: Request) -> Reply:
        faults = BrokeredFaults(spec, self._runtime.now_ns())
        asked = read_register(request.envelope)
        self._check_topics(asked, faults)
        if asked.demand:
            self._check_demand(asked, request.session.peer, faults)
        wsa = _wsa(request, asked.publisher, spec)
        registration_id = self._runtime.new_id()
        registration = Registration(
            id=registration_id,
            spec=spec,
            soap=request.envelope.soap,
            wsa=wsa if asked.publisher is None else asked.publisher.wsa,
            address=request.address("registrations", registration_id),
            publisher=asked.publisher,
            topics=asked.topics,
            demand=asked.demand,
            created_ns=faults.now_ns,
            expires_ns=_ends_at(asked.termination, faults),
        )
        try:
            await self._registrations.add(request.session, registration)
        except TocsinError as error:
            raise faults.failed(error) from error
        answer = say.RegisterPublisherResponse(registration.reference, registration.reference)
        return Reply(
            write(answer, spec, wsa),
            say.response_action(spec, say.REGISTER, request.addressing.action),
        )

    def _check_topics(self, asked: say.RegisterPublisher, faults: BrokeredFaults) -> None:
        for topic in asked.topics:
            if topic.dialect and dialect_kind(topic.dialect) is None:
                raise faults.fault(
                    "TopicNotSupportedFault",
                    f"the topic dialect {topic.dialect[:200]!r} is not supported",
                )
            try:
                topic_filter(topic, faults)
            except TocsinError as error:
                reason = f"{error.problem}. {error.remedy}"
                raise faults.fault("InvalidTopicExpressionFault", reason, error=error) from error

    def _check_demand(
        self, asked: say.RegisterPublisher, peer: str, faults: BrokeredFaults
    ) -> None:
        """A publisher on demand is subscribed to: it must be somewhere, and publish something."""
        publisher = asked.publisher
        if publisher is None or publisher.is_anonymous or publisher.is_none:
            raise faults.fault(REJECTED, "publishing on demand needs a PublisherReference")
        if not asked.topics:
            raise faults.fault(REJECTED, "publishing on demand needs at least one Topic")
        if not publisher.address.startswith(("http://", "https://")):
            raise faults.fault(REJECTED, "a publisher on demand needs an HTTP address")
        try:
            self._consumers.check(publisher.address, peer)
        except TocsinError as error:
            raise faults.rejected(error) from error

    # What is sent to a registration

    async def _at_registration(self, request: Request) -> Reply:
        self._registrations.check(request.session, Action.READ, request.resource)
        handler = self._here.get(request.name)
        if handler is not None:
            return await handler(request)
        if request.is_notification and _is_payload(request):
            return await self._publish(self._publishing.plain)(request)
        raise addressing_fault(
            request.addressing.wsa,
            "ActionNotSupported",
            f"a registration has no operation {request.name[1][:80]!r}",
        )

    def _publish(self, handler: Handler) -> Handler:
        async def publish(request: Request) -> Reply:
            spec = SPEC_OF.get(request.name[0], "")
            fault_spec = spec if spec in say.NAMESPACES else "wsn13"
            self._found(request, BrokeredFaults(fault_spec, self._runtime.now_ns()))
            return await handler(request)

        return publish

    async def _destroy(self, spec: str, request: Request) -> Reply:
        faults = BrokeredFaults(spec, self._runtime.now_ns())
        await self._end(request, self._found(request, faults), faults)
        return Reply(
            write(say.DestroyRegistrationResponse(), spec, request.addressing.wsa),
            say.response_action(spec, say.DESTROY, request.addressing.action),
        )

    async def _lifetime(self, request: Request) -> Reply:
        """Destroy and SetTerminationTime, by which 1.2 ends and extends registrations."""
        spec, operation = REQUESTS[request.name]
        faults = BrokeredFaults(spec, self._runtime.now_ns())
        registration = self._found(request, faults, operation)
        asked = read_request(request.envelope, spec, operation)
        answer: base.Response = base.UnsubscribeResponse()
        if isinstance(asked, base.Renew):
            expires_ns = ends_at(asked.termination, faults, operation)
            await self._registrations.extend(request.session, registration, expires_ns)
            ends: int | base.Never = base.NEVER if expires_ns is None else expires_ns
            answer = base.RenewResponse(ends, faults.now_ns)
        else:
            await self._end(request, registration, faults)
        body = write_base(answer, spec, request.addressing.wsa)
        return Reply(body, WORDINGS[spec][operation].response_action)

    async def _end(
        self, request: Request, registration: Registration, faults: BrokeredFaults
    ) -> None:
        try:
            await self._registrations.end(request.session, registration)
        except TocsinError as error:
            raise faults.not_destroyed(error) from error

    def _found(
        self, request: Request, faults: BrokeredFaults, operation: Operation | None = None
    ) -> Registration:
        self._registrations.check(request.session, Action.READ, request.resource)
        found = self._registrations.find(request.resource)
        if found is None:
            raise faults.fault(
                "ResourceUnknownFault",
                f"there is no registration {(request.resource or '')[:80]!r}, or it has ended",
                operation=operation,
            )
        return found


def _wsa(request: Request, publisher: EndpointReference | None, spec: str) -> str:
    """The addressing version that the caller reads."""
    if request.addressing.wsa:
        return request.addressing.wsa
    return USUAL_WSA[spec] if publisher is None else publisher.wsa


def _ends_at(termination: str | base.Never | None, faults: BrokeredFaults) -> int | None:
    """A registration that names no end has none: 1.3 knows no way to renew it."""
    return None if termination is None else ends_at(termination, faults, Operation.SUBSCRIBE)


def _is_payload(request: Request) -> bool:
    if request.envelope.content is None:
        raise SoapFault("Sender", "the body is empty: there is nothing to publish")
    return request.name[0] not in SOAP_NAMESPACES.values()

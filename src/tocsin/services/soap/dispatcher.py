"""The dispatcher: every SOAP message is read here, handed to its service, and answered in the
caller's own SOAP and addressing versions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from tocsin.broker.runtime import Tasks
from tocsin.errors import TocsinError, TooLarge
from tocsin.services.soap.call import Handler, Handlers, Reply, Request, SoapAnswer, SoapCall
from tocsin.services.soap.context import SoapContext
from tocsin.services.soap.paths import identifier, parse_path, takes_bare_notifications
from tocsin.services.soap.publish import PublishService
from tocsin.services.soap.ws_security import UnverifiedSecurity
from tocsin.wire.onvif.events import unknown_operation
from tocsin.wire.soap.addressing import (
    Addressing,
    EndpointReference,
    Versions,
    header_text,
    read_addressing,
    reference_headers,
    write_headers,
)
from tocsin.wire.soap.detect import PUBLISH, detect, http_action
from tocsin.wire.soap.envelope import (
    UNDERSTOOD,
    UPGRADE,
    Envelope,
    blocks,
    check_understood,
    content_type,
    http_headers,
    read_envelope,
    split,
    write_envelope,
)
from tocsin.wire.soap.fault import (
    SoapFault,
    addressing_fault,
    fault_action,
    fault_of,
    http_status,
    write_fault,
)
from tocsin.wire.soap.multipart import envelope_of_package, is_multipart
from tocsin.wire.soap.names import SOAP_VERSIONS, WSA_NAMESPACES, WSRM10, WSRM11
from tocsin.wire.soap.specifications import is_onvif_service

ENVELOPE_BYTES_MAX: Final = 8 << 20
UNRELIABLE: Final = UNDERSTOOD - {WSRM10, WSRM11}  # where no sequences are kept
ELSEWHERE_MAX: Final = 1_000  # answers under way to where ReplyTo points


Process = Callable[[Request], Awaitable[Reply]]


class Service(Protocol):
    """Some operations, by the name of the body's element."""

    handlers: Handlers


class ReliableMessaging(Service, Protocol):
    """What stands between the dispatcher and the services, for messages in sequences."""

    def open(self, read: Callable[[SoapCall], Request], process: Process) -> None:
        """Begin: `read` reads a stored message again, and `process` hands it on."""

    async def through(self, request: Request, process: Process) -> Reply:
        """Process a message now, later or never, and acknowledge it."""

    def close(self) -> None: ...


class Dispatcher:
    """Answers SOAP calls. It raises nothing: what goes wrong is a fault in the answer."""

    def __init__(
        self,
        context: SoapContext,
        services: Sequence[Service],
        *,
        publishes: bool = True,
        reliable: ReliableMessaging | None = None,
    ) -> None:
        self._runtime = context.port.runtime
        self._consumers = context.consumers
        self._services = services
        self._reliable = reliable
        self._publishing = PublishService(context)
        self._security = context.security or UnverifiedSecurity(context.port)
        self.operations: dict[tuple[str, str], Handler] = {}  # by the name of the body's element
        self._kinds: dict[str, tuple[Handlers, Handler]] = {}
        self._publishes = publishes
        self._elsewhere = Tasks(self._runtime)
        for service in [self._publishing, *services] if publishes else services:
            self.operations.update(service.handlers)
            takers: dict[str, Handler] = getattr(service, "takes_all", {})
            for kind, taker in takers.items():
                self._kinds[kind] = (service.handlers, taker)
        if reliable is not None:
            self.operations.update(reliable.handlers)
            reliable.open(self._read, self._process)

    async def answer(self, call: SoapCall) -> SoapAnswer:
        """The answer to one message."""
        soap = "1.2" if "soap+xml" in call.content_type else "1.1"
        addressing = Addressing()
        try:
            _check_call(call)
            if is_multipart(call.content_type):
                call = _unpacked(call)
            envelope = read_envelope(call.body)
            soap = envelope.soap
            addressing = _addressing(envelope)
            check_understood(envelope, UNRELIABLE if self._reliable is None else UNDERSTOOD)
            call = self._security.look(envelope, addressing, call)
            elsewhere = self._elsewhere_of(addressing, call)
            request = self._request(call, envelope, addressing)
            if self._reliable is None:
                reply = await self._process(request)
            else:
                reply = await self._reliable.through(request, self._process)
        except _Misaddressed as misaddressed:
            return self._refused(misaddressed.fault, soap, misaddressed.known)
        except SoapFault as fault:
            return self._refused(fault, soap, addressing)
        except TocsinError as error:
            return self._refused(fault_of(error), soap, addressing)
        except Exception as error:
            self._runtime.note("error", "a SOAP request failed", error=repr(error), path=call.path)
            broken = SoapFault("Receiver", "the broker failed; the reason is in its log")
            return self._refused(broken, soap, addressing)
        return self._answered(reply, soap, addressing, elsewhere)

    def _read(self, call: SoapCall) -> Request:
        """A message that was understood before, read again."""
        envelope = read_envelope(call.body)
        return self._request(call, envelope, read_addressing(envelope))

    def _request(self, call: SoapCall, envelope: Envelope, addressing: Addressing) -> Request:
        asked = detect(envelope, addressing, http_action(call.soap_action, call.content_type))
        is_named = bool(asked.namespace)
        name = (asked.namespace, asked.operation) if is_named else split(envelope.message.tag)
        target = parse_path(call.path)
        return Request(
            call=call,
            envelope=envelope,
            addressing=addressing,
            versions=Versions(envelope.soap, addressing.wsa),
            name=name,
            resource=target.resource or identifier(envelope),
            kind=target.kind,
            is_notification=asked.operation == PUBLISH,
        )

    async def _process(self, request: Request) -> Reply:
        taken = self._kinds.get(request.kind)
        if request.session.principal.is_internal:
            # A delivery to a box of ours. Its body is anybody's event, and no request by the
            # broker, whatever it looks like.
            if taken is None:
                raise _not_an_operation(request)
            return await taken[1](request)
        is_of_sequence = self._reliable is not None and request.name in self._reliable.handlers
        if taken is not None and not is_of_sequence:
            handlers, taker = taken
            return await handlers.get(request.name, taker)(request)
        handler = self.operations.get(request.name)
        if handler is not None:
            return await handler(request)
        if request.is_notification and self._publishes and not request.kind:
            _check_notification(request)
            return await self._publishing.plain(request)
        raise _not_an_operation(request)

    # Answers

    def _elsewhere_of(self, addressing: Addressing, call: SoapCall) -> EndpointReference | None:
        """Where the answer goes, if not back where the request came from.

        Without a MessageID there is nothing to relate an answer to, so ReplyTo is not meant for it:
        some clients put their consumer's address there.
        """
        reference = addressing.reply_to
        if reference is None or addressing.message_id is None or reference.is_anonymous:
            return None
        if reference.is_none:
            return reference
        self._consumers.check(reference.address, call.session.peer, call.base)
        if len(self._elsewhere) >= ELSEWHERE_MAX:
            raise SoapFault("Receiver", "too many answers to other addresses are being sent")
        return reference

    def _answered(
        self, reply: Reply, soap: str, addressing: Addressing, elsewhere: EndpointReference | None
    ) -> SoapAnswer:
        if reply.one_way and not reply.headers:
            return SoapAnswer(202, "", b"")
        header = write_headers(
            addressing.wsa, action=reply.action, relates_to=addressing.message_id
        )
        if elsewhere is None or reply.one_way:
            body = write_envelope(soap, header=header + reply.headers, body=reply.body)
            return SoapAnswer(200, content_type(soap, reply.action), body, reply.receipt)
        if not elsewhere.is_none:
            header = write_headers(
                addressing.wsa,
                action=reply.action,
                relates_to=addressing.message_id,
                to=elsewhere.address,
            )
            header += reference_headers(elsewhere, addressing.wsa) + reply.headers
            body = write_envelope(soap, header=header, body=reply.body)
            self._send(elsewhere.address, body, soap, reply)
        elif reply.receipt is not None:
            reply.receipt.arrived()  # whoever asked wants no answer
        return SoapAnswer(202, "", b"")

    def _send(self, address: str, body: bytes, soap: str, reply: Reply) -> None:
        async def send() -> None:
            taken = False
            try:
                headers = dict(http_headers(soap, reply.action))
                answer = await self._runtime.post(address, body, headers)
                taken = 200 <= answer.status < 300
            except TocsinError as error:
                self._runtime.note(
                    "warning", "an answer could not be delivered", error=error.problem
                )
            finally:
                if reply.receipt is not None:
                    (reply.receipt.arrived if taken else reply.receipt.lost)()

        self._elsewhere.spawn(send())

    def _refused(self, fault: SoapFault, soap: str, addressing: Addressing) -> SoapAnswer:
        if fault.code == "VersionMismatch":
            soap = "1.1"  # the version that whoever speaks neither is most likely to read
            fault.headers += UPGRADE
        action = fault_action(fault, addressing.wsa)
        header = write_headers(addressing.wsa, action=action, relates_to=addressing.message_id)
        body = write_envelope(soap, header=header + fault.headers, body=write_fault(fault, soap))
        return SoapAnswer(http_status(fault, soap), content_type(soap), body)

    def close(self) -> None:
        """End what the services have under way."""
        self._elsewhere.cancel()
        for service in [*self._services, self._reliable]:
            close = getattr(service, "close", None)
            if close is not None:
                close()


class _Misaddressed(Exception):
    """The addressing headers are wrong; of them is known only what an answer needs."""

    def __init__(self, fault: SoapFault, known: Addressing) -> None:
        super().__init__(fault.reason)
        self.fault = fault
        self.known = known


def _addressing(envelope: Envelope) -> Addressing:
    try:
        return read_addressing(envelope)
    except SoapFault as fault:
        spaces = (split(block.tag)[0] for block in blocks(envelope))
        wsa = next((space for space in spaces if space in WSA_NAMESPACES), "")
        message_id = header_text(envelope, wsa, "MessageID") or None
        raise _Misaddressed(fault, Addressing(wsa, message_id=message_id)) from None


def _check_call(call: SoapCall) -> None:
    if call.refused is not None:
        raise call.refused
    if len(call.body) > ENVELOPE_BYTES_MAX:
        raise TooLarge(
            f"the envelope has {len(call.body)} bytes",
            remedy=f"Send at most {ENVELOPE_BYTES_MAX} in one message.",
        )


def _unpacked(call: SoapCall) -> SoapCall:
    """The call with the envelope that its package is about."""
    body, content_type = envelope_of_package(call.body, call.content_type, ENVELOPE_BYTES_MAX)
    return replace(call, body=body, content_type=content_type)


def _check_notification(request: Request) -> None:
    if request.envelope.content is None:
        raise SoapFault("Sender", "the body is empty: there is nothing to publish and no operation")
    if not takes_bare_notifications(request.call.path):
        raise addressing_fault(
            request.addressing.wsa,
            "ActionNotSupported",
            f"{request.name[1][:80]!r} is not an operation, and nothing can be published at "
            f"{request.call.path[:80]}: send notifications to /soap",
        )


def _not_an_operation(request: Request) -> SoapFault:
    """The fault for a request that nobody here answers, in the words of its specification."""
    namespace, name = request.name
    if name == "Fault" and namespace in SOAP_VERSIONS:
        return SoapFault("Sender", "a fault is not a notification")
    if is_onvif_service(namespace):
        return unknown_operation(name[:80], namespace[:120])
    return addressing_fault(
        request.addressing.wsa,
        "ActionNotSupported",
        f"there is no operation {name[:80]!r} of {namespace[:120]!r} here",
    )

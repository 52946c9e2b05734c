"""The broker as a subscriber at a publisher: one step of an upstream subscription."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import msgspec

from tocsin.broker.runtime import Runtime, new_uuid
from tocsin.errors import BadXml, PeerFailed, TocsinError
from tocsin.event.instant import NS_PER_S, rfc3339, xs_duration
from tocsin.services.soap.consumers import ConsumerRules
from tocsin.wire.soap.addressing import (
    EndpointReference,
    anonymous,
    reference_headers,
    write_headers,
)
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, write_envelope
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.wsn import messages as say
from tocsin.wire.wsn.read import read, read_refusal
from tocsin.wire.wsn.write import operation_names, write
from tocsin.wire.wsn_brokered.registration import Registration
from tocsin.wire.wsn_brokered.upstream import LEASE_S, Step, Upstream, closed, opened, renewal_ns

_LEASE_NS: Final = LEASE_S * NS_PER_S
_BUSY: Final = frozenset({408, 425, 429, 502, 503, 504})  # the same may be asked again later
_UNKNOWN: Final = "ResourceUnknownFault"
_NO_SUCH_END: Final = "UnacceptableInitialTerminationTimeFault"


class PublisherRefused(Exception):
    """The publisher refused. `name` is that of its fault, where it has one."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


async def subscribe(
    runtime: Runtime,
    consumers: ConsumerRules,
    upstream: Upstream,
    registration: Registration,
    topic: int,
) -> Upstream:
    """Subscribe at the publisher for one of its topics."""
    publisher = registration.publisher
    assert publisher is not None, "who publishes on demand has an address"
    asked = say.Subscribe(
        consumer=registration.reference,
        topics=(registration.topics[topic],),
        termination=_termination(upstream.spec, runtime.now_ns()),
    )
    lease_ns: int | None = _LEASE_NS
    try:
        answer = await _ask(runtime, upstream, publisher, asked)
    except PublisherRefused as refused:
        if refused.name != _NO_SUCH_END:
            raise
        lease_ns = None
        answer = await _ask(runtime, upstream, publisher, replace(asked, termination=None))
    if not isinstance(answer, say.SubscribeResponse):
        raise PublisherRefused("it did not answer Subscribe with a subscription")
    now_ns = runtime.now_ns()
    lease_ns = _lease_ns(answer.termination_ns, answer.current_ns, lease_ns, now_ns)
    return opened(
        upstream, _manager(runtime, consumers, publisher, answer.reference), lease_ns, now_ns
    )


async def perform(runtime: Runtime, upstream: Upstream, step: Step) -> Upstream:
    """Pause, resume, renew or end the subscription.

    A publisher that will not pause is subscribed to and unsubscribed from, from then on; at one
    that does not know the subscription we have none.
    """
    reference = upstream.reference
    assert reference is not None, "only a subscription that exists can be changed"
    try:
        answer = await _ask(
            runtime, upstream, reference, _request(step, upstream.spec, runtime.now_ns())
        )
    except PublisherRefused as refused:
        if step is Step.PAUSE and refused.name != _UNKNOWN:
            return msgspec.structs.replace(upstream, can_pause=False)
        if step in (Step.RESUME, Step.RENEW) and refused.name != _UNKNOWN:
            await _end_anyway(runtime, upstream, reference)
        return closed(upstream)
    if step is Step.UNSUBSCRIBE:
        return closed(upstream)
    if step is Step.RENEW:
        return _renewed(upstream, answer, runtime.now_ns())
    return msgspec.structs.replace(upstream, paused=step is Step.PAUSE)


async def _end_anyway(runtime: Runtime, upstream: Upstream, reference: EndpointReference) -> None:
    """Another subscription takes its place; this one expires if it cannot be ended."""
    try:
        await _ask(runtime, upstream, reference, say.Unsubscribe())
    except (PublisherRefused, TocsinError) as error:
        runtime.note(
            "warning",
            "a subscription at a publisher could not be ended; it will expire",
            error=str(error),
        )


def _request(step: Step, spec: str, now_ns: int) -> say.Request:
    if step is Step.PAUSE:
        return say.PauseSubscription()
    if step is Step.RESUME:
        return say.ResumeSubscription()
    return say.Renew(_termination(spec, now_ns)) if step is Step.RENEW else say.Unsubscribe()


def _termination(spec: str, now_ns: int) -> str:
    """1.3 knows durations, which mean the same by every clock."""
    return xs_duration(_LEASE_NS) if spec == "wsn13" else rfc3339(now_ns + _LEASE_NS)


def _lease_ns(
    ends_ns: int | say.Never | None, current_ns: int | None, asked_ns: int | None, now_ns: int
) -> int | None:
    """How long it lasts; what was asked for, if the producer does not say."""
    if isinstance(ends_ns, int):
        return ends_ns - (now_ns if current_ns is None else current_ns)
    return asked_ns if ends_ns is None else None


def _renewed(upstream: Upstream, answer: say.Message | None, now_ns: int) -> Upstream:
    lease_ns: int | None = _LEASE_NS
    if isinstance(answer, say.RenewResponse):
        lease_ns = _lease_ns(answer.termination_ns, answer.current_ns, _LEASE_NS, now_ns)
    return msgspec.structs.replace(upstream, renew_ns=renewal_ns(lease_ns, now_ns))


def _manager(
    runtime: Runtime,
    consumers: ConsumerRules,
    publisher: EndpointReference,
    given: EndpointReference,
) -> EndpointReference:
    """Where the subscription is managed: as the publisher says, if that is a place to send to."""
    host = urlsplit(publisher.address).hostname or ""
    try:
        if not given.is_anonymous and given.address.startswith(("http://", "https://")):
            consumers.check(given.address, f"[{host}]:0")
            return given
    except TocsinError as error:
        runtime.note(
            "warning",
            "a publisher named a subscription manager that cannot be used",
            error=error.problem,
        )
    return msgspec.structs.replace(given, address=publisher.address)


async def _ask(
    runtime: Runtime, upstream: Upstream, to: EndpointReference, message: say.Request
) -> say.Message | None:
    """The answer of the publisher, None if it is empty. Raises PublisherRefused if it refuses, and
    PeerFailed if it cannot be reached now."""
    action = operation_names(message, upstream.spec).request_action
    header = write_headers(
        upstream.wsa,
        action=action,
        message_id=f"urn:uuid:{new_uuid(runtime)}",
        to=to.address,
        reply_to=anonymous(upstream.wsa),
    )
    header += reference_headers(to, upstream.wsa)
    body = write_envelope(
        upstream.soap, header=header, body=write(message, upstream.spec, upstream.wsa)
    )
    answer = await runtime.post(to.address, body, dict(http_headers(upstream.soap, action)))
    if answer.status in _BUSY:
        raise PeerFailed(
            f"{to.address[:200]} answered {answer.status}", remedy="It is asked again later."
        )
    if not answer.body:
        if 200 <= answer.status < 300:
            return None
        raise PublisherRefused(f"it answered {answer.status}")
    try:
        return _read(read_envelope(answer.body))
    except (SoapFault, BadXml) as bad:
        raise PublisherRefused(f"it answered {answer.status} and {bad}") from bad


def _read(envelope: Envelope) -> say.Message | None:
    if envelope.content is None:
        return None
    refusal = read_refusal(envelope)
    if refusal is not None:
        raise PublisherRefused(*refusal)
    return read(envelope)

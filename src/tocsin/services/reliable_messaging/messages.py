"""Messages of WS-ReliableMessaging, as requests and replies of a service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import msgspec

from tocsin.errors import TocsinError
from tocsin.services.soap.call import Reply, Request
from tocsin.wire.soap.fault import SoapFault, fault_of
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wsrm.messages import Content, Sequence, action
from tocsin.wire.wsrm.read import read_content
from tocsin.wire.wsrm.write import write_content

TOO_MANY: Final = 429  # the status of errors that pass with time


def identified(request: Request, came: Sequence) -> Request:
    """The request with an id that a repetition has too."""
    if request.addressing.message_id is not None:
        return request
    own = msgspec.structs.replace(request.addressing, message_id=f"{came.identifier}#{came.number}")
    return replace(request, addressing=own)


def content_of(request: Request, kind: type[Any]) -> Any:
    content = read_content(request.envelope)
    if not isinstance(content, kind):
        raise SoapFault("Sender", f"the body is not a {kind.__name__}")
    return content


def reply_of(content: Content) -> Reply:
    # None of our answers holds a reference, so their version of WS-Addressing says nothing.
    body = write_content(content, WSA2005)
    return Reply(body, action(content.rm, type(content).__name__))


async def outcome_of(process: Callable[..., Awaitable[Reply]], *what: object) -> Reply | SoapFault:
    """What a service says for good, be it a refusal. What it may do later is raised: then the
    message is not acknowledged, and comes again."""
    try:
        return await process(*what)
    except SoapFault as fault:
        if fault.code == "Receiver":
            raise
        return fault
    except TocsinError as error:
        if error.http_status >= 500 or error.http_status == TOO_MANY:
            raise
        return fault_of(error)

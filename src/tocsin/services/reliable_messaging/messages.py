"""Messages of WS-ReliableMessaging, as requests and replies of a service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from tocsin.services.soap.call import Reply, Request
from tocsin.wire.soap.fault import SoapFault
from tocsin.wire.soap.names import WSA2005
from tocsin.wire.wsrm.messages import Content, Sequence, action
from tocsin.wire.wsrm.read import read_content
from tocsin.wire.wsrm.write import write_content


def identified(request: Request, came: Sequence) -> Request:
    """The request with an id that a repetition has too."""
    if request.addressing.message_id is not None:
        return request
    own = msgspec.structs.replace(request.addressing, message_id=f"{came.identifier}#{came.number}")
    return replace(request, addressing=own)


def content_of(request: Request, kind: type[Any]) -> Any:
    content = read_content(request.envelope, request.element)
    if not isinstance(content, kind):
        raise SoapFault("Sender", f"the body is not a {kind.__name__}")
    return content


def reply_of(content: Content) -> Reply:
    # None of our answers holds a reference, so their version of WS-Addressing says nothing.
    body = write_content(content, WSA2005)
    return Reply(body, action(content.rm, type(content).__name__))

"""Every SOAP operation of every specification, at every path where SOAP is answered."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from http_walk import open_http
from lxml import etree
from refusing import CUT, SECRET, Refusing, Way

from tocsin.drivers.http.listener import HttpListener
from tocsin.services.soap.dispatcher import Dispatcher
from tocsin.services.soap.paths import WHOLE, takes_bare_notifications
from tocsin.wire.dime import Decoder, DimeLimits, envelope_message, read_envelope_message
from tocsin.wire.onvif.device import BEFORE_SIGN_IN
from tocsin.wire.soap import names
from tocsin.wire.wss.write import with_security

CODE = "T215"
PATHS = (
    *WHOLE,
    "/soap/subscriptions/x",
    "/soap/boxes/x",
    "/soap/registrations/x",
    "/soap/topic/a",
    "/wsman/SubscriptionManager",
    "/axis2/services/EventingService",
    "/axis2/services/NotificationService/topic/a",
    "/axis2/services/MsgBoxService",
    "/axis2/services/MsgBoxService/clientid/x",
    "/onvif/device_service",
    "/onvif/event_service",
)
# Where messages are stored, or about something that only some may know of.
CLOSED = ("/soap/boxes/x", "/soap/registrations/x", "/axis2/services/MsgBoxService/clientid/x")

# Whoever opens another operation to everybody has to say so here too.
PRE_AUTH = "of the access class PRE_AUTH: ONVIF clients ask before they sign in"
OPEN = {
    (names.WSMID, "Identify"): "clients of WS-Management ask it before they sign in",
    (names.ONVIF_EVENTS, "GetServiceCapabilities"): PRE_AUTH,
    **{(names.ONVIF_DEVICE, name): PRE_AUTH for name in BEFORE_SIGN_IN},
}

_CONSUMER = f'<a:Address xmlns:a="{names.WSA2005}">http://127.0.0.1:9/c</a:Address>'
_ANONYMOUS = f'<a:Address xmlns:a="{names.WSA2005}">{names.WSA2005}/anonymous</a:Address>'
_MESSAGE = "<o:NotificationMessage><o:Message><x/></o:Message></o:NotificationMessage>"
_DELIVERY = f"<o:Delivery><o:NotifyTo>{_CONSUMER}</o:NotifyTo></o:Delivery>"
_REFERENCE = f"<o:ConsumerReference>{_CONSUMER}</o:ConsumerReference>"
_ENUMERATION = "<o:EnumerationContext>x</o:EnumerationContext>"
_IDENTIFIER = "<o:Identifier>urn:x</o:Identifier>"
_TOPIC = "<o:Topic>a</o:Topic>"
# What is refused only once it was understood. All else is refused whatever it says.
CONTENT = {
    (names.WSE11, "Notify"): "<x/>",
    (names.WSE04, "Subscribe"): _DELIVERY.replace(names.WSA2005, names.WSA200408),
    (names.WSE11, "Subscribe"): _DELIVERY,
    "Notify": _MESSAGE,
    "Events": "<o:Event><x/></o:Event>",
    "Subscribe": _REFERENCE,
    "SubscribeRequest": _REFERENCE,
    "GetCurrentMessage": _TOPIC,
    "GetCurrentMessageRequest": _TOPIC,
    "Pull": _ENUMERATION,
    "Release": _ENUMERATION,
    "CreateSequence": f"<o:AcksTo>{_ANONYMOUS}</o:AcksTo>",
    "CloseSequence": _IDENTIFIER,
    "TerminateSequence": _IDENTIFIER,
}
EVENT = ("urn:some:publisher", "Event")  # in no specification's namespace: it is published


def envelope(soap: str, namespace: str, name: str, to: str) -> bytes:
    """The message, about a subscription that there is not."""
    content = CONTENT.get((namespace, name), CONTENT.get(name, ""))
    return (
        f'<s:Envelope xmlns:s="{names.SOAP_NAMESPACES[soap]}" xmlns:a="{names.WSA2005}">'
        f"<s:Header><a:To>{to}</a:To>"
        f'<t:SubscriptionId xmlns:t="{names.TOCSIN}">x</t:SubscriptionId></s:Header>'
        f'<s:Body><o:{name} xmlns:o="{namespace}">{content}</o:{name}></s:Body></s:Envelope>'
    ).encode()


def _calls(
    dispatcher: Dispatcher, *, publishes: bool = True, paths: tuple[str, ...] = PATHS
) -> Iterator[tuple[str, str, str]]:
    """Each path with the operations that must be refused there."""
    for path in paths:
        for name in dispatcher.operations:
            if name not in OPEN or path in CLOSED:
                yield path, *name
        if publishes and takes_bare_notifications(path) and path != "/soap/subscriptions/x":
            yield path, *EVENT


def _paths(broker: Refusing) -> tuple[str, ...]:
    """Where each call needs a connection of its own, and TLS takes long: one of them."""
    return PATHS[:1] if broker.is_cut_off and broker.tls is not None else PATHS


async def walk_soap(broker: Refusing) -> list[str]:
    """By HTTP, in both versions of SOAP: the operations that were not refused as they should be."""
    found = await walk_operations(
        broker.soap.dispatcher,
        broker.http,
        code=broker.refusal[1],
        headers=broker.headers,
        opened=partial(open_http, broker),
        paths=_paths(broker),
    )
    _note(broker, found)
    return found


def _note(broker: Refusing, found: list[str]) -> None:
    broker.answers += [(each, 200, _code_in(each)) for each in found]
    broker.shown += [each for each in found if SECRET in each]


async def walk_operations(
    dispatcher: Dispatcher,
    listener: HttpListener,
    *,
    publishes: bool = True,
    code: str = CODE,
    headers: dict[str, str] | None = None,
    opened: Callable[[], Awaitable[Way]] | None = None,
    paths: tuple[str, ...] = PATHS,
) -> list[str]:
    """`publishes`: what is no operation of a specification is an event there. Without a `code` it
    is the end of the connection that refuses."""
    extra = headers or {}
    wrong: list[str] = []
    connect = opened or partial(asyncio.open_connection, "127.0.0.1", listener.port)
    way: Way | None = None
    for path, namespace, name in _calls(dispatcher, publishes=publishes, paths=paths):
        for soap in names.SOAP_NAMESPACES:
            message = envelope(soap, namespace, name, f"http://{listener.address}{path}")
            try:
                way = way or await connect()
                answer = await _post(*way, path, soap, message, extra)
            except CUT:
                answer, way = b"", None
            if len(paths) == 1:  # each by its own
                way = None
            if not _is_refused(answer, code):
                wrong.append(f"{path} {namespace} {name}: {answer.decode()}")
    if way is not None:
        way[1].close()
    return wrong


def _is_refused(answer: bytes, code: str) -> bool:
    """By a fault; or by a problem, where it is the connection that is refused."""
    found = (f'code="{code}"'.encode(), f'"code":"{code}"'.encode())
    return any(each in answer for each in found) if code else answer == b""


async def walk_soap_tcp(broker: Refusing) -> list[str]:
    """By SOAP.TCP. Where nothing is answered, the answer to the next message shows it."""
    wrong: list[str] = []
    last = envelope("1.2", names.WSMID, "Identify", "soap.tcp://x/soap")
    way: Way | None = None
    for path, namespace, name in _calls(broker.soap.dispatcher, paths=_paths(broker)):
        message = envelope("1.2", namespace, name, f"soap.tcp://x{path}")
        if broker.security:
            message = etree.tostring(with_security(message, [broker.security]))
        try:
            way = way or await _open_soap_tcp(broker, last)
            answer = await _answer_by_soap_tcp(way, message, last)
        except CUT:
            answer, way = b"", None
        if not _is_refused(answer, broker.refusal[1]):
            wrong.append(f"{path} {namespace} {name}: {answer.decode()}")
    if way is not None:
        way[1].close()
    _note(broker, wrong)
    return wrong


async def _open_soap_tcp(broker: Refusing, first: bytes) -> Way:
    with broker.first():
        way = await broker.open(broker.soap_tcp.address)
        if broker.is_allowed_first:
            await _answer_by_soap_tcp(way, first, first)
    return way


async def _answer_by_soap_tcp(way: Way, message: bytes, last: bytes) -> bytes:
    """The first of the answers to the two."""
    reader, writer = way
    writer.write(envelope_message("1.2", message) + envelope_message("1.2", last))
    decoder = Decoder(DimeLimits(1 << 20, 100))
    wanted = 2 if message == last else 1
    answers: list[bytes] = []
    while sum(b"IdentifyResponse" in each for each in answers) < wanted:
        while (found := decoder.next_message()) is None:
            data = await asyncio.wait_for(reader.read(1 << 16), 10)
            if not data:
                raise EOFError("the connection has ended")
            decoder.receive(data)
        answers.append(read_envelope_message(found)[1])
    return answers[0]


async def answer_to(broker: Refusing, namespace: str, name: str) -> bytes:
    """The answer to one operation at /soap."""
    way = await asyncio.open_connection("127.0.0.1", broker.http.port)
    answer = await _post(*way, "/soap", "1.2", envelope("1.2", namespace, name, "urn:x"))
    way[1].close()
    return answer


async def _post(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    path: str,
    soap: str,
    message: bytes,
    headers: dict[str, str] | None = None,
) -> bytes:
    kind = "application/soap+xml" if soap == "1.2" else "text/xml"
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    writer.write(f"{head}content-length: {len(message)}\r\n\r\n".encode() + message)
    answered = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    length = re.search(rb"content-length: (\d+)", answered)
    return await asyncio.wait_for(reader.readexactly(int(length[1]) if length else 0), 10)


def _code_in(text: str) -> str:
    found = re.search(r'code="(T\d+)"', text)
    return found[1] if found else ""

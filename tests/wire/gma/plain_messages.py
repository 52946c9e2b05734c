"""Plain event messages, and the question whether the fast path reads them as the parser does."""

from __future__ import annotations

from tocsin.wire.gma import messages as m
from tocsin.wire.gma.messages import Context, Element, PerformanceEvent
from tocsin.wire.gma.names import EVENTS
from tocsin.wire.gma.plain import (
    Routed,
    name_of_plain,
    read_plain,
    read_plain_content,
    route,
)
from tocsin.wire.gma.read import read_parsed
from tocsin.wire.gma.write import write
from wire.gma.paper_messages import EVENT, LOADS, TIME, UPTIME

CONTEXT = Context(7, "e1", "gma://foo.gov", "gma/UptimeCPULoad/foo.gov")
PLAIN = write(
    m.EventMessage(
        "1234",
        PerformanceEvent(
            UPTIME,
            TIME,
            (*LOADS, Element("HostName", "foo.gov"), Element("T", -2, "degrees", "+/-5.0")),
        ),
        request_id="e1",
        context=CONTEXT,
    )
)
DECLARED = b'<?xml version="1.0" encoding="UTF-8"?>'
# The same event as others write it, all of which is plain, too.
FORMS = (
    PLAIN,
    DECLARED + b"\n" + PLAIN,
    EVENT.encode(),
    PLAIN.replace(b"/Events", b"/Protocol"),
    PLAIN.replace(b'/Events"', b'/EventParameters"'),
    PLAIN.replace(f' xmlns="{EVENTS}"'.encode(), b""),
    PLAIN.replace(b"UptimeCPULoad ", b"UptimeCPULoadEvent ").replace(b"Load>", b"LoadEvent>"),
    PLAIN.replace(b"><", b">\r\n  <"),
    PLAIN.replace(b" xmlns", b"\r\nxmlns", 2),
    PLAIN.replace(b"Z<", b"Zp.001a.5<"),
)


def takes_as_the_parser_does(data: bytes) -> bool:
    """True if the fast path took it; whatever it took is checked against the parser."""
    plain, routed = read_plain_content(data), route(data)
    assert read_plain(data) == (None if plain is None else plain[0])
    assert (plain is None) == (routed is None)
    if plain is None or routed is None:
        return False
    message, content = plain
    parsed = read_parsed(data)
    assert repr(parsed) == repr(plain), "repr tells 1, 1.0 and True apart"
    assert message.event is not None
    assert routed == Routed(
        message.subscription_id, message.event.name, content, message.request_id
    )
    assert name_of_plain(content) == message.event.name
    return True

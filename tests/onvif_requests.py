"""What a client of ONVIF's event service sends."""

from __future__ import annotations

from tocsin.event.instant import xs_duration
from tocsin.wire.onvif.events import CREATE, PULL, TOPIC_DIALECTS, PullMessages
from tocsin.wire.soap.fault import escaped
from tocsin.wire.soap.names import ONVIF_EVENTS, WSN13


def create_request(
    *, topic: str = "", dialect: str = TOPIC_DIALECTS[0], termination: str = ""
) -> bytes:
    """`topic` uses no prefixes."""
    content = b""
    if topic:
        expression = (
            b'<wsnt:TopicExpression xmlns:wsnt="%b" Dialect="%b">%b</wsnt:TopicExpression>'
            % (WSN13.encode(), dialect.encode(), escaped(topic))
        )
        content += b"<tev:Filter>%b</tev:Filter>" % expression
    if termination:
        content += b"<tev:InitialTerminationTime>%b</tev:InitialTerminationTime>" % escaped(
            termination
        )
    return _element(CREATE, content)


def pull_request(asked: PullMessages) -> bytes:
    return _element(
        PULL,
        b"<tev:Timeout>%b</tev:Timeout><tev:MessageLimit>%d</tev:MessageLimit>"
        % (xs_duration(asked.timeout_ns).encode(), asked.limit),
    )


def _element(name: str, content: bytes) -> bytes:
    return b'<tev:%b xmlns:tev="%b" xmlns:wsnt="%b">%b</tev:%b>' % (
        name.encode(),
        ONVIF_EVENTS.encode(),
        WSN13.encode(),
        content,
        name.encode(),
    )

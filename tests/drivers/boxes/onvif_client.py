"""ONVIF's messages, sent raw, and what is answered, judged by the published schema."""

from __future__ import annotations

from lxml import etree

from drivers.boxes.box_process import ask, whole
from onvif_requests import pull_request
from schemas import validator
from served import Served
from tocsin.event.instant import xs_date_time_ns
from tocsin.wire.onvif import events
from tocsin.wire.soap.envelope import Envelope
from tocsin.wire.soap.names import WSA2005, WSN13


def created_point(broker: Served, body: bytes) -> tuple[str, Envelope]:
    answer = ask(f"{broker.url}/onvif/event_service", body, soap="1.2")
    validator("onvif")(whole(answer))
    address = answer.body.findtext(f".//{{{WSA2005}}}Address")
    assert address
    return address, answer


def pull(address: str, timeout_ns: int = 0, limit: int = 10) -> tuple[Envelope, list[bytes]]:
    asked = events.PullMessages(timeout_ns, limit)
    answer = ask(address, pull_request(asked), soap="1.2")
    validator("onvif")(whole(answer))
    assert answer.content is not None
    found = [etree.tostring(e) for e in answer.content.findall(f"{{{WSN13}}}NotificationMessage")]
    return answer, found


def lease_s(answer: Envelope) -> float:
    """How long the pull point says that it lives."""
    assert answer.content is not None
    times: dict[str, int] = {}
    for child in answer.content:
        name = etree.QName(child).localname
        if name in ("CurrentTime", "TerminationTime"):
            moment = xs_date_time_ns(child.text or "")
            assert moment is not None
            times[name] = moment
    return (times["TerminationTime"] - times["CurrentTime"]) / 1e9

"""A client in any version of any specification, on one connection to a running broker."""

from __future__ import annotations

import http.client
import time
from dataclasses import dataclass

import pytest
from lxml import etree

from served import Served
from tocsin.wire.soap import names
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, write_envelope

QUICK_S = 2.0  # generous: the machine may be busy; each takes a few milliseconds


@dataclass(frozen=True, slots=True)
class Dialect:
    """The versions of SOAP, WS-Addressing and the specification."""

    soap: str
    wsa: str
    spec: str

    @property
    def ns(self) -> str:
        return names.NAMESPACE_OF[self.spec]


DIALECTS = [
    Dialect(soap, wsa, spec)
    for spec, wsa in (
        ("wse04", names.WSA200408),
        ("wse11", names.WSA2005),
        ("wsn13", names.WSA2005),
        ("wsn12", names.WSA200403),
        ("wsn10", names.WSA2005),
    )
    for soap in ("1.1", "1.2")
]
EVERY = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda v: f"{v.spec}-soap{v.soap}")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer."""

    status: int
    body: bytes

    @property
    def envelope(self) -> Envelope:
        return read_envelope(self.body)

    @property
    def is_fault(self) -> bool:
        content = self.envelope.content if self.body else None
        return content is not None and etree.QName(content).localname == "Fault"

    @property
    def code(self) -> str:
        """The most particular code of the fault."""
        codes = [e for e in self.envelope.body.iter() if str(e.tag).endswith(("Value", "code"))]
        return (codes[-1].text or "").rpartition(":")[2]


class SoapConnection:
    """One connection that is kept, whatever is sent on it."""

    def __init__(self, broker: Served) -> None:
        self.broker = broker
        host, _, port = broker.address.rpartition(":")
        self.connection = http.client.HTTPConnection(host, int(port), timeout=20)
        self.connection.connect()
        self.socket = self.connection.sock

    def post(
        self, body: bytes, path: str = "/soap", headers: dict[str, str] | None = None
    ) -> Answer:
        started = time.monotonic()
        self.connection.request(
            "POST", path, body, headers or {"content-type": "text/xml; charset=utf-8"}
        )
        response = self.connection.getresponse()
        answer = Answer(response.status, response.read())
        assert time.monotonic() - started < QUICK_S
        return answer

    def is_usable(self) -> bool:
        """The same connection takes a good message."""
        good = write_envelope("1.2", body=b'<x:fine xmlns:x="urn:x"/>')
        answer = self.post(good, headers={"content-type": "application/soap+xml"})
        return answer.status == 202 and self.connection.sock is self.socket

    def send(
        self,
        dialect: Dialect,
        body: str,
        *,
        header: str = "",
        path: str = "/soap",
        action: str = "x:y",
    ) -> Answer:
        """Send a request in the versions of the dialect; the answer, checked to be in them too."""
        blocks = write_headers(dialect.wsa, action=action, message_id="urn:uuid:hostile")
        whole = write_envelope(dialect.soap, header=blocks + header.encode(), body=body.encode())
        answer = self.post(whole, path, dict(http_headers(dialect.soap, action)))
        if answer.body:
            assert answer.envelope.soap == dialect.soap
            found = answer.envelope.header
            assert found is not None
            assert found.findtext(f"{{{dialect.wsa}}}RelatesTo") == "urn:uuid:hostile"
        return answer

    def close(self) -> None:
        self.connection.close()


def count(broker: Served) -> int:
    return sum(int(broker.call("GET", p)[1]["total"]) for p in ("/subscriptions", "/boxes"))


def subscribe(
    dialect: Dialect, sink: str, *, expires: str = "", more: str = "", end: str = ""
) -> str:
    """Subscribe, in the words of the specification."""
    address = f'<a:Address xmlns:a="{dialect.wsa}">{sink}</a:Address>'
    if dialect.spec in ("wse04", "wse11"):
        end = end and f'<e:EndTo><a:Address xmlns:a="{dialect.wsa}">{end}</a:Address></e:EndTo>'
        times = expires and f"<e:Expires>{expires}</e:Expires>"
        content = f"{end}<e:Delivery><e:NotifyTo>{address}</e:NotifyTo></e:Delivery>{times}{more}"
        return f'<e:Subscribe xmlns:e="{dialect.ns}">{content}</e:Subscribe>'
    name = "SubscribeRequest" if dialect.spec == "wsn10" else "Subscribe"
    tag = "InitialTerminationTime"
    times = expires and f"<e:{tag}>{expires}</e:{tag}>"
    topic = ""
    if dialect.spec == "wsn12":
        simple = "http://docs.oasis-open.org/wsn/2004/06/TopicExpression/Simple"
        topic = f'<e:TopicExpression Dialect="{simple}">t</e:TopicExpression>'
    reference = f"<e:ConsumerReference>{address}</e:ConsumerReference>"
    return f'<e:{name} xmlns:e="{dialect.ns}">{reference}{topic}{more}{times}</e:{name}>'

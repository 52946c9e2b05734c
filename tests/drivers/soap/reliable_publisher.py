"""A publisher by WS-ReliableMessaging, and what the broker stored of it."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from served import Served
from tocsin.wire.soap.addressing import EndpointReference, anonymous, write_headers
from tocsin.wire.soap.envelope import Envelope, http_headers, read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSA200408, WSRM10, WSRM11
from tocsin.wire.wsrm.messages import (
    Acknowledgement,
    Content,
    CreateSequence,
    CreateSequenceResponse,
    Sequence,
    action,
)
from tocsin.wire.wsrm.read import fault_name, read_blocks, read_content
from tocsin.wire.wsrm.write import write_content, write_sequence

KIND = {WSRM10: "wsrm10", WSRM11: "wsrm11"}
WSA = {WSRM10: WSA200408, WSRM11: WSA2005}
BOTH = list(product((WSRM10, WSRM11), ("1.1", "1.2")))
PATIENCE_S = 20.0


@dataclass
class Publisher:
    """The sending end, which says exactly what a test wants."""

    broker: Served
    rm: str = WSRM11
    soap: str = "1.2"
    acks_to: str = ""
    identifier: str = ""
    answers: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wsa = WSA[self.rm]

    def post(
        self, saying: str, header: bytes = b"", body: bytes = b"", **addressing: str
    ) -> tuple[int, Envelope | None]:
        header = write_headers(self.wsa, action=saying, **addressing) + header
        message = write_envelope(self.soap, header=header, body=body)
        host, _, port = self.broker.address.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
        try:
            connection.request("POST", "/soap", message, dict(http_headers(self.soap, saying)))
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if not text:
            return answer.status, None
        self.answers.append(text)
        return answer.status, read_envelope(text)

    def ask(self, content: Content) -> Any:
        """The answer to a message about sequences, or the name of the fault."""
        saying = action(self.rm, type(content).__name__)
        _, answer = self.post(
            saying, body=write_content(content, self.wsa), message_id="urn:uuid:ask"
        )
        if answer is None:
            return None
        fault = fault_name(answer)
        assert answer.content is not None
        return fault or read_content(answer)

    def begin(self, lease_ns: int | None = None) -> Publisher:
        back = EndpointReference(self.acks_to or anonymous(self.wsa), self.wsa)
        made = self.ask(CreateSequence(self.rm, back, lease_ns))
        assert isinstance(made, CreateSequenceResponse), made
        assert made.lease_ns is not None
        assert lease_ns is None or made.lease_ns <= lease_ns
        self.identifier = made.identifier
        return self

    def send(
        self, number: int, *, last: bool = False, body: bytes | None = None, **addressing: str
    ) -> Acknowledgement | str | None:
        """Publish `number` with this number. Returns the acknowledgement, or the fault's name."""
        place = write_sequence(Sequence(self.rm, self.identifier, number, last), self.soap)
        payload = b"<n>%d</n>" % number if body is None else body
        _, answer = self.post("urn:reading", place, payload, **addressing)
        if answer is None:
            return None
        acknowledgements = read_blocks(answer).acknowledgements
        return fault_name(answer) or (acknowledgements[0] if acknowledgements else None)

    def acked(self, *pairs: tuple[int, int], final: bool = False) -> Acknowledgement:
        return Acknowledgement(self.rm, self.identifier, pairs, final=final)


def published(broker: Served) -> list[int]:
    """The numbers in the log, in its order."""
    found: list[int] = []
    after = 0
    while True:
        _, page = broker.call("GET", f"/events?after={after}")
        if not page["events"]:
            return found
        found += [int(e["data"].removeprefix("<n>").removesuffix("</n>")) for e in page["events"]]
        after = page["next"]

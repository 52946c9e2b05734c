"""Recorded messages of real programs: read, given the addresses of today, and sent again."""

from __future__ import annotations

import re
import socket
import uuid
from dataclasses import dataclass, replace
from http.client import HTTPResponse
from pathlib import Path

from schemas import capture_body
from served import Served
from tocsin.wire.soap.addressing import Addressing, EndpointReference, read_addressing, read_epr
from tocsin.wire.soap.envelope import Envelope, read_envelope

CAPTURES = Path(__file__).parent.parent / "captures" / "ws"
ANSWER_S = 20.0
# Where the recorded consumers were: of the original, of everybody else, of SOAP.TCP.
_CONSUMERS = re.compile(rb"(http|soap\.tcp)://127\.0\.0\.1:(?:9999|18090|9998)")
_OLD_PATHS = ("/axis2/", "/wsman", "/onvif/")
_REPLACED = ("content-length", "transfer-encoding", "host", "connection")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the broker said to a recorded message."""

    status: int
    content_type: str
    body: bytes

    @property
    def envelope(self) -> Envelope:
        return read_envelope(self.body)

    @property
    def name(self) -> str:
        """The local name of the body's element, empty if there is none."""
        content = self.envelope.content if self.body else None
        return "" if content is None else str(content.tag).rpartition("}")[2]

    @property
    def addressing(self) -> Addressing:
        return read_addressing(self.envelope)

    def reference(self, name: str) -> EndpointReference:
        """The endpoint reference in the answer that has this element name."""
        envelope = self.envelope
        [found] = envelope.body.iter(f"{{*}}{name}")
        return read_epr(envelope, found)

    def text(self, name: str) -> str:
        """The text of the one element with this local name."""
        [found] = self.envelope.body.iter(f"{{*}}{name}")
        return found.text or ""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded HTTP request: the path, the header lines that matter, the body."""

    path: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_chunked: bool
    authority: str  # of the program that it was sent to

    def changed(self, *pairs: tuple[bytes, bytes]) -> Recording:
        """With texts of the body replaced; each must be there."""
        body = self.body
        for old, new in pairs:
            assert old in body, (old, body)
            body = body.replace(old, new)
        return replace(self, body=body)

    def to_consumer(self, url: str) -> Recording:
        """With the recorded consumer's host and port replaced; its path is kept."""
        scheme, _, rest = url.partition("://")
        authority = rest.partition("/")[0]
        body, count = _CONSUMERS.subn(f"{scheme}://{authority}".encode(), self.body)
        assert count
        return replace(self, body=body)

    def saying(self, action: str, content: str) -> Recording:
        """The same client, asking something else: another action, another body."""
        envelope = read_envelope(self.body)
        old = read_addressing(envelope).action or ""
        body = re.sub(
            rb"(<([\w-]+):Body[^>]*>).*(</\2:Body>)",
            lambda found: found[1] + content.encode() + found[3],
            self.body,
            flags=re.S,
        )
        headers = tuple(
            (name, value.replace(old, action) if old else value) for name, value in self.headers
        )
        body = body.replace(f">{old}<".encode(), f">{action}<".encode()) if old else body
        return replace(self, body=body, headers=headers)

    def renumbered(self) -> Recording:
        """With a message id of its own: the same id from the same program is a repetition."""
        envelope = read_envelope(self.body)
        old = read_addressing(envelope).message_id
        assert old is not None
        new = f"urn:uuid:{uuid.uuid4()}"
        return replace(self, body=self.body.replace(old.encode(), new.encode()))

    def with_header(self, pattern: bytes, blocks: bytes) -> Recording:
        """With one header block (found by a pattern of its text) replaced by others."""
        body, count = re.subn(pattern, lambda _: blocks, self.body, flags=re.S)
        assert count == 1, (pattern, self.body)
        return replace(self, body=body)

    def adding_header(self, blocks: bytes) -> Recording:
        """With more header blocks, which a client copies out of a reference."""
        body, count = re.subn(rb"(</[\w-]+:Header>)", lambda end: blocks + end[1], self.body)
        assert count == 1
        return replace(self, body=body)

    def send(self, broker: Served, path: str = "") -> Answer:
        """Send it to the broker, at the recorded path if the broker knows it."""
        where = path or (self.path if self.path.startswith(_OLD_PATHS) else "/soap")
        body = self.body.replace(
            f"{self.authority}{self.path}".encode(), f"{broker.address}{where}".encode()
        )
        head = f"POST {where} {self.version}\r\nHost: {broker.address}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        head += "Connection: close\r\n"
        if self.is_chunked:
            half = len(body) // 2
            chunks = [body[:half], body[half:], b""]
            head += "Transfer-Encoding: chunked\r\n"
            data = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
        else:
            head += f"Content-Length: {len(body)}\r\n"
            data = body
        return _exchange(broker, head.encode() + b"\r\n" + data)


def _exchange(broker: Served, data: bytes) -> Answer:
    host, _, port = broker.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=ANSWER_S) as connection:
        connection.sendall(data)
        response = HTTPResponse(connection)
        response.begin()
        return Answer(response.status, response.getheader("content-type") or "", response.read())


def recording(name: str) -> Recording:
    """The recorded request of this file."""
    path = CAPTURES / f"{name}.http"
    raw = path.read_bytes().replace(b"\r\n", b"\n")
    first, *lines = raw.partition(b"\n\n")[0].decode().split("\n")
    pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    lower = {name.lower(): value for name, value in pairs}
    kept = tuple((name, value) for name, value in pairs if name.lower() not in _REPLACED)
    _, where, version = first.split(" ")
    is_chunked = lower.get("transfer-encoding", "").lower() == "chunked"
    return Recording(where, version, kept, capture_body(path), is_chunked, lower["host"])


def recorded_body(name: str) -> bytes:
    """The envelope of a recorded answer or delivery."""
    return capture_body(CAPTURES / f"{name}.http")

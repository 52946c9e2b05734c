"""A box service in a process of its own, and the plainest of SOAP clients."""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from lxml import etree

from served import ROOT, START_S, Served
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.envelope import Envelope, content_type, read_envelope, write_envelope
from tocsin.wire.soap.names import WSA2005, WSN13
from tocsin.wire.wsn.read import read_notify


class BoxServed(Served):
    """`tocsin box serve`."""

    def start(self) -> None:
        command = [sys.executable, "-m", "tocsin", "box", "serve", "--json"]
        command += ["--data", str(self.directory), "--http", self.address, *self.flags]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=self.env, cwd=ROOT
            )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline() if ready else b""
        if not line:
            self.process.kill()
            raise AssertionError(f"no box service: {self.process.wait()} {self.said()[-2000:]}")
        self.ready = json.loads(line)
        self.address, self.scheme = self.ready["http"], "http"


@contextlib.contextmanager
def boxes_served(*flags: str, env: dict[str, str] | None = None) -> Iterator[BoxServed]:
    """A box service on a fresh data directory, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tocsin-") as parent:
        service = BoxServed(Path(parent) / "data", *flags, env=env)
        try:
            yield service
        finally:
            if service.process.poll() is None:
                service.process.kill()
            service.process.wait()
            if service.process.stdout is not None:
                service.process.stdout.close()


def post(url: str, body: bytes, *, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """A message as it is; status and body of the answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    try:
        connection.request("POST", parts.path, body, headers or {"content-type": "text/xml"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def ask(
    url: str,
    body: bytes,
    *,
    action: str = "urn:asked",
    soap: str = "1.1",
    wsa: str = WSA2005,
    header: bytes = b"",
) -> Envelope:
    """Ask something that is answered; the answer, read."""
    blocks = write_headers(wsa, action=action, message_id="urn:uuid:1", to=url) + header
    message = write_envelope(soap, header=blocks, body=body)
    status, answer = post(url, message, headers={"content-type": content_type(soap, action)})
    assert status == 200, (status, answer)
    return read_envelope(answer)


def refused(url: str, body: bytes, *, soap: str = "1.1") -> bytes:
    """Ask something that is refused; the fault."""
    message = write_envelope(soap, body=body)
    status, answer = post(url, message, headers={"content-type": content_type(soap)})
    assert status in (400, 410, 500), (status, answer)
    envelope = read_envelope(answer)
    assert envelope.content is not None
    assert etree.QName(envelope.content).localname == "Fault"
    return answer


def payloads(messages: list[bytes]) -> list[bytes]:
    """What stands in NotificationMessage elements."""
    if not messages:
        return []
    body = b'<n:Notify xmlns:n="%b">%b</n:Notify>' % (WSN13.encode(), b"".join(messages))
    notify = read_envelope(write_envelope("1.1", body=body))
    assert notify.content is not None
    return [each.payload for each in read_notify(notify).messages]


def whole(answer: Envelope) -> bytes:
    """The envelope again, for a judge of it."""
    return etree.tostring(answer.body.getroottree())


def publish(broker: Served, topic: str, *numbers: int) -> None:
    broker.publish(
        *(
            {"topic": topic, "datacontenttype": "application/xml", "data": f"<m>{n}</m>"}
            for n in numbers
        )
    )

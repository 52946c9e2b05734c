"""A message captured in transit: its headers and body, out of HTTP or DIME."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tocsin.client.transport.http1 import MessageReader
from tocsin.errors import BadFrame, BadRequest
from tocsin.services.publishing.content_encoding import decoded
from tocsin.wire.dime import Decoder, read_envelope_message

BODY_BYTES_MAX: Final = 64 << 20
_HTTP = re.compile(rb"(?:[A-Z]{1,20} [^\s]+ HTTP/1\.\d|HTTP/1\.\d \d{3}[^\r\n]*)\r?\n")
_HEAD_END = re.compile(rb"\r?\n\r?\n")


class CapturedMessage(NamedTuple):
    """A message; `carrier` names what it was wrapped in, and is empty if nothing."""

    body: bytes
    headers: dict[str, str]
    carrier: str = ""


def read_capture(data: bytes) -> CapturedMessage:
    """The message in an HTTP request or response, in DIME, or as it is."""
    if _is_dime(data):
        return _from_dime(data)
    if _HTTP.match(data.lstrip()):
        return _from_http(data.lstrip())
    return CapturedMessage(data, {})


def _is_dime(data: bytes) -> bool:
    # Version 1, and no options: a line break and a space begin the same way, but not four bytes.
    return len(data) >= 12 and data[0] >> 3 == 1 and data[2:4] == b"\0\0"


def _from_dime(data: bytes) -> CapturedMessage:
    decoder = Decoder()
    decoder.receive(data)
    message = decoder.next_message()
    if message is None:
        raise BadFrame("the DIME message is cut off", remedy="Give the whole of it.")
    soap, envelope = read_envelope_message(message)
    return CapturedMessage(envelope, {}, f"DIME with SOAP {soap}")


def _from_http(data: bytes) -> CapturedMessage:
    """Its length is that of the capture: what was edited by hand has a wrong Content-Length."""
    end = _HEAD_END.search(data)
    if end is None:
        raise BadRequest(
            "the HTTP message has a head and no end of it", remedy="Give the whole message."
        )
    lines = data[: end.start()].decode("latin-1").splitlines()
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    body = data[end.end() :]
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _unchunked(body)
    coding = headers.get("content-encoding")
    if coding:
        body = decoded(body, coding.encode("latin-1"), BODY_BYTES_MAX)
    is_response = lines[0].startswith("HTTP/")
    return CapturedMessage(body, headers, "an HTTP response" if is_response else "an HTTP request")


def _unchunked(body: bytes) -> bytes:
    reader = MessageReader(response=False)
    whole = reader.feed(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    if not reader.complete:
        raise BadRequest("the chunks of the message are cut off", remedy="Give all of it.")
    return whole

"""Requests that two programs could read differently are refused, and the connection with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from raw_http import Raw, get, once

from served import Served

LLHTTP = Path(__file__).parents[3] / "../shared/data/hostile/llhttp/test"

H = b"Host: localhost\r\n"
POST = b"POST /events HTTP/1.1\r\n" + H
CHUNKED = b"Transfer-Encoding: chunked\r\n"

REFUSED = {
    "no host": b"GET /livez HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /livez HTTP/1.1\r\n" + H + H + b"\r\n",
    "bare line feeds": b"GET /livez HTTP/1.1\nHost: localhost\n\n",
    "a bare line feed in the headers": b"GET /livez HTTP/1.1\r\nHost: localhost\nA: b\r\n\r\n",
    "a folded header": b"GET /livez HTTP/1.1\r\n" + H + b"A: b\r\n c\r\n\r\n",
    "a space before the colon": b"GET /livez HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "a null byte": b"GET /livez HTTP/1.1\r\n" + H + b"A: \0\r\n\r\n",
    "a carriage return in a value": b"GET /livez HTTP/1.1\r\n" + H + b"A: b\rc\r\n\r\n",
    "length and chunks": POST + b"Content-Length: 4\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and length": POST + CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "two equal lengths": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nab",
    "a list of lengths": POST + b"Content-Length: 2, 2\r\n\r\nab",
    "a signed length": POST + b"Content-Length: +2\r\n\r\nab",
    "a negative length": POST + b"Content-Length: -2\r\n\r\nab",
    "a length in hex": POST + b"Content-Length: 0x2\r\n\r\nab",
    "an endless length": POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
    "another coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding that is none": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "identity": POST + b"Transfer-Encoding: identity\r\n\r\n",
    "chunked twice": POST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": b"POST /events HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks with bare line feeds": POST + CHUNKED + b"\r\n1\nx\n0\n\n",
    "a chunk size that is none": POST + CHUNKED + b"\r\nxyz\r\n",
    "HTTP/2.0": b"GET /livez HTTP/2.0\r\n" + H + b"\r\n",
    "HTTP/0.9": b"GET /livez\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "CONNECT": b"CONNECT localhost:80 HTTP/1.1\r\n" + H + b"\r\n",
    "a method of another protocol": b"SOURCE /livez HTTP/1.1\r\n" + H + b"\r\n",
    "a method in small letters": b"get /livez HTTP/1.1\r\n" + H + b"\r\n",
    "a fragment": b"GET /livez#x HTTP/1.1\r\n" + H + b"\r\n",
    "a target of another scheme": b"GET ftp://localhost/livez HTTP/1.1\r\n" + H + b"\r\n",
    "an asterisk": b"OPTIONS * HTTP/1.1\r\n" + H + b"\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"x" * 200,
}


@pytest.mark.parametrize("request_bytes", REFUSED.values(), ids=REFUSED)
def test_an_ambiguous_request_is_refused_and_nothing_after_it_is_read(
    broker: Served, request_bytes: bytes
) -> None:
    with Raw(broker.address) as raw:
        said = raw.send(request_bytes + get("/livez")).rest()

    assert said.startswith(b"HTTP/1.1 400 ")
    assert len(re.findall(rb"^HTTP/1\.1 \d", said, re.M)) == 1
    assert b"connection: close" in said


def llhttp_cases() -> dict[str, bytes]:
    """The inputs of llhttp's own tests, as its test runner would send them."""
    cases: dict[str, bytes] = {}
    for file in sorted(LLHTTP.glob("**/*.md")):
        for number, block in enumerate(re.findall(r"```http\n(.*?)\n```", file.read_text(), re.S)):
            text = re.sub(r"\\\n", "", block)  # a line that ends so goes on
            text = text.replace("\n", "\r\n").replace("\\r", "\r").replace("\\n", "\n")
            text = text.replace("\\t", "\t").replace("\\f", "\f")
            text = re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), text)
            cases[f"{file.stem}-{number}"] = text.encode("latin-1", "replace")
    return cases


@pytest.mark.skipif(not LLHTTP.is_dir(), reason="the shared hostile inputs are not here")
def test_no_input_of_llhttps_tests_upsets_the_broker(broker: Served) -> None:
    cases = llhttp_cases()
    assert len(cases) > 100
    for name, data in cases.items():
        with Raw(broker.address) as raw:
            raw.send(data)
            raw.hang_up()
            said = raw.rest()

        # Silence is right where the request never ends; else every answer is one of ours.
        for status in re.findall(rb"HTTP/1\.1 (\d+) ", said):
            assert status[:1] in (b"1", b"2", b"4"), (name, said)

    assert once(broker.address, get("/livez")).status == 200

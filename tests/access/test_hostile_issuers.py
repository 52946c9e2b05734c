"""Issuers that answer slowly, too much, or with something else than their keys."""

from __future__ import annotations

import threading

import pytest
import uvloop
from key_readers import KEYS, Notes, named, reading, why_none

from access.issuer import Answer, OpenIdIssuer, SigningKey
from tocsin.access.sign_in.issuer import Issuer
from tocsin.drivers.access.openid_keys import DISCOVERY, RefreshOptions
from waiting import async_wait_until

# Issuers that misbehave


def test_an_issuer_that_drips_is_cut_off(issuer: OpenIdIssuer) -> None:
    issuer.answers[KEYS] = Answer(body=b" " * 1000, byte_pause_s=0.1)
    assert "within 0.5 s" in why_none(issuer, timeout_s=0.5)


def test_a_key_set_that_is_too_large_is_not_read(issuer: OpenIdIssuer) -> None:
    issuer.answers[KEYS] = Answer(body=b" " * (600 << 10))
    assert "over 524288 bytes" in why_none(issuer)
    chunks = b"1\r\n \r\n" * (600 << 10)
    issuer.answers[KEYS] = Answer(body=chunks, headers={"transfer-encoding": "chunked"})
    assert "over 524288 bytes" in why_none(issuer)


def test_a_key_set_with_too_many_keys_is_not_read(issuer: OpenIdIssuer) -> None:
    issuer.published = [issuer.key.public] * 101
    assert "101 keys" in why_none(issuer)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("path", [DISCOVERY, KEYS])
def test_a_redirect_is_not_followed(issuer: OpenIdIssuer, status: int, path: str) -> None:
    with OpenIdIssuer(key=SigningKey("ES256")) as other:
        other.document["issuer"] = issuer.url
        issuer.answers[path] = Answer(status, headers={"location": f"{other.url}{path}"})
        assert "redirects" in why_none(issuer)
        assert other.asked == []


@pytest.mark.parametrize(
    "address",
    [None, 5, "", "keys", "http://example.org/keys", "file:///etc/passwd", "ftp://127.0.0.1/k",
     "https://user:pw@example.org/", "http://127.0.0.1.example.org/", "https://a b/", "https:///k",
     "http://127.0.0.1:99999/", "http://10.0.0.1/keys", "https://example.org/\r\nx: y"],
)  # fmt: skip
def test_keys_are_read_from_https_or_this_machine_only(
    issuer: OpenIdIssuer, address: object
) -> None:
    issuer.document["jwks_uri"] = address
    assert "jwks_uri" in why_none(issuer)


def test_the_discovery_document_must_be_of_the_issuer(issuer: OpenIdIssuer) -> None:
    issuer.document["issuer"] = issuer.url + "/"
    assert "of the issuer" in why_none(issuer)


@pytest.mark.parametrize("path", [DISCOVERY, KEYS])
@pytest.mark.parametrize(
    "answer",
    [
        Answer(404),
        Answer(500, b"{}"),
        Answer(204),
        Answer(body=b""),
        Answer(body=b"<html>"),
        Answer(body=b"[]"),
        Answer(body=b"{}"),
        Answer(body=b'{"keys": {}}'),
        Answer(body=b'{"keys": []}'),
        Answer(body=b'{"keys": [1, null, "x", [], {}]}'),
        Answer(body=b'{"keys":' + b"[" * 100_000),
        Answer(body=b"{}", headers={"content-length": "9"}),
        Answer(body=b"\x1f\x8b", headers={"content-encoding": "gzip"}),
        Answer(body=b'{"keys": [], "keys": []}'),
    ],
    ids=lambda each: each if isinstance(each, str) else f"{each.status}-{each.body[:12]!r}",
)
def test_what_is_no_document_is_not_read(issuer: OpenIdIssuer, path: str, answer: Answer) -> None:
    issuer.answers[path] = answer
    assert why_none(issuer)


def test_a_document_that_breaks_later_leaves_the_keys_that_were_good(issuer: OpenIdIssuer) -> None:
    notes, often = Notes(), RefreshOptions(every_s=0.1, pause_s=0.05, timeout_s=1.0)

    async def go() -> None:
        async with reading(named(issuer), notes=notes, options=often) as keys:
            first = keys.of(issuer.url)
            for body in (b"{}", b'{"keys": []}', b"<html>"):
                notes.clear()
                issuer.answers[KEYS] = Answer(body=body)
                await async_wait_until(lambda: bool(notes.reasons()))
                assert keys.of(issuer.url) is first
                issuer.answers.clear()
                await async_wait_until(lambda: "again" in notes[-1][1])

    uvloop.run(go())


def test_an_answer_that_is_not_http_is_refused() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            for said in (b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000):
                connection, _ = server.accept()
                connection.recv(1000)
                connection.sendall(said)
                connection.close()

        threading.Thread(target=answer, daemon=True).start()
        for reason in ("not HTTP", "head"):
            notes = Notes()

            async def go(notes: Notes = notes) -> None:
                async with reading(Issuer(url, "tocsin"), notes=notes, options=RefreshOptions()):
                    pass

            uvloop.run(go())
            assert reason in notes.reasons()[0]


def test_keys_that_are_passed_over_are_noted(issuer: OpenIdIssuer) -> None:
    notes = Notes()
    issuer.published.append({"kty": "oct", "k": "AAAA", "kid": "shared"})

    async def go() -> None:
        async with reading(named(issuer), notes=notes) as keys:
            found = keys.of(issuer.url)
            assert found is not None
            assert len(found.keys) == 1

    uvloop.run(go())
    assert "'oct'" in notes[-1][2]["skipped"]
    assert "AAAA" not in str(notes)

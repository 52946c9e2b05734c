"""The keys of issuers are read from the issuers, and kept fresh."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from pathlib import Path

import pytest
import uvloop
from key_readers import KEYS, Notes, named, reading, why_none

from access.issuer import Answer, OpenIdIssuer, SigningKey
from pki import server_files
from tocsin.access.sign_in.issuer import Issuer
from tocsin.access.sign_in.openid import OpenId
from tocsin.drivers.access.openid_keys import DISCOVERY, OpenIdKeys, RefreshOptions
from tocsin.errors import BadSetting, NotSignedIn
from waiting import async_wait_until


def signs_in(openid: OpenId, token: str) -> bool:
    try:
        openid.sign_in(token, time.time_ns())
    except NotSignedIn:
        return False
    return True


def test_after_the_start_the_first_token_signs_in(issuer: OpenIdIssuer) -> None:
    async def go() -> None:
        async with reading(named(issuer)) as keys:
            openid = OpenId([named(issuer)], keys)
            principal, _ = openid.sign_in(issuer.token("bob", groups=["ops"]), time.time_ns())
            assert principal.name == "bob"
            assert principal.groups == {"ops"}
        assert issuer.asked == [DISCOVERY, KEYS]

    uvloop.run(go())


def test_an_address_with_a_path_or_a_slash_at_its_end_is_asked_below_it() -> None:
    with OpenIdIssuer() as issuer:
        for path in ("/", "/realms/lab"):
            issuer.document["issuer"] = url = issuer.url + path
            expected = path.rstrip("/") + DISCOVERY
            issuer.answers[expected] = Answer(body=json.dumps(issuer.discovery()).encode())

            async def go(url: str = url) -> None:
                async with reading(Issuer(url, "tocsin")) as keys:
                    assert keys.of(url) is not None

            uvloop.run(go())
            assert issuer.asked.pop(0) == expected
            issuer.asked.clear()


def test_a_new_key_is_used_soon_and_an_old_one_no_more(issuer: OpenIdIssuer) -> None:
    async def go() -> None:
        async with reading(named(issuer)) as keys:
            openid = OpenId([named(issuer)], keys)
            old = issuer.token()
            assert signs_in(openid, old)

            issuer.rotate(keeps_old=True)
            new = issuer.token()
            assert not signs_in(openid, new)
            await async_wait_until(lambda: signs_in(openid, new))
            assert signs_in(openid, old)

            issuer.rotate()
            last = issuer.token()
            await async_wait_until(lambda: signs_in(openid, last))
            assert not signs_in(openid, new)
            assert not signs_in(openid, old)

    uvloop.run(go())


def test_tokens_with_invented_keys_do_not_make_us_ask_more_often(issuer: OpenIdIssuer) -> None:
    slow = RefreshOptions(pause_s=0.5, timeout_s=1.0)
    stranger = SigningKey("ES256")

    async def go() -> None:
        async with reading(named(issuer), options=slow) as keys:
            openid = OpenId([named(issuer)], keys)
            began = time.monotonic()
            while time.monotonic() - began < 1.7:
                token = stranger.token(issuer.claims(), kid=str(time.monotonic_ns()))
                assert not signs_in(openid, token)
                await asyncio.sleep(0.005)
        assert issuer.asked.count(KEYS) <= 4  # at 0, 0.5, 1 and 1.5 s

    uvloop.run(go())


def test_keys_are_read_again_by_themselves(issuer: OpenIdIssuer) -> None:
    often = RefreshOptions(every_s=0.1, pause_s=0.05)

    async def go() -> None:
        async with reading(named(issuer), options=often) as keys:
            first = keys.of(issuer.url)
            await async_wait_until(lambda: issuer.asked.count(KEYS) >= 3)
            assert keys.of(issuer.url) is first  # the same keys are the same object
            issuer.rotate()
            await async_wait_until(lambda: keys.of(issuer.url) is not first)

    uvloop.run(go())


def test_while_the_issuer_is_away_its_last_keys_stay_and_that_is_noted_once() -> None:
    issuer, notes = OpenIdIssuer().start(), Notes()
    often = RefreshOptions(every_s=0.1, pause_s=0.05, timeout_s=1.0)

    async def go() -> None:
        async with reading(named(issuer), notes=notes, options=often) as keys:
            openid, token = OpenId([named(issuer)], keys), issuer.token()
            issuer.stop()
            await async_wait_until(lambda: bool(notes.reasons()))
            await asyncio.sleep(0.3)
            assert signs_in(openid, token)
            assert signs_in(openid, issuer.token("carol"))
            [reason] = notes.reasons()
            assert "connection refused" in reason
            issuer.start()
            await async_wait_until(lambda: "again" in notes[-1][1])
            assert signs_in(openid, token)

    try:
        uvloop.run(go())
    finally:
        issuer.stop()


def test_an_issuer_that_is_away_at_the_start_is_used_when_it_comes() -> None:
    issuer, notes = OpenIdIssuer().start(), Notes()
    issuer.stop()

    async def go() -> None:
        async with reading(named(issuer), notes=notes) as keys:
            openid = OpenId([named(issuer)], keys)
            assert not signs_in(openid, issuer.token())
            assert "nobody can sign in" in notes[-1][1]
            issuer.start()
            await async_wait_until(lambda: signs_in(openid, issuer.token()))

    try:
        uvloop.run(go())
    finally:
        issuer.stop()


def test_the_start_waits_only_so_long_for_a_slow_issuer(issuer: OpenIdIssuer) -> None:
    issuer.answers[DISCOVERY] = Answer(delay_s=2.0)
    options = RefreshOptions(timeout_s=10.0, start_s=0.3)

    async def go() -> None:
        began = time.monotonic()
        async with reading(named(issuer), options=options) as keys:
            assert time.monotonic() - began < 1.5
            assert keys.of(issuer.url) is None

    uvloop.run(go())


def test_an_issuer_that_is_slow_delays_no_other(issuer: OpenIdIssuer) -> None:
    with OpenIdIssuer() as slow:
        slow.answers[KEYS] = Answer(body=b" " * 1000, byte_pause_s=0.05)

        async def go() -> None:
            one, other = named(slow, prefix="a:"), named(issuer, prefix="b:")
            async with reading(one, other) as keys:
                assert keys.of(issuer.url) is not None
                assert keys.of(slow.url) is None

        uvloop.run(go())


def test_nobody_waits_for_an_issuer_to_sign_in(issuer: OpenIdIssuer) -> None:
    async def go() -> None:
        async with reading(named(issuer)) as keys:
            openid, good = OpenId([named(issuer)], keys), issuer.token()
            issuer.answers[DISCOVERY] = Answer(delay_s=0.8)
            stranger = SigningKey("ES256").token(issuer.claims())
            began = time.monotonic()
            for _ in range(20):
                assert not signs_in(openid, stranger)
                assert signs_in(openid, good)
                await asyncio.sleep(0.005)
            assert time.monotonic() - began < 0.7
            issuer.answers.clear()

    uvloop.run(go())


# TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A throw-away authority, and a certificate of it for localhost."""
    return server_files(tmp_path_factory.mktemp("tls"), "localhost")


def test_an_issuer_with_tls_must_have_a_certificate_that_is_believed(certificates: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "own.pem", certificates / "own.key")
    with OpenIdIssuer(tls=context) as issuer:
        assert issuer.url.startswith("https://localhost:")
        assert "certificate" in why_none(issuer)

        async def go() -> None:
            trusting = named(issuer, ca_file=str(certificates / "ca.pem"))
            async with reading(trusting) as keys:
                openid = OpenId([trusting], keys)
                assert signs_in(openid, issuer.token())

        uvloop.run(go())

        # From https, nothing leads to http, not even on this machine.
        issuer.document["jwks_uri"] = "http://127.0.0.1:1/keys"
        notes = Notes()

        async def lead_away() -> None:
            trusting = named(issuer, ca_file=str(certificates / "ca.pem"))
            async with reading(trusting, notes=notes):
                pass

        uvloop.run(lead_away())
        assert "jwks_uri" in notes.reasons()[0]


def test_a_file_of_authorities_that_cannot_be_used_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "missing.pem"):
        with pytest.raises(BadSetting, match=r"openid\.ca_file"):
            OpenIdKeys(
                [Issuer("https://x.example", "tocsin", ca_file=str(tmp_path / name))], Notes()
            )

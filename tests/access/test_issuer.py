"""The issuer that other tests sign in with behaves as RFC 8628 and RFC 6749 say."""

from __future__ import annotations

import io
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
import uvloop

from access.issuer import DEVICE_GRANT, OpenIdIssuer
from tocsin.access.sign_in.issuer import Issuer
from tocsin.drivers.access.openid import OpenIdSignIn
from tocsin.drivers.logger import Logger
from tocsin.errors import NotSignedIn


@pytest.fixture
def issuer() -> Iterator[OpenIdIssuer]:
    with OpenIdIssuer(interval_s=0.05) as running:
        yield running


def post(url: str, **form: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, urlencode(form).encode()) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def discovery(issuer: OpenIdIssuer) -> dict[str, Any]:
    with urllib.request.urlopen(f"{issuer.url}/.well-known/openid-configuration") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def device(issuer: OpenIdIssuer) -> tuple[dict[str, Any], dict[str, str]]:
    status, given = post(
        discovery(issuer)["device_authorization_endpoint"], client_id="cli", scope="openid"
    )
    assert status == 200
    asked = {
        "grant_type": DEVICE_GRANT,
        "device_code": given["device_code"],
        "client_id": "cli",
    }
    return given, asked


def test_a_device_gets_tokens_once_its_user_agreed_and_can_renew_them(
    issuer: OpenIdIssuer,
) -> None:
    given, asked = device(issuer)
    endpoint = discovery(issuer)["token_endpoint"]
    assert given["user_code"] in given["verification_uri_complete"]
    assert post(endpoint, **asked) == (400, {"error": "authorization_pending"})
    assert post(endpoint, **asked) == (400, {"error": "slow_down"})

    issuer.approve(given["user_code"], "alice", groups=["ops"])
    status, tokens = post(endpoint, **asked)
    assert status == 200
    assert tokens["token_type"] == "Bearer"
    assert post(endpoint, **asked) == (400, {"error": "invalid_grant"})

    renewal = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    status, renewed = post(endpoint, **renewal)
    assert status == 200
    assert post(endpoint, **renewal) == (400, {"error": "invalid_grant"})

    configured = Issuer(issuer.url, "tocsin")

    async def go() -> None:
        sign_in = OpenIdSignIn([configured], Logger(stream=io.StringIO()))
        await sign_in.start()
        for each in (tokens, renewed):
            principal, _ = sign_in.sign_in(each["access_token"], time.time_ns())
            assert principal.name == "alice"
            assert principal.groups == {"ops"}
        with pytest.raises(NotSignedIn):
            sign_in.sign_in(tokens["refresh_token"], time.time_ns())
        await sign_in.close()

    uvloop.run(go())


def test_a_user_may_refuse_or_be_too_late(issuer: OpenIdIssuer) -> None:
    endpoint = discovery(issuer)["token_endpoint"]
    given, asked = device(issuer)
    issuer.deny(given["user_code"])
    assert post(endpoint, **asked) == (400, {"error": "access_denied"})
    given, asked = device(issuer)
    issuer.expire(given["user_code"])
    assert post(endpoint, **asked) == (400, {"error": "expired_token"})
    assert post(endpoint, **asked | {"client_id": "x"}) == (400, {"error": "invalid_grant"})
    assert post(endpoint, grant_type="password")[0] == 400


def test_a_program_signs_in_by_its_own_secret(issuer: OpenIdIssuer) -> None:
    issuer.clients["robot"] = "secret"
    endpoint = discovery(issuer)["token_endpoint"]
    form = {"grant_type": "client_credentials", "client_id": "robot"}
    assert post(endpoint, **form, client_secret="wrong")[0] == 401
    status, tokens = post(endpoint, **form, client_secret="secret")
    assert status == 200
    assert tokens.keys() == {"access_token", "token_type", "expires_in"}

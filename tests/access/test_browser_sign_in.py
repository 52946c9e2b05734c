"""A person signs in with a token in a browser; no other page can use that."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from users import REQUIRED, admin, token

from served import Served, served

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(env=REQUIRED) as running:
        yield running


def ask(
    broker: Served, method: str, path: str, body: str = "", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], str]:
    host, _, port = broker.address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request(method, path, body or None, headers or {})
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


def sign_in(broker: Served, text: str, target: str = "/", **headers: str) -> tuple[int, str, str]:
    """The status, the cookie that was set, and where it leads."""
    form = urlencode({"token": text, "next": target})
    status, answered, _ = ask(broker, "POST", "/login", form, {**FORM, **headers})
    return status, answered.get("set-cookie", ""), answered.get("location", "")


def test_a_browser_without_a_credential_is_led_to_the_page_where_one_signs_in(
    broker: Served,
) -> None:
    status, headers, _ = ask(broker, "GET", "/?a=b", headers={"accept": "text/html"})

    assert status == 303
    assert headers["location"] == "/login?next=%2F%3Fa%3Db"
    status, headers, page = ask(broker, "GET", headers["location"])
    assert status == 200
    assert 'type="password"' in page
    assert 'value="/?a=b"' in page
    assert "form-action 'self'" in headers["content-security-policy"]
    # A program gets the problem, and no page.
    assert ask(broker, "GET", "/")[0] == 401


def test_who_signed_in_sees_what_it_may_see_until_it_leaves(broker: Served) -> None:
    text = admin(broker)["authorization"].partition(" ")[2]

    status, cookie, location = sign_in(broker, text, "/events")

    assert (status, location) == (303, "/events")
    for attribute in ("HttpOnly", "SameSite=strict", "Path=/"):
        assert attribute in cookie
    sent = {"cookie": f"other=1; {cookie.partition(';')[0]}"}
    assert ask(broker, "GET", "/events", headers=sent)[0] == 200
    status, headers, _ = ask(broker, "POST", "/logout", headers=sent)
    assert status == 303
    assert "Max-Age=0" in headers["set-cookie"]


def test_a_wrong_token_signs_nobody_in(broker: Served) -> None:
    for text in ("", "x", "tcs_" + "a" * 24 + "_" + "b" * 43, "<script>"):
        status, cookie, _ = sign_in(broker, text)

        assert (status, cookie) == (401, ""), text


@pytest.mark.parametrize(
    "target", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"]
)
def test_signing_in_leads_nowhere_else(target: str, broker: Served) -> None:
    text = token(broker, "b1")["token"]

    assert sign_in(broker, text, target)[2] == "/"


def test_a_page_of_another_site_can_neither_sign_in_nor_use_that(broker: Served) -> None:
    text = admin(broker)["authorization"].partition(" ")[2]
    foreign = {"origin": "https://evil.example"}
    _, cookie, _ = sign_in(broker, text)
    sent = {"cookie": cookie.partition(";")[0], **foreign}

    assert sign_in(broker, text, **foreign)[0] == 403
    assert ask(broker, "POST", "/access/tokens", "{}", sent)[0] == 403
    assert ask(broker, "GET", "/events/socket", headers={**sent, "upgrade": "websocket"})[0] == 403


def test_a_cookie_ends_with_its_token(broker: Served) -> None:
    made = token(broker, "b2", {"action": "read"}, expires="PT10M")
    _, cookie, _ = sign_in(broker, made["token"])
    sent = {"cookie": cookie.partition(";")[0]}
    assert "Max-Age=" in cookie
    assert ask(broker, "GET", "/events", headers=sent)[0] == 200

    broker.call("DELETE", f"/access/tokens/{made['id']}", headers=admin(broker))

    assert ask(broker, "GET", "/events", headers=sent)[0] == 401

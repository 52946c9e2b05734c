"""Tokens, as an operator and her users meet them."""

from __future__ import annotations

import json
import socket
import time

import pytest
from users import REQUIRED, admin, bearer, publish, token

from served import Served, served

# Tokens


def test_a_token_is_good_for_its_rights_and_shown_once(broker: Served) -> None:
    made = token(broker, "t1", {"action": "publish", "topic": "lead/**"}, expires="PT1H")
    headers = bearer(made["token"])

    assert publish(broker, headers)[0] == 202
    status, problem = publish(broker, headers, "ops/x")
    assert (status, problem["code"]) == (403, "T215")
    assert broker.call("GET", "/events", headers=headers)[0] == 403
    shown = json.dumps(broker.call("GET", "/access/tokens", headers=admin(broker))[1])
    assert made["id"] in shown
    assert made["token"] not in shown
    assert made["token"].split("_", 2)[2] not in shown


def test_a_revoked_token_is_over_at_once_and_after_kill_9() -> None:
    with served(env=REQUIRED) as running:
        made = token(running, "t2", {"action": "publish"})
        headers = bearer(made["token"])
        assert publish(running, headers)[0] == 202

        status, _ = running.call("DELETE", f"/access/tokens/{made['id']}", headers=admin(running))

        assert status == 204
        assert publish(running, headers)[0] == 401
        running.kill()
        running.start()
        assert publish(running, headers)[0] == 401
        assert running.call("GET", "/access/whoami", headers=admin(running))[0] == 200


def test_a_token_ends_by_itself(broker: Served) -> None:
    headers = bearer(token(broker, "t3", {"action": "publish"}, expires="PT1S")["token"])
    assert publish(broker, headers)[0] == 202

    time.sleep(1.1)

    status, problem = publish(broker, headers)
    assert (status, problem["code"]) == (401, "T216")


def test_an_open_stream_ends_with_its_token(broker: Served) -> None:
    made = token(broker, "t4", {"action": "subscribe"})
    host, _, port = broker.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as opened:
        credential = f"authorization: Bearer {made['token']}\r\n"
        head = f"GET /events/stream HTTP/1.1\r\nHost: {broker.address}\r\n{credential}\r\n"
        opened.sendall(head.encode())
        reader = opened.makefile("rb")
        while b"retry:" not in reader.readline():
            pass

        broker.call("DELETE", f"/access/tokens/{made['id']}", headers=admin(broker))

        rest = reader.read()
    assert b"event: bye" in rest
    assert b"has ended" in rest


def test_somebody_makes_a_token_for_himself_that_gives_no_more_than_he_has(broker: Served) -> None:
    rule = {"principal": "t5", "action": "publish", "topic": "lead/**"}
    assert broker.call("POST", "/access/rules", rule, admin(broker))[0] == 201
    own = bearer(token(broker, "t5")["token"])
    asked = {"principal": "t5", "rights": [{"action": "*"}], "expires": "PT5M"}

    status, made = broker.call("POST", "/access/tokens", asked, own)

    assert status == 201
    assert made["bounded"] is True
    narrower = bearer(made["token"])
    assert publish(broker, narrower, "lead/x")[0] == 202
    assert publish(broker, narrower, "ops/x")[0] == 403
    assert broker.call("GET", "/events", headers=narrower)[0] == 403
    # It can make no other, and nobody makes one for somebody else.
    assert broker.call("POST", "/access/tokens", asked, narrower)[0] == 403
    assert broker.call("POST", "/access/tokens", {**asked, "principal": "bob"}, own)[0] == 403
    assert broker.call("POST", "/access/tokens", {**asked, "groups": ["ops"]}, own)[0] == 403


def test_what_tokens_there_are_others_do_not_learn(broker: Served) -> None:
    theirs = token(broker, "t6")
    own = bearer(token(broker, "t7")["token"])

    listed = broker.call("GET", "/access/tokens", headers=own)[1]["tokens"]

    assert {each["principal"] for each in listed} == {"t7"}
    unknown = broker.call("DELETE", "/access/tokens/none", headers=own)
    hidden = broker.call("DELETE", f"/access/tokens/{theirs['id']}", headers=own)
    assert unknown[0] == hidden[0] == 404
    assert unknown[1]["code"] == hidden[1]["code"]


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer x",
        "Bearer tcs_" + "a" * 24 + "_" + "b" * 43,
        "Basic x",
        "Basic eDp5",
        "Digest username=x",
        "Bearer " + "x" * 20_000,
        "bearer \xff\xfe",
    ],
)
def test_a_header_that_signs_nobody_in_is_refused(header: str, broker: Served) -> None:
    assert publish(broker, {"authorization": header})[0] in (401, 431)


def test_two_authorization_headers_are_refused(broker: Served) -> None:
    good = admin(broker)["authorization"]
    host, _, port = broker.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        head = f"GET /status HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n"
        client.sendall(f"{head}authorization: Bearer x\r\nauthorization: {good}\r\n\r\n".encode())
        answer = client.makefile("rb").read()

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_a_token_is_a_password_for_programs_that_know_no_other(broker: Served) -> None:
    import base64

    text = token(broker, "t8", {"action": "publish"})["token"]
    for name, expected in (("t8", 202), ("", 202), ("t9", 401)):
        encoded = base64.b64encode(f"{name}:{text}".encode()).decode()
        assert publish(broker, {"authorization": f"Basic {encoded}"})[0] == expected, name

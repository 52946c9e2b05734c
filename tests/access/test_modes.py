"""Modes, the administrator's token, tokens and rules: as an operator and her users meet them."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from served import ROOT, Served, served

REQUIRED = {"TOCSIN_AUTH__MODE": "required"}
EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "topic": "lead/ohio"}
CLOUD_EVENT = {"content-type": "application/cloudevents+json"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    """One for the tests that need none of their own; each makes its principals' own names."""
    with served(env=REQUIRED) as running:
        yield running


def bearer(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


def admin(running: Served) -> dict[str, str]:
    return bearer((running.directory / "admin.token").read_text().strip())


def token(running: Served, principal: str, *rights: object, **also: object) -> dict[str, Any]:
    asked = {"principal": principal, **({"rights": list(rights)} if rights else {}), **also}
    status, made = running.call("POST", "/access/tokens", asked, admin(running))
    assert status == 201, made
    return made  # type: ignore[no-any-return]


def publish(running: Served, headers: dict[str, str], topic: str = "lead/ohio") -> tuple[int, Any]:
    event = {**EVENT, "id": str(time.time_ns()), "topic": topic}
    return running.call("POST", "/events", event, {**CLOUD_EVENT, **headers})


def refused_start(
    *flags: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory() as directory:
        return subprocess.run(
            [sys.executable, "-m", "tocsin", "serve", *flags, "--data", directory],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            timeout=30,
            check=False,
        )


# Modes


def test_to_be_open_beyond_this_machine_wants_a_word() -> None:
    found = refused_start("--http", "0.0.0.0:0", env={"TOCSIN_AUTH__MODE": "open"})

    assert found.returncode == 2
    assert "T002" in found.stderr
    assert "--open" in found.stderr


def test_beyond_this_machine_clients_must_sign_in() -> None:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "tocsin", "serve", "--http", "0.0.0.0:0", "--json"]
        command += ["--frames", "off", "--soap-tcp", "off", "--link", "off", "--data", directory]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert select.select([process.stdout], [], [], 30)[0]
            said = json.loads(process.stdout.readline())
            port = int(said["http"].rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), 10) as client:
                client.sendall(
                    b"GET /events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
                )
                answer = client.makefile("rb").read()
        finally:
            process.terminate()
            notes = process.communicate(timeout=20)[1].decode()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"www-authenticate: Bearer" in answer
    assert said["admin_token"].endswith("admin.token")
    assert "there is no TLS" in notes


def test_on_loopback_everybody_may_do_everything_and_nothing_can_be_granted() -> None:
    with served() as running:
        assert running.publish(EVENT)["accepted"] == 1
        assert not (running.directory / "admin.token").exists()
        for path, body in (
            ("/access/tokens", {"principal": "ann"}),
            ("/access/rules", {"principal": "ann", "action": "read"}),
        ):
            status, problem = running.call("POST", path, body)
            assert (status, problem["code"]) == (403, "T215")
            assert "auth.mode" in problem["detail"]


def test_rules_that_nobody_would_enforce_stop_the_start(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    file.write_text('[[access]]\nprincipal = "ann"\naction = "read"\n')

    found = refused_start("--config", str(file), "--http", "127.0.0.1:0")

    assert found.returncode == 2
    assert "auth.mode" in found.stderr


# The administrator's token


def test_the_first_start_writes_an_administrators_token_for_its_owner_alone(broker: Served) -> None:
    path = broker.directory / "admin.token"

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "admin.token" in broker.said()
    assert path.read_text().strip() not in broker.said()
    assert broker.call("GET", "/access/whoami", headers=admin(broker))[1]["principal"] == "admin"


def test_a_lost_administrators_token_is_made_anew_and_the_old_one_is_over() -> None:
    with served(env=REQUIRED) as running:
        path, old = running.directory / "admin.token", admin(running)
        running.stop()
        running.start()
        assert admin(running) == old
        running.stop()
        path.unlink()
        running.start()

        assert admin(running) != old
        assert running.call("GET", "/status", headers=old)[0] == 401
        assert running.call("GET", "/status", headers=admin(running))[0] == 200


def test_an_administrators_token_that_others_can_read_stops_the_start() -> None:
    with served(env=REQUIRED) as running:
        running.stop()
        (running.directory / "admin.token").chmod(0o644)

        with pytest.raises(AssertionError, match="chmod 600"):
            running.start()


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


# Rules


def test_a_rule_over_the_api_holds_until_it_is_removed_and_over_kill_9() -> None:
    with served(env=REQUIRED) as running:
        headers = bearer(token(running, "ann")["token"])
        assert publish(running, headers)[0] == 403
        rule = {"principal": "ann", "action": "publish", "filter": "load < 5"}
        _, made = running.call("POST", "/access/rules", rule, admin(running))
        event = {**EVENT, "datacontenttype": "application/json", "data": {"load": 3}}

        def send(load: int) -> int:
            body = {**event, "id": str(time.time_ns()), "data": {"load": load}}
            return running.call("POST", "/events", body, {**CLOUD_EVENT, **headers})[0]

        assert (send(3), send(7)) == (202, 403)
        running.kill()
        running.start()
        assert (send(3), send(7)) == (202, 403)
        assert (
            running.call("DELETE", f"/access/rules/{made['id']}", headers=admin(running))[0] == 204
        )
        assert send(3) == 403


def test_a_subscriber_gets_what_it_may_have_and_no_more(broker: Served) -> None:
    rights = [{"action": "subscribe", "topic": "lab/*/open"}]
    reader = bearer(token(broker, "t10", *rights)["token"])
    writer = bearer(token(broker, "t11", {"action": "publish"})["token"])
    status, box = broker.call("POST", "/boxes", {"filters": [{"topic": "lab/**"}]}, reader)
    assert status == 201, box
    for topic in ("lab/a/open", "lab/a/closed", "lab/b/open"):
        assert publish(broker, writer, topic)[0] == 202

    pulled = broker.call("GET", f"/boxes/{box['id']}/messages?max=10", headers=reader)[1]

    assert [each["topic"] for each in pulled["events"]] == ["lab/a/open", "lab/b/open"]
    assert broker.call("POST", "/boxes", {"filters": [{"topic": "ops/**"}]}, reader)[0] == 403
    # Nobody else has the box, nor learns of it.
    other = bearer(token(broker, "t12", *rights)["token"])
    for path in (f"/boxes/{box['id']}/messages", "/boxes/none/messages"):
        status, problem = broker.call("GET", path, headers=other)
        assert (status, problem["code"]) == (403, "T215")


def test_what_somebody_made_is_there_after_kill_9_and_still_theirs() -> None:
    with served(env=REQUIRED) as running:
        reader = bearer(
            token(running, "ann", {"action": "subscribe", "topic": "lab/open"})["token"]
        )
        _, box = running.call("POST", "/boxes", {"filters": [{"topic": "lab/**"}]}, reader)
        for topic in ("lab/open", "lab/closed"):
            assert publish(running, admin(running), topic)[0] == 202
        running.kill()
        running.start()

        path = f"/boxes/{box['id']}/messages?max=10&wait=5"
        status, pulled = running.call("GET", path, headers=reader)

        assert status == 200, pulled
        assert [each["topic"] for each in pulled["events"]] == ["lab/open"]
        other = bearer(token(running, "eve", {"action": "subscribe"})["token"])
        assert running.call("GET", path, headers=other)[0] == 403


def test_why_names_the_rule(broker: Served) -> None:
    rule = {"group": "g1", "action": "publish", "topic": "lead/**"}
    made = broker.call("POST", "/access/rules", rule, admin(broker))[1]
    query = "/access/check?principal=zoe&group=g1&action=publish&topic=lead/x"

    found = broker.call("GET", query, headers=admin(broker))[1]

    assert found["allowed"] is True
    assert found["reason"] == f"rule/{made['id']}"
    assert found["rule"]["topic"] == "lead/**"
    assert broker.call("GET", query.replace("lead", "ops"), headers=admin(broker))[1] == {
        "allowed": False,
        "principal": "zoe",
        "action": "publish",
        "resource": "ops/x",
        "reason": "no rule",
        "rule": None,
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/access/tokens", {}),
        ("/access/tokens", {"principal": "broker"}),
        ("/access/tokens", {"principal": "anonymous"}),
        ("/access/tokens", {"principal": "a\nb"}),
        ("/access/tokens", {"principal": "x", "expires": "P1000Y"}),
        ("/access/tokens", {"principal": "x", "expires": "PT0S"}),
        ("/access/tokens", {"principal": "x", "rights": [{"action": "fly"}]}),
        ("/access/tokens", {"principal": "x", "rights": [{"action": "read"}] * 101}),
        ("/access/tokens", {"principal": "x", "rigths": []}),
        ("/access/rules", {"action": "read"}),
        ("/access/rules", {"action": "read", "principal": "x", "group": "y"}),
        ("/access/rules", [1]),
    ],
)
def test_a_wrong_request_says_what_is_wrong_and_grants_nothing(
    path: str, body: object, broker: Served
) -> None:
    before = [broker.call("GET", each, headers=admin(broker))[1] for each in LISTS]

    status, problem = broker.call("POST", path, body, admin(broker))

    assert status == 400, problem
    assert problem["remedy"]
    assert [broker.call("GET", each, headers=admin(broker))[1] for each in LISTS] == before


LISTS = ("/access/tokens", "/access/rules")


def test_rules_of_the_file_are_read_again_at_a_hangup(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"

    def rules(*topics: str) -> str:
        written = [
            f'[[access]]\nprincipal = "ann"\naction = "publish"\ntopic = "{each}"\n'
            for each in topics
        ]
        return "[auth]\nmode = 'required'\n" + "".join(written)

    def eventually(topic: str, expected: int) -> None:
        deadline = time.monotonic() + 10
        while publish(running, headers, topic)[0] != expected:
            assert time.monotonic() < deadline, running.said()
            time.sleep(0.05)

    file.write_text(rules("lead/**"))
    with served("--config", str(file)) as running:
        headers = bearer(token(running, "ann")["token"])
        kept = {"principal": "ann", "action": "publish", "topic": "lab/**"}
        running.call("POST", "/access/rules", kept, admin(running))
        assert [publish(running, headers, each)[0] for each in ("lead/x", "ops/x")] == [202, 403]

        file.write_text(rules("ops/**"))
        running.process.send_signal(signal.SIGHUP)

        eventually("ops/x", 202)
        assert publish(running, headers, "lead/x")[0] == 403
        assert publish(running, headers, "lab/x")[0] == 202  # made over the API
        file.write_text(rules("ops//x"))
        running.process.send_signal(signal.SIGHUP)
        eventually("ops/x", 202)
        deadline = time.monotonic() + 10
        while "cannot be used" not in running.said():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert running.process.poll() is None

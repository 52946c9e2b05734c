"""Rules, as an operator and her users meet them."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from users import CLOUD_EVENT, EVENT, REQUIRED, admin, bearer, publish, token

from served import Served, served

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

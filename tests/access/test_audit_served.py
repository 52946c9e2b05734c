"""The audit log of a broker: over its API and by command, with no secret, after a kill."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from served import ROOT, Served, served

SETTINGS = """
[auth]
mode = "required"
contact = "ops@example.org"

[audit]
flush_s = 0.1

[[access]]
principal = "ann"
action = ["publish", "subscribe"]
topic = "lead/**"

[[access]]
principal = "auditor"
action = "read"
resource = "access"

[[access]]
principal = "anonymous"
action = "read"
resource = "access"
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = tmp_path_factory.mktemp("settings") / "tocsin.toml"
    settings.write_text(SETTINGS)
    with served(env={"TOCSIN_CONFIG": str(settings)}) as running:
        yield running


def admin(broker: Served) -> dict[str, str]:
    return bearer((broker.directory / "admin.token").read_text().strip())


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def token_of(broker: Served, name: str) -> tuple[str, str]:
    """Its id and its text."""
    status, made = broker.call("POST", "/access/tokens", {"principal": name}, admin(broker))
    assert status == 201, made
    return made["id"], made["token"]


def records(broker: Served, query: str = "") -> list[dict[str, object]]:
    status, page = broker.call("GET", f"/access/audit?limit=1000{query}", headers=admin(broker))
    assert status == 200, page
    found: list[dict[str, object]] = page["records"]
    return found


def command(broker: Served, *words: str) -> subprocess.CompletedProcess[str]:
    """Of who has not signed in, who may read access here."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TOCSIN_")}
    return subprocess.run(
        [sys.executable, "-m", "tocsin", "access", *words, "--broker", broker.url],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        check=False,
        timeout=60,
    )


EVENT = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
AS_EVENT = {"content-type": "application/cloudevents+json"}


def publish(broker: Served, token: str, topic: str) -> tuple[int, dict[str, str]]:
    headers = {**bearer(token), **AS_EVENT}
    return broker.call("POST", "/events", {**EVENT, "topic": topic}, headers)


def test_who_did_what_and_by_which_rule_can_be_asked(broker: Served) -> None:
    token_id, token = token_of(broker, "ann")

    assert publish(broker, token, "lead/ohio")[0] == 202
    assert publish(broker, token, "secret/x")[0] == 403
    assert broker.call("POST", "/boxes", {}, bearer(token))[0] == 201
    assert broker.call("DELETE", f"/access/tokens/{token_id}", headers=admin(broker))[0] == 204
    assert publish(broker, token, "lead/ohio")[0] == 401

    found = records(broker, "&principal=ann")
    shown = [(r["action"], r["resource"], r["decision"], r["reason"]) for r in found]
    assert shown == [
        ("publish", "secret/x", "refused", "no rule"),
        ("subscribe", "filter/everything", "allowed", "rule/tocsin.toml:9"),
    ]
    assert {r["credential"] for r in found} == {f"token/{token_id}"}
    assert all(str(r["peer"]).startswith("127.0.0.1:") for r in found)
    changes = [r for r in records(broker, "&kind=change") if r["principal"] == "admin"]
    assert [r["reason"] for r in changes][-1] == "revoked, of ann"
    failed = records(broker, "&kind=sign-in")[-1]
    assert (failed["resource"], failed["reason"]) == (f"token/{token_id}", "it was revoked")


def test_who_may_not_read_access_does_not_read_the_audit_log(broker: Served) -> None:
    _, ann = token_of(broker, "ann")
    _, auditor = token_of(broker, "auditor")

    for path in ("/access/audit", "/access/audit/verify"):
        status, problem = broker.call("GET", path, headers=bearer(ann))
        assert (status, problem["code"]) == (403, "T215")
        assert "`read access`, which ops@example.org can grant" in problem["remedy"]
        assert broker.call("GET", path, headers=bearer(auditor))[0] == 200
    assert broker.call("GET", "/access/quotas", headers=bearer(ann))[1]["principals"] == []


def test_pages_follow_each_other_to_the_end(broker: Served) -> None:
    _, token = token_of(broker, "pager")
    for number in range(5):
        publish(broker, token, f"pages/{number}")

    found: list[object] = []
    after = 0
    while True:
        path = f"/access/audit?principal=pager&limit=2&after={after}"
        page = broker.call("GET", path, headers=admin(broker))[1]
        found += [record["resource"] for record in page["records"]]
        after = page["next"]
        if not page["more"]:
            break

    assert found == [f"pages/{number}" for number in range(5)]
    assert broker.call("GET", "/access/audit?action=fly", headers=admin(broker))[0] == 400


def test_no_record_and_no_file_has_a_secret(broker: Served) -> None:
    _, token = token_of(broker, "ann")
    secret = token.split("_", 2)[2]  # it may have such a character itself
    wrong = token[:-4] + "AAAA"
    for header in (f"Bearer {wrong}", wrong, f"Basic {wrong}", "Bearer hunter2-is-my-password"):
        broker.call("GET", "/status", headers={"authorization": header})
    publish(broker, token, "secret/x")
    records(broker)

    text = b"".join(path.read_bytes() for path in (broker.directory / "audit").iterdir())
    assert b"it has not the form of a token" in text
    for part in (secret[:12], wrong.split("_", 2)[2][:12], "hunter2"):
        assert part.encode() not in text
        assert part not in broker.said()


def test_the_commands_show_export_and_check_it(broker: Served) -> None:
    _, token = token_of(broker, "bob")
    publish(broker, token, "=cmd/x")

    as_json = command(broker, "audit", "--principal", "bob", "--denied", "--json")
    as_csv = command(broker, "audit", "--since", "1h", "--csv")
    as_table = command(broker, "audit", "--topic", "=cmd/**")
    checked = command(broker, "audit", "--verify")
    here = command(broker, "audit", "--verify", "--data", str(broker.directory), "--json")

    assert [json.loads(line)["resource"] for line in as_json.stdout.splitlines()] == ["=cmd/x"]
    rows = list(csv.DictReader(io.StringIO(as_csv.stdout)))
    assert rows[0]["kind"] == "begin"
    assert [row["resource"] for row in rows if row["principal"] == "bob"] == ["'=cmd/x"]
    assert "publish =cmd/x" in as_table.stdout
    assert (checked.returncode, here.returncode) == (0, 0)
    assert "is as it was written" in checked.stderr
    assert json.loads(here.stdout)["whole"] is True


def test_follow_goes_on_with_what_is_decided_from_now_on(broker: Served) -> None:
    _, token = token_of(broker, "carl")
    words = ["access", "audit", "--principal", "carl", "--follow", "--json", "--broker", broker.url]
    following = subprocess.Popen(
        [sys.executable, "-u", "-m", "tocsin", *words], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        publish(broker, token, "first/x")
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["resource"] == "first/x"
        publish(broker, token, "second/x")
        assert json.loads(following.stdout.readline())["resource"] == "second/x"
    finally:
        following.kill()
        following.wait()


def test_guesses_from_one_address_have_to_wait_and_others_sign_in(tmp_path: Path) -> None:
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as broker:
        _, ann = token_of(broker, "ann")
        statuses = [
            broker.call("GET", "/access/whoami", headers=bearer(f"guess{number}"))[0]
            for number in range(12)
        ]
        status, problem = broker.call("GET", "/access/whoami", headers=bearer(ann))

        assert statuses == [401] * 10 + [429] * 2
        assert (status, problem["code"]) == (429, "T219")  # ann has not signed in from there
        assert broker.call("GET", "/access/whoami", headers=admin(broker))[0] == 200
        assert len(records(broker, "&kind=sign-in")) == 10
        with urlopen(Request(f"{broker.url}/metrics", headers=admin(broker)), timeout=30) as page:
            figures = page.read().decode()
        assert "tocsin_sign_in_failures_total 10.0" in figures
        assert 'tocsin_quota_reached_total{quota="failed_sign_ins"} 3.0' in figures


def test_after_a_kill_the_log_goes_on_and_says_what_was_cut(tmp_path: Path) -> None:
    with served(env={"TOCSIN_AUTH__MODE": "required"}) as broker:
        _, token = token_of(broker, "ann")
        publish(broker, token, "a/b")
        records(broker)
        broker.kill()
        (path,) = (broker.directory / "audit").glob("*.jsonl")
        path.write_bytes(path.read_bytes()[:-30])
        broker.start()

        status, checked = broker.call("GET", "/access/audit/verify", headers=admin(broker))

        assert (status, checked["whole"]) == (200, True)
        assert [fault["damage"] for fault in checked["faults"]] == [False]
        assert [r["kind"] for r in records(broker)].count("begin") == 2
        assert len(records(broker, "&kind=cut")) == 1
        assert broker.call("GET", "/status", headers=admin(broker))[1]["auth"] == {
            "mode": "required",
            "tls": False,
            "audit": True,
            "problem": None,
        }
        assert broker.stop() == 0


def test_an_open_broker_keeps_no_audit_log_and_says_so() -> None:
    with served() as broker:
        status, problem = broker.call("GET", "/access/audit")

        assert (status, problem["code"]) == (404, "T221")
        assert not (broker.directory / "audit").exists()

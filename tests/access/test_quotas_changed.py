"""Quotas of a real broker over its life: a kill, a hangup with other limits, and who sees what."""

from __future__ import annotations

import signal
import socket
from pathlib import Path
from typing import Any

from served import Served, served
from waiting import wait_until

REQUIRED = "[auth]\nmode = 'required'\n[audit]\nflush_s = 0.1\n"
RULES = "".join(
    f'[[access]]\nprincipal = "{name}"\naction = ["publish", "subscribe", "manage"]\n'
    for name in ("ann", "bob")
)
ALL_MAY = REQUIRED + RULES


def admin(broker: Served) -> dict[str, str]:
    return bearer((broker.directory / "admin.token").read_text().strip())


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def signed_in(broker: Served, name: str, *rights: dict[str, object]) -> dict[str, str]:
    asked = {"principal": name, **({"rights": rights} if rights else {})}
    status, made = broker.call("POST", "/access/tokens", asked, admin(broker))
    assert status == 201, made
    return bearer(made["token"])


def register(broker: Served, who: dict[str, str], name: str) -> int:
    asked = {"id": name, "model": "static", "advertisement": "[system,=,Linux]"}
    return broker.call("POST", "/resources", asked, who)[0]


def subscribe(broker: Served, who: dict[str, str]) -> tuple[int, Any]:
    asked = {"sink": "http://127.0.0.1:9/hook", "filters": []}
    return broker.call("POST", "/subscriptions", asked, who)


def hang_up(broker: Served, file: Path, text: str, shown: str) -> None:
    """Exchange the settings, and wait until the broker's log shows them in use."""
    before = broker.said().count(shown)
    file.write_text(text)
    broker.process.send_signal(signal.SIGHUP)
    wait_until(lambda: broker.said().count(shown) > before, broker.said)


IN_USE = "a file was exchanged and is in use"


def test_what_is_registered_counts_after_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    file.write_text(ALL_MAY + "[[quotas]]\nregistrations = 2\nsubscriptions = 1\n")
    with served("--config", str(file)) as broker:
        ann, bob = signed_in(broker, "ann"), signed_in(broker, "bob")
        assert [register(broker, ann, name) for name in "abc"] == [201, 201, 429]
        assert [subscribe(broker, ann)[0] for _ in range(2)] == [201, 429]

        broker.kill()
        broker.start()

        assert register(broker, ann, "c") == 429
        assert subscribe(broker, ann)[0] == 429
        assert register(broker, bob, "d") == 201
        assert broker.call("DELETE", "/resources/a", headers=ann)[0] == 204
        assert [register(broker, ann, name) for name in "ce"] == [201, 429]


def stream(broker: Served, who: dict[str, str]) -> tuple[str, socket.socket]:
    """What an event stream is answered, and its connection."""
    host, _, port = broker.address.rpartition(":")
    way = socket.create_connection((host, int(port)), 10)
    credential = who["authorization"]
    head = f"GET /events/stream HTTP/1.1\r\nhost: x\r\nauthorization: {credential}\r\n\r\n"
    way.sendall(head.replace("host: x", f"host: {broker.address}").encode())
    text = b""
    while b"\r\n\r\n" not in text:
        text += way.recv(1 << 16)
    return text.split(b" ")[1].decode(), way


def test_at_a_hangup_other_quotas_hold_and_nothing_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    file.write_text(ALL_MAY)
    with served("--config", str(file)) as broker:
        ann = signed_in(broker, "ann")
        opened = [stream(broker, ann) for _ in range(3)]
        assert [status for status, _ in opened] == ["200"] * 3
        made = [subscribe(broker, ann) for _ in range(3)]
        assert [register(broker, ann, name) for name in "abc"] == [201] * 3

        limits = "streams = 2\nsubscriptions = 2\nregistrations = 2\n"
        hang_up(broker, file, f"{ALL_MAY}[[quotas]]\n{limits}", IN_USE)

        assert subscribe(broker, ann)[0] == register(broker, ann, "d") == 429
        status, way = stream(broker, ann)
        assert status == "429"
        way.close()
        listed = broker.call("GET", "/subscriptions", headers=admin(broker))[1]
        assert listed["total"] == 3
        assert broker.call("GET", "/status", headers=admin(broker))[1]["streams"] == 3
        for _, body in made[:2]:
            assert subscribe(broker, ann)[0] == 429
            broker.call("DELETE", f"/subscriptions/{body['id']}", headers=ann)
        assert [subscribe(broker, ann)[0] for _ in range(2)] == [201, 429]

        hang_up(broker, file, f"{ALL_MAY}[[quotas]]\nstreams = 0\n", "cannot be used")
        assert subscribe(broker, ann)[0] == 429
        hang_up(broker, file, ALL_MAY, IN_USE)
        assert [subscribe(broker, ann)[0] for _ in range(2)] == [201, 201]
        page = broker.call("GET", "/access/audit?kind=change", headers=admin(broker))[1]
        changes = [each["reason"] for each in page["records"]]
        assert [each for each in changes if "quotas" in each] == [
            "the settings have 1 quotas",
            "the settings have 0 quotas",
        ]
        for _, way in opened:
            way.close()


def test_a_limit_of_the_groups_of_the_settings_follows_them(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    limits = '[[quotas]]\nsubscriptions = 1\n[[quotas]]\ngroup = "many"\nsubscriptions = 2\n'
    file.write_text(f"{ALL_MAY}[groups]\nmany = ['ann']\n{limits}")
    with served("--config", str(file)) as broker:
        ann = signed_in(broker, "ann")
        assert subscribe(broker, ann)[0] == 201
        broker.kill()
        broker.start()
        assert [subscribe(broker, ann)[0] for _ in range(2)] == [201, 429]

        broker.call("DELETE", f"/subscriptions/{subscription_of(broker, ann)}", headers=ann)
        hang_up(broker, file, f"{ALL_MAY}[groups]\nmany = []\n{limits}", IN_USE)

        assert subscribe(broker, ann)[0] == 429


def subscription_of(broker: Served, who: dict[str, str]) -> str:
    found = broker.call("GET", "/subscriptions", headers=who)[1]["subscriptions"]
    return str(found[0]["id"])


def test_where_nobody_signs_in_a_hangup_changes_quotas_and_brings_no_rules(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    limit = "[[quotas]]\nprincipal = 'anonymous'\nsubscriptions = {}\n"
    file.write_text(limit.format(1))
    with served("--config", str(file)) as broker:
        assert [subscribe(broker, {})[0] for _ in range(2)] == [201, 429]

        hang_up(broker, file, limit.format(2), IN_USE)

        assert [subscribe(broker, {})[0] for _ in range(2)] == [201, 429]
        hang_up(broker, file, limit.format(9) + RULES, "they would not be applied")
        assert subscribe(broker, {})[0] == 429


def test_each_sees_his_own_quotas_and_how_often_he_reached_them(tmp_path: Path) -> None:
    file = tmp_path / "tocsin.toml"
    peer = '[[quotas]]\npeer = "127.0.0.0/8"\nconnections = 1000\n'
    file.write_text(f"{ALL_MAY}[[quotas]]\nsubscriptions = 1\nboxes = 5\n{peer}")
    with served("--config", str(file)) as broker:
        ann = signed_in(broker, "ann", {"action": "subscribe", "topic": "**"})
        bob = signed_in(broker, "bob", {"action": "subscribe", "topic": "**"})
        reader = signed_in(broker, "eve", {"action": "read", "resource": "access"})
        assert [subscribe(broker, ann)[0] for _ in range(3)] == [201, 429, 429]
        assert [subscribe(broker, bob)[0] for _ in range(2)] == [201, 429]

        def quotas(who: dict[str, str]) -> tuple[set[str], set[str], int]:
            status, found = broker.call("GET", "/access/quotas", headers=who)
            assert status == 200, found
            of = [{each["of"] for each in found[kind]} for kind in ("principals", "peers")]
            return of[0], of[1], found["reached"]["subscriptions"]

        assert quotas(ann) == ({"ann"}, {"127.0.0.1"}, 2)
        assert quotas(bob) == ({"bob"}, {"127.0.0.1"}, 1)
        for who in (reader, admin(broker)):
            principals, _, reached = quotas(who)
            assert principals >= {"ann", "bob"}
            assert reached == 3
        assert broker.call("GET", "/access/quotas")[0] == 401

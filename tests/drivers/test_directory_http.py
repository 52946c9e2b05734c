"""The directory of a running broker: what was answered is on disk, and what lapsed is gone."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

from served import Served, served
from tocsin.access.session import anonymous

MS = 1_000_000
CLIENT = anonymous("http", "192.0.2.1:1")
PATIENCE_S = 20.0
UPTIME = {
    "kind": "producer",
    "name": "uptime",
    "address": "gma://node7:8401",
    "host": "node7",
    "events": ["UptimeCPULoad", {"name": "Temp", "namespace": "urn:lab", "parameters": ["Period"]}],
    "attributes": {"site": "ohio", "cores": 64},
    "lease": "PT10M",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def empty(broker: Served) -> Iterator[Served]:
    yield broker
    for entry in broker.call("GET", "/directory?limit=1000")[1]["entries"]:
        if entry["expires"] is not None:
            assert broker.call("DELETE", f"/directory/{entry['id']}")[0] == 204


def test_what_was_answered_survives_a_crash() -> None:
    with served() as running:
        status, registered = running.call("POST", "/directory", UPTIME)
        assert status == 201
        withdrawn = running.call("POST", "/directory", {**UPTIME, "name": "gone"})[1]["id"]
        assert running.call("DELETE", f"/directory/{withdrawn}")[0] == 204
        running.kill()
        running.start()

        assert running.call("GET", f"/directory/{registered['id']}") == (200, registered)
        assert running.call("GET", f"/directory/{withdrawn}")[0] == 404
        found = running.call("GET", "/directory?event=UptimeCPULoad&host=NODE7")[1]
        assert found == {"entries": [registered], "next": None}


def test_who_registers_again_replaces_what_it_said(empty: Served) -> None:
    _, first = empty.call("POST", "/directory", UPTIME)

    status, second = empty.call("POST", "/directory", {**UPTIME, "events": ["Memory"]})

    assert status == 200
    assert second["id"] == first["id"]
    assert second["registered"] == first["registered"]
    assert empty.call("GET", "/directory?event=UptimeCPULoad")[1]["entries"] == []
    assert empty.call("GET", "/directory?event=Memory")[1]["entries"] == [second]


def test_an_entry_is_renewed_replaced_and_withdrawn_by_its_id(empty: Served) -> None:
    _, first = empty.call("POST", "/directory", {**UPTIME, "id": "mine"})
    one = "/directory/mine"

    status, renewed = empty.call("PUT", one, {})
    assert status == 200
    assert {**renewed, "expires": first["expires"]} == first
    assert renewed["expires"] >= first["expires"]

    status, renamed = empty.call("PUT", one, {**first, "name": "load"})  # as it was shown
    assert (status, renamed["id"], renamed["name"]) == (200, "mine", "load")

    assert empty.call("DELETE", one) == (204, None)
    for method, body in (("GET", None), ("DELETE", None), ("PUT", {})):
        status, problem = empty.call(method, one, body)
        assert (status, problem["code"]) == (404, "T311")
    assert empty.call("PUT", one, UPTIME)[0] == 201


def test_nobody_can_be_in_the_directory_twice(empty: Served) -> None:
    empty.call("POST", "/directory", {**UPTIME, "id": "one"})
    empty.call("POST", "/directory", {**UPTIME, "id": "two", "name": "load"})

    status, problem = empty.call("PUT", "/directory/two", UPTIME)

    assert (status, problem["code"]) == (400, "T310")
    assert "registered as one" in problem["detail"]
    assert empty.call("GET", "/directory/two")[1]["name"] == "load"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a", "b", "c"]),
        ("kind=consumer", ["c"]),
        ("event=%7Burn:lab%7DTemp", ["a"]),
        ("event=Temp", ["a"]),
        ("host=node8&kind=producer", ["b"]),
        ("filter=cores+%3E%3D+16", ["a"]),
        ("filter=site+%3D+ohio+and+kind+%3D+producer&host=node8", ["b"]),
        ("event=Nothing", []),
    ],
)
def test_entries_are_found_by_kind_event_host_and_attribute(
    empty: Served, query: str, found: list[str]
) -> None:
    b = {**UPTIME, "host": "node8", "events": ["UptimeCPULoad"], "attributes": {"site": "ohio"}}
    c = {"kind": "consumer", "name": "archive", "address": "node9:8402"}
    for entry_id, asked in (("a", UPTIME), ("b", b), ("c", c)):
        assert empty.call("POST", "/directory", {**asked, "id": entry_id})[0] == 201

    _, page = empty.call("GET", f"/directory?{query}")

    assert [e["id"] for e in page["entries"] if e["expires"] is not None] == found


def test_a_long_answer_comes_in_pages(empty: Served) -> None:
    for number in range(5):
        empty.call("POST", "/directory", {**UPTIME, "name": f"n{number}"})

    seen, after = [], ""
    while after is not None:
        _, page = empty.call("GET", f"/directory?host=node7&limit=2&after={after}")
        assert len(page["entries"]) <= 2
        seen += [entry["name"] for entry in page["entries"]]
        after = page["next"]

    assert sorted(seen) == [f"n{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("method", "path", "body", "code", "word"),
    [
        ("POST", "/directory", {"name": "x"}, "T310", "kind"),
        ("POST", "/directory", b"{", "T201", "JSON"),
        ("POST", "/directory", [], "T201", "object"),
        ("POST", "/directory", {**UPTIME, "lease": "P8D"}, "T310", "lease"),
        ("PUT", "/directory/a", {**UPTIME, "id": "b"}, "T310", "id"),
        ("PUT", "/directory/A", UPTIME, "T310", "id"),
        ("GET", "/directory?event=two+words", None, "T201", "event"),
        ("GET", "/directory?kind=broker", None, "T201", "kind"),
        ("GET", "/directory?filter=cores+%3E%3E+1", None, "T104", "operator"),
        ("GET", "/directory?filter=topic+a", None, "T104", "directory"),
        ("GET", "/directory?limit=0", None, "T201", "limit"),
        ("GET", "/directory?evnt=a", None, "T201", "evnt"),
        ("GET", "/directory.ldif?suffix=cn%3Da", None, "T201", "suffix"),
        ("GET", "/directory.ldif?schema=x", None, "T201", "schema"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    broker: Served, method: str, path: str, body: object, code: str, word: str
) -> None:
    status, problem = broker.call(method, path, body)

    assert (status, problem["code"]) == (400, code)
    assert word in problem["detail"]
    assert problem["remedy"]
    assert broker.call("GET", "/directory?host=node7")[1]["entries"] == []


def test_the_same_look_up_goes_out_as_ldif(empty: Served) -> None:
    empty.call("POST", "/directory", {**UPTIME, "id": "a"})
    for number in range(120):  # more than is written at once
        empty.call("POST", "/directory", {**UPTIME, "name": f"n{number}", "host": "node8"})

    def fetch(path: str) -> tuple[str, str]:
        with urllib.request.urlopen(empty.url + path) as answer:
            return answer.headers["content-type"], answer.read().decode()

    kind, text = fetch("/directory.ldif?host=node7&suffix=dc=example,dc=org")
    assert kind.startswith("text/ldif")
    assert "\ndn: uid=a,ou=producers,dc=example,dc=org\n" in text
    assert text.count("\nuid: ") == 1
    assert fetch("/directory.ldif?host=node8")[1].count("\nuid: ") == 120
    assert "tocsinEvent: UptimeCPULoad" in fetch("/directory.ldif?host=node7&schema=tocsin")[1]
    assert "olcObjectClasses" in fetch("/directory-schema.ldif")[1]

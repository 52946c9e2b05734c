"""The directory of a running broker: what was answered is on disk, and what lapsed is gone."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from served import Served, served
from tocsin.access.session import anonymous
from tocsin.config import load
from tocsin.drivers.node import Node
from tocsin.drivers.notes import Notes
from tocsin.errors import BadRegistration, DirectoryFull, NoSuchEntry, TooLarge
from tocsin.event.filter_text import parse_filter
from tocsin.services.directory import directory as directory_module
from tocsin.services.directory.directory import KEY, Directory
from tocsin.store.store import Store
from tocsin.wire.directory.entry import Offered, Registration
from tocsin.wire.directory.listing import Wanted
from tocsin.wire.gma.names import EventName, read_name

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


def run(directory: Path, script: Callable[[Directory, Node], Awaitable[None]]) -> None:
    """A node without doors, from its start to its end."""

    async def main() -> None:
        settings, _ = load({"http.address": "127.0.0.1:0", "log.directory": str(directory)}, {})
        node = Node(settings, Store.open(directory), Notes())
        try:
            await asyncio.wait_for(script(Directory(node.port), node), PATIENCE_S)
        finally:
            await node.close()

    uvloop.run(main())


def offer(name: str = "uptime", *, lease_ms: int = 60_000, **more: Any) -> Registration:
    asked = {"kind": "producer", "name": name, "host": "node7", **more}
    return Registration(**asked, lease_ns=lease_ms * MS)


async def names(directory: Directory, **wanted: Any) -> list[str]:
    found = (await directory.look_up(CLIENT, Wanted(**wanted))).entries
    return sorted(entry.registration.name for entry in found)


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


def test_a_lapsed_entry_vanishes_at_once_and_from_disk_with_the_next_sweep(tmp_path: Path) -> None:
    async def script(directory: Directory, node: Node) -> None:
        entry, _ = await directory.register(CLIENT, offer(lease_ms=50))
        await directory.register(CLIENT, offer("stays"))
        await asyncio.sleep(0.06)
        assert await names(directory) == ["stays"]
        with pytest.raises(NoSuchEntry):
            directory.get(CLIENT, entry.id)
        with pytest.raises(NoSuchEntry):
            await directory.renew(CLIENT, entry.id)
        assert len(node.broker.kept(KEY)) == 2
        await directory.sweep()
        assert len(node.broker.kept(KEY)) == 1

    run(tmp_path, script)


def test_the_sweep_comes_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "SWEEP_S", 0.05)

    async def script(directory: Directory, node: Node) -> None:
        for name in ("a", "b"):  # twice, so that it is not done after the first time
            await directory.register(CLIENT, offer(name, lease_ms=1))
            deadline_s = node.loop.time() + 10.0
            while node.broker.kept(KEY) and node.loop.time() < deadline_s:
                await asyncio.sleep(0.02)
            assert not node.broker.kept(KEY)

    run(tmp_path, script)


def test_a_filter_is_asked_of_everybody_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "LOOKED_AT_MAX", 3)

    async def script(directory: Directory, node: Node) -> None:
        await asyncio.gather(
            *(directory.register(CLIENT, offer(f"n{n}", attributes={"n": n})) for n in range(20))
        )
        wanted = Wanted(filter=parse_filter("n >= 15"))
        assert len((await directory.look_up(CLIENT, wanted)).entries) == 5
        seen, after = [], ""
        while after is not None:
            page = await directory.look_up(CLIENT, wanted, after=after, limit=2)
            seen += [entry.id for entry in page.entries]
            after = page.next
        assert seen == [entry.id for entry in (await directory.look_up(CLIENT, wanted)).entries]

    run(tmp_path, script)


def test_leases_go_on_through_a_restart(tmp_path: Path) -> None:
    async def first(directory: Directory, node: Node) -> None:
        await directory.register(CLIENT, offer("short", lease_ms=200))
        await directory.register(CLIENT, offer("long"))

    async def second(directory: Directory, node: Node) -> None:
        await asyncio.sleep(0.2)
        assert await names(directory) == ["long"]
        _, is_new = await directory.register(CLIENT, offer("short"))
        assert is_new

    run(tmp_path, first)
    run(tmp_path, second)


def test_of_two_at_the_same_moment_the_second_replaces_the_first(tmp_path: Path) -> None:
    async def script(directory: Directory, node: Node) -> None:
        one, other = await asyncio.gather(
            directory.register(CLIENT, offer(address="gma://a:1")),
            directory.register(CLIENT, offer(address="gma://b:1")),
        )
        assert one[0].id == other[0].id
        assert (one[1], other[1]) == (True, False)
        [entry] = (await directory.look_up(CLIENT, Wanted())).entries
        assert entry.registration.address == "gma://b:1"

    async def again(directory: Directory, node: Node) -> None:
        [entry] = (await directory.look_up(CLIENT, Wanted())).entries
        assert entry.registration.address == "gma://b:1"

    run(tmp_path, script)
    run(tmp_path, again)


def test_who_renews_while_being_withdrawn_is_told_that_it_is_gone(tmp_path: Path) -> None:
    async def script(directory: Directory, node: Node) -> None:
        entry, _ = await directory.register(CLIENT, offer())
        gone, renewed = await asyncio.gather(
            directory.withdraw(CLIENT, entry.id),
            directory.renew(CLIENT, entry.id),
            return_exceptions=True,
        )
        assert gone is None
        assert isinstance(renewed, NoSuchEntry)
        assert await names(directory) == []
        assert node.broker.kept(KEY) == {}

    run(tmp_path, script)


def test_a_name_that_is_being_given_up_can_be_taken(tmp_path: Path) -> None:
    async def script(directory: Directory, node: Node) -> None:
        entry, _ = await directory.register(CLIENT, offer("old"))
        _, taken = await asyncio.gather(
            directory.register(CLIENT, offer("new"), entry.id),
            directory.register(CLIENT, offer("old")),
        )
        assert taken[0].id != entry.id
        assert await names(directory) == ["new", "old"]

    run(tmp_path, script)


def test_a_full_directory_takes_renewals_and_replacements_but_nobody_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "ENTRIES_MAX", 2)

    async def script(directory: Directory, node: Node) -> None:
        entry, _ = await directory.register(CLIENT, offer("a"))
        await directory.register(CLIENT, offer("b", lease_ms=100))
        with pytest.raises(DirectoryFull):
            await directory.register(CLIENT, offer("c"))
        await directory.register(CLIENT, offer("a"))
        await directory.renew(CLIENT, entry.id)
        await asyncio.sleep(0.1)
        await directory.register(CLIENT, offer("c"))  # the lapsed one takes no room
        assert await names(directory) == ["a", "c"]

    run(tmp_path, script)


def test_one_entry_and_all_together_have_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "DIRECTORY_BYTES_MAX", 100_000)

    async def script(directory: Directory, node: Node) -> None:
        text = {f"a{n}": "x" * 1_000 for n in range(60)}
        more = {f"b{n}": "x" * 1_000 for n in range(10)}
        with pytest.raises(TooLarge):
            await directory.register(CLIENT, offer(attributes={**text, **more}))
        await directory.register(CLIENT, offer("a", attributes=text))
        await directory.register(CLIENT, offer("a", attributes=text))
        with pytest.raises(DirectoryFull):
            await directory.register(CLIENT, offer("b", attributes=text))
        await directory.register(CLIENT, offer("a", attributes={}))
        await directory.register(CLIENT, offer("b", attributes=text))

    run(tmp_path, script)


def test_what_the_broker_offers_is_found_like_the_rest_and_is_not_kept(tmp_path: Path) -> None:
    flowing: list[EventName] = []

    async def script(directory: Directory, node: Node) -> None:
        own = offer("tocsin", address="gma://127.0.0.1:8401")
        own_id = directory.list_own(own, lambda: flowing)
        await directory.register(
            CLIENT, offer("uptime", events=(Offered(read_name("UptimeCPULoad")),))
        )
        assert await names(directory) == ["tocsin", "uptime"]
        assert await names(directory, event=read_name("UptimeCPULoad")) == ["uptime"]
        flowing.append(read_name("UptimeCPULoad"))
        directory.list_own(own, lambda: flowing)
        assert await names(directory, event=read_name("UptimeCPULoad")) == ["tocsin", "uptime"]
        assert directory.get(CLIENT, own_id).expires_ns is None
        for attempt in (
            directory.register(CLIENT, own),
            directory.renew(CLIENT, own_id),
            directory.withdraw(CLIENT, own_id),
        ):
            with pytest.raises(BadRegistration, match="own"):
                await attempt
        assert len(node.broker.kept(KEY)) == 1

    run(tmp_path, script)


def test_what_cannot_be_read_again_is_said_and_hurts_nobody(tmp_path: Path) -> None:
    async def first(directory: Directory, node: Node) -> None:
        await directory.register(CLIENT, offer())
        await node.ask(lambda token, now_ns: node.broker.keep(f"{KEY}odd", b"\xff", token, now_ns))

    async def second(directory: Directory, node: Node) -> None:
        assert await names(directory) == ["uptime"]
        await directory.sweep()
        assert len(node.broker.kept(KEY)) == 1

    run(tmp_path, first)
    run(tmp_path, second)

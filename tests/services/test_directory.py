"""The directory as a service: what was answered is on disk, and what lapsed is gone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from manual_runtime import ManualRuntime
from tocsin.access.session import anonymous
from tocsin.errors import BadRegistration, DirectoryFull, NoSuchEntry, TooLarge
from tocsin.event.filter_text import parse_filter
from tocsin.services.directory import directory as directory_module
from tocsin.services.directory.directory import KEY, SWEEP_S, Directory
from tocsin.wire.directory.entry import Offered, Registration
from tocsin.wire.directory.listing import Wanted
from tocsin.wire.gma.names import EventName, read_name

MS = 1_000_000
CLIENT = anonymous("http", "192.0.2.1:1")

Script = Callable[[Directory, ManualRuntime], Awaitable[None]]


def run(*scripts: Script) -> None:
    """Each with the directory of a broker; the next one as after a restart."""
    runtime = ManualRuntime()
    for script in scripts:
        runtime.run(script(Directory(runtime.port), runtime))
        runtime = runtime.restarted()


def offer(name: str = "uptime", *, lease_ms: int = 60_000, **more: Any) -> Registration:
    asked = {"kind": "producer", "name": name, "host": "node7", **more}
    return Registration(**asked, lease_ns=lease_ms * MS)


async def names(directory: Directory, **wanted: Any) -> list[str]:
    found = (await directory.look_up(CLIENT, Wanted(**wanted))).entries
    return sorted(entry.registration.name for entry in found)


def test_a_lapsed_entry_vanishes_at_once_and_from_disk_with_the_next_sweep() -> None:
    async def script(directory: Directory, runtime: ManualRuntime) -> None:
        entry, _ = await directory.register(CLIENT, offer(lease_ms=50))
        await directory.register(CLIENT, offer("stays"))
        await runtime.sleep(0.06)
        assert await names(directory) == ["stays"]
        with pytest.raises(NoSuchEntry):
            directory.get(CLIENT, entry.id)
        with pytest.raises(NoSuchEntry):
            await directory.renew(CLIENT, entry.id)
        assert len(runtime.broker.kept(KEY)) == 2
        await directory.sweep()
        assert len(runtime.broker.kept(KEY)) == 1

    run(script)


def test_the_sweep_comes_by_itself() -> None:
    async def script(directory: Directory, runtime: ManualRuntime) -> None:
        for name in ("a", "b"):  # twice, so that it is not done after the first time
            await directory.register(CLIENT, offer(name, lease_ms=1))
            assert runtime.broker.kept(KEY)
            await runtime.sleep(SWEEP_S + 1)
            assert not runtime.broker.kept(KEY)

    run(script)


def test_a_filter_is_asked_of_everybody_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(directory_module, "LOOKED_AT_MAX", 3)

    async def script(directory: Directory, runtime: ManualRuntime) -> None:
        await runtime.gather(
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

    run(script)


def test_leases_go_on_through_a_restart() -> None:
    async def first(directory: Directory, runtime: ManualRuntime) -> None:
        await directory.register(CLIENT, offer("short", lease_ms=200))
        await directory.register(CLIENT, offer("long"))

    async def second(directory: Directory, runtime: ManualRuntime) -> None:
        await runtime.sleep(0.2)
        assert await names(directory) == ["long"]
        _, is_new = await directory.register(CLIENT, offer("short"))
        assert is_new

    run(first, second)


def test_of_two_at_the_same_moment_the_second_replaces_the_first() -> None:
    async def script(directory: Directory, runtime: ManualRuntime) -> None:
        one, other = await runtime.gather(
            directory.register(CLIENT, offer(address="gma://a:1")),
            directory.register(CLIENT, offer(address="gma://b:1")),
        )
        assert one[0].id == other[0].id
        assert (one[1], other[1]) == (True, False)
        [entry] = (await directory.look_up(CLIENT, Wanted())).entries
        assert entry.registration.address == "gma://b:1"

    async def again(directory: Directory, runtime: ManualRuntime) -> None:
        [entry] = (await directory.look_up(CLIENT, Wanted())).entries
        assert entry.registration.address == "gma://b:1"

    run(script, again)


def test_who_renews_while_being_withdrawn_is_told_that_it_is_gone() -> None:
    async def script(directory: Directory, runtime: ManualRuntime) -> None:
        entry, _ = await directory.register(CLIENT, offer())
        gone, renewed = await runtime.gather(
            directory.withdraw(CLIENT, entry.id),
            directory.renew(CLIENT, entry.id),
        )
        assert gone is None
        assert isinstance(renewed, NoSuchEntry)
        assert await names(directory) == []
        assert runtime.broker.kept(KEY) == {}

    run(script)


def test_a_name_that_is_being_given_up_can_be_taken() -> None:
    async def script(directory: Directory, runtime: ManualRuntime) -> None:
        entry, _ = await directory.register(CLIENT, offer("old"))
        _, taken = await runtime.gather(
            directory.register(CLIENT, offer("new"), entry.id),
            directory.register(CLIENT, offer("old")),
        )
        assert taken[0].id != entry.id
        assert await names(directory) == ["new", "old"]

    run(script)


def test_a_full_directory_takes_renewals_and_replacements_but_nobody_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(directory_module, "ENTRIES_MAX", 2)

    async def script(directory: Directory, runtime: ManualRuntime) -> None:
        entry, _ = await directory.register(CLIENT, offer("a"))
        await directory.register(CLIENT, offer("b", lease_ms=100))
        with pytest.raises(DirectoryFull):
            await directory.register(CLIENT, offer("c"))
        await directory.register(CLIENT, offer("a"))
        await directory.renew(CLIENT, entry.id)
        await runtime.sleep(0.1)
        await directory.register(CLIENT, offer("c"))  # the lapsed one takes no room
        assert await names(directory) == ["a", "c"]

    run(script)


def test_one_entry_and_all_together_have_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "DIRECTORY_BYTES_MAX", 100_000)

    async def script(directory: Directory, runtime: ManualRuntime) -> None:
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

    run(script)


def test_what_the_broker_offers_is_found_like_the_rest_and_is_not_kept() -> None:
    flowing: list[EventName] = []

    async def script(directory: Directory, runtime: ManualRuntime) -> None:
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
        assert len(runtime.broker.kept(KEY)) == 1

    run(script)


def test_what_cannot_be_read_again_is_said_and_hurts_nobody() -> None:
    async def first(directory: Directory, runtime: ManualRuntime) -> None:
        await directory.register(CLIENT, offer())
        await runtime.port.keep(CLIENT, f"{KEY}odd", b"\xff")

    async def second(directory: Directory, runtime: ManualRuntime) -> None:
        assert await names(directory) == ["uptime"]
        await directory.sweep()
        assert len(runtime.broker.kept(KEY)) == 1

    run(first, second)

"""Resources and requests: what was answered is on disk, and what is held is bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manual_runtime import ManualRuntime
from tocsin.access.session import anonymous
from tocsin.errors import DiskFull, NoSuchResource
from tocsin.overlay.discovery.effects import Resource
from tocsin.overlay.time_of_day import NO_ZONES
from tocsin.services.discovery import service as service_module
from tocsin.services.discovery.answer import Hit
from tocsin.services.discovery.factory import open_discovery
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.discovery.top_hits import TopHits, sorted_hits
from tocsin.services.link.identity import ids_of
from tocsin.wire.api.resource_request import OrderBy, read_discovery, read_resource

CLIENT = anonymous("http", "192.0.2.1:1")

Script = Callable[[ResourceDiscovery, ManualRuntime], Awaitable[None]]


def run(*scripts: Script) -> None:
    """Each with the resources of a broker; the next one as after a restart."""
    runtime = ManualRuntime()

    async def main(script: Script) -> None:
        ids = await ids_of(runtime.port)
        await script(open_discovery(runtime.port, ids.broker, NO_ZONES), runtime)

    for script in scripts:
        runtime.run(main(script))
        runtime = runtime.restarted()


async def register(discovery: ResourceDiscovery, name: str, load: int = 1) -> None:
    asked: dict[str, Any] = {
        "id": name,
        "model": "static",
        "advertisement": f"system = Linux and load = {load}",
    }
    await discovery.resources.register(CLIENT, read_resource(asked))


async def find(discovery: ResourceDiscovery, **asked: Any) -> tuple[list[str], str]:
    answer = await discovery.discover(CLIENT, read_discovery({"request": "load > 0", **asked}))
    return [each.resource.id for each in answer.found], answer.summary.incomplete or ""


def test_a_resource_whose_removal_the_disk_had_no_room_for_is_still_there() -> None:
    async def withdraw(discovery: ResourceDiscovery, runtime: ManualRuntime) -> None:
        await register(discovery, "node7")
        runtime.is_disk_full = True
        with pytest.raises(DiskFull):
            await discovery.resources.withdraw(CLIENT, "node7")
        assert discovery.resources.get(CLIENT, "node7").id == "node7"
        assert await find(discovery) == (["node7"], "")
        runtime.is_disk_full = False
        await discovery.resources.withdraw(CLIENT, "node7")
        with pytest.raises(NoSuchResource):
            discovery.resources.get(CLIENT, "node7")
        assert await find(discovery) == ([], "")

    async def restarted(discovery: ResourceDiscovery, runtime: ManualRuntime) -> None:
        assert len(discovery.resources) == 0

    run(withdraw, restarted)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ["node1", "node2", "node3"]),
        ({"first": 5}, ["node1", "node2", "node3", "node4", "node5"]),
        ({"order_by": "load desc"}, ["node20", "node19", "node18"]),
        ({"order_by": "load", "first": 2}, ["node1", "node2"]),
    ],
)
def test_of_what_a_request_finds_no_more_is_held_than_twice_what_is_answered(
    asked: dict[str, Any], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "ANSWER_MAX", 3)
    held: list[int] = []

    class Measured(TopHits):
        def add(self, found: Iterable[Hit]) -> None:
            super().add(found)
            held.append(len(self))

    monkeypatch.setattr(service_module, "TopHits", Measured)

    async def script(discovery: ResourceDiscovery, runtime: ManualRuntime) -> None:
        for load in range(1, 21):
            await register(discovery, f"node{load}", load)
        found, incomplete = await find(discovery, **asked)

        assert found == expected
        assert ("20 match, 3 are shown" in incomplete) == ("first" not in asked)
        assert 0 < max(held) <= 2 * len(expected)

    run(script)


@given(
    loads=st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=40),
    limit=st.integers(1, 8),
    at_once=st.integers(1, 20),
    order=st.sampled_from([None, OrderBy("load", False), OrderBy("load", True)]),
)
def test_the_best_found_are_those_that_ordering_everything_would_give(
    loads: list[int | None], limit: int, at_once: int, order: OrderBy | None
) -> None:
    found = [
        Hit(Resource(f"{number:02}", "b", {} if load is None else {"load": load}, 0, "a"))
        for number, load in enumerate(loads)
    ]
    best = TopHits(limit, order)

    for start in range(0, len(found), at_once):
        best.add(found[start : start + at_once])

    everything = found if order is None else sorted_hits(found, order)
    assert best.shown() == everything[:limit]
    assert best.count == len(found)

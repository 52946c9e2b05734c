"""The catalog on the event loop: writes share commits, searches are in nobody's way, and what is
answered is on disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from catalog_samples import SECOND_NS, uuid_of

from tocsin.drivers.topics import catalog as catalog_module
from tocsin.drivers.topics.catalog import TopicCatalog
from tocsin.errors import (
    AdvertisementEnded,
    BadAdvertisement,
    BadTopicQuery,
    BadXml,
    Busy,
    DiskFailed,
    TopicCatalogFull,
    TopicQueryTooCostly,
)
from tocsin.store.topics.catalog import Catalog, CatalogLimits
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.queries.indexed import IndexedAdvertisement, IndexedWithdrawal
from tocsin.topics.queries.query import Query

EVERYBODY = frozenset({"open"})
BURNING = "sum(for $a in 1 to 1000000, $b in 1 to 1000000 return $a * $b) > 0"


def advertised(number: int = 1, **fields: object) -> IndexedAdvertisement:
    known: dict[str, object] = {
        "uuid": uuid_of(number),
        "version": 1,
        "topic": f"lead/{uuid_of(number)}",
        "creator": "anna",
        "created_ns": 0,
        "expires_ns": 1_000 * SECOND_NS,
        "label": "open",
        "descriptors": Descriptors(text="Doppler radar", xml="<d><band>S</band></d>"),
        "document": b"document %d" % number,
    }
    return IndexedAdvertisement(**known | fields)


def withdrawn(number: int = 1) -> IndexedWithdrawal:
    return IndexedWithdrawal(
        uuid=uuid_of(number),
        version=1,
        creator="anna",
        expires_ns=1_000 * SECOND_NS,
        document=b"withdrawal",
    )


@asynccontextmanager
async def opened(
    directory: Path, limits: CatalogLimits | None = None, now_ns: Callable[[], int] = lambda: 0
) -> AsyncIterator[TopicCatalog]:
    catalog = TopicCatalog.open(directory, limits, now_ns=now_ns)
    try:
        yield catalog
    finally:
        await catalog.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_what_is_advertised_is_found_and_what_is_withdrawn_is_not(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as catalog:
            assert await catalog.put(advertised(1)) is True
            assert await catalog.put(advertised(1)) is False
            await catalog.put(advertised(2))
            for query in (
                Query(language="text", expression="radar"),
                Query(language="xpath", expression="//band = 'S'"),
            ):
                page = await catalog.search(query, EVERYBODY)
                assert [each.uuid for each in page.advertisements] == [uuid_of(1), uuid_of(2)]

            await catalog.put(withdrawn(1))
            page = await catalog.search(Query(), EVERYBODY)
            assert [each.document for each in page.advertisements] == [b"document 2"]
            assert (await catalog.search(Query(), frozenset({"staff"}))).advertisements == ()
            assert await catalog.usage("anna") == await catalog.usage()

    run(test)


def test_each_refusal_says_why(tmp_path: Path) -> None:
    async def test() -> None:
        limits = CatalogLimits(creator_topics_max=2)
        async with opened(tmp_path, limits) as catalog:
            await catalog.put(advertised(1, version=2))
            await catalog.put(withdrawn(2))
            with pytest.raises(AdvertisementEnded, match="older than one"):
                await catalog.put(advertised(1, version=1))
            with pytest.raises(AdvertisementEnded, match="was withdrawn"):
                await catalog.put(advertised(2))
            with pytest.raises(AdvertisementEnded, match="has expired"):
                await catalog.put(advertised(3, expires_ns=0))
            with pytest.raises(BadAdvertisement, match="another creator"):
                await catalog.put(advertised(1, version=3, creator="eve"))
            with pytest.raises(TopicCatalogFull, match="of this creator"):
                await catalog.put(advertised(3))
            with pytest.raises(BadAdvertisement, match="bytes"):
                await catalog.put(advertised(4, creator="bob", document=b"x" * 200_000))
            with pytest.raises(BadXml):
                await catalog.put(advertised(4, creator="bob", descriptors=Descriptors(xml="<a>")))
            with pytest.raises(BadTopicQuery):
                await catalog.search(Query(language="regex", expression="("), EVERYBODY)
            assert await catalog.put(advertised(5, creator="bob"))

    run(test)


def test_one_that_cannot_be_kept_does_no_harm_to_those_of_the_same_commit(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as catalog:
            given = [
                advertised(1),
                advertised(2, descriptors=Descriptors(xml="<a>")),
                advertised(3, document=b"x" * 200_000),
                advertised(4),
            ]
            results = await asyncio.gather(*map(catalog.put, given), return_exceptions=True)

            assert [type(each) for each in results] == [bool, BadXml, BadAdvertisement, bool]
            page = await catalog.search(Query(), EVERYBODY)
            assert [each.uuid for each in page.advertisements] == [uuid_of(1), uuid_of(4)]

    run(test)


def test_those_who_come_while_the_disk_works_share_the_next_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    may_go = threading.Event()
    put = Catalog.put

    def counted(self: Catalog, given: list[object], now_ns: int) -> list[object]:
        sizes.append(len(given))
        may_go.wait()
        return put(self, given, now_ns)  # type: ignore[arg-type,return-value]

    monkeypatch.setattr(Catalog, "put", counted)

    async def test() -> None:
        async with opened(tmp_path) as catalog:
            first = asyncio.create_task(catalog.put(advertised(0)))
            while not sizes:
                await asyncio.sleep(0.001)
            rest = [asyncio.create_task(catalog.put(advertised(n))) for n in range(1, 300)]
            await asyncio.sleep(0)
            may_go.set()
            await asyncio.gather(first, *rest)

    run(test)
    assert sizes == [1, 128, 128, 43]


def test_more_writes_than_may_wait_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_module, "WRITES_WAITING_MAX", 5)

    async def test() -> None:
        async with opened(tmp_path) as catalog:
            results = await asyncio.gather(
                *(catalog.put(advertised(number)) for number in range(8)), return_exceptions=True
            )
            assert [type(each) for each in results] == [bool] * 5 + [Busy] * 3
            assert (await catalog.usage())[0] == 5

    run(test)


def test_more_searches_than_may_wait_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog_module, "SEARCHES_WAITING_MAX", 3)

    async def test() -> None:
        async with opened(tmp_path) as catalog:
            await catalog.put(advertised())
            results = await asyncio.gather(
                *(catalog.search(Query(), EVERYBODY) for _ in range(9)), return_exceptions=True
            )
            assert sum(isinstance(each, Busy) for each in results) == 4
            assert catalog.refused == 4
            assert (await catalog.search(Query(), EVERYBODY)).advertisements

    run(test)


def test_other_searches_go_on_while_queries_burn_all_that_xml_has(tmp_path: Path) -> None:
    pytest.importorskip("saxonche")
    heard: list[tuple[str, str]] = []

    async def test() -> None:
        catalog = TopicCatalog.open(
            tmp_path,
            now_ns=lambda: 0,
            on_stopped=lambda language, why: heard.append((language, why)),
        )
        await catalog.put(advertised())
        burning = [
            asyncio.create_task(
                catalog.search(Query(language="xquery", expression=BURNING), EVERYBODY)
            )
            for _ in range(2)
        ]
        served = 0
        while not any(each.done() for each in burning):
            page = await catalog.search(Query(language="text", expression="radar"), EVERYBODY)
            served += len(page.advertisements)
            await catalog.put(advertised(2 + served))
        results = await asyncio.gather(*burning, return_exceptions=True)

        assert [type(each) for each in results] == [TopicQueryTooCostly] * 2
        assert served > 1
        assert catalog.evaluators.stopped == len(heard) == 2
        query = Query(language="xpath", expression="//band = 'S'")
        assert (await catalog.search(query, EVERYBODY)).advertisements
        await catalog.close()

    run(test)


def test_what_has_expired_is_removed_and_found_no_more(tmp_path: Path) -> None:
    now_ns = 0

    async def test() -> None:
        nonlocal now_ns
        async with opened(tmp_path, now_ns=lambda: now_ns) as catalog:
            many = [
                advertised(number, expires_ns=(number + 1) * SECOND_NS) for number in range(200)
            ]
            await asyncio.gather(*map(catalog.put, many))
            now_ns = 150 * SECOND_NS
            page = await catalog.search(Query(limit=1_000), EVERYBODY)
            assert len(page.advertisements) == 50

            assert await catalog.expire() == 300  # each topic and what is known of it
            assert await catalog.expire() == 0
            assert (await catalog.usage())[0] == 50

    run(test)


def test_what_was_answered_is_there_after_a_start(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as catalog:
            await catalog.put(advertised(1))
            cursor = (await catalog.search(Query(limit=1), EVERYBODY)).next
        async with opened(tmp_path) as catalog:
            page = await catalog.search(Query(), EVERYBODY)
            assert [each.document for each in page.advertisements] == [b"document 1"]
            assert await catalog.documents() == [(1, b"document 1")]
            with pytest.raises(BadTopicQuery, match="restarted"):
                await catalog.search(Query(limit=1, cursor=cursor), EVERYBODY)

    run(test)


def test_a_mistake_of_ours_leaves_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Catalog, given: object, now_ns: int) -> None:
        raise RuntimeError("a mistake")

    async def test() -> None:
        async with opened(tmp_path) as catalog:
            with monkeypatch.context() as patched:
                patched.setattr(Catalog, "put", fails)
                with pytest.raises(RuntimeError, match="a mistake"):
                    await catalog.put(advertised())
            await catalog.put(advertised())

    run(test)


def test_after_a_write_that_the_disk_did_not_confirm_all_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with opened(tmp_path) as catalog:
            with monkeypatch.context() as patched:
                patched.setattr(Catalog, "_insert", lambda *given: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    await catalog.put(advertised())
            with pytest.raises(DiskFailed):
                await catalog.put(advertised())

    run(test)


def test_who_goes_away_does_not_keep_the_others_from_their_answers(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as catalog:
            tasks = [asyncio.create_task(catalog.put(advertised(n))) for n in range(6)]
            await asyncio.sleep(0)
            tasks[2].cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(each) for each in results].count(bool) == 5
            searches = [asyncio.create_task(catalog.search(Query(), EVERYBODY)) for _ in range(6)]
            await asyncio.sleep(0)
            searches[0].cancel()
            await asyncio.gather(*searches, return_exceptions=True)
            assert (await catalog.search(Query(), EVERYBODY)).advertisements

    run(test)


def test_a_query_and_its_answer_travel_as_json() -> None:
    query = Query(language="sql", expression="band = 'S'", valid_at_ns=5, limit=7)

    written = msgspec.json.encode(query)

    assert msgspec.json.decode(written, type=Query) == query
    assert b"cursor" not in written

"""What the catalog keeps: versions, withdrawals, ends, labels and limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from catalog_samples import (
    ask,
    ask_all,
    make_advertisement,
    open_catalog,
    open_searcher,
    scan,
    uuid_of,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tocsin.errors import BadAdvertisement, BadTopicQuery, CorruptLog, DataDirectoryUnusable
from tocsin.store.topics import catalog as catalog_module
from tocsin.store.topics.catalog import Catalog, CatalogLimits
from tocsin.store.topics.rows import rows_of
from tocsin.topics.descriptors import Descriptors
from tocsin.topics.queries.indexed import IndexedAdvertisement, IndexedWithdrawal, Outcome
from tocsin.topics.queries.query import Query

EVERYBODY = ("open", "members", "staff")
HOUR_NS = 3_600 * 10**9


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    opened = open_catalog(tmp_path)
    yield opened
    opened.close()


def advertised(
    number: int = 1, version: int = 1, hours: int = 1, **fields: object
) -> IndexedAdvertisement:
    given = {
        "uuid": uuid_of(number),
        "version": version,
        "topic": f"lead/{uuid_of(number)}",
        "creator": "anna",
        "created_ns": 0,
        "expires_ns": hours * HOUR_NS,
        "label": "open",
        "descriptors": Descriptors(text=f"text of version {version}"),
        "document": b"version %d" % version,
    }
    return IndexedAdvertisement(**given | fields)


def withdrawn(
    number: int = 1, version: int = 1, hours: int = 1, creator: str = "anna"
) -> IndexedWithdrawal:
    return IndexedWithdrawal(
        uuid=uuid_of(number),
        version=version,
        creator=creator,
        expires_ns=hours * HOUR_NS,
        document=b"withdrawal of %d" % version,
    )


def put(
    catalog: Catalog, *given: IndexedAdvertisement | IndexedWithdrawal, now_ns: int = 0
) -> list[Outcome]:
    rows = [each if isinstance(each, IndexedWithdrawal) else rows_of(each) for each in given]
    return catalog.put(rows, now_ns)


def documents(catalog: Catalog, query: Query | None = None, now_ns: int = 0) -> list[bytes]:
    searcher = open_searcher(catalog)
    page = ask(searcher, query or Query(), EVERYBODY, now_ns)
    searcher.close()
    return [each.document for each in page.advertisements]


def test_a_later_version_replaces_the_earlier_one_in_every_index(catalog: Catalog) -> None:
    put(catalog, advertised(version=1))

    assert put(catalog, advertised(version=2)) == [Outcome.STORED]

    assert documents(catalog) == [b"version 2"]
    assert documents(catalog, Query(language="text", expression='"version 2"')) == [b"version 2"]
    assert documents(catalog, Query(language="text", expression='"version 1"')) == []
    assert documents(catalog, Query(language="regex", expression="version 1$")) == []


def test_an_earlier_version_is_refused_after_a_later_one(catalog: Catalog) -> None:
    put(catalog, advertised(version=2))

    assert put(catalog, advertised(version=1)) == [Outcome.OLDER]
    assert documents(catalog) == [b"version 2"]


def test_an_earlier_version_that_lasts_longer_is_refused_also_after_the_later_has_expired(
    catalog: Catalog,
) -> None:
    put(catalog, advertised(version=1, hours=10))
    put(catalog, advertised(version=2, hours=1))
    while catalog.expire(2 * HOUR_NS):
        pass

    assert put(catalog, advertised(version=1, hours=10), now_ns=2 * HOUR_NS) == [Outcome.OLDER]
    assert documents(catalog, now_ns=2 * HOUR_NS) == []


def test_the_same_version_again_changes_nothing(catalog: Catalog) -> None:
    put(catalog, advertised())

    assert put(catalog, advertised()) == [Outcome.REPEATED]
    assert put(catalog, advertised(document=b"another")) == [Outcome.REPEATED]
    assert documents(catalog) == [b"version 1"]


def test_a_withdrawn_topic_is_not_found_and_does_not_come_back(catalog: Catalog) -> None:
    put(catalog, advertised(version=2))

    assert put(catalog, withdrawn(version=2)) == [Outcome.STORED]

    assert documents(catalog) == []
    assert put(catalog, advertised(version=1)) == [Outcome.WITHDRAWN]
    assert put(catalog, advertised(version=2)) == [Outcome.WITHDRAWN]
    assert put(catalog, withdrawn(version=2)) == [Outcome.REPEATED]
    assert put(catalog, advertised(version=3)) == [Outcome.STORED]
    assert documents(catalog) == [b"version 3"]


def test_a_withdrawal_that_comes_before_its_advertisement_counts(catalog: Catalog) -> None:
    put(catalog, withdrawn(version=1))

    assert put(catalog, advertised(version=1)) == [Outcome.WITHDRAWN]


def test_a_withdrawal_of_an_earlier_version_does_not_take_back_the_later_one(
    catalog: Catalog,
) -> None:
    put(catalog, advertised(version=2))

    assert put(catalog, withdrawn(version=1)) == [Outcome.OLDER]
    assert documents(catalog) == [b"version 2"]


def test_a_withdrawal_is_forgotten_when_the_advertisement_would_have_ended(
    catalog: Catalog,
) -> None:
    put(catalog, advertised(hours=2), withdrawn(hours=1))
    while catalog.expire(HOUR_NS):
        pass
    assert catalog.usage()[0] == 1

    while catalog.expire(2 * HOUR_NS):
        pass
    assert catalog.usage() == (0, 0)


def test_nobody_replaces_or_withdraws_the_topic_of_another(catalog: Catalog) -> None:
    put(catalog, advertised())

    assert put(catalog, advertised(version=9, creator="eve")) == [Outcome.FOREIGN]
    assert put(catalog, withdrawn(version=9, creator="eve")) == [Outcome.FOREIGN]
    assert documents(catalog) == [b"version 1"]


def test_what_has_expired_is_not_stored(catalog: Catalog) -> None:
    assert put(catalog, advertised(hours=1), now_ns=HOUR_NS) == [Outcome.EXPIRED]
    assert put(catalog, withdrawn(hours=1), now_ns=HOUR_NS) == [Outcome.EXPIRED]
    assert catalog.usage() == (0, 0)


def test_when_all_has_expired_no_row_of_any_table_is_left(catalog: Catalog) -> None:
    random = Random(7)
    many = [make_advertisement(random, number) for number in range(200)]
    put(catalog, *many)
    put(catalog, *(advertised(1_000 + n) for n in range(5)), *(withdrawn(n) for n in range(5)))
    last_ns = max(each.expires_ns for each in many) + HOUR_NS

    while catalog.expire(last_ns):
        pass

    for table in ("heads", "usage", "adverts", "documents", "forms", "properties", "xml_values"):
        ((count,),) = catalog.connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        assert count == 0, table
    for table in ("words", "grams"):
        catalog.connection.execute(f"INSERT INTO {table}({table}) VALUES ('optimize')")
        query = f"SELECT count(*) FROM {table}_docsize"
        assert catalog.connection.execute(query).fetchall() == [(0,)], table


def test_another_label_moves_an_advertisement_to_those_who_may_see_it(catalog: Catalog) -> None:
    put(catalog, advertised(label="open"))

    assert put(catalog, advertised(label="staff")) == [Outcome.REPEATED]

    searcher = open_searcher(catalog)
    text = Query(language="text", expression="version")
    for query in (Query(), text, Query(language="regex", expression="version")):
        assert ask_all(searcher, query, {"open"}, 0) == []
        assert ask_all(searcher, query, {"staff"}, 0) == [uuid_of(1)]
    searcher.close()


def test_limits_are_for_each_creator_and_for_all(tmp_path: Path) -> None:
    limits = CatalogLimits(topics_max=4, creator_topics_max=2)
    catalog = Catalog.open(tmp_path, limits, synchronous="OFF")

    outcomes = put(catalog, *(advertised(number) for number in range(3)))
    assert outcomes == [Outcome.STORED, Outcome.STORED, Outcome.CREATOR_FULL]

    others = [advertised(number, creator="bob") for number in range(5, 7)]
    assert put(catalog, *others) == [Outcome.STORED] * 2
    assert put(catalog, advertised(9, creator="carl")) == [Outcome.FULL]
    assert put(catalog, advertised(0, version=2)) == [Outcome.STORED]  # no topic more
    assert put(catalog, withdrawn(0, version=2)) == [Outcome.STORED]
    assert catalog.usage("anna")[0] == 2  # that it is withdrawn has to be known
    assert catalog.usage()[0] == 4
    catalog.close()


def test_bytes_are_limited_too_and_a_withdrawal_makes_room(tmp_path: Path) -> None:
    large = b"x" * 10_000
    limits = CatalogLimits(creator_bytes_max=25_000)
    catalog = Catalog.open(tmp_path, limits, synchronous="OFF")
    put(catalog, advertised(1, document=large), advertised(2, document=large))

    assert put(catalog, advertised(3, document=large)) == [Outcome.CREATOR_FULL]
    assert put(catalog, withdrawn(1)) == [Outcome.STORED]
    assert put(catalog, advertised(3, document=large)) == [Outcome.STORED]
    catalog.close()


def test_withdrawals_of_topics_that_nobody_knows_are_limited_like_topics(tmp_path: Path) -> None:
    catalog = Catalog.open(tmp_path, CatalogLimits(creator_topics_max=3), synchronous="OFF")

    outcomes = put(catalog, *(withdrawn(number) for number in range(5)))

    assert outcomes == [Outcome.STORED] * 3 + [Outcome.CREATOR_FULL] * 2
    catalog.close()


def test_labels_are_limited(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_module, "LABELS_MAX", 2)

    outcomes = put(catalog, *(advertised(n, label=f"label {n}") for n in range(4)))

    assert outcomes == [Outcome.STORED, Outcome.STORED, Outcome.FULL, Outcome.FULL]


def test_a_document_that_is_too_large_is_refused_before_anything_is_written() -> None:
    with pytest.raises(BadAdvertisement, match="has 100000 bytes"):
        rows_of(advertised(document=b"x" * 100_000))


def test_an_encrypted_advertisement_is_found_by_its_uuid_and_its_creator_alone(
    catalog: Catalog,
) -> None:
    secret = advertised(topic="", descriptors=Descriptors(), document=b"secret", is_encrypted=True)
    put(catalog, secret, advertised(2, creator="bob"))

    by_uuid = Query(language="uuid", expression=uuid_of(1))
    assert documents(catalog, by_uuid) == documents(catalog, Query(creator="anna")) == [b"secret"]
    for query in (
        Query(),
        Query(created_until_ns=5),
        Query(language="prefix", expression="l"),
        Query(language="regex", expression=".*"),
        Query(language="sql", expression="a IS NULL"),
    ):
        assert documents(catalog, query) == [b"version 1"]


def test_a_place_in_the_pages_is_kept_when_advertisements_change_meanwhile(
    catalog: Catalog,
) -> None:
    put(catalog, *(advertised(number) for number in range(6)))
    searcher = open_searcher(catalog)
    first = ask(searcher, Query(limit=3), EVERYBODY, 0)

    put(catalog, advertised(0, version=2), advertised(5, version=2), withdrawn(4), advertised(7))
    second = ask(searcher, Query(limit=9, cursor=first.next), EVERYBODY, 0)

    assert [each.uuid for each in first.advertisements] == [uuid_of(n) for n in (0, 1, 2)]
    assert [each.uuid for each in second.advertisements] == [uuid_of(n) for n in (3, 5, 7)]
    searcher.close()


def test_a_catalog_is_as_it_was_when_it_is_opened_again(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path, [advertised(1), advertised(2)])
    catalog.close()

    again = Catalog.open(tmp_path)

    assert documents(again) == [b"version 1", b"version 1"]
    assert put(again, advertised(1)) == [Outcome.REPEATED]
    again.close()


def test_a_damaged_document_is_not_served_and_the_others_are(catalog: Catalog) -> None:
    put(catalog, advertised(1), advertised(2))
    catalog.connection.execute(
        "UPDATE documents SET document = CAST('versi0n 1' AS BLOB) WHERE id = 1"
    )

    searcher = open_searcher(catalog)
    assert ask_all(searcher, Query(), EVERYBODY, 0) == [uuid_of(2)]
    assert searcher.damaged == 1
    searcher.close()


def test_a_damaged_label_does_not_show_what_is_hidden(catalog: Catalog) -> None:
    put(catalog, advertised(1), advertised(2, label="staff"))
    change = "UPDATE adverts SET label = (SELECT no FROM labels WHERE name = 'open')"
    catalog.connection.execute(change)

    searcher = open_searcher(catalog)
    assert ask_all(searcher, Query(), {"open"}, 0) == [uuid_of(1)]
    assert searcher.damaged == 1
    searcher.close()


def test_a_damaged_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    open_catalog(tmp_path, [advertised(number) for number in range(50)]).close()
    path = tmp_path / "topics.sqlite"
    content = bytearray(path.read_bytes())
    content[8192:] = bytes(len(content) - 8192)
    path.write_bytes(content)

    catalog = open_catalog(tmp_path)
    searcher = open_searcher(catalog)
    with pytest.raises(CorruptLog, match=r"topics\.sqlite"):
        ask_all(searcher, Query(), EVERYBODY, 0)
    searcher.close()


def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "topics.sqlite"
    path.write_bytes(b"a letter" * 1_000)

    with pytest.raises(CorruptLog):
        Catalog.open(tmp_path)

    assert path.read_bytes() == b"a letter" * 1_000


def test_a_catalog_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.connection.execute("PRAGMA user_version=99")
    catalog.close()

    with pytest.raises(DataDirectoryUnusable, match="not a catalog"):
        Catalog.open(tmp_path)


def test_a_cursor_is_good_for_its_own_query_alone(catalog: Catalog) -> None:
    put(catalog, *(advertised(number) for number in range(4)))
    searcher = open_searcher(catalog)
    text = Query(language="text", expression="version", limit=2)
    cursor = ask(searcher, text, {"open"}, 0).next

    for query, labels in (
        (Query(limit=2, cursor=cursor), {"open"}),
        (msgspec.structs.replace(text, expression="text", cursor=cursor), {"open"}),
        (msgspec.structs.replace(text, cursor=cursor), {"open", "staff"}),
        (msgspec.structs.replace(text, cursor=cursor[:-4] + "AAAA"), {"open"}),
        (msgspec.structs.replace(text, cursor="!"), {"open"}),
    ):
        with pytest.raises(BadTopicQuery, match="cursor"):
            ask(searcher, query, labels, 0)
    searcher.close()


class Contents(RuleBasedStateMachine):
    """Anything in any order: what is found is what a table of all that happened says."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0
        self.versions: dict[str, tuple[int, int, IndexedAdvertisement | None, bool]] = {}
        """Version, end of all that came, advertisement, and whether it was withdrawn."""

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        from tempfile import TemporaryDirectory

        self.directory = TemporaryDirectory()
        self.catalog = open_catalog(Path(self.directory.name))
        self.searcher = open_searcher(self.catalog)

    @rule(
        seed=st.integers(0, 2),
        number=st.integers(0, 5),
        version=st.integers(1, 4),
        label=st.sampled_from(EVERYBODY),
    )
    def advertise(self, seed: int, number: int, version: int, label: str) -> None:
        made = make_advertisement(Random(f"{seed} {number}"), number)
        given = msgspec.structs.replace(
            made,
            version=version,
            creator="anna",
            label=label,
            document=b"version %d, drawn from %d" % (version, seed),
        )
        known = self.versions.get(given.uuid)
        (outcome,) = put(self.catalog, given, now_ns=self.now_ns)

        is_new = given.expires_ns > self.now_ns and (known is None or version > known[0])
        assert (outcome is Outcome.STORED) == is_new
        if is_new:
            until_ns = max(given.expires_ns, known[1] if known else 0)
            self.versions[given.uuid] = (version, until_ns, given, False)
        elif outcome is Outcome.REPEATED:
            assert known is not None
            before = known[2]
            if before is not None and before.document == given.document:
                self.versions[given.uuid] = (*known[:2], given, known[3])

    @rule(number=st.integers(0, 5), version=st.integers(1, 4), hours=st.integers(0, 3))
    def withdraw(self, number: int, version: int, hours: int) -> None:
        given = withdrawn(number, version, hours)
        known = self.versions.get(given.uuid)
        (outcome,) = put(self.catalog, given, now_ns=self.now_ns)

        is_new = given.expires_ns > self.now_ns and (
            known is None or version > known[0] or (version == known[0] and not known[3])
        )
        assert (outcome is Outcome.STORED) == is_new
        if is_new:
            until_ns = max(given.expires_ns, known[1] if known else 0)
            self.versions[given.uuid] = (version, until_ns, None, True)

    @rule(seconds=st.integers(1, 2_000), removes=st.booleans())
    def pass_time(self, seconds: int, removes: bool) -> None:
        self.now_ns += seconds * 10**9
        if removes:
            while self.catalog.expire(self.now_ns):
                pass
            for uuid, (version, until_ns, given, is_withdrawn) in [*self.versions.items()]:
                if given is not None and given.expires_ns <= self.now_ns:
                    self.versions[uuid] = (version, until_ns, None, is_withdrawn)
                if until_ns <= self.now_ns:
                    del self.versions[uuid]
            assert self.catalog.usage()[0] == len(self.versions)

    @invariant()
    def what_is_valid_is_found(self) -> None:
        if not hasattr(self, "searcher"):
            return
        valid = [each[2] for each in self.versions.values() if each[2] is not None]
        for query in (
            Query(),
            Query(language="text", expression="radar"),
            Query(language="regex", expression="radar"),
            Query(language="sql", expression="band = 'S'"),
            Query(language="xpath", expression="//band"),
        ):
            for labels in (EVERYBODY, ["open"]):
                found = ask_all(self.searcher, query, labels, self.now_ns)
                assert sorted(found) == scan(valid, query, labels, self.now_ns)

    def teardown(self) -> None:
        if hasattr(self, "searcher"):
            self.searcher.close()
            self.catalog.close()
            self.directory.cleanup()


TestContents = Contents.TestCase
TestContents.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)

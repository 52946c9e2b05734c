"""The power goes, the disk fails, the process is killed: what the catalog has answered is there,
and all its indexes say the same."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import pytest
from catalog_samples import (
    CURSOR_KEY,
    NOW_NS,
    ask,
    ask_all,
    evaluate_xpath,
    make_advertisement,
    open_catalog,
    open_searcher,
    scan,
    uuid_of,
)

import tocsin
from tocsin.errors import CorruptLog, DataDirectoryUnusable, DiskFailed, DiskFull
from tocsin.store.topics import catalog as catalog_module
from tocsin.store.topics.catalog import Catalog
from tocsin.store.topics.query_connection import QueryConnection
from tocsin.store.topics.rows import rows_of
from tocsin.store.topics.search import Searcher
from tocsin.store.vfs import PowerCut, SimDisk
from tocsin.topics.queries.indexed import IndexedAdvertisement, IndexedWithdrawal, Outcome
from tocsin.topics.queries.query import Query

NAMES = (f"catalog-{number}" for number in itertools.count())
EVERYBODY = ("open", "members", "staff")
QUERIES = (
    Query(limit=1_000),
    Query(language="text", expression="radar"),
    Query(language="regex", expression="radar"),
    Query(language="sql", expression="band = 'S' OR power > 1"),
    Query(language="xpath", expression="//band"),
)

Given = IndexedAdvertisement | IndexedWithdrawal
Contents = dict[str, IndexedAdvertisement]
Answers = list[list[str]]  # of each of the queries


def make_script() -> list[list[Given]]:
    """Commits of advertisements, later versions and withdrawals."""
    random = Random(11)
    script: list[list[Given]] = []
    for number in range(14):
        given: list[Given] = []
        for _ in range(random.choice((1, 1, 2, 5))):
            topic = random.randrange(12)
            if random.random() < 0.2:
                given.append(
                    IndexedWithdrawal(
                        uuid=uuid_of(topic),
                        version=number + 1,
                        creator="anna",
                        expires_ns=NOW_NS * 9,
                        document=b"withdrawal",
                    )
                )
            else:
                made = make_advertisement(random, topic)
                fields = {name: getattr(made, name) for name in made.__struct_fields__}
                changed = {
                    "version": number + 1,
                    "creator": "anna",
                    "expires_ns": NOW_NS * 9,
                    "document": b"document %d of commit %d" % (len(given), number),
                }
                given.append(IndexedAdvertisement(**fields | changed))
        script.append(given)
    return script


SCRIPT = make_script()


def put(catalog: Catalog, given: list[Given]) -> list[Outcome]:
    rows = [each if isinstance(each, IndexedWithdrawal) else rows_of(each) for each in given]
    return catalog.put(rows, NOW_NS)


def after(contents: Contents, given: list[Given], outcomes: list[Outcome]) -> Contents:
    new = dict(contents)
    for each, outcome in zip(given, outcomes, strict=True):
        if outcome is not Outcome.STORED:
            continue
        if isinstance(each, IndexedWithdrawal):
            new.pop(each.uuid, None)
        else:
            new[each.uuid] = each
    return new


@cache
def expected() -> list[Answers]:
    """What the queries find after each commit, without any crash."""
    disk = SimDisk(next(NAMES))
    catalog = Catalog.open("data", vfs=disk.name)
    states: list[Contents] = [{}]
    for given in SCRIPT:
        states.append(after(states[-1], given, put(catalog, given)))
    catalog.close()
    disk.unregister()
    return [[scan(state.values(), query, EVERYBODY) for query in QUERIES] for state in states]


def run_script(disk: SimDisk, synchronous: str = "FULL") -> tuple[int, bool]:
    """How many commits were answered before the power went, and whether it did not."""
    answered = 0
    try:
        catalog = Catalog.open("data", vfs=disk.name, synchronous=synchronous)
        for number, given in enumerate(SCRIPT):
            if number == 7:
                catalog.close()
                catalog = Catalog.open("data", vfs=disk.name, synchronous=synchronous)
            put(catalog, given)
            answered += 1
        catalog.close()
    except PowerCut:
        return answered, False
    return answered, True


def check(catalog: Catalog, states: list[Answers], answered: int) -> bool:
    """Whether it has what was answered, or one commit more, the same in every index."""
    searcher = Searcher(
        QueryConnection(catalog.connection, lambda: 0, is_shared=True),
        catalog.path,
        cursor_key=CURSOR_KEY,
        stopwatch_ns=lambda: 0,
        evaluate=evaluate_xpath,
    )
    found = [sorted(ask_all(searcher, query, EVERYBODY)) for query in QUERIES]
    of_any = [state == found for state in states]
    assert any(of_any), "the indexes are not all of one commit"
    for table in ("words", "grams"):
        catalog.connection.execute(f"INSERT INTO {table}({table}) VALUES ('integrity-check')")
    assert catalog.connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    return any(of_any[answered : answered + 2])


def cut_everywhere(seed: int | None, synchronous: str = "FULL", step: int = 1) -> tuple[int, int]:
    """Cut at every operation. Returns how many cuts there were and how many lost something."""
    states = expected()
    losses = 0
    for cut_at in itertools.count(1, step):
        disk = SimDisk(next(NAMES))
        disk.cut_at = cut_at
        answered, finished = run_script(disk, synchronous)
        if finished:
            disk.unregister()
            return cut_at, losses
        disk.crash(None if seed is None else Random(seed * 100_000 + cut_at))
        catalog = Catalog.open("data", vfs=disk.name)
        losses += not check(catalog, states, answered)
        later = make_advertisement(Random(1), 99)
        assert put(catalog, [later]) == [
            Outcome.STORED if later.expires_ns > NOW_NS else Outcome.EXPIRED
        ]
        catalog.close()
        disk.unregister()
    raise AssertionError("a script ends")


@pytest.fixture(autouse=True)
def _checkpoint_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_module, "CHECKPOINT_PAGES", 20)


@pytest.mark.parametrize("seed", [None, 1])
def test_a_power_cut_anywhere_loses_nothing_that_was_answered(seed: int | None) -> None:
    cuts, losses = cut_everywhere(seed, step=7)

    assert cuts > 300
    assert losses == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_a_power_cut_anywhere_loses_nothing_for_many_seeds(seed: int) -> None:
    assert cut_everywhere(seed)[1] == 0


def test_with_less_than_full_syncing_the_same_cuts_do_lose() -> None:
    assert cut_everywhere(1, "NORMAL", step=7)[1] > 0


def test_a_full_disk_refuses_and_goes_on_when_there_is_room() -> None:
    disk = SimDisk(next(NAMES))
    catalog = Catalog.open("data", vfs=disk.name)
    put(catalog, SCRIPT[0])
    disk.bytes_max = disk.size_bytes()

    many: list[Given] = [make_advertisement(Random(n), 100 + n) for n in range(40)]
    with pytest.raises(DiskFull):
        put(catalog, many)
    disk.bytes_max = None

    assert check(catalog, expected(), 1)
    assert Outcome.STORED in put(catalog, many)
    catalog.close()
    disk.unregister()


def test_a_sync_that_fails_is_not_tried_again() -> None:
    disk = SimDisk(next(NAMES))
    catalog = Catalog.open("data", vfs=disk.name)
    put(catalog, SCRIPT[0])

    disk.sync_fails = True
    with pytest.raises(DiskFailed):
        put(catalog, SCRIPT[1])
    disk.sync_fails = False
    with pytest.raises(DiskFailed):
        put(catalog, SCRIPT[1])

    disk.crash(None)
    again = Catalog.open("data", vfs=disk.name)
    assert check(again, expected(), 1)
    again.close()
    disk.unregister()


def test_a_bit_that_turns_on_the_disk_never_changes_what_is_served(tmp_path: Path) -> None:
    """It is found, or the error says that the file is damaged, or it was in a place of no use."""
    many = [make_advertisement(Random(n), n) for n in range(30)]
    catalog = open_catalog(tmp_path, many)
    catalog.close()
    path = tmp_path / "topics.sqlite"
    content = path.read_bytes()
    given = {each.uuid: each.document for each in many}
    random = Random(3)
    served = 0
    for _ in range(150):
        flipped = bytearray(content)
        flipped[random.randrange(len(content))] ^= 1 << random.randrange(8)
        path.write_bytes(flipped)
        with suppress(CorruptLog, DataDirectoryUnusable):
            served += serve_all(tmp_path, given)
    assert served > 0


def serve_all(directory: Path, given: dict[str, bytes]) -> int:
    """How many are served, all of them as they were given."""
    catalog = Catalog.open(directory, synchronous="OFF")
    searcher = open_searcher(catalog)
    try:
        page = ask(searcher, QUERIES[0], EVERYBODY)
        for each in page.advertisements:
            assert given.get(each.uuid) == each.document
        return len(page.advertisements)
    finally:
        searcher.close()
        catalog.close()


WRITER = """
import sys
from random import Random
from catalog_samples import make_advertisement
from tocsin.store.topics.catalog import Catalog
from tocsin.store.topics.rows import rows_of

catalog = Catalog.open(sys.argv[1])
number = catalog.usage()[0]
while True:
    count = Random(number).randrange(1, 20)
    many = [make_advertisement(Random(n), n) for n in range(number, number + count)]
    catalog.put([rows_of(each) for each in many], 0)
    number += count
    print(number, flush=True)
"""


def test_what_was_answered_before_a_kill_is_there(tmp_path: Path) -> None:
    random = Random(5)
    here, ours = Path(__file__).parent, Path(tocsin.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(here), str(ours)))}
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(random.randrange(1, 12))]
        os.kill(writer.pid, signal.SIGKILL)
        lines += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        answered = int([line for line in lines if line.endswith("\n")][-1])

        catalog = Catalog.open(tmp_path)
        known = catalog.usage()[0]
        searcher = open_searcher(catalog)
        many = [make_advertisement(Random(n), n) for n in range(known)]
        assert known >= answered
        for query in QUERIES:
            assert sorted(ask_all(searcher, query, EVERYBODY)) == scan(many, query, EVERYBODY)
        searcher.close()
        catalog.close()

"""The power goes at every operation of a script, and nothing acknowledged is lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest
from store_samples import make_events

from tocsin.event.stored import Batch, Stored
from tocsin.store import store as store_module
from tocsin.store.store import Store
from tocsin.store.vfs import PowerCut, SimDisk

REOPEN = "reopen"
NAMES = (f"power-{number}" for number in itertools.count())


@dataclass
class Content:
    """What a log should hold."""

    events: list[Stored] = field(default_factory=list)
    subscriptions: dict[str, bytes] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)
    dead: dict[str, bytes] = field(default_factory=dict)
    kept: dict[str, bytes] = field(default_factory=dict)
    last_seq: int = 0

    def after(self, batch: Batch) -> Content:
        new = Content(
            [event for event in self.events + batch.events if event.seq > batch.trim_to],
            dict(self.subscriptions),
            self.cursors | batch.cursors,
            dict(self.dead),
            dict(self.kept),
            self.last_seq + len(batch.events),
        )
        for name, definition in batch.subscriptions.items():
            put(new.subscriptions, name, definition)
            if definition is None:
                new.cursors.pop(name, None)
        for name, record in batch.dead.items():
            put(new.dead, name, record)
        for name, value in batch.service_state.items():
            put(new.kept, name, value)
        return new


def put(table: dict[str, bytes], name: str, content: bytes | None) -> None:
    if content is None:
        table.pop(name, None)
    else:
        table[name] = content


def make_script() -> Iterator[Batch | str]:
    """Twenty-six batches of every kind, with two restarts among them."""
    random = Random(7)
    last = 0
    for number in range(26):
        count = random.choice([0, 1, 1, 2, 5, 17])
        batch = Batch(make_events(last + 1, count, data_bytes=random.choice([10, 300, 5000])))
        last += count
        if number % 3 == 0:
            batch.cursors = {f"s{number % 4}": last, "s9": number}
        if number % 4 == 1:
            batch.subscriptions = {f"s{number % 8}": b"definition %d" % number}
        if number % 8 == 7:
            batch.subscriptions = {f"s{number % 4}": None}
        if number % 5 == 2:
            batch.dead = {f"d{number}": b"why" * number, f"d{number - 5}": None}
        if number % 4 == 2:
            batch.service_state = {f"k{number}": b"value" * 40 * number, f"k{number - 4}": None}
        if number % 6 == 5:
            batch.trim_to = last - 12
        yield batch
        if number in (9, 18):
            yield REOPEN


SCRIPT = list(make_script())


@dataclass
class Run:
    """How far a run of the script came before the power went."""

    acknowledged: Content
    in_doubt: Content
    """With the batch that was being written; the same as acknowledged if there was none."""
    finished: bool


def run_script(disk: SimDisk, synchronous: str) -> Run:
    content = in_doubt = Content()
    try:
        store = Store.open("data", vfs=disk.name, synchronous=synchronous)
        for step in SCRIPT:
            if isinstance(step, Batch):
                in_doubt = content.after(step)
                store.write(step)
                content = in_doubt
            else:
                store.close()
                store = Store.open("data", vfs=disk.name, synchronous=synchronous)
        store.close()
    except PowerCut:
        return Run(content, in_doubt, finished=False)
    return Run(content, content, finished=True)


def read_content(store: Store) -> Content:
    reader = store.reader()
    page = reader.read(0, 1000)
    assert page.corrupt == []
    return Content(
        page.events,
        reader.subscriptions(),
        reader.cursors(),
        reader.dead_letters(limit=1000).letters,
        reader.service_state(),
        store.last_seq,
    )


def what_survived(disk: SimDisk, synchronous: str) -> Content:
    """Start again, look, write one more batch, and look again."""
    store = Store.open("data", vfs=disk.name, synchronous=synchronous)
    survived = read_content(store)
    report = store.reader().check()
    assert report.ok, report

    more = Batch(make_events(store.last_seq + 1, 2), cursors={"more": 1})
    store.write(more)
    assert read_content(store) == survived.after(more)
    store.close()
    return survived


def cut_everywhere(synchronous: str, seed: int | None) -> tuple[int, int]:
    """Cut at every operation. Returns how many cuts there were and how many lost something."""
    losses = 0
    for cut_at in itertools.count(1):
        disk = SimDisk(next(NAMES))
        disk.cut_at = cut_at
        run = run_script(disk, synchronous)
        if run.finished:
            disk.unregister()
            return cut_at - 1, losses
        disk.crash(None if seed is None else Random(seed * 100_000 + cut_at))
        losses += what_survived(disk, synchronous) not in (run.acknowledged, run.in_doubt)
        disk.unregister()
    raise AssertionError("a script ends")


@pytest.fixture(autouse=True)
def _checkpoint_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "CHECKPOINT_PAGES", 12)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_power_cut_anywhere_loses_nothing_acknowledged(seed: int | None) -> None:
    cuts, losses = cut_everywhere("FULL", seed)

    assert cuts > 300
    assert losses == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 30))
def test_a_power_cut_anywhere_loses_nothing_acknowledged_for_many_seeds(seed: int) -> None:
    assert cut_everywhere("FULL", seed)[1] == 0


def test_with_less_than_full_syncing_the_same_cuts_do_lose() -> None:
    assert cut_everywhere("NORMAL", seed=1)[1] > 0


def test_a_second_cut_while_recovering_loses_nothing() -> None:
    for first_cut in range(40, 700, 23):
        for second_cut in range(1, 25, 3):
            disk = SimDisk(next(NAMES))
            disk.cut_at = first_cut
            run = run_script(disk, "FULL")
            random = Random(first_cut * 1000 + second_cut)
            disk.crash(random)
            disk.cut_at = disk.operations + second_cut
            try:
                Store.open("data", vfs=disk.name).close()
            except PowerCut:
                disk.crash(random)
            disk.cut_at = None
            assert what_survived(disk, "FULL") in (run.acknowledged, run.in_doubt)
            disk.unregister()

"""What is in a log, and in a batch for it, for those who watch a broker."""

from __future__ import annotations

from tocsin.broker.delivery.deadletter import DeadLetter, from_record
from tocsin.event.stored import Batch
from tocsin.store.reader import Reader

DEAD_LETTERS_MAX = 10_000


def dead_letters(reader: Reader) -> list[DeadLetter]:
    letters = reader.dead_letters(limit=DEAD_LETTERS_MAX).letters
    return [from_record(data) for data in letters.values()]


def summary(batch: Batch) -> str:
    events = [stored.seq for stored in batch.events]
    return (
        f"{events} cursors {batch.cursors} subscriptions {list(batch.subscriptions)} "
        f"dead {list(batch.dead)} kept {list(batch.kept)} trim {batch.trim_to}"
    )

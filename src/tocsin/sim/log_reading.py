"""What is in a log, and in a commit to it, for those who watch a broker."""

from __future__ import annotations

from tocsin.broker.delivery.deadletter import DeadLetter, from_record
from tocsin.broker.effects import Commit
from tocsin.broker.log import StoreReader

DEAD_LETTERS_MAX = 10_000


def dead_letters(reader: StoreReader) -> list[DeadLetter]:
    letters = reader.dead_letters(limit=DEAD_LETTERS_MAX).letters
    return [from_record(data) for data in letters.values()]


def summary(commit: Commit) -> str:
    offers = [[f"{event.source} {event.id}" for event in each] for each in commit.append.offers]
    change = commit.change
    return (
        f"{offers} cursors {change.cursors} starts {change.starts} "
        f"subscriptions {list(change.subscriptions)} dead {list(change.dead)} "
        f"service state {list(change.service_state)} trim {change.trim_to}"
    )

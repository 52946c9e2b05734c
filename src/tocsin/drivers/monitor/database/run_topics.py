"""The topics of a run's events: who may read all events on each of them may read the run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import apsw

TOPICS_MAX: Final = 100  # of one run
NO_TOPIC: Final = "*"  # no event can be on it; it stands for more topics than are kept

_PUT: Final = (
    "INSERT OR IGNORE INTO run_topics VALUES (?1, iif((SELECT count(*) FROM run_topics "
    "WHERE run = ?1) < ?3 OR EXISTS (SELECT 1 FROM run_topics WHERE run = ?1 AND topic = ?2), ?2, "
    f"'{NO_TOPIC}'))"
)


def put_topics(connection: apsw.Connection, run_no: int, topics: Iterable[str]) -> None:
    """Some of its events are on these, too. Within a transaction."""
    connection.executemany(_PUT, [(run_no, topic, TOPICS_MAX) for topic in topics])

"""The monitor's tables, and somebody who asks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.queries import open_queries
from tocsin.monitor.fold import RunMessage
from tocsin.ontology import built_in

OPTIONS = MonitorOptions()


class Kept:
    """A store, and somebody who asks."""

    def __init__(self, directory: Path, options: MonitorOptions = OPTIONS) -> None:
        self.store = RunWriter(directory, options, built_in())
        self.asked = open_queries(directory, options)

    def fold(self, messages: Sequence[RunMessage], *, batch: int = 1_000) -> None:
        for start in range(0, len(messages), batch):
            some = messages[start : start + batch]
            self.store.write(some, max(each.seq for each in some))

    def close(self) -> None:
        self.asked.close()
        self.store.close()

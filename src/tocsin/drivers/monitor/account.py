"""Account: those who work on one set of tables, opened and closed together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from tocsin.drivers.monitor.alarms import Alarms
from tocsin.drivers.monitor.house import House
from tocsin.drivers.monitor.learned import Tables
from tocsin.drivers.monitor.lookout import Lookout
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.service import Service
from tocsin.drivers.monitor.store import MonitorStore
from tocsin.drivers.monitor.watch import Watch
from tocsin.ontology import Vocabulary


@dataclass(frozen=True, slots=True)
class Account:
    """Who writes, who answers, who looks out, and who follows the log for them."""

    store: MonitorStore
    past: Watch
    lookout: Lookout
    service: Service

    def close(self) -> None:
        """Wait for the last batch, and let go of the disk. Not on the loop."""
        self.service.join()
        for part in (self.past, self.store):
            with suppress(apsw.Error):  # a damaged database may not even be closed in peace
                part.close()


def open_account(
    node: House,
    directory: Path,
    options: MonitorOptions,
    vocabulary: Vocabulary,
    on_damage: Callable[[Exception], None],
) -> Account:
    """Everything but the start; whatever SQLite says against it is raised."""
    store = MonitorStore(directory, options, vocabulary)
    try:
        past = Watch(directory, options, _tables(node, options))
    except BaseException:
        store.close()
        raise
    lookout = Lookout(node, store, Alarms(past), vocabulary)
    asks = vocabulary.expanded(options.concepts)
    service = Service(node, store, vocabulary, asks, lookout, on_damage)
    return Account(store, past, lookout, service)


def _tables(node: House, options: MonitorOptions) -> Tables | None:
    if options.tables is None:
        return None
    return Tables(
        options.tables, lambda: node.broker.head, node.note, is_named=options.tables_named
    )

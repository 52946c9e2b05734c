"""Recorder: what works on one database of runs, opened and closed together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from tocsin.access.session import internal
from tocsin.broker.port import BrokerPort
from tocsin.drivers.monitor.database.writer import RunWriter
from tocsin.drivers.monitor.follower import LogFollower
from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.queries import Queries, open_queries
from tocsin.drivers.monitor.tables import Tables
from tocsin.monitor.alerts.scanner import AlertScanner
from tocsin.ontology import Vocabulary
from tocsin.services.alerts.publisher import AlertPublisher

SESSION: Final = internal("monitor")  # in which it follows the log, and publishes alerts


@dataclass(frozen=True, slots=True)
class Recorder:
    """The writer, the queries, the alerts, and the follower of the log that drives them."""

    writer: RunWriter
    queries: Queries
    alerts: AlertPublisher
    follower: LogFollower

    def close(self) -> None:
        """Wait for the last batch, and close the database. Not on the loop."""
        self.follower.join()
        for part in (self.queries, self.writer):
            with suppress(apsw.Error):  # closing a damaged database may fail too
                part.close()


def open_recorder(
    port: BrokerPort,
    loop: asyncio.AbstractEventLoop,
    directory: Path,
    options: MonitorOptions,
    vocabulary: Vocabulary,
    on_damage: Callable[[Exception], None],
) -> Recorder:
    """Everything but the start. Errors of SQLite are raised."""
    writer = RunWriter(directory, options, vocabulary)
    try:
        queries = open_queries(directory, options, _tables(port, options))
    except BaseException:
        writer.close()
        raise
    alerts = AlertPublisher(
        port,
        SESSION,
        AlertScanner(queries.alerts, queries.alerts.policy),
        writer,
        vocabulary,
        every_s=options.look_every_s,
        is_enabled=options.alerts,
    )
    asks = vocabulary.expanded(options.concepts)
    follower = LogFollower(port, SESSION, loop, writer, vocabulary, asks, alerts, on_damage)
    return Recorder(writer, queries, alerts, follower)


def _tables(port: BrokerPort, options: MonitorOptions) -> Tables | None:
    if options.tables is None:
        return None
    return Tables(
        options.tables, lambda: port.head, port.runtime.note, is_named=options.tables_named
    )

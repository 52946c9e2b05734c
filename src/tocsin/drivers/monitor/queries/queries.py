"""Queries: everything that can be asked about runs, over one connection to the database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tocsin.drivers.monitor.options import MonitorOptions
from tocsin.drivers.monitor.queries.alert_queries import AlertQueries
from tocsin.drivers.monitor.queries.change_queries import ChangeQueries
from tocsin.drivers.monitor.queries.estimate_queries import EstimateQueries
from tocsin.drivers.monitor.queries.history_queries import HistoryQueries
from tocsin.drivers.monitor.queries.index import RunIndex
from tocsin.drivers.monitor.queries.run_queries import RunQueries
from tocsin.drivers.monitor.tables import Tables
from tocsin.monitor.history.tables import TablesStatus


@dataclass(frozen=True, slots=True)
class Queries:
    index: RunIndex
    runs: RunQueries
    history: HistoryQueries
    changes: ChangeQueries
    estimates: EstimateQueries
    alerts: AlertQueries

    def close(self) -> None:
        self.index.close()


def open_queries(directory: Path, options: MonitorOptions, tables: Tables | None = None) -> Queries:
    """`tables` are the pipeline's, if there are any to be used."""
    index = RunIndex(directory, options)
    status = TablesStatus if tables is None else tables.status
    estimates = EstimateQueries(index, status)
    alerts = AlertQueries(index, estimates)
    return Queries(
        index,
        RunQueries(index, alerts),
        HistoryQueries(index, status),
        ChangeQueries(index),
        estimates,
        alerts,
    )

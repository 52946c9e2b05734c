"""Metrics for Prometheus, read from plain counters when somebody asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from tocsin.access.session import Session
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.drivers.http.rest.events.views import overlay_shown, views_shown
from tocsin.drivers.http.rest.status.access_metrics import access_metrics
from tocsin.drivers.http.rest.status.overlay_metrics import overlay_metrics
from tocsin.monitor.end_states import ENDED_RUN
from tocsin.wire.api.run_views import RUN_STATES

if TYPE_CHECKING:
    from tocsin.broker.status import BrokerStatus, SubscriptionCounts
    from tocsin.drivers.archive.archiver import Archiver
    from tocsin.drivers.http.rest.context import RestContext
    from tocsin.drivers.http.server import HttpServer
    from tocsin.drivers.monitor.monitor import Monitor

UNDER_WAY: Final = tuple(state for state in RUN_STATES if state not in ENDED_RUN)
NAMED_MAX: Final = 50  # subscriptions with a label of their own: each is a series to keep

_COUNTERS: Final = {
    "acknowledged": ("events_acknowledged", "Events stored and acknowledged."),
    "duplicates": ("events_duplicate", "Repeated events, acknowledged and not stored twice."),
    "rejected": ("publishes_rejected", "Publishes answered with an error by the broker."),
    "refused_busy": ("publishes_refused_busy", "Of those, because too much was waiting."),
    "commits": ("commits", "Transactions of the log."),
    "disk_full": ("commits_disk_full", "Transactions that the disk had no room for."),
    "delivered": ("events_delivered", "Events taken by webhooks."),
    "failed_attempts": ("push_attempts_failed", "Attempts to push that failed."),
    "given_up": ("events_given_up", "Events that became dead letters."),
    "streamed": ("events_streamed", "Events written to open streams."),
    "pulled": ("events_pulled", "Events handed out of message boxes."),
    "filters_skipped": ("filters_skipped", "XPath filters not evaluated for an event: too costly."),
    "withheld": (
        "events_withheld",
        "Events that somebody asked for, and had no right to.",
    ),
    "dropped": ("events_dropped", "Events dropped because of a subscription's own limit."),
    "read_back": ("events_read_back", "Events read from the log for subscribers that were behind."),
    "soap_unverified": (
        "soap_security_unverified",
        "SOAP requests taken with WS-Security headers in which nothing was verified.",
    ),
    "corrupt": ("records_corrupt", "Records of the log that failed their checksum."),
}


class Collector:
    """Looks at the broker, on behalf of whoever scrapes it."""

    def __init__(self, context: RestContext, server: HttpServer, session: Session) -> None:
        self._context = context
        self._server = server
        self._session = session

    def collect(self) -> Iterator[Metric]:
        context = self._context
        broker = context.port.status(self._session)
        for slot, (name, words) in _COUNTERS.items():
            value = getattr(broker.counters, slot)
            yield CounterMetricFamily(f"tocsin_{name}", words, value=value)
        yield CounterMetricFamily(
            "tocsin_connections_refused",
            "Connections refused because there were too many.",
            value=self._server.limiter.refused,
        )
        yield CounterMetricFamily(
            "tocsin_receiving_refused",
            "Messages refused because too much was being received.",
            value=self._server.budget.refused,
        )
        yield CounterMetricFamily(
            "tocsin_publishes_unreadable",
            "Publishes refused as invalid, over a limit, or of a foreign origin.",
            value=self._server.unreadable,
        )
        yield from access_metrics(context.access)
        performance = context.performance
        yield CounterMetricFamily(
            "tocsin_performance_events",
            "Performance events that producers sent.",
            value=performance.received,
        )
        yield CounterMetricFamily(
            "tocsin_performance_messages_refused",
            "Messages of producers and consumers that were refused.",
            value=performance.unreadable,
        )
        yield CounterMetricFamily(
            "tocsin_performance_datagrams_lost",
            "Datagrams dropped: sender not trusted, or too many at once.",
            value=performance.datagrams_lost,
        )
        for name, words, value in self._gauges(broker):
            yield GaugeMetricFamily(f"tocsin_{name}", words, value=value)
        yield from _slowest(broker.subscriptions, views_shown(context.port, self._session))
        if context.monitor is not None:
            yield from _runs(context.monitor)
        if context.archiver is not None:
            yield from _archive(context.archiver)
        overlay = overlay_shown(context.links, self._session)
        if overlay is not None:
            yield from overlay_metrics(overlay)

    def _gauges(self, broker: BrokerStatus) -> Iterator[tuple[str, str, float]]:
        context, space = self._context, self._context.disk_space
        yield "log_head", "Sequence number of the newest event.", broker.head
        yield "log_first", "Sequence number of the oldest event kept.", broker.first
        yield "dead_letters", "Dead letters kept now.", broker.counters.dead_letters
        yield "streams_open", "Streams and sockets open now.", broker.streams_open
        yield "sinks_open", "Sinks with events to send.", broker.lanes_open
        yield "connections_open", "HTTP connections now.", len(self._server.connections)
        limiter, budget = self._server.limiter, self._server.budget
        limit = limiter.connections_max
        yield "connections_limit", "How many HTTP connections there may be.", limit
        yield (
            "connections_long_lived",
            "Of those, held open by streams and waits.",
            limiter.long_lived,
        )
        limit = limiter.long_lived_max
        yield "connections_long_lived_limit", "How many may be held open.", limit
        yield "receiving_bytes", "Bytes of messages being received.", budget.held_bytes
        yield "receiving_bytes_limit", "The limit on those bytes.", budget.bytes_max
        yield "frames_open", "Producers and consumers by TCP now.", context.performance.connections
        yield "disk_free_bytes", "Room on the disk of the log.", space.free_bytes
        least = space.free_bytes_min
        yield "disk_free_bytes_min", "With less than that, events are refused.", least
        yield "ready", "1 if the broker accepts events.", int(context.health().ready)
        yield (
            "clock_in_doubt",
            "1 if the clock jumped by too much.",
            int(broker.clock.doubt is not None),
        )
        yield (
            "clock_jump_seconds",
            "How far the clock is off.",
            round(broker.clock.jump_ns / 1e9, 3),
        )
        yield "start_time_seconds", "When the broker was started.", context.started_ns / 1e9


def _slowest(all: SubscriptionCounts, shown: list[SubscriptionView]) -> Iterator[Metric]:
    """How many there are and how far behind: the slowest by id, if shown, the others as one."""
    kinds = GaugeMetricFamily(
        "tocsin_subscriptions", "Subscriptions now.", labels=["kind", "state"]
    )
    counts = {(kind.value, state.value): count for (kind, state), count in all.by_state.items()}
    for labels, count in sorted(counts.items()):
        kinds.add_metric(labels, count)
    yield kinds
    behind = GaugeMetricFamily(
        "tocsin_subscription_behind",
        "Events between a subscription and the head of the log; `other` is the sum of the rest.",
        labels=["subscription"],
    )
    slowest = nlargest(NAMED_MAX, (v for v in shown if v.behind), key=lambda v: v.behind)
    for view in slowest:
        behind.add_metric([view.subscription.id], view.behind)
    named = sum(view.behind for view in slowest)
    behind.add_metric(["other"], all.lag - named)
    yield behind


def _runs(monitor: Monitor) -> Iterator[Metric]:
    """The monitor of runs: how far it is behind, and what is under way, as it last counted."""
    yield GaugeMetricFamily(
        "tocsin_monitor_behind",
        "Events of the log that the monitor has not read yet.",
        value=monitor.behind,
    )
    yield CounterMetricFamily(
        "tocsin_monitor_missed",
        "Events that the log no longer had when the monitor wanted to read them.",
        value=monitor.missed,
    )
    yield CounterMetricFamily(
        "tocsin_monitor_left_out",
        "Messages about runs that the monitor could not use.",
        value=monitor.left_out,
    )
    yield GaugeMetricFamily(
        "tocsin_monitor_on",
        "1 if runs are recorded; 0 if its database cannot be used.",
        value=int(monitor.off is None),
    )
    runs = GaugeMetricFamily(
        "tocsin_runs", "Workflow runs that have not ended, counted every 5 s.", labels=["state"]
    )
    for state in UNDER_WAY:
        runs.add_metric([state], monitor.under_way.get(state, 0))
    yield runs


def _archive(archiver: Archiver) -> Iterator[Metric]:
    """How far the archive goes, what waits for it, and what went wrong."""
    gauges: tuple[tuple[str, str, float], ...] = (
        ("through", "Sequence number of the newest event in the archive.", archiver.through),
        ("waiting", "Events of the log that are not in the archive yet.", archiver.waiting),
        ("age_seconds", "How long the first of those has waited.", archiver.age_s),
        ("bytes", "What the archive's events take, as of the last roll.", archiver.size_bytes),
        ("files", "In how many files.", archiver.files),
        ("on", "1 if the archive is filled; 0 if it is not this log's.", int(archiver.off is None)),
    )
    for name, words, value in gauges:
        yield GaugeMetricFamily(f"tocsin_archive_{name}", words, value=value)
    counters = (
        ("failures", "How often the archive could not be written.", archiver.failures),
        ("left_out", "Events that could not be read or written down.", archiver.left_out),
        ("lost", "Events that the log removed before they were archived.", archiver.lost),
    )
    for name, words, count in counters:
        yield CounterMetricFamily(f"tocsin_archive_{name}", words, value=count)


def metrics_page(
    context: RestContext, server: HttpServer, session: Session, accepted: str
) -> tuple[bytes, str]:
    """The page that Prometheus reads: the body, and its content type, which the scraper accepts."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(context, server, session))
    encode, content_type = choose_encoder(accepted)
    return encode(registry), content_type

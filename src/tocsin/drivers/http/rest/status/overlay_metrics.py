"""Metrics of the links to other brokers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import nlargest
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from tocsin.services.control.views import ControlInfo
from tocsin.services.link.views import NeighbourInfo, OverlayInfo

NAMED_MAX: Final = 50  # neighbours with a label of their own: each is a series to keep
STATES: Final = ("up", "connecting", "down")
# Messages of discovery that were sent to neighbours, by the kinds that the core counts.
KINDS: Final = (
    "advertisements",
    "subscriptions",
    "publications",
    "updates",
    "end_markers",
    "cover_gone",
    "cancels",
)


def overlay_metrics(info: OverlayInfo) -> Iterator[Metric]:
    yield _neighbours(info)
    yield _peers(info)
    yield from _events(info)
    yield from _named(info.neighbours)
    yield _tables(info)
    gauges = (
        ("brokers", "Other brokers that can be reached now.", len(info.brokers)),
        ("handovers", "Backlogs on their way to brokers that moved.", info.handovers),
    )
    for name, words, value in gauges:
        yield GaugeMetricFamily(f"tocsin_overlay_{name}", words, value=value)
    yield CounterMetricFamily(
        "tocsin_overlay_refused_links", "Links that were refused.", value=info.refused
    )
    yield _discovery(info.discovery)
    yield _dropped(info.discovery)
    yield from _memory(info.discovery)
    yield from _control(info.control)


def _neighbours(info: OverlayInfo) -> Metric:
    family = GaugeMetricFamily(
        "tocsin_overlay_neighbours", "Brokers that are or were linked.", labels=["state"]
    )
    for state in STATES:
        family.add_metric([state], sum(each.state == state for each in info.neighbours))
    return family


def _peers(info: OverlayInfo) -> Metric:
    family = GaugeMetricFamily(
        "tocsin_overlay_peers", "Settings --peer, by whether there is a link.", labels=["state"]
    )
    for state in ("linked", "connecting", "waiting"):
        family.add_metric([state], sum(each.state == state for each in info.peers))
    return family


def _events(info: OverlayInfo) -> Iterator[Metric]:
    near = info.neighbours
    counters = (
        ("events_sent", "Events sent to neighbours.", sum(n.sent for n in near)),
        ("events_received", "Events received from neighbours.", sum(n.received for n in near)),
        (
            "events_repeats",
            "Of those received, events that the log had already.",
            sum(n.repeats for n in near),
        ),
        (
            "events_dropped",
            "Events given up for neighbours that were away for too long.",
            sum(n.dropped for n in near),
        ),
        (
            "ignored",
            "Events and table entries of neighbours that were not taken.",
            sum(n.ignored for n in near),
        ),
    )
    for name, words, value in counters:
        yield CounterMetricFamily(f"tocsin_overlay_{name}", words, value=value)


def _named(neighbours: tuple[NeighbourInfo, ...]) -> Iterator[Metric]:
    """Those that are furthest behind by name, the rest together."""
    lag = GaugeMetricFamily(
        "tocsin_overlay_lag",
        "Events of the log between a neighbour and the head; `other` is the sum of the rest.",
        labels=["neighbour"],
    )
    round_trip = GaugeMetricFamily(
        "tocsin_overlay_round_trip_seconds",
        "How long the last heartbeat of a neighbour took.",
        labels=["neighbour"],
    )
    named = nlargest(NAMED_MAX, neighbours, key=lambda each: each.lag or 0)
    for each in named:
        lag.add_metric([each.broker], each.lag or 0)
        if each.round_trip_ms is not None:
            round_trip.add_metric([each.broker], each.round_trip_ms / 1e3)
    rest = sum(each.lag or 0 for each in neighbours) - sum(each.lag or 0 for each in named)
    lag.add_metric(["other"], rest)
    yield lag
    yield round_trip


def _tables(info: OverlayInfo) -> Metric:
    family = GaugeMetricFamily("tocsin_overlay_table_rows", "Rows of each table.", labels=["table"])
    family.add_metric(["advertisements"], info.advertisements_total)
    family.add_metric(["subscriptions"], info.subscriptions_total)
    advertised = info.discovery.get("advertisements")
    if isinstance(advertised, Mapping):
        family.add_metric(["resource_advertisements"], advertised.get("rows", 0))
    sizes = info.discovery.get("sizes")
    for name, size in sizes.items() if isinstance(sizes, Mapping) else ():
        family.add_metric([name], size)
    return family


def _discovery(discovery: Mapping[str, object]) -> Metric:
    family = CounterMetricFamily(
        "tocsin_overlay_discovery_messages",
        "Messages of resource discovery that were sent to neighbours.",
        labels=["kind"],
    )
    counters = discovery.get("counters")
    counts = counters if isinstance(counters, Mapping) else {}
    for kind in KINDS:
        family.add_metric([kind], counts.get(kind, 0))
    return family


def _dropped(discovery: Mapping[str, object]) -> Metric:
    """The reasons are those that the core names, a few dozen at most."""
    family = CounterMetricFamily(
        "tocsin_overlay_discovery_dropped",
        "Messages of resource discovery, and what is in them, that were not taken.",
        labels=["reason"],
    )
    counters = discovery.get("counters")
    reasons = counters.get("dropped") if isinstance(counters, Mapping) else None
    for reason, count in reasons.items() if isinstance(reasons, Mapping) else ():
        family.add_metric([reason], count)
    return family


def _control(control: ControlInfo) -> Iterator[Metric]:
    messages = CounterMetricFamily(
        "tocsin_overlay_control_messages",
        "Control messages: sent by clients, received from neighbours, forwarded to them, delivered "
        "here; by what they are about.",
        labels=["how", "kind"],
    )
    for how in ("sent", "received", "forwarded", "delivered"):
        for kind, count in getattr(control, how).items():
            messages.add_metric([how, kind], count)
    yield messages
    dropped = CounterMetricFamily(
        "tocsin_overlay_control_dropped", "Control messages that were dropped.", labels=["reason"]
    )
    for reason, count in control.dropped.items():
        dropped.add_metric([reason], count)
    yield dropped
    waiting = GaugeMetricFamily(
        "tocsin_overlay_control_bytes",
        "Bytes of control messages that wait: for neighbours, and for streams of entities.",
        labels=["where"],
    )
    waiting.add_metric(["neighbours"], control.waiting_bytes)
    waiting.add_metric(["streams"], control.mailbox_bytes)
    yield waiting
    words = "Brokers with topic discovery nodes, as far as they can be reached."
    yield GaugeMetricFamily("tocsin_overlay_tdn_brokers", words, value=len(control.tdns))
    words = "Streams of entities that are open."
    yield GaugeMetricFamily("tocsin_overlay_control_streams", words, value=control.streams)


def _memory(discovery: Mapping[str, object]) -> Iterator[Metric]:
    for name, words in (
        ("bytes", "Bytes that a table of discovery holds, as they are in messages."),
        ("bytes_max", "The most that it may hold."),
    ):
        family = GaugeMetricFamily(f"tocsin_overlay_discovery_{name}", words, labels=["table"])
        tables = discovery.get(name)
        for table, size in tables.items() if isinstance(tables, Mapping) else ():
            family.add_metric([table], size)
        yield family

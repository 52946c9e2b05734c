"""`GET /`: a page for a person who wonders what runs here, made whole on the server."""

from __future__ import annotations

import time
from heapq import nlargest
from html import escape
from typing import TYPE_CHECKING, Final

from tocsin import __version__
from tocsin.access.session import Session
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.drivers.http.rest.events.views import views_shown
from tocsin.event.subscription import Kind

if TYPE_CHECKING:
    from tocsin.broker.status import BrokerStatus, SubscriptionCounts
    from tocsin.drivers.http.rest.context import RestContext

SLOW_LISTED: Final = 10
_LINKS: Final = (
    ("/events?limit=20", "the first events in the log"),
    ("/subscriptions?sort=behind", "subscriptions, the slowest first"),
    ("/boxes", "message boxes"),
    ("/deadletters", "dead letters"),
    ("/metrics", "metrics"),
    ("/readyz", "readiness"),
    ("/docs", "the API"),
    ("/asyncapi.json", "the event channels (AsyncAPI)"),
)
_STYLE: Final = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;"
    "margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}td,th{text-align:left;"
    "padding:.15rem 1.5rem .15rem 0;vertical-align:top}td.n{text-align:right;"
    "font-variant-numeric:tabular-nums}pre{overflow:auto;padding:.75rem;border:1px solid}"
)
# Nothing is loaded, run or sent anywhere: should some text ever slip through, it stays text.
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def status_page(context: RestContext, session: Session) -> str:
    """The page as it is now. Only who may read subscriptions is shown any of them."""
    broker = context.port.status(session)
    health = context.health()
    addresses = context.addresses
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in health.reasons)
    links = "".join(f'<li><a href="{href}">{words}</a></li>' for href, words in _LINKS)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Tocsin at {escape(addresses.http)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Tocsin {escape(__version__)}</h1>"
        f"<p>An event broker, {'ready' if health.ready else 'not ready'}.</p>"
        f"{f'<ul>{reasons}</ul>' if reasons else ''}"
        f"<table>{_figures(context, broker)}</table>"
        f"{_slow(broker.subscriptions, views_shown(context.port, session))}"
        f"<h2>Try</h2><pre>{escape(_example(addresses.url))}</pre>"
        f"<h2>Look</h2><ul>{links}</ul></body></html>"
    )


def _figures(context: RestContext, broker: BrokerStatus) -> str:
    counters = broker.counters
    archiver = context.archiver
    up_s = max(1.0, (time.time_ns() - context.started_ns) / 1e9)
    rows = (
        ("Running for", _duration(up_s)),
        ("Events in the log", f"{broker.events:,}"),
        ("Newest sequence number", f"{broker.head:,}"),
        ("Archived up to", f"{archiver.through:,}" if archiver else "no archive"),
        ("Events received since the start", f"{counters.acknowledged:,}"),
        ("Events per second, on average", f"{counters.acknowledged / up_s:,.1f}"),
        ("Events delivered to webhooks", f"{counters.delivered:,}"),
        ("Events streamed", f"{counters.streamed:,}"),
        ("Events fetched from boxes", f"{counters.pulled:,}"),
        ("Subscriptions", f"{broker.subscriptions.of(Kind.PUSH):,}"),
        ("Message boxes", f"{broker.subscriptions.of(Kind.BOX):,}"),
        ("Open streams", f"{broker.streams_open:,}"),
        ("Dead letters", f"{counters.dead_letters:,}"),
    )
    return "".join(f'<tr><th>{name}</th><td class="n">{value}</td></tr>' for name, value in rows)


def _slow(all: SubscriptionCounts, shown: list[SubscriptionView]) -> str:
    if not all.lag:
        return "<p>No subscription lags.</p>"
    slow = nlargest(SLOW_LISTED, (v for v in shown if v.behind), key=lambda v: v.behind)
    if not slow:
        return f"<p>The largest lag of a subscription is {all.lag_max:,} events.</p>"
    rows = "".join(
        f'<tr><td class="n">{view.behind:,}</td><td>{escape(view.subscription.id)}</td>'
        f"<td>{escape((view.subscription.sink or 'a box')[:80])}</td>"
        f"<td>{escape((view.last_error or '')[:120])}</td></tr>"
        for view in slow
    )
    return (
        "<h2>Largest lag</h2><table><tr><th>events</th><th>subscription</th><th>sink</th>"
        f"<th>last error</th></tr>{rows}</table>"
    )


def _duration(seconds: float) -> str:
    minutes, whole_s = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours:02}:{minutes:02}:{whole_s:02}"


def _example(url: str) -> str:
    return (
        f"curl -N {url}/events/stream &\n"
        f"curl {url}/events -H 'Content-Type: application/json' \\\n"
        "  -H 'ce-specversion: 1.0' -H 'ce-id: 1' -H 'ce-source: /me' -H 'ce-type: test' \\\n"
        "  -H 'ce-topic: lead/ohio/radar' -d '{\"load5\": 1.5}'"
    )

"""A snapshot of one broker's tables for people, under the names that paper 001 gives them."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tocsin.overlay.discovery.advertisements import Advertisements
from tocsin.overlay.discovery.context import Context
from tocsin.overlay.discovery.dynamic_watches import DynamicWatches
from tocsin.overlay.discovery.memory import limits
from tocsin.overlay.discovery.one_time import OneTimeRequests
from tocsin.overlay.discovery.resources import LocalResources

ROWS_SHOWN_MAX: Final = 1_000  # of each table; the sizes are always whole


def snapshot(
    context: Context,
    advertisements: Advertisements,
    resources: LocalResources,
    one_time: OneTimeRequests,
    watches: DynamicWatches,
) -> dict[str, object]:
    """Plain values, ready to be written as JSON."""
    paths = list(one_time.paths.values())
    listed = [path for path in paths if path.is_listed]
    hosted = [path for path in paths if path.is_host and path.results and not path.cover_id]
    waited_for = [path for path in paths if path.waiters]
    by_hop = Counter(entry.last_hop or context.broker_id for entry in advertisements.entries())
    return {
        "broker": context.broker_id,
        "neighbours": list(context.neighbours),
        "resources": len(resources),
        "advertisements": {"rows": len(advertisements), "by_last_hop": dict(by_hop)},
        "SrdSubList": [path.id for path in listed[:ROWS_SHOWN_MAX]],
        "ResourceCacheMap": {
            path.id: [kept.result.resource_id for kept in path.results.values()][:ROWS_SHOWN_MAX]
            for path in hosted[:ROWS_SHOWN_MAX]
        },
        "SubWaitingListMap": {
            path.id: list(path.waiters)[:ROWS_SHOWN_MAX] for path in waited_for[:ROWS_SHOWN_MAX]
        },
        "continuous": [
            {"id": watch.id, "last_hop": watch.last_hop or context.broker_id}
            for watch in list(watches.watches.values())[:ROWS_SHOWN_MAX]
        ],
        "sizes": {
            "SrdSubList": len(listed),
            "ResourceCacheMap": len(hosted),
            "SubWaitingListMap": len(waited_for),
            "return_paths": len(paths),
            "continuous": len(watches.watches),
        },
        "bytes": dict(context.memory.held),
        "bytes_max": limits(context.options),
        "timers": len(context.timers),
        "counters": context.counters.plain(),
    }

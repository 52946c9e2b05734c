"""The topics that there are, with how many events came on each: those the caller may know of."""

from __future__ import annotations

from functools import partial
from typing import Final

from tocsin.access.decision import Readable
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.topic_counts import TOPICS_MAX, TopicCount, TopicCounts
from tocsin.event.filter import TopicIs
from tocsin.event.instant import rfc3339
from tocsin.event.topic import TopicPattern
from tocsin.event.wildcards import without_foreign_wildcards
from tocsin.wire.api.query import Query
from tocsin.wire.api.status_views import TopicInfo, TopicsPage

SORTS: Final = ("topic", "events", "rate", "last")
LIMIT_DEFAULT: Final = 1_000
TOPICS: Final = "topics"  # the resource


async def list_topics(
    port: BrokerPort, counts: TopicCounts, session: Session, query: bytes, now_ns: int
) -> TopicsPage:
    """As the query asks, for who may read the resource; `now_ns` is the time of day."""
    asked = Query.parse(query, ("pattern", "sort", "limit"))
    text = asked.text("pattern")
    pattern = None if text is None else _pattern(text)
    sort = asked.choice("sort", "topic", SORTS)
    limit = asked.number("limit", LIMIT_DEFAULT, least=1, most=TOPICS_MAX)
    await counts.look_back(port.first, partial(port.read, session, TOPICS))
    return _page(counts, pattern, sort, limit, port.readable(session, TOPICS), now_ns)


def _pattern(text: str) -> TopicPattern:
    pattern = TopicPattern.parse(text)
    without_foreign_wildcards(TopicIs(pattern))
    return pattern


def _page(
    counts: TopicCounts,
    pattern: TopicPattern | None,
    sort: str,
    limit: int,
    readable: Readable | None,
    now_ns: int,
) -> TopicsPage:
    found = [
        each
        for each in counts.topics()
        if (pattern is None or pattern.matches(each.topic))
        and (readable is None or readable.has_topic(each.topic))
    ]
    counted = [each for each in found if _is_counted(each, readable)]
    _sort(counted, sort, now_ns)
    infos = [_info(each, now_ns) for each in counted]
    if len(counted) < len(found):
        names = {each.topic for each in found} - {each.topic for each in counted}
        infos += [TopicInfo(name, None, None, None, None) for name in sorted(names)]
        if sort == "topic":
            infos.sort(key=lambda each: each.topic)
    return TopicsPage(
        infos[:limit],
        more=len(found) > limit,
        counted_from=counts.counted_from,
        topics_max=TOPICS_MAX,
        forgotten=counts.forgotten if readable is None else 0,
    )


def _is_counted(count: TopicCount, readable: Readable | None) -> bool:
    """How many events there are, and when the last one came, is for who may read them all."""
    return readable is None or readable.has_all_on("topics", frozenset({count.topic}))


def _info(count: TopicCount, now_ns: int) -> TopicInfo:
    return TopicInfo(
        count.topic,
        count.events,
        round(count.rate.per_s(now_ns), 3),
        count.last_seq,
        rfc3339(count.last_ns),
    )


def _sort(found: list[TopicCount], sort: str, now_ns: int) -> None:
    """By name, or the largest first."""
    found.sort(key=lambda each: each.topic)
    if sort == "events":
        found.sort(key=lambda each: each.events, reverse=True)
    elif sort == "rate":
        found.sort(key=lambda each: each.rate.per_s(now_ns), reverse=True)
    elif sort == "last":
        found.sort(key=lambda each: each.last_seq, reverse=True)

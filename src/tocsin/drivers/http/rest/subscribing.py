"""What `/subscriptions` and `/boxes` have in common: creating, changing, ending and listing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from tocsin.access.session import Session
from tocsin.broker.registry import Change
from tocsin.broker.subscriber import SubscriptionView
from tocsin.drivers.own_address import check_not_ourselves
from tocsin.errors import BadSubscription
from tocsin.event.subscription import Kind, Subscription
from tocsin.wire.api.query import Query
from tocsin.wire.api.subscription_request import (
    AfterTime,
    NewSubscription,
    Start,
    SubscriptionChange,
)

if TYPE_CHECKING:
    from tocsin.drivers.node import Node

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
SORTS: Final = ("created", "behind")


async def subscribe(node: Node, session: Session, asked: NewSubscription) -> SubscriptionView:
    """Make a subscription, or a box if there is no sink."""
    start = await _start_seq(node, session, asked.start)
    subscription = Subscription(
        id="",
        kind=Kind.BOX if asked.sink is None else Kind.PUSH,
        sink=asked.sink,
        filters=asked.filters,
        config=asked.config,
        expires_ns=asked.expires_ns,
    )
    return await node.port.subscribe(session, subscription, asked.filter, start)


async def _start_seq(node: Node, session: Session, start: Start) -> int | None:
    if start is None:
        return None
    if isinstance(start, AfterTime):
        moment_ns = start.moment_ns
        return await node.port.read(session, "events", lambda log: log.seq_at(moment_ns))
    return start.seq


async def changed(
    node: Node, session: Session, subscription_id: str, asked: SubscriptionChange
) -> SubscriptionView:
    """Change a subscription or a box; returns how it is then."""
    was = node.port.view(session, subscription_id).subscription
    if was.kind is Kind.PUSH and (asked.sink is not None or asked.config is not None):
        sink = asked.sink or was.sink
        assert sink is not None, "who pushes has a sink"
        if was.soap is None:
            node.sinks.check_config(sink, asked.config or was.config)
        if asked.sink is not None:
            check_sink(node, asked.sink, by_http=was.soap is not None)
    _check_batch(was, asked)
    change = Change(
        state=asked.state,
        expires_ns=asked.expires_ns,
        filters=asked.filters,
        filter=asked.filter,
        sink=asked.sink,
        config=asked.config,
    )
    return await node.port.change(session, subscription_id, change)


def _check_batch(was: Subscription, asked: SubscriptionChange) -> None:
    terms, config = was.soap, asked.config
    if terms is None or config is None or config.batch <= 1:
        return
    if terms.form == "events" or (terms.form == "wrapped" and terms.spec.startswith("wsn")):
        return
    raise BadSubscription(
        "messages to this consumer hold one event each",
        remedy="Leave config.batch at 1, or subscribe for wrapped notifications.",
    )


def check_sink(node: Node, sink: str, *, by_http: bool = False) -> None:
    """Refuse a sink at once that would be refused at every push; names are judged then. `by_http`
    if what goes there is an HTTP request, whatever other sinks could take."""
    address = node.sinks.parse(sink)
    if by_http and not node.sinks.of(sink).has_handshake:
        raise BadSubscription(
            f"{sink!r} is not an http or https address",
            remedy="Name an address such as https://example.org/hook.",
        )
    check_not_ourselves(node, address)
    node.sinks.check(sink, node.rules)


class Listing(msgspec.Struct, frozen=True):
    """One page of subscriptions of a kind."""

    views: list[SubscriptionView]
    next: str | None
    total: int


def listed(node: Node, session: Session, raw_query: bytes, kind: Kind) -> Listing:
    """The page that a query asks for: `limit`, `after` (an id), `q` (a substring) and `sort`."""
    query = Query.parse(raw_query, ("limit", "after", "q", "sort"))
    limit = query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
    wanted = (query.text("q") or "").casefold()
    views = [
        view
        for view in node.port.views(session)
        if view.subscription.kind is kind and (not wanted or wanted in _searched(view.subscription))
    ]
    if query.choice("sort", "created", SORTS) == "behind":
        views.sort(key=lambda view: (-view.behind, view.subscription.id))
    else:
        views.sort(key=lambda view: (view.subscription.created_ns, view.subscription.id))
    begin = _place_after(views, query.text("after"))
    page = views[begin : begin + limit]
    more = begin + limit < len(views)
    return Listing(page, page[-1].subscription.id if more else None, len(views))


def _searched(subscription: Subscription) -> str:
    filters = bytes(subscription.filters).decode()
    return f"{subscription.id} {subscription.sink or ''} {filters}".casefold()


def _place_after(views: list[SubscriptionView], after: str | None) -> int:
    """Where the page begins; at the front if the one it should follow is gone."""
    if after is None:
        return 0
    ids = (number for number, view in enumerate(views) if view.subscription.id == after)
    return next(ids, -1) + 1

"""Subscriptions: what `/subscriptions` and `/boxes` create, change, find and list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from tocsin.access.decision import Action
from tocsin.access.resources import filter_resource
from tocsin.access.session import Session, internal
from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.sinks import Sink, Sinks
from tocsin.broker.delivery.trust import SinkRules, is_trusted
from tocsin.broker.effects import Pulled
from tocsin.broker.port import BrokerPort
from tocsin.broker.state.state import no_such_subscription
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import BadSubscription, BadToken, NoSuchSubscription
from tocsin.event.filter import Filter
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import Change, Config, Kind, State, Subscription
from tocsin.wire.api.query import Query
from tocsin.wire.api.sink_credential import Seal
from tocsin.wire.api.subscription_request import (
    AfterTime,
    NewSubscription,
    Start,
    read_box,
    read_change,
    read_subscription,
)
from tocsin.wire.cloudevents.webhook import read_handshake

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100
SORTS: Final = ("created", "behind")
_SERVICE: Final = internal("subscriptions")
PULL_MAX: Final = 1_000
PULL_DEFAULT: Final = 100
WAIT_S_MAX: Final = 60.0


class Page(msgspec.Struct, frozen=True):
    """Some subscriptions of one kind."""

    views: list[SubscriptionView]
    next: str | None
    total: int


class PullRequest(msgspec.Struct, frozen=True):
    """How many events to fetch from a box, how long to wait, and what to acknowledge."""

    events_max: int
    wait_ns: int
    ack: str | None


class Subscriptions:
    """The subscriptions and boxes of one broker."""

    def __init__(
        self,
        port: BrokerPort,
        sinks: Sinks[Sink],
        rules: SinkRules,
        check_not_ourselves: Callable[[SinkAddress], None],
        seal: Seal,
    ) -> None:
        """`check_not_ourselves` raises SinkRefused for an address of this broker. `seal` is for
        the secrets of subscriptions, which are kept in no other form."""
        self._seal = seal
        self._port = port
        self._sinks = sinks
        self._rules = rules
        self._check_not_ourselves = check_not_ourselves

    # Creating

    async def create(self, session: Session, body: bytes) -> SubscriptionView:
        """Subscribe a sink, as the body of a POST asks."""
        asked = read_subscription(body, self._port.runtime.now_ns(), self._seal)
        assert asked.sink is not None
        self.check_sink(asked.sink)
        self._sinks.check_config(asked.sink, asked.config)
        self._check_credential(asked.sink, asked.config)
        return await self._subscribe(session, asked)

    async def create_box(self, session: Session, body: bytes) -> SubscriptionView:
        """Make a message box, as the body of a POST asks."""
        return await self._subscribe(session, read_box(body, self._port.runtime.now_ns()))

    async def _subscribe(self, session: Session, asked: NewSubscription) -> SubscriptionView:
        subscription = Subscription(
            id="",
            kind=Kind.BOX if asked.sink is None else Kind.PUSH,
            sink=asked.sink,
            filters=asked.filters,
            config=asked.config,
            expires_ns=asked.expires_ns,
        )
        if isinstance(asked.start, AfterTime):
            self._check_first(session, asked.filter)
        start = await self._start_seq(asked.start)
        return await self._port.subscribe(session, subscription, asked.filter, start)

    def _check_first(self, session: Session, filter: Filter) -> None:
        """Nothing is read for who may not subscribe; the port decides, once, for who may. He need
        not have the right to read: he learns a number, and no event."""
        resource = filter_resource(filter)
        if not self._port.may(session, Action.SUBSCRIBE, resource, filter):
            self._port.check(session, Action.SUBSCRIBE, resource, filter)

    async def _start_seq(self, start: Start) -> int | None:
        if start is None:
            return None
        if isinstance(start, AfterTime):
            moment_ns = start.moment_ns
            return await self._port.read(_SERVICE, "events", lambda log: log.seq_at(moment_ns))
        return start.seq

    def check_sink(self, sink: str, *, by_http: bool = False) -> None:
        """Refuse a sink now that would be refused at every push; names are checked then. `by_http`
        if what goes there is an HTTP request, whatever other sinks could take."""
        address = self._sinks.parse(sink)
        if by_http and not self._sinks.of(sink).has_handshake:
            raise BadSubscription(
                f"{sink!r} is not an http or https address",
                remedy="Name an address such as https://example.org/hook.",
            )
        self._check_not_ourselves(address)
        self._sinks.check(sink, self._rules)

    def _check_credential(self, sink: str, config: Config) -> None:
        """Refuse to send one where everybody on the way could read it."""
        if config.credential is None:
            return
        address = self._sinks.parse(sink)
        if not address.tls and not is_trusted(address.host, self._rules.trusted):
            raise BadSubscription(
                "a credential is not sent over plain http: everybody on the way could read it",
                remedy="Give the sink an https address, or have the operator add its host to "
                "delivery.trusted if nobody else is on that network.",
            )

    # Changing and ending

    async def change(self, session: Session, subscription_id: str, body: bytes) -> SubscriptionView:
        """Change a subscription, as the body of a PATCH asks; returns how it is then."""
        was = self.find(session, subscription_id).subscription
        now_ns = self._port.runtime.now_ns()
        asked = read_change(
            body, now_ns, was.config, of_box=False, sink_was=was.sink, seal=self._seal
        )
        return await self._change(session, was, asked)

    async def change_box(self, session: Session, box_id: str, body: bytes) -> SubscriptionView:
        """Change a message box, as the body of a PATCH asks; returns how it is then."""
        was = self._port.view_box(session, box_id).subscription
        asked = read_change(body, self._port.runtime.now_ns(), was.config, of_box=True)
        return await self._change(session, was, asked)

    async def _change(self, session: Session, was: Subscription, asked: Change) -> SubscriptionView:
        if was.kind is Kind.PUSH and (asked.sink is not None or asked.config is not None):
            sink = asked.sink or was.sink
            assert sink is not None, "a push subscription has a sink"
            config = asked.config or was.config
            if was.soap is None:
                self._sinks.check_config(sink, config)
            elif config.credential is not None:
                raise BadSubscription(
                    "a credential is for sinks of the HTTP API, and this one is a Web service",
                    remedy="Leave config.credential out.",
                )
            self._check_credential(sink, config)
            if asked.sink is not None:
                self.check_sink(asked.sink, by_http=was.soap is not None)
        _check_batch(was, asked)
        return await self._port.change(session, was.id, asked, was.kind)

    async def delete(self, session: Session, subscription_id: str) -> None:
        self.find(session, subscription_id)
        await self._port.unsubscribe(session, subscription_id)

    async def delete_box(self, session: Session, box_id: str) -> None:
        view = self._port.view_box(session, box_id)
        await self._port.unsubscribe(session, view.subscription.id, Kind.BOX)

    def confirm(
        self, subscription_id: str, token: str, headers: Mapping[str, str], origin: str
    ) -> None:
        """The sink calls back to say that it wants events (CloudEvents webhooks, 4.2)."""
        given = {"webhook-allowed-origin": "*", **headers}
        self._port.confirm(subscription_id, token, read_handshake(200, given, origin))
        view = self.find(internal("handshake"), subscription_id)
        if view.subscription.state is State.PENDING:
            raise BadToken(
                "the token is not the one that the sink was sent",
                remedy="Call the address in WebHook-Request-Callback as it was sent.",
            )

    # Reading

    def find(self, session: Session, subscription_id: str) -> SubscriptionView:
        """A push subscription; raises NoSuchSubscription."""
        view = self._port.view(session, subscription_id)
        if view.subscription.kind is Kind.LINK:
            raise no_such_subscription(subscription_id)
        if view.subscription.kind is not Kind.PUSH:
            raise NoSuchSubscription(
                f"{subscription_id[:64]!r} is a message box",
                remedy=f"Look at /boxes/{subscription_id[:64]}.",
            )
        return view

    def find_box(self, session: Session, box_id: str) -> SubscriptionView:
        return self._port.view_box(session, box_id)

    async def pull(self, session: Session, box_id: str, asked: PullRequest) -> Pulled:
        """Fetch from a box; what `ack` names is released."""
        return await self._port.pull(session, box_id, asked.events_max, asked.wait_ns, asked.ack)

    def page(self, session: Session, raw_query: bytes, kind: Kind) -> Page:
        """The page that a query asks for: `limit`, `after` (an id), `q` (a substring), `sort`."""
        query = Query.parse(raw_query, ("limit", "after", "q", "sort"))
        limit = query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX)
        wanted = (query.text("q") or "").casefold()
        views = [
            view
            for view in self._port.views(session)
            if view.subscription.kind is kind and (not wanted or wanted in _text(view.subscription))
        ]
        if query.choice("sort", "created", SORTS) == "behind":
            views.sort(key=lambda view: (-view.behind, view.subscription.id))
        else:
            views.sort(key=lambda view: (view.subscription.created_ns, view.subscription.id))
        begin = _place_after(views, query.text("after"))
        page = views[begin : begin + limit]
        more = begin + limit < len(views)
        return Page(page, page[-1].subscription.id if more else None, len(views))


def read_pull(raw_query: bytes) -> PullRequest:
    """The query of `GET /boxes/{id}/messages`."""
    query = Query.parse(raw_query, ("max", "wait", "ack"))
    return PullRequest(
        events_max=query.number("max", PULL_DEFAULT, least=1, most=PULL_MAX),
        wait_ns=int(query.seconds("wait", 0.0, most=WAIT_S_MAX) * NS_PER_S),
        ack=query.text("ack"),
    )


def _check_batch(was: Subscription, asked: Change) -> None:
    terms, config = was.soap, asked.config
    if terms is None or config is None or config.batch <= 1:
        return
    if terms.form == "events" or (terms.form == "wrapped" and terms.spec.startswith("wsn")):
        return
    raise BadSubscription(
        "messages to this consumer hold one event each",
        remedy="Leave config.batch at 1, or subscribe for wrapped notifications.",
    )


def _text(subscription: Subscription) -> str:
    """What is searched by `q`."""
    filters = bytes(subscription.filters).decode()
    return f"{subscription.id} {subscription.sink or ''} {filters}".casefold()


def _place_after(views: list[SubscriptionView], after: str | None) -> int:
    """Where the page begins; at the front if the one it should follow is gone."""
    if after is None:
        return 0
    ids = (number for number, view in enumerate(views) if view.subscription.id == after)
    return next(ids, -1) + 1

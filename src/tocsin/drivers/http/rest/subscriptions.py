"""`/subscriptions`: who wants events pushed, where to, and how that goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from tocsin.access.session import Session, internal
from tocsin.broker.subscriber import SubscriptionView
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, Open, session_in
from tocsin.drivers.http.rest.json_answers import answer
from tocsin.drivers.http.rest.shown import subscription_shown
from tocsin.drivers.http.rest.subscribing import (
    changed,
    check_sink,
    listed,
    subscribe,
)
from tocsin.errors import BadToken, NoSuchSubscription
from tocsin.event.subscription import Kind, State
from tocsin.wire.api.query import Query
from tocsin.wire.api.subscription_request import read_change, read_subscription
from tocsin.wire.api.views import SubscriptionsPage
from tocsin.wire.cloudevents.webhook import read_handshake

if TYPE_CHECKING:
    from tocsin.drivers.node import Node


def subscription_routes(node: Node) -> list[Endpoint]:
    async def create(request: Request) -> Response:
        asked = read_subscription(await request.body(), node.now_ns())
        assert asked.sink is not None
        check_sink(node, asked.sink)
        node.sinks.check_config(asked.sink, asked.config)
        view = await subscribe(node, session_in(request), asked)
        headers = {"location": f"/subscriptions/{view.subscription.id}"}
        return answer(subscription_shown(view), 201, headers)

    async def index(request: Request) -> Response:
        page = listed(node, session_in(request), request.scope["query_string"], Kind.PUSH)
        return answer(
            SubscriptionsPage([subscription_shown(v) for v in page.views], page.next, page.total)
        )

    async def show(request: Request) -> Response:
        return answer(
            subscription_shown(_find(node, session_in(request), request.path_params["id"]))
        )

    async def change(request: Request) -> Response:
        session, subscription_id = session_in(request), request.path_params["id"]
        was = _find(node, session, subscription_id).subscription
        asked = read_change(
            await request.body(), node.now_ns(), was.config, of_box=False, sink_was=was.sink
        )
        return answer(subscription_shown(await changed(node, session, subscription_id, asked)))

    async def delete(request: Request) -> Response:
        session, subscription_id = session_in(request), request.path_params["id"]
        _find(node, session, subscription_id)
        await node.port.unsubscribe(session, subscription_id)
        return Response(status_code=204)

    async def handshake(request: Request) -> Response:
        token = Query.parse(request.scope["query_string"], ("token",)).text("token") or ""
        _confirm(node, request.path_params["id"], token, request.headers)
        return Response(status_code=204)

    one, by_token = "/subscriptions/{id}", Open("the token in its query is the right to call it")
    return [
        Endpoint("GET", "/subscriptions", index, BY_PORT),
        Endpoint("POST", "/subscriptions", create, BY_PORT),
        Endpoint("GET", one, show, BY_PORT),
        Endpoint("PATCH", one, change, BY_PORT),
        Endpoint("DELETE", one, delete, BY_PORT),
        Endpoint(
            "GET",
            f"{one}/handshake",
            handshake,
            by_token,
        ),
        Endpoint(
            "POST",
            f"{one}/handshake",
            handshake,
            by_token,
        ),
    ]


def _find(node: Node, session: Session, subscription_id: str) -> SubscriptionView:
    view = node.port.view(session, subscription_id)
    if view.subscription.kind is not Kind.PUSH:
        raise NoSuchSubscription(
            f"{subscription_id[:64]!r} is a message box",
            remedy=f"Look at /boxes/{subscription_id[:64]}.",
        )
    return view


def _confirm(node: Node, subscription_id: str, token: str, headers: Mapping[str, str]) -> None:
    """The sink calls back to say that it wants events (CloudEvents webhooks, 4.2)."""
    given = {"webhook-allowed-origin": "*", **headers}
    said = read_handshake(200, given, node.settings.delivery.origin or node.address)
    node.port.confirm(subscription_id, token, said)
    if _find(node, internal("handshake"), subscription_id).subscription.state is State.PENDING:
        raise BadToken(
            "the token is not the one that the sink was sent",
            remedy="Call the address in WebHook-Request-Callback as it was sent.",
        )

"""`/subscriptions` and `/boxes`: who gets events, by push or by fetching, and how that goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, Open, session_in
from tocsin.drivers.http.rest.events.views import box_info, pulled_info, subscription_info
from tocsin.drivers.http.rest.responses import answer, while_connected
from tocsin.drivers.listeners.own_address import OwnAddresses
from tocsin.event.subscription import Kind
from tocsin.services.link.service import LinkService
from tocsin.services.subscriptions.subscriptions import Subscriptions, read_pull
from tocsin.wire.api.query import Query
from tocsin.wire.api.views import BoxesPage, SubscriptionsPage

if TYPE_CHECKING:
    from tocsin.drivers.http.server import HttpServer


def subscription_routes(
    subscriptions: Subscriptions, addresses: OwnAddresses, links: LinkService | None
) -> list[Endpoint]:
    async def create(request: Request) -> Response:
        view = await subscriptions.create(session_in(request), await request.body())
        headers = {"location": f"/subscriptions/{view.subscription.id}"}
        return answer(subscription_info(view), 201, headers)

    async def index(request: Request) -> Response:
        page = subscriptions.page(session_in(request), request.scope["query_string"], Kind.PUSH)
        views = [subscription_info(view) for view in page.views]
        return answer(SubscriptionsPage(views, page.next, page.total))

    async def show(request: Request) -> Response:
        session, subscription_id = session_in(request), request.path_params["id"]
        view = subscriptions.find(session, subscription_id)
        reached = None if links is None else links.reached(session, subscription_id)
        return answer(subscription_info(view, reached))

    async def change(request: Request) -> Response:
        session, subscription_id = session_in(request), request.path_params["id"]
        view = await subscriptions.change(session, subscription_id, await request.body())
        return answer(subscription_info(view))

    async def delete(request: Request) -> Response:
        await subscriptions.delete(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    async def handshake(request: Request) -> Response:
        token = Query.parse(request.scope["query_string"], ("token",)).text("token") or ""
        subscription_id, origin = request.path_params["id"], addresses.origin
        subscriptions.confirm(subscription_id, token, request.headers, origin)
        return Response(status_code=204)

    one, by_token = "/subscriptions/{id}", Open("the token in its query is the right to call it")
    return [
        Endpoint("GET", "/subscriptions", index, BY_PORT),
        Endpoint("POST", "/subscriptions", create, BY_PORT),
        Endpoint("GET", one, show, BY_PORT),
        Endpoint("PATCH", one, change, BY_PORT),
        Endpoint("DELETE", one, delete, BY_PORT),
        Endpoint("GET", f"{one}/handshake", handshake, by_token),
        Endpoint("POST", f"{one}/handshake", handshake, by_token),
    ]


def box_routes(
    server: HttpServer, subscriptions: Subscriptions, links: LinkService | None
) -> list[Endpoint]:
    async def create(request: Request) -> Response:
        view = await subscriptions.create_box(session_in(request), await request.body())
        return answer(box_info(view), 201, {"location": f"/boxes/{view.subscription.id}"})

    async def index(request: Request) -> Response:
        page = subscriptions.page(session_in(request), request.scope["query_string"], Kind.BOX)
        return answer(BoxesPage([box_info(view) for view in page.views], page.next, page.total))

    async def show(request: Request) -> Response:
        session, box_id = session_in(request), request.path_params["id"]
        view = subscriptions.find_box(session, box_id)
        return answer(box_info(view, None if links is None else links.reached(session, box_id)))

    async def change(request: Request) -> Response:
        session, box_id = session_in(request), request.path_params["id"]
        return answer(
            box_info(await subscriptions.change_box(session, box_id, await request.body()))
        )

    async def delete(request: Request) -> Response:
        await subscriptions.delete_box(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    async def messages(request: Request) -> Response:
        asked = read_pull(request.scope["query_string"])
        pull = subscriptions.pull(session_in(request), request.path_params["id"], asked)
        return answer(
            pulled_info(await (while_connected(request, server, pull) if asked.wait_ns else pull))
        )

    one = "/boxes/{id}"
    return [
        Endpoint("GET", "/boxes", index, BY_PORT),
        Endpoint("POST", "/boxes", create, BY_PORT),
        Endpoint("GET", one, show, BY_PORT),
        Endpoint("PATCH", one, change, BY_PORT),
        Endpoint("DELETE", one, delete, BY_PORT),
        Endpoint("GET", f"{one}/messages", messages, BY_PORT),
    ]

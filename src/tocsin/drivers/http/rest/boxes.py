"""`/boxes`: message boxes, for consumers that fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tocsin.broker.effects import Pulled
from tocsin.drivers.http.rest.json_answers import answer
from tocsin.drivers.http.rest.shown import box_shown, pulled_shown
from tocsin.drivers.http.rest.subscribing import changed, listed, subscribe, unsubscribe
from tocsin.drivers.http.rest.waiting import while_wanted
from tocsin.event.subscription import Kind
from tocsin.wire.api.query import Query
from tocsin.wire.api.subscription_request import read_box, read_change
from tocsin.wire.api.views import BoxesPage

if TYPE_CHECKING:
    from tocsin.drivers.http.door import Door
    from tocsin.drivers.node import Node

PULL_MAX: Final = 1_000
PULL_DEFAULT: Final = 100
WAIT_S_MAX: Final = 60.0
NS_PER_S: Final = 1_000_000_000


def box_routes(node: Node, door: Door) -> list[Route]:
    async def create(request: Request) -> Response:
        view = await subscribe(node, read_box(await request.body(), node.now_ns()))
        return answer(box_shown(view), 201, {"location": f"/boxes/{view.subscription.id}"})

    async def index(request: Request) -> Response:
        page = listed(node, request.scope["query_string"], Kind.BOX)
        return answer(BoxesPage([box_shown(v) for v in page.views], page.next, page.total))

    async def show(request: Request) -> Response:
        return answer(box_shown(node.broker.view_box(request.path_params["id"])))

    async def change(request: Request) -> Response:
        was = node.broker.view_box(request.path_params["id"]).subscription
        asked = read_change(await request.body(), node.now_ns(), was.config, of_box=True)
        return answer(box_shown(await changed(node, was.id, asked)))

    async def delete(request: Request) -> Response:
        await unsubscribe(node, node.broker.view_box(request.path_params["id"]))
        return Response(status_code=204)

    async def messages(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("max", "wait", "ack"))
        box_id, ack = request.path_params["id"], query.text("ack")
        events_max = query.number("max", PULL_DEFAULT, least=1, most=PULL_MAX)
        wait_ns = int(query.seconds("wait", 0.0, most=WAIT_S_MAX) * NS_PER_S)
        pull = node.ask(
            lambda token, now_ns: node.broker.pull(box_id, events_max, wait_ns, ack, token, now_ns)
        )
        pulled: Pulled = await (while_wanted(request, door, pull) if wait_ns else pull)
        return answer(pulled_shown(pulled))

    one = "/boxes/{id}"
    return [
        Route("/boxes", index, methods=["GET"]),
        Route("/boxes", create, methods=["POST"]),
        Route(one, show, methods=["GET"]),
        Route(one, change, methods=["PATCH"]),
        Route(one, delete, methods=["DELETE"]),
        Route(f"{one}/messages", messages, methods=["GET"]),
    ]

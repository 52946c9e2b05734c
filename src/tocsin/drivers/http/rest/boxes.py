"""`/boxes`: message boxes, for consumers that fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.broker.effects import Pulled
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, session_in
from tocsin.drivers.http.rest.json_answers import answer
from tocsin.drivers.http.rest.shown import box_shown, pulled_shown
from tocsin.drivers.http.rest.subscribing import changed, listed, subscribe
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


def box_routes(node: Node, door: Door) -> list[Endpoint]:
    async def create(request: Request) -> Response:
        asked = read_box(await request.body(), node.now_ns())
        view = await subscribe(node, session_in(request), asked)
        return answer(box_shown(view), 201, {"location": f"/boxes/{view.subscription.id}"})

    async def index(request: Request) -> Response:
        page = listed(node, session_in(request), request.scope["query_string"], Kind.BOX)
        return answer(BoxesPage([box_shown(v) for v in page.views], page.next, page.total))

    async def show(request: Request) -> Response:
        view = node.port.view_box(session_in(request), request.path_params["id"])
        return answer(box_shown(view))

    async def change(request: Request) -> Response:
        session = session_in(request)
        was = node.port.view_box(session, request.path_params["id"]).subscription
        asked = read_change(await request.body(), node.now_ns(), was.config, of_box=True)
        return answer(box_shown(await changed(node, session, was.id, asked)))

    async def delete(request: Request) -> Response:
        session = session_in(request)
        view = node.port.view_box(session, request.path_params["id"])
        await node.port.unsubscribe(session, view.subscription.id)
        return Response(status_code=204)

    async def messages(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("max", "wait", "ack"))
        box_id, ack = request.path_params["id"], query.text("ack")
        events_max = query.number("max", PULL_DEFAULT, least=1, most=PULL_MAX)
        wait_ns = int(query.seconds("wait", 0.0, most=WAIT_S_MAX) * NS_PER_S)
        pull = node.port.pull(session_in(request), box_id, events_max, wait_ns, ack)
        pulled: Pulled = await (while_wanted(request, door, pull) if wait_ns else pull)
        return answer(pulled_shown(pulled))

    one = "/boxes/{id}"
    return [
        Endpoint("GET", "/boxes", index, BY_PORT),
        Endpoint("POST", "/boxes", create, BY_PORT),
        Endpoint("GET", one, show, BY_PORT),
        Endpoint("PATCH", one, change, BY_PORT),
        Endpoint("DELETE", one, delete, BY_PORT),
        Endpoint("GET", f"{one}/messages", messages, BY_PORT),
    ]

"""`/resources` and `/discoveries`: resources register, and are found (paper 001)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, reads, session_in
from tocsin.drivers.http.rest.responses import answer, while_connected
from tocsin.errors import BadDiscovery, DiscoveryOff
from tocsin.services.discovery.answer import answer_view
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.discovery.views import options_info, resource_info, watch_info
from tocsin.wire.api.members import read_object
from tocsin.wire.api.query import Query
from tocsin.wire.api.resource_request import (
    MODELS,
    read_discovery,
    read_options,
    read_resource,
    read_values,
)
from tocsin.wire.api.resource_views import DiscoveryList, ResourcesPage

if TYPE_CHECKING:
    from tocsin.drivers.http.server import HttpServer

LIMIT_MAX: Final = 1_000
LIMIT_DEFAULT: Final = 100

_RESOURCE: Final = "/resources/{id}"
_ATTRIBUTES: Final = "/resources/{id}/attributes"
_DISCOVERY: Final = "/discoveries/{id}"


def resource_routes(discovery: ResourceDiscovery | None, server: HttpServer) -> list[Endpoint]:
    return [*_resources(discovery), *_discoveries(discovery, server), *_options(discovery)]


def in_use(discovery: ResourceDiscovery | None) -> ResourceDiscovery:
    """What finds resources; DiscoveryOff where nothing does."""
    if discovery is None:
        raise DiscoveryOff(
            "this process has message boxes and no resources",
            remedy="Ask a broker that was started by `tocsin serve`.",
        )
    return discovery


def _resources(discovery: ResourceDiscovery | None) -> list[Endpoint]:
    async def register(request: Request) -> Response:
        asked = read_resource(read_object(await request.body()))
        kept, is_new = await in_use(discovery).resources.register(session_in(request), asked)
        headers = {"location": f"/resources/{kept.id}"}
        return answer(resource_info(kept), 201 if is_new else 200, headers)

    async def index(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("kind", "model", "limit", "after"))
        model = query.text("model")
        found, next_id = in_use(discovery).resources.page(
            session_in(request),
            after=query.text("after") or "",
            limit=query.number("limit", LIMIT_DEFAULT, least=1, most=LIMIT_MAX),
            kind=query.text("kind"),
            model=None if model is None else query.choice("model", model, MODELS),
        )
        return answer(ResourcesPage([resource_info(each) for each in found], next_id))

    async def show(request: Request) -> Response:
        resources = in_use(discovery).resources
        return answer(resource_info(resources.get(session_in(request), _id(request))))

    async def withdraw(request: Request) -> Response:
        await in_use(discovery).resources.withdraw(session_in(request), _id(request))
        return Response(status_code=204)

    async def update(request: Request) -> Response:
        values = read_values(read_object(await request.body()))
        kept = await in_use(discovery).resources.update(
            session_in(request), _id(request), values, merge=request.method == "PATCH"
        )
        return answer(resource_info(kept))

    return [
        Endpoint("GET", "/resources", index, BY_PORT),
        Endpoint("POST", "/resources", register, BY_PORT),
        Endpoint("GET", _RESOURCE, show, BY_PORT),
        Endpoint("DELETE", _RESOURCE, withdraw, BY_PORT),
        Endpoint("PUT", _ATTRIBUTES, update, BY_PORT),
        Endpoint("PATCH", _ATTRIBUTES, update, BY_PORT),
    ]


def _discoveries(discovery: ResourceDiscovery | None, server: HttpServer) -> list[Endpoint]:
    async def discover(request: Request) -> Response:
        asked = read_discovery(read_object(await request.body()))
        if asked.is_continuous:
            info = watch_info(in_use(discovery).watch(session_in(request), asked))
            return answer(info, 201, {"location": f"/discoveries/{info.id}"})
        found = in_use(discovery).discover(session_in(request), asked)
        return answer(answer_view(await while_connected(request, server, found)))

    async def index(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        watches = in_use(discovery).watches(session_in(request))
        return answer(DiscoveryList([watch_info(each) for each in watches]))

    async def show(request: Request) -> Response:
        return answer(watch_info(in_use(discovery).get(session_in(request), _id(request))))

    async def cancel(request: Request) -> Response:
        in_use(discovery).cancel(session_in(request), _id(request))
        return Response(status_code=204)

    async def stream_head(request: Request) -> Response:
        in_use(discovery).get(session_in(request), _id(request))
        return Response(media_type="text/event-stream")

    return [
        Endpoint("GET", "/discoveries", index, BY_PORT),
        Endpoint("POST", "/discoveries", discover, BY_PORT),
        Endpoint("GET", _DISCOVERY, show, BY_PORT),
        Endpoint("DELETE", _DISCOVERY, cancel, BY_PORT),
        Endpoint("GET", f"{_DISCOVERY}/stream", stream_head, BY_PORT),
    ]


def _options(discovery: ResourceDiscovery | None) -> list[Endpoint]:
    async def show(request: Request) -> Response:
        return answer(options_info(in_use(discovery).options))

    async def change(request: Request) -> Response:
        asked = read_object(await request.body())
        if not asked:
            raise BadDiscovery(
                "there is nothing to change", remedy='Send an option, as in {"similarity": false}.'
            )
        found = await in_use(discovery).change_options(session_in(request), read_options(asked))
        return answer(options_info(found))

    return [
        Endpoint("GET", "/overlay/options", show, reads("overlay/options")),
        Endpoint("PATCH", "/overlay/options", change, BY_PORT),
    ]


def _id(request: Request) -> str:
    found: str = request.path_params["id"]
    return found

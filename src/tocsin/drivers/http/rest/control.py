"""`/topics/messages`: control messages, by which topics are discovered (paper 003)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, session_in
from tocsin.drivers.http.rest.responses import answer, shown
from tocsin.errors import DiscoveryOff
from tocsin.wire.api.control_request import read_control
from tocsin.wire.api.control_views import ControlSent
from tocsin.wire.api.members import read_object
from tocsin.wire.api.query import Query

if TYPE_CHECKING:
    from tocsin.services.control.bus import ControlBus

STREAM = "/topics/messages/stream"


def control_routes(control: ControlBus | None) -> list[Endpoint]:
    async def send(request: Request) -> Response:
        asked = read_control(read_object(await request.body()))
        sent = bus_in_use(control).send(session_in(request), asked)
        return answer(shown(ControlSent, sent), 202)

    async def stream_head(request: Request) -> Response:
        has_requests = wants_requests(request.scope["query_string"])
        bus_in_use(control).entities.check(session_in(request), has_requests=has_requests)
        return Response(media_type="text/event-stream")

    return [
        Endpoint("POST", "/topics/messages", send, BY_PORT),
        Endpoint("GET", STREAM, stream_head, BY_PORT),
    ]


def bus_in_use(control: ControlBus | None) -> ControlBus:
    """What carries control messages; DiscoveryOff where nothing does."""
    if control is None:
        raise DiscoveryOff(
            "this process has message boxes and no topics",
            remedy="Ask a broker that was started by `tocsin serve`.",
        )
    return control


def wants_requests(query: bytes) -> bool:
    """Whether a stream is to have the requests that are for every entity."""
    asked = Query.parse(query, ("requests",))
    return asked.choice("requests", asked.text("requests") or "no", ("no", "yes")) == "yes"

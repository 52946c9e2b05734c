"""`/blackboard`: concepts, the aggregate profile, and who publishes and subscribes (paper 004)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.drivers.http.publication import messages_of
from tocsin.drivers.http.rest.endpoint import BY_PORT, Endpoint, reads, session_in
from tocsin.drivers.http.rest.responses import answer, while_connected
from tocsin.errors import BadMethod, BadRequest
from tocsin.event.concept_filter import CONCEPTS_MAX
from tocsin.ontology import in_use
from tocsin.services.blackboard.board import Board, Publisher
from tocsin.services.blackboard.subscribers import Subscribers
from tocsin.services.subscriptions.subscriptions import Subscriptions
from tocsin.wire.api import members
from tocsin.wire.api.blackboard_views import (
    ConceptList,
    PublisherInfo,
    PublisherList,
    SubscriberInfo,
    SubscriberList,
)
from tocsin.wire.api.query import Query
from tocsin.wire.blackboard.write import profile_of

if TYPE_CHECKING:
    from tocsin.broker.port import BrokerPort
    from tocsin.drivers.http.server import HttpServer

WAIT_S_MAX: Final = 60.0


def blackboard_routes(
    port: BrokerPort, board: Board, subscriptions: Subscriptions, server: HttpServer
) -> list[Endpoint]:
    subscribers = Subscribers(port)
    return [
        *_publishing(port, board, server),
        *_publishers(board, subscriptions),
        *_subscribers(subscribers, subscriptions),
    ]


def _publishing(port: BrokerPort, board: Board, server: HttpServer) -> list[Endpoint]:
    limits, body_bytes_max = server.event_limits, server.limits.body_bytes_max

    async def publish(request: Request) -> Response:
        """For a publish whose path is spelt unusually, so that the connection did not see it."""
        Query.parse(request.scope["query_string"], ())
        events = messages_of({}, await request.body(), limits, body_bytes_max)
        accepted = await port.publish(session_in(request), events)
        return answer(accepted, 202)

    async def concepts(request: Request) -> Response:
        Query.parse(request.scope["query_string"], ())
        return answer(ConceptList(list(in_use())))

    async def profile(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("after", "wait"))
        after = None if query.text("after") is None else query.number("after", 0)
        wait_s = query.seconds("wait", 0.0, most=WAIT_S_MAX)
        found = board.profile_after(session_in(request), after, wait_s)
        return answer(await (while_connected(request, server, found) if wait_s else found))

    async def stream_head(request: Request) -> Response:
        return Response(media_type="text/event-stream")

    async def socket_head(request: Request) -> Response:
        raise BadMethod("a WebSocket begins with GET", remedy="Open it with a WebSocket client.")

    return [
        Endpoint("POST", "/blackboard/messages", publish, BY_PORT),
        Endpoint("GET", "/blackboard/concepts", concepts, reads("blackboard/concepts")),
        Endpoint("GET", "/blackboard/profile", profile, BY_PORT),
        Endpoint("GET", "/blackboard/stream", stream_head, reads("blackboard/profile")),
        Endpoint("GET", "/blackboard/socket", socket_head, reads("blackboard/profile")),
    ]


def _publishers(board: Board, subscriptions: Subscriptions) -> list[Endpoint]:
    async def register(request: Request) -> Response:
        asked = members.read_object(await request.body())
        members.only_known(asked, ("address",))
        address = members.text("address", asked.get("address"))
        subscriptions.check_sink(address, by_http=True)
        registered = await board.register(session_in(request), address)
        return answer(PublisherInfo(registered.id, address, True, board.profile), 201)

    async def index(request: Request) -> Response:
        publishers = board.publishers(session_in(request))
        return answer(PublisherList([_publisher_info(each) for each in publishers]))

    async def unregister(request: Request) -> Response:
        await board.unregister(session_in(request), request.path_params["id"])
        return Response(status_code=204)

    async def unregister_address(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("address",))
        address = query.text("address")
        if not address:
            raise BadRequest(
                "the query names no address", remedy="DELETE /blackboard/publishers?address=URL."
            )
        registered = [each.registered for each in board.publishers(session_in(request))]
        known = [each.id for each in registered if each.address == address]
        for publisher in known or [address]:  # one that is not known is refused
            await board.unregister(session_in(request), publisher)
        return Response(status_code=204)

    return [
        Endpoint("DELETE", "/blackboard/publishers", unregister_address, BY_PORT),
        Endpoint("POST", "/blackboard/publishers", register, BY_PORT),
        Endpoint("GET", "/blackboard/publishers", index, BY_PORT),
        Endpoint("DELETE", "/blackboard/publishers/{id}", unregister, BY_PORT),
    ]


def _publisher_info(publisher: Publisher) -> PublisherInfo:
    registered = publisher.registered
    return PublisherInfo(registered.id, registered.address, publisher.away_since_s is None)


def _subscribers(subscribers: Subscribers, subscriptions: Subscriptions) -> list[Endpoint]:
    async def subscribe(request: Request) -> Response:
        asked = members.read_object(await request.body())
        members.only_known(asked, ("address", "concepts"))
        address = members.text("address", asked.get("address"))
        subscriptions.check_sink(address, by_http=True)
        concepts = _concepts(asked.get("concepts"))
        view, is_new = await subscribers.subscribe(session_in(request), address, concepts)
        return answer(_subscriber_info(view), 201 if is_new else 200)

    async def index(request: Request) -> Response:
        views = subscribers.views(session_in(request))
        return answer(SubscriberList([_subscriber_info(view) for view in views]))

    async def unsubscribe(request: Request) -> Response:
        query = Query.parse(request.scope["query_string"], ("address",))
        named = request.path_params.get("id") or query.text("address")
        await subscribers.unsubscribe(session_in(request), members.text("address", named))
        return Response(status_code=204)

    return [
        Endpoint("PUT", "/blackboard/subscribers", subscribe, BY_PORT),
        Endpoint("GET", "/blackboard/subscribers", index, BY_PORT),
        Endpoint("DELETE", "/blackboard/subscribers", unsubscribe, BY_PORT),
        Endpoint("DELETE", "/blackboard/subscribers/{id}", unsubscribe, BY_PORT),
    ]


def _concepts(value: object) -> list[str]:
    if not isinstance(value, list) or not 0 < len(value) <= CONCEPTS_MAX:
        members.refuse(
            "concepts", f"is {members.quoted(value)}", f"Give a list of 1 to {CONCEPTS_MAX} names."
        )
    return [members.text("concepts", each) for each in value]


def _subscriber_info(view: SubscriptionView) -> SubscriberInfo:
    subscription = view.subscription
    asked: list[str] = []
    for each in msgspec.json.decode(subscription.filters, type=list[dict[str, object]]):
        named = each.get("concepts")
        asked += map(str, named) if isinstance(named, list) else []
    return SubscriberInfo(
        id=subscription.id,
        address=subscription.sink or "",
        concepts=asked,
        expanded=len(profile_of(subscription) or ()),
        state=subscription.state.value,
        listed=view.listed,
        delivered=view.delivered,
        waiting=view.waiting,
    )

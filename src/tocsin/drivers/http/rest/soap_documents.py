"""`GET /soap?wsdl`: the descriptions of the SOAP services, the schemas they need, the topics."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response

from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.topics import SeenTopics
from tocsin.drivers.http.rest.endpoint import DESCRIPTION, Endpoint, reads, session_in
from tocsin.drivers.listeners.own_address import OwnAddresses
from tocsin.errors import NoSuchPath
from tocsin.services.soap.context import topics_for
from tocsin.wire.wsdl import schema, services, wsdl
from tocsin.wire.wstopics.tree import TopicTree
from tocsin.wire.wstopics.write import topic_namespace, topic_set

_PATHS = (
    "/soap",
    "/soap/{below:path}",  # a subscription, a box, a topic: tools ask each address for its WSDL
    "/axis2/services/{below:path}",
    "/wsman",
    "/wsman/{below:path}",
    "/wsman-anon/identify",
    "/onvif/{below:path}",
)

_NAMESPACES_LISTED = 10


def soap_document_routes(
    port: BrokerPort, topics_seen: SeenTopics, addresses: OwnAddresses
) -> list[Endpoint]:
    """What GET gives where POST takes SOAP."""

    async def document(request: Request) -> Response:
        query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        asked = {name.lower(): values[0] for name, values in query.items()}
        found: bytes | None = None
        if "wsdl" in asked:
            found = wsdl(addresses.base(request.headers.get("host", "")), asked["wsdl"] or None)
        elif "xsd" in asked:
            found = schema(asked["xsd"])
        if found is None:
            raise NoSuchPath(
                "SOAP messages are sent here with POST; GET gives their description",
                remedy=f"Ask for ?wsdl, or ?wsdl=NAME with one of: {', '.join(services())}.",
            )
        return Response(found, media_type="text/xml")

    async def topics(request: Request) -> Response:
        return Response(
            _topics(
                topics_for(port, session_in(request), topics_seen),
                request.query_params.get("namespace"),
            ),
            media_type="text/xml",
        )

    return [
        Endpoint("GET", "/soap/topics", topics, reads("topics")),
        *(Endpoint("GET", path, document, DESCRIPTION) for path in _PATHS),
    ]


def _topics(tree: TopicTree, namespace: str | None) -> bytes:
    """The TopicSet of all that is published, or the TopicNamespace of one namespace in it."""
    if namespace is None:
        return topic_set(tree)
    found = topic_namespace(tree, namespace)
    if found is None:
        known = ", ".join(tree.namespaces[:_NAMESPACES_LISTED]) or "none"
        raise NoSuchPath(
            f"no topic is known in the namespace {namespace[:200]!r}",
            remedy=f"These have some: {known}.",
        )
    return found

"""HttpListener: the HTTP listener of a broker, opened and closed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from starlette.routing import compile_path

from tocsin.config import HttpSettings, is_loopback
from tocsin.drivers.http.asgi import AsgiExchange
from tocsin.drivers.http.connection import Connection
from tocsin.drivers.http.exchange import Exchange
from tocsin.drivers.http.frame_stream import FrameStream, wants_stream
from tocsin.drivers.http.guard import Guard
from tocsin.drivers.http.request import Request
from tocsin.drivers.http.rest.app import application
from tocsin.drivers.http.rest.context import RestContext
from tocsin.drivers.http.rest.control import STREAM, bus_in_use, wants_requests
from tocsin.drivers.http.rest.resources import in_use
from tocsin.drivers.http.server import HttpServer
from tocsin.drivers.http.session import session_of, socket_session
from tocsin.drivers.http.soap_exchange import SoapExchange
from tocsin.drivers.http.streams import EventStreamTransport, SocketTransport
from tocsin.drivers.listeners.bind_address import host_and_port, why_not
from tocsin.drivers.listeners.budget import ReceiveBudget
from tocsin.errors import BadSetting
from tocsin.services.blackboard.socket import BoardSocket
from tocsin.services.blackboard.stream import ProfileCaches
from tocsin.services.control.stream import ControlStream
from tocsin.services.discovery.stream import DiscoveryStream
from tocsin.services.publishing.publish import submit
from tocsin.services.soap.call import Answer
from tocsin.services.soap.paths import is_soap_path
from tocsin.services.streams.event_socket import EventSocket
from tocsin.services.streams.event_stream import EventStream
from tocsin.services.streams.frame_cache import FrameCache
from tocsin.services.streams.transport import SocketLimits
from tocsin.services.streams.websocket import UpgradeRequest
from tocsin.wire.api.query import Query
from tocsin.wire.api.stream_request import read_board_request, read_stream_request
from tocsin.wire.cloudevents.write import server_sent_event, socket_message

BACKLOG: Final = 2_048  # connections that the kernel holds while the loop is busy
CLOSING_S: Final = 0.7  # for answers in progress; the rest are cut off
_POLL_S: Final = 0.01

OpenExchange = Callable[..., Exchange]
"""For a connection, a request, and the parameters of its path by name."""


class HttpListener:
    """A listener, and what answers each request."""

    def __init__(
        self, context: RestContext, soap: Answer, budget: ReceiveBudget | None = None
    ) -> None:
        """Without the `budget` of other listeners it has one of its own."""
        self._loop = asyncio.get_running_loop()
        self._broker = port = context.port
        self._context = context
        self._soap = soap
        self._streams = FrameCache(server_sent_event)
        self._sockets = FrameCache(socket_message)
        self._boards = ProfileCaches()
        self.long_lived: Mapping[str, OpenExchange] = {  # what a GET opens, by its path
            "/events/stream": self._event_stream,
            "/events/socket": self._event_socket,
            "/blackboard/stream": self._board_stream,
            "/blackboard/socket": self._board_socket,
            "/discoveries/{id}/stream": self._discovery_stream,
            STREAM: self._control_stream,
        }
        self._openers = [(compile_path(path)[0], opens) for path, opens in self.long_lived.items()]
        settings, note = context.settings, port.runtime.note
        http: HttpSettings = settings.http
        self.server = HttpServer(
            self._loop,
            limits=http,
            event_limits=settings.event_limits(),
            guard=Guard(on_loopback=is_loopback(http.address), names=http.names),
            publish=partial(submit, port),
            exchange=self._exchange,
            note=note,
            budget=budget or ReceiveBudget(settings.limits.receiving_bytes_max, note),
            per_peer_max=settings.limits.connections_per_peer_max,
            peer_connected=port.peer_connected,
            sign_in=context.access.sign_in,
            quotas=context.access.connection_quotas,
        )
        self._application = application(context, self.server)
        self._server: asyncio.Server | None = None
        self.host = ""
        self.port = 0

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def open(self, address: str, tls: ssl.SSLContext | None) -> None:
        self.host, port = host_and_port(address)
        deadline_s = None if tls is None else self.server.limits.header_deadline_s
        try:
            self._server = await self._loop.create_server(
                lambda: Connection(self.server),
                self.host,
                port,
                backlog=BACKLOG,
                ssl=tls,
                ssl_handshake_timeout=deadline_s,
            )
        except (OSError, UnicodeError) as error:
            raise BadSetting(
                f"cannot listen on {address}: {why_not(error)}",
                remedy="Choose another address with --http HOST:PORT; port 0 takes any free one.",
            ) from None
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Take no more requests, let those in progress end, end streams."""
        self.server.closing.set()
        if self._server is not None:
            self._server.close()
        for connection in list(self.server.connections):
            connection.stop()
        deadline_s = self._loop.time() + CLOSING_S
        while self.server.connections and self._loop.time() < deadline_s:
            await asyncio.sleep(_POLL_S)
        for connection in list(self.server.connections):
            connection.abort()
        self.server.close()
        await asyncio.sleep(0)

    def _exchange(self, connection: Connection, request: Request) -> Exchange:
        path = request.path
        if request.method == b"GET":
            for pattern, opens in self._openers:
                if (found := pattern.match(path)) is not None:
                    return opens(connection, request, **found.groupdict())
        if request.method == b"POST":
            if is_soap_path(path):
                return SoapExchange(connection, request, self._soap, self._base(request))
            if path == "/gma" and wants_stream(request):
                return FrameStream(connection, request, self._context.performance)
        return AsgiExchange(connection, request, self._application)

    def _event_stream(self, connection: Connection, request: Request) -> Exchange:
        asked = read_stream_request(request.query, _last_event_id(request))
        session = session_of(connection, request.headers)
        transport = EventStreamTransport(connection)
        return EventStream(self._broker, session, transport, asked, self._streams)

    def _board_stream(self, connection: Connection, request: Request) -> Exchange:
        asked = read_board_request(request.query, _last_event_id(request))
        session = session_of(connection, request.headers)
        transport = EventStreamTransport(connection)
        return EventStream(self._broker, session, transport, asked, self._boards.of(asked))

    def _discovery_stream(self, connection: Connection, request: Request, id: str) -> Exchange:
        Query.parse(request.query, ())
        session = session_of(connection, request.headers)
        discovery, runtime = in_use(self._context.discovery), self._broker.runtime
        return DiscoveryStream(discovery, runtime, session, EventStreamTransport(connection), id)

    def _control_stream(self, connection: Connection, request: Request) -> Exchange:
        has_requests = wants_requests(request.query)
        session = session_of(connection, request.headers)
        bus, runtime = bus_in_use(self._context.control), self._broker.runtime
        transport = EventStreamTransport(connection)
        return ControlStream(bus, runtime, session, transport, has_requests=has_requests)

    def _event_socket(self, connection: Connection, request: Request) -> Exchange:
        return EventSocket(
            self._broker,
            socket_session(connection, request.headers),
            self._socket_limits(self.server.event_limits.event_bytes_max),
            SocketTransport(connection),
            _upgrade(request),
            self._sockets,
        )

    def _board_socket(self, connection: Connection, request: Request) -> Exchange:
        return BoardSocket(
            self._broker,
            socket_session(connection, request.headers),
            self._socket_limits(self.server.limits.body_bytes_max),  # a batch, as in a POST
            SocketTransport(connection),
            _upgrade(request),
            self._context.board,
        )

    def _socket_limits(self, message_bytes_max: int) -> SocketLimits:
        server = self.server
        return SocketLimits(server.event_limits, message_bytes_max, server.limits.pipelined_max)

    def _base(self, request: Request) -> str:
        """How the client reaches us: the start of the addresses that it is given."""
        host = request.headers.get(b"host", b"").decode("latin-1")
        return self._context.addresses.base(host or self.address)


def _last_event_id(request: Request) -> str | None:
    return request.headers.get(b"last-event-id", b"").decode("latin-1") or None


def _upgrade(request: Request) -> UpgradeRequest:
    return UpgradeRequest(request.target.decode("latin-1"), list(request.headers.items()))


async def listen(
    context: RestContext,
    address: str,
    soap: Answer,
    *,
    tls: ssl.SSLContext | None = None,
    budget: ReceiveBudget | None = None,
) -> HttpListener:
    """Open the HTTP listener of a broker; `soap` answers what comes in as SOAP."""
    listener = HttpListener(context, soap, budget)
    await listener.open(address, tls)
    return listener

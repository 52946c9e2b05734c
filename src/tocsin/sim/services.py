"""The services of a simulated process: those that ship, given a simulated runtime and port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from tocsin.access.session import Session, anonymous, internal
from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.sinks import Sink, Sinks, url_sink
from tocsin.broker.delivery.trust import SinkRules
from tocsin.broker.effects import Accepted
from tocsin.broker.port import BrokerPort
from tocsin.broker.recent.latest import Latest
from tocsin.broker.recent.topics import SeenTopics
from tocsin.broker.recent.types import SeenTypes
from tocsin.broker.runtime import HttpAnswer, Signal
from tocsin.errors import NotSignedIn, TocsinError
from tocsin.services.blackboard.board import Board
from tocsin.services.blackboard.socket import BoardSocket
from tocsin.services.blackboard.subscribers import Subscribers
from tocsin.services.dead_letters.dead_letters import DeadLetters
from tocsin.services.discovery.service import ResourceDiscovery
from tocsin.services.link.service import LinkService
from tocsin.services.mailbox.local_delivery import OwnBoxes
from tocsin.services.mailbox.mailboxes import Mailboxes, MailboxOptions
from tocsin.services.performance.service import PerformanceOptions, PerformanceService
from tocsin.services.publishing import publish as publishing
from tocsin.services.soap.call import SoapCall
from tocsin.services.soap.consumers import ConsumerRules
from tocsin.services.soap.context import SoapContext, SoapOptions
from tocsin.services.soap.paths import is_soap_path
from tocsin.services.soap_services import broker_dispatcher
from tocsin.services.streams.event_socket import EventSocket
from tocsin.services.streams.event_stream import EventStream
from tocsin.services.streams.frame_cache import FrameCache
from tocsin.services.streams.transport import SocketLimits, StreamTransport
from tocsin.services.streams.websocket import UpgradeRequest
from tocsin.services.subscriptions.subscriptions import Subscriptions
from tocsin.sim.network import Request, Response
from tocsin.sim.node import SimNode
from tocsin.sim.plan import BrokerPlan
from tocsin.sim.site_access import ProcessAccess, SiteAccess
from tocsin.wire.api.problem import problem_json, retry_after_s
from tocsin.wire.api.stream_request import read_stream_request
from tocsin.wire.cloudevents.limits import Limits
from tocsin.wire.cloudevents.write import server_sent_event, socket_message

BOXES_MAX: Final = 100
LEASE_S: Final = 10_000.0
BODY_BYTES_MAX: Final = 1 << 20
UNANSWERED_MAX: Final = 2  # messages of a WebSocket; one that sends three at a time is paused


_SINKS: Final[Sinks[Sink]] = Sinks({"http"}, url_sink)


class Services:
    """Everything that answers in one process."""

    def __init__(
        self,
        node: SimNode,
        host: str,
        plan: BrokerPlan,
        open_boxes: Callable[[], BrokerPort],
        site_access: SiteAccess | None = None,
    ) -> None:
        self.access: ProcessAccess | None = None if site_access is None else site_access.process
        self._site_access = site_access
        self.node = node
        self.port = node.port
        self._base = f"http://{host}"
        self.topics = SeenTopics(node.runtime, node.recent)
        node.on_known.append(self.topics.counts.add)
        self.letters = DeadLetters(node.port)
        self.letter_owner = node.port.own(internal("simulator")).letter_owner
        self._limits = Limits()
        self.mailboxes = Mailboxes(
            open_boxes,
            MailboxOptions(
                boxes_max=BOXES_MAX,
                backlog=plan.box_backlog,
                lease_s=LEASE_S,
                redeliver_s=plan.redeliver_s,
                message_bytes_max=self._limits.event_bytes_max,
            ),
        )
        self.dispatcher = broker_dispatcher(self._soap_context(plan), self.mailboxes)
        self.own_boxes = OwnBoxes(node.runtime, self.dispatcher.answer)
        self.board = Board(node.port)
        node.on_interest.append(self.board.interest_changed)
        self.subscribers = Subscribers(node.port)
        self.subscriptions = Subscriptions(
            node.port, _SINKS, SinkRules(), _check_not_ourselves, _seal
        )
        self.performance = PerformanceService(
            node.port,
            PerformanceOptions(self._limits),
            SeenTypes(node.runtime, node.broker.head, node.recent),
            Latest(node.runtime, node.recent).of_type,
        )
        # Once this broker is part of an overlay:
        self.discovery: ResourceDiscovery | None = None
        self.links: LinkService | None = None
        self._frames = FrameCache(socket_message)
        self._sent_events = FrameCache(server_sent_event)
        self._socket_limits = SocketLimits(
            self._limits, self._limits.event_bytes_max, UNANSWERED_MAX
        )

    def _soap_context(self, plan: BrokerPlan) -> SoapContext:
        node = self.node
        return SoapContext(
            port=node.port,
            options=SoapOptions(
                event_limits=self._limits,
                pull_points_max=BOXES_MAX,
                pull_point_backlog=plan.box_backlog,
                pull_wait_s_max=plan.options.pull_wait_s_max,
                redeliver_s=plan.redeliver_s,
            ),
            consumers=ConsumerRules(_SINKS, SinkRules(), _accept),
            topics=self.topics,
            latest=Latest(node.runtime, node.recent).on,
            on_ended=node.on_ended.append,
        )

    def close_links(self) -> None:
        """The broker begins to stop, or is gone: then nobody hears it."""
        links, self.links = self.links, None
        if links is not None:
            self.node.runtime.finish(links.close())

    def close(self) -> None:
        """The process ends: nothing goes on."""
        self.close_links()
        self.own_boxes.close()
        self.dispatcher.close()
        self.board.close()

    async def answer(self, request: Request) -> Response:
        """The answer to an HTTP request at this host."""
        if is_soap_path(request.path):
            return await self._soap(request)
        assert request.path == "/events"
        try:
            accepted = await self._publish(request)
        except TocsinError as error:
            return _refused(error)
        body = msgspec.json.encode(publishing.publish_result(accepted))
        return Response(HttpAnswer(202, {}, body))

    async def _publish(self, request: Request) -> Accepted:
        """As a connection does, which waits for the answer in another way."""
        headers = {name.encode(): value.encode() for name, value in request.headers.items()}
        events = publishing.events_of(headers, request.body, self._limits, BODY_BYTES_MAX)
        waiter: Signal = self.node.runtime.signal()
        session = self._session(request.headers, "http", request.peer)
        publishing.submit(self.port, session, events, waiter)
        accepted: Accepted = await waiter
        return accepted

    def _session(self, headers: Mapping[str, str], endpoint: str, peer: str) -> Session:
        """As the listener gives it to a request with these headers."""
        if self._site_access is None:
            return anonymous(endpoint, peer)
        found = self._site_access.session_of(headers.get("authorization"), endpoint, peer)
        if found is None:
            raise NotSignedIn("the credential is not valid", remedy="Get another.")
        return found

    def event_socket(
        self, session: Session, transport: StreamTransport, upgrade: UpgradeRequest
    ) -> EventSocket:
        """A client asks for a WebSocket."""
        limits = self._socket_limits
        return EventSocket(self.port, session, limits, transport, upgrade, self._frames)

    def event_stream(
        self,
        session: Session,
        transport: StreamTransport,
        query: bytes,
        last_event_id: str | None,
    ) -> EventStream:
        """A client follows the log by server-sent events."""
        asked = read_stream_request(query, last_event_id)
        return EventStream(self.port, session, transport, asked, self._sent_events)

    def board_socket(
        self, session: Session, transport: StreamTransport, upgrade: UpgradeRequest
    ) -> BoardSocket:
        """A client asks for a WebSocket of the blackboard."""
        return BoardSocket(self.port, session, self._socket_limits, transport, upgrade, self.board)

    async def _soap(self, request: Request) -> Response:
        try:
            session = self._session(request.headers, "soap", request.peer)
        except NotSignedIn as error:
            return Response(HttpAnswer(error.http_status, {}, b""))
        call = SoapCall(
            body=request.body,
            content_type=request.headers["content-type"],
            soap_action=request.headers.get("soapaction", ""),
            path=request.path,
            query="",
            base=self._base,
            session=session,
        )
        answer = await self.dispatcher.answer(call)
        task = self.node.runtime.current
        assert task is not None
        headers = {"content-type": answer.content_type}
        return Response(HttpAnswer(answer.status, headers, answer.body), answer.receipt, task.taken)


def _refused(error: TocsinError) -> Response:
    wait_s = retry_after_s(error)
    headers = {} if wait_s is None else {"retry-after": str(wait_s)}
    return Response(HttpAnswer(error.http_status, headers, problem_json(error)))


def _accept(address: SinkAddress, reached_as: str) -> None:
    """Simulated brokers do not push to themselves."""


def _seal(text: str, about: str) -> str:
    """The simulated disk is read by nobody."""
    del about
    return text


def _check_not_ourselves(address: SinkAddress) -> None:
    """The same."""

"""Readers: they ask for pages of the log, for the current message, and for what there is, where
everybody signs in. What they are answered is looked at when it leaves the broker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any, Final

from tocsin.access.decision import Action
from tocsin.access.session import Session
from tocsin.errors import NotAllowed, TocsinError
from tocsin.event.filter_text import parse_filter
from tocsin.event.instant import NS_PER_MS
from tocsin.event.subscription import Kind
from tocsin.services.event_pages import EventPage, read_page
from tocsin.services.topic_list import list_topics
from tocsin.sim.checks.reading import Asked, ReadCheck
from tocsin.sim.clients.performance import NAME, PARAMETERS
from tocsin.sim.machine import Machine
from tocsin.sim.network import Request, Response
from tocsin.sim.rights import Shape
from tocsin.sim.services import Services
from tocsin.sim.site_access import SiteAccess
from tocsin.sim.workload import TOPICS
from tocsin.wire.gma import messages as m
from tocsin.wire.gma.read import read as read_performance
from tocsin.wire.soap.addressing import write_headers
from tocsin.wire.soap.element import element
from tocsin.wire.soap.envelope import content_type, write_envelope
from tocsin.wire.soap.mediation import payload_of
from tocsin.wire.soap.names import WSA2005, WSN13

READS_MS: Final = (10, 700)
IN_TIME: Final = 0.5  # the chance that a token is about to end when somebody reads
LIMITS: Final = (1, 3, 100)
WAIT_S: Final = (0.0, 0.02, 0.3)  # for another profile of the blackboard
KEPT: Final = 0.4  # the chance that somebody asks by a connection that he has signed in on before
FILTERS: Final[dict[str, Callable[[Shape], bool]]] = {
    "": lambda shape: True,
    "topic lab/**": lambda shape: shape.topic.startswith("lab/"),
    "level >= 5": lambda shape: shape.level is not None and shape.level >= 5,
    "topic */b and kind = 'x'": lambda shape: shape.topic.endswith("/b") and shape.kind == "x",
}
CURRENT: Final = "http://docs.oasis-open.org/wsn/bw-2/NotificationProducer/GetCurrentMessageRequest"
CONCRETE: Final = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/Concrete"

Work = Callable[[Services], Coroutine[Any, Any, Any]]
Answered = Callable[[Any], None]


class Reader:
    """Somebody who reads some times, of one broker."""

    def __init__(self, machine: Machine, access: SiteAccess, number: int, reads: int) -> None:
        self._machine = machine
        self._access = access
        self._world = machine.world
        self._log = machine.checks.log
        self._check = ReadCheck(access.model, machine.checks.log)
        self._random = Random(f"reader {machine.world.seed} {machine.host} {number}")
        self._principal = access.principal_of(f"reader {number}")
        self._peer = f"reader-{number}.example:6000"
        self._reads = reads
        self._session: Session | None = None  # of a connection that may be kept,
        self._is_kept = False  # and is, this time

    @property
    def is_done(self) -> bool:
        return self._reads == 0

    def start(self) -> None:
        ending = self._ending() if self._random.random() < IN_TIME else None
        if ending is None:
            self._world.after_ms(self._random.uniform(*READS_MS), self._next)
            return
        text, in_ns = ending
        before_ns = int(self._random.uniform(0, 2) * self._machine.plan.disk_ms_max * NS_PER_MS)
        self._world.at(
            self._world.now_ns + in_ns - before_ns, partial(self._read_in_time, f"Bearer {text}")
        )

    def _ending(self) -> tuple[str, int] | None:
        """A token that is to end soon, and in how many nanoseconds."""
        model, wallets = self._access.model, self._access.wallets.values()
        now_ns, texts = model.now_ns(), [text for wallet in wallets for text in wallet]
        found = [
            (text, ends_ns - now_ns)
            for text in texts
            if (ends_ns := self._access.end_of(text)) is not None
            and 0 < ends_ns - now_ns < READS_MS[1] * NS_PER_MS
        ]
        return self._random.choice(found) if found and now_ns else None

    def _read_in_time(self, header: str) -> None:
        """A page is asked for just before a token ends, and answered just after, or before too."""
        if self._machine.process is not None and self._access.process is not None:
            found = self._access.session_of(header, "http", self._peer)
            if found is not None:
                self._session, self._is_kept = found, True
                self._page()
        self._next(is_read=True)

    def _next(self, *, is_read: bool = False) -> None:
        self._reads -= 1
        is_there = self._machine.process is not None and self._access.process is not None
        if is_there and not is_read:
            self._random.choice(
                (
                    self._page,
                    self._page,
                    self._page,
                    self._topics,
                    self._current,
                    self._query,
                    self._subscriptions,
                    self._letters,
                    self._profile,
                )
            )()
        if self._reads:
            self.start()

    def _signed_in(self) -> Session:
        is_kept, self._is_kept = self._is_kept or self._random.random() < KEPT, False
        if self._session is None or not is_kept:
            self._session = self._access.session(self._principal, "http", self._peer)
        return self._session

    def _call(self, name: str, work: Callable[..., Coroutine[Any, Any, Any]], check: Any) -> None:
        """`work` is given the services and the session; `check` what was asked, and the answer."""
        session = self._signed_in()
        asked = self._check.begin(session)

        def answered(result: object) -> None:
            if isinstance(result, NotAllowed):
                self._world.seen[f"access: a reader was refused: {name}"] += 1
            elif isinstance(result, TocsinError):
                self._world.seen[f"access: a reader got {type(result).__name__}"] += 1
            elif isinstance(result, Exception):
                raise result
            else:
                self._world.seen[f"access: read: {name}"] += 1
                check(asked, result)

        self._machine.call(lambda services: work(services, session), answered)

    # The log

    def _page(self) -> None:
        after = self._random.randint(0, max(0, self._log.last))
        limit = self._random.choice(LIMITS)
        text, wants = self._random.choice(list(FILTERS.items()))

        async def work(services: Services, session: Session) -> EventPage:
            return await read_page(services.port, session, after, limit, parse_filter(text))

        def check(asked: Asked, page: EventPage) -> None:
            self._world.trace(f"{asked.holder.name} reads {[each.seq for each in page.events]}")
            self._check.page(asked, after, limit, wants, page)

        self._call("a page", work, check)

    def _topics(self) -> None:
        async def work(services: Services, session: Session) -> Any:
            services.port.check(session, Action.READ, "topics")
            counts, now_ns = services.topics.counts, services.node.runtime.now_ns()
            return await list_topics(services.port, counts, session, b"", now_ns)

        self._call("topics", work, self._check.topics)

    def _query(self) -> None:
        """The last performance event."""
        request = m.QueryRequest("1", PARAMETERS)

        async def work(services: Services, session: Session) -> m.Message:
            return read_performance(await services.performance.query(request, session))

        def check(asked: Asked, reply: m.Message) -> None:
            if isinstance(reply, m.QueryReply) and reply.event is not None:
                self._world.seen["access: read: a performance event"] += 1
                events = [each for each in self._log.events.values() if each.type == NAME.type]
                self._check.one_of(asked, events, f"{asked.holder.name} asks for {NAME}")

        self._call("a query", work, check)

    # What there is

    def _subscriptions(self) -> None:
        kind = self._random.choice((Kind.PUSH, Kind.BOX))

        async def work(services: Services, session: Session) -> Any:
            return services.subscriptions.page(session, b"", kind)

        self._call("subscriptions", work, lambda asked, page: self._check.views(asked, page.views))

    def _letters(self) -> None:
        found: list[Any] = []

        async def work(services: Services, session: Session) -> Any:
            found.append(services.letter_owner)
            return await services.letters.page(session, after="", limit=20, subscription=None)

        self._call(
            "dead letters",
            work,
            lambda asked, page: self._check.letters(asked, page.letters, found[0]),
        )

    def _profile(self) -> None:
        wait_s = self._random.choice(WAIT_S)

        async def work(services: Services, session: Session) -> Any:
            return await services.board.profile_after(
                session, services.board.profile.version, wait_s
            )

        self._call(
            "the profile",
            work,
            lambda asked, _: self._check.resource(asked, "blackboard/profile"),
        )

    # The current message, as a consumer of Web services asks for it

    def _current(self) -> None:
        header = self._access.header(self._principal)
        session = self._access.session_of(header, "soap", self._peer)
        if session is None:
            return
        topic, asked = self._random.choice(TOPICS), self._check.begin(session)
        name = b'<n:Topic Dialect="%b">%b</n:Topic>' % (CONCRETE.encode(), topic.encode())
        to = f"http://{self._machine.host}/soap"
        message = write_envelope(
            "1.2",
            header=write_headers(WSA2005, action=CURRENT, message_id=None, to=to),
            body=element("n", WSN13, "GetCurrentMessage", name),
        )
        fields = {"content-type": content_type("1.2")}
        if header is not None:
            fields["authorization"] = header
        request = Request("/soap", message, fields, self._peer)
        self._machine.handle(request, partial(self._has_current, asked, topic))

    def _has_current(self, asked: Asked, topic: str, response: Response) -> None:
        if response.answer.status >= 300:
            self._world.seen["access: a reader was refused: the current message"] += 1
            return
        self._world.seen["access: read: the current message"] += 1
        events = [
            each
            for each in self._log.events.values()
            if each.topic == topic and payload_of(each) in response.answer.body
        ]
        self._check.one_of(asked, events, f"{asked.holder.name} asks for the last on {topic}")

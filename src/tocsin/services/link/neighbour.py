"""Neighbour: a broker that is or was connected, with its place in the log and what it sends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from tocsin.access.decision import Action
from tocsin.access.session import Session
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import Signal, Tasks
from tocsin.errors import InternalError, NotAcknowledged, PeerFailed, TocsinError
from tocsin.event.stored import Stored
from tocsin.services.link.backlog import Backlog
from tocsin.services.link.connection import Connection
from tocsin.services.link.forwarder import Counts, Forwarder
from tocsin.services.link.identity import Ids
from tocsin.services.link.intake import EventIntake
from tocsin.services.link.rights import check_link
from tocsin.services.repeated_log import RepeatedLog
from tocsin.wire.link.messages import Events, NotStored, Relayed


class Neighbour:
    """See the module. While it is connected, `connection` is set."""

    def __init__(self, broker: str, port: BrokerPort) -> None:
        self.broker = broker
        self.link_id = ""  # of the subscription by which it has a place in the log
        self.connection: Connection | None = None
        self.since_ns: int | None = None  # it is connected, or not
        self.link_error: TocsinError | None = None  # the last one, until it is connected again
        self.entry_error: TocsinError | None = None  # of entries, since it is connected
        self.events_error: TocsinError | None = None  # some are not stored, here or there
        self.counts = Counts()
        self._session: Session | None = None
        self._port = port
        self._tasks = Tasks(port.runtime)
        self._log = RepeatedLog(port.runtime)
        self._holds: set[str] = set()
        self._free: Signal | None = None  # awaited by the forwarder while it is held
        self._forwarder: Forwarder | None = None
        self._intake: EventIntake | None = None

    @property
    def error(self) -> TocsinError | None:
        return self.events_error or self.entry_error or self.link_error

    @property
    def in_flight(self) -> int:
        return 0 if self._forwarder is None else self._forwarder.in_flight

    def connect(
        self,
        connection: Connection,
        session: Session,
        ids: Ids,
        is_for: Callable[[str, Stored], bool],
        batch_events_max: int,
        backlog: Backlog,
    ) -> None:
        """The tables of both sides are complete: events may go."""
        self.disconnect()
        self.connection, self._session = connection, session
        self._forwarder = Forwarder(
            self._port,
            session,
            self.link_id,
            connection,
            (ids.broker, ids.log),
            lambda stored: is_for(self.broker, stored),
            self.counts,
            batch_events_max,
            self._until_free,
            self.permitted,
        )
        self._intake = EventIntake(
            self._port, session, connection, ids.log, self.counts, backlog, self._note_not_stored
        )
        self._tasks.spawn(_guarded(connection, self._forwarder.run))

    def disconnect(self) -> None:
        if self._intake is not None:
            self._intake.close()
        self.connection = self._forwarder = self._intake = None
        self._tasks.cancel()

    def close(self) -> None:
        self.disconnect()

    def hold(self, why: str) -> None:
        """Send no events of the log until all who hold it have released it: older ones are on
        their way."""
        self._holds.add(why)

    def release(self, why: str) -> None:
        self._holds.discard(why)
        if not self._holds and self._free is not None:
            free, self._free = self._free, None
            free.answer(None)

    async def _until_free(self) -> None:
        while self._holds:
            self._free = self._port.runtime.signal()
            await self._free

    def take(self, message: Events, size: int) -> None:
        """Events came from it, in so many bytes."""
        if self.connection is None or self._intake is None:
            return
        if self._intake.take(message, size):
            self._tasks.spawn(_guarded(self.connection, self._intake.run))

    def resume(self) -> None:
        """It sends again what was not stored."""
        if self._intake is not None:
            self.events_error = None
            self._intake.resume()

    def _note_not_stored(self, error: TocsinError) -> None:
        self.events_error = error
        self._log.note(
            "error",
            "events of a neighbour are not stored: it sends them again later",
            (error.code,),
            neighbour=self.broker,
            code=error.code,
            why=error.problem,
            remedy=error.remedy,
        )

    def not_stored(self, message: NotStored) -> None:
        """It says so of all that it has not acknowledged."""
        if self._forwarder is None:
            return
        self.events_error = PeerFailed(
            f"{self.broker} does not store events: {message.reason} [{message.code}]",
            remedy="They are sent again. Look at that broker, and at its disk.",
        )
        pause_s = self._forwarder.not_stored()
        self._log.note(
            "warning",
            "a neighbour does not store events: they are sent again later",
            (),
            neighbour=self.broker,
            code=message.code,
            why=message.reason,
            pause_s=pause_s,
        )

    def acknowledged(self, through: int) -> None:
        if self._forwarder is not None and self._forwarder.acknowledged(through):
            self.events_error = None

    def overdue(self, now_s: float, late_s: float, allowed_s: float) -> NotAcknowledged | None:
        """If it has not acknowledged for so long what it was sent. `late_s`: this broker could not
        read meanwhile."""
        if self._forwarder is None:
            return None
        if late_s:
            self._forwarder.excuse(late_s)
        return self._forwarder.overdue(now_s, allowed_s)

    def permitted(self, events: Sequence[Relayed]) -> list[Relayed]:
        """Those that it may be sent now. Raises NotAllowed or NotSignedIn if it may not be linked
        any more: then they are not taken for sent."""
        connection = self.connection
        if connection is None or self._session is None:
            raise PeerFailed("its link has ended", remedy="They are sent by the next one.")
        check_link(self._port, connection)
        permit = self._port.access.session_permit(self._session, Action.SUBSCRIBE)
        return [each for each in events if permit is None or permit.allows(each.event)]

    def accepted(self, events: tuple[Relayed, ...]) -> tuple[Relayed, ...]:
        """Those that it may publish here."""
        if self._session is None:
            return ()
        return tuple(each for each in events if self._may_publish(self._session, each))

    def _may_publish(self, session: Session, relayed: Relayed) -> bool:
        try:
            self._port.check_events(session, [relayed.event])
        except TocsinError:
            return False
        return True

    async def store(self, events: tuple[Relayed, ...]) -> bool:
        """Events that another broker handed over came by it."""
        intake = self._intake
        return intake is not None and await intake.store(events, lambda: self._intake is not intake)


async def _guarded(connection: Connection, work: Callable[[], Awaitable[None]]) -> None:
    """A bug ends the link, so that both sides begin anew: neither waits for what never comes.

    The work is called here: a coroutine made before would be left over if this never begins.
    """
    try:
        await work()
    except Exception as error:
        connection.abort(internal_error(f"{type(error).__name__}: {error}"))
        raise


def internal_error(words: str) -> InternalError:
    return InternalError(f"this broker failed: {words}", remedy="Please report it.")

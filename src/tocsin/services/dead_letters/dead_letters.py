"""DeadLetters: what was given up, as the caller may see it.

Who made a subscription sees its dead letters; all others are for who may read all. The event in a
letter must be allowed too: a right that has ended hides what it once gave. A letter that is not
there and one of somebody else are refused alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tocsin.access.decision import Action, Readable
from tocsin.access.session import Session, internal
from tocsin.broker.delivery.deadletter import DeadLetter, from_record
from tocsin.broker.effects import Redriven
from tocsin.broker.log import StoreReader
from tocsin.broker.port import BrokerPort
from tocsin.errors import NoSuchDeadLetter
from tocsin.event.subscription import Owner

PAGE: Final = 200
SCANNED_MAX: Final = 10_000  # letters that one call looks at for those of one subscription
ALL: Final = "deadletter/*"
OWN: Final = "deadletter/own"

_SERVICE: Final = internal("dead letters")

Seen = Callable[[DeadLetter], bool]


class LettersPage(msgspec.Struct, frozen=True):
    """Some dead letters by id, and from where to go on."""

    letters: list[DeadLetter]
    next: str | None


class DeadLetters:
    """Listing, showing, dropping and sending again."""

    def __init__(self, port: BrokerPort) -> None:
        self._port = port
        self._owner_of = port.own(_SERVICE).letter_owner

    async def page(
        self, session: Session, *, after: str, limit: int, subscription: str | None
    ) -> LettersPage:
        """Those of one subscription or of all that the caller may see."""
        reads_all = self._may_read_all(session)
        if not reads_all:
            self._port.check(session, Action.READ, OWN)
        may_see = self._seen(session, reads_all=reads_all)

        def is_wanted(letter: DeadLetter) -> bool:
            if subscription is not None and letter.subscription != subscription:
                return False
            return may_see(letter)

        page = await self._port.read(
            session,
            ALL if reads_all else OWN,
            lambda log: _scan(log, after, limit, is_wanted),
        )
        # While the log was asked, a right may have ended.
        may_see = self._seen(session, reads_all=reads_all and self._may_read_all(session))
        return LettersPage([each for each in page.letters if may_see(each)], page.next)

    def _may_read_all(self, session: Session) -> bool:
        return self._port.may(session, Action.READ, ALL)

    async def find(self, session: Session, letter_id: str) -> DeadLetter:
        """NoSuchDeadLetter for who may read all; NotAllowed for everybody else."""
        letter = await self._allowed(session, Action.READ, letter_id)
        reads_it = self._port.may(session, Action.READ, f"deadletter/{letter_id}")
        if not self._seen(session, reads_all=reads_it)(letter):
            # As what is somebody else's.
            self._port.check(session, Action.READ, f"deadletter/{letter_id}")
            raise _no_such(letter_id)
        return letter

    async def drop(self, session: Session, letter_id: str) -> None:
        await self._port.drop_dead_letter(
            session, await self._allowed(session, Action.MANAGE, letter_id)
        )

    async def redrive(self, session: Session, letter_id: str) -> Redriven:
        """Send it again, to where its subscription points now."""
        letter = await self._allowed(session, Action.MANAGE, letter_id)
        return await self._port.redrive(session, letter)

    async def _allowed(self, session: Session, action: Action, letter_id: str) -> DeadLetter:
        """The letter, if the caller may do this to it."""
        resource = f"deadletter/{letter_id}"
        if not self._port.may(session, action, resource) and not self._port.may(
            session, Action.READ, OWN
        ):
            self._port.check(session, action, resource)
        record = await self._port.read(_SERVICE, resource, lambda log: log.dead_letter(letter_id))
        letter = None if record is None else from_record(record)
        owner: Owner | None = None
        if letter is not None:
            owner = self._owner_of(letter)
        self._port.check(session, action, resource, owner)
        if letter is None:
            raise _no_such(letter_id)
        return letter

    def _seen(self, session: Session, *, reads_all: bool) -> Seen:
        """Whether the caller may see a letter; any thread may ask."""
        owner_of, reaches = self._owner_of, self._port.access.reach(session)
        readable = self._port.readable(session)
        gets = self._port.access.session_permit(session, Action.SUBSCRIBE)
        gettable = None if gets is None else gets.readable()

        def seen(letter: DeadLetter) -> bool:
            is_own = reaches(owner_of(letter))
            if is_own and _has(gettable, letter):
                return True
            return (reads_all or is_own) and _has(readable, letter)

        return seen


def _has(readable: Readable | None, letter: DeadLetter) -> bool:
    return readable is None or readable.has_event(letter.event)


def _scan(log: StoreReader, after: str, limit: int, is_wanted: Seen) -> LettersPage:
    found: list[DeadLetter] = []
    reached: str | None = after
    scanned = 0
    while reached is not None and len(found) < limit and scanned < SCANNED_MAX:
        page = log.dead_letters(reached, PAGE)
        scanned += len(page.letters)
        for letter_id, record in page.letters.items():
            letter = from_record(record)
            if is_wanted(letter):
                found.append(letter)
                if len(found) == limit:
                    return LettersPage(found, letter_id)
        reached = page.next
    return LettersPage(found, reached)


def _no_such(letter_id: str) -> NoSuchDeadLetter:
    return NoSuchDeadLetter(
        f"there is no dead letter {letter_id[:64]!r}",
        remedy="It was redriven or dropped, or never was: GET /deadletters lists them.",
    )

"""Mailboxes: message boxes in a log of their own, beside the broker's.

The broker's log holds what was published and nothing else; what is sent to a box is its owner's
affair. So the boxes are those of a second broker, which is opened when the first box is asked for.
A message box is a box of that broker whose filter is the topic of its token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from tocsin.access.decision import TO_BOXES, Action
from tocsin.access.session import Session, internal
from tocsin.broker.port import BrokerPort
from tocsin.broker.runtime import new_uuid
from tocsin.broker.state.subscriber import SubscriptionView
from tocsin.errors import NoSuchBox, TooLarge, TooManySubscriptions
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.instant import NS_PER_S
from tocsin.event.subscription import SOMEBODY, Change, Config, Kind, Subscription
from tocsin.services.mailbox.box_reader import BoxReader, Taken
from tocsin.wire.msgbox.content import BoxMessage, box_event, box_filters, token_of

# A lease is written down again when a hundredth of it has passed: not with every take.
LEASE_GRAINS: Final = 100
START: Final = internal("mailbox")


@dataclass(frozen=True, slots=True)
class MailboxOptions:
    """How many boxes there may be, what each may hold, and for how long."""

    boxes_max: int
    backlog: int
    lease_s: float
    redeliver_s: float
    message_bytes_max: int

    @property
    def lease_ns(self) -> int:
        return int(self.lease_s * NS_PER_S)


class Mailboxes:
    """Makes boxes, puts messages into them, hands them out, and takes boxes away."""

    def __init__(self, open_port: Callable[[], BrokerPort], options: MailboxOptions) -> None:
        """`open_port` opens the log of the boxes; it is called once, when that is needed."""
        self._open_port = open_port
        self._options = options
        self._opened: tuple[BrokerPort, BoxReader] | None = None
        self._ids: dict[str, str] = {}  # token: the subscription that is the box

    def open(self) -> BrokerPort:
        """The broker that holds the boxes."""
        return self._open()[0]

    def _open(self) -> tuple[BrokerPort, BoxReader]:
        if self._opened is None:
            port = self._open_port()
            self._opened = port, BoxReader(port, self._options.redeliver_s)
            for view in port.views(START):
                token = token_of(msgspec.json.decode(view.subscription.filters))
                if token is not None:
                    self._ids[token] = view.subscription.id
        return self._opened

    async def create(self, session: Session) -> str:
        """A new box; returns the token by which it is known, and known to nobody else."""
        port, _ = self._open()
        self._check_room(port)
        token = new_uuid(port.runtime)
        filters = box_filters(token)
        asked = Subscription(
            id="",
            kind=Kind.BOX,
            filters=msgspec.Raw(msgspec.json.encode(filters)),
            config=Config(backlog=self._options.backlog),
            expires_ns=port.runtime.now_ns() + self._options.lease_ns,
        )
        made = await port.subscribe(session, asked, read_filters(filters), None)
        self._ids[token] = made.subscription.id
        return token

    async def store(self, session: Session, token: str, messages: Sequence[BoxMessage]) -> None:
        """Put messages into a box; they are on disk when this returns."""
        port, _ = self._open()
        port.check(session, Action.PUBLISH, TO_BOXES)
        self._box(token)
        size_max = self._options.message_bytes_max
        if any(len(message.body) > size_max for message in messages):
            raise TooLarge(
                f"a message in a box may have at most {size_max} bytes",
                remedy="Send less at a time, or raise events.event_bytes_max.",
            )
        await port.publish(session, [_event(port, token, message) for message in messages])

    async def take(self, session: Session, token: str, count_max: int) -> Taken:
        """What waits in a box and is in no other answer. Renews the lease of the box."""
        port, reader = self._open()
        view = self.view(session, token)
        await self._renew(session, port, view.subscription)
        return await reader.take(session, view.subscription.id, count_max)

    async def destroy(self, session: Session, token: str) -> None:
        """Take the box away, with what is in it."""
        port, reader = self._open()
        box_id = self.view(session, token).subscription.id
        await port.unsubscribe(session, box_id, Kind.BOX)
        reader.forget(box_id)
        self._ids.pop(token, None)

    def view(self, session: Session, token: str) -> SubscriptionView:
        """The box as it is now, for its owner; raises NoSuchBox. One that is not there and one of
        somebody else are refused alike."""
        port, _ = self._open()
        found = self._found(token)
        owner = None if found is None else found.subscription.owner or SOMEBODY
        port.check(session, Action.READ, f"box/{token}", owner)
        return self._box(token)

    def _box(self, token: str) -> SubscriptionView:
        found = self._found(token)
        if found is not None:
            return found
        self._ids.pop(token, None)
        raise NoSuchBox(
            f"there is no message box {token[:64]!r}",
            remedy="It was destroyed, or nobody read from it for too long. Create a new one.",
        )

    def _found(self, token: str) -> SubscriptionView | None:
        port, _ = self._open()
        try:
            return port.view_box(START, self._ids.get(token, ""))
        except NoSuchBox:
            return None

    def _check_room(self, port: BrokerPort) -> None:
        boxes_max = self._options.boxes_max
        if len(self._ids) < boxes_max:
            return
        alive = {view.subscription.id for view in port.views(START)}
        self._ids = {token: box for token, box in self._ids.items() if box in alive}
        if len(self._ids) >= boxes_max:
            raise TooManySubscriptions(
                f"there are {boxes_max} message boxes",
                remedy="Destroy some, or raise boxes.boxes_max.",
            )

    async def _renew(self, session: Session, port: BrokerPort, box: Subscription) -> None:
        lease_ns = self._options.lease_ns
        until_ns = port.runtime.now_ns() + lease_ns
        if until_ns - (box.expires_ns or 0) < lease_ns // LEASE_GRAINS:
            return
        await port.change(session, box.id, Change(expires_ns=until_ns), Kind.BOX)


def _event(port: BrokerPort, token: str, message: BoxMessage) -> Event:
    """With an id by which the same message, sent again, is known: a sender that got no answer
    repeats it."""
    if message.message_id is None:
        return box_event(token, message, new_uuid(port.runtime))
    digest = hashlib.sha256(message.body).hexdigest()
    return box_event(token, message, f"{message.message_id} {digest}")

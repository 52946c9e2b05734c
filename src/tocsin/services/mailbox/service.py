"""Message boxes by SOAP: the original's MsgBoxService, and pull points of WS-Notification 1.3.

One box answers to both, and to whatever is sent to its address: that it keeps.
"""

from __future__ import annotations

from typing import Final

from tocsin.broker.followers.boxes import PULL_EVENTS_MAX
from tocsin.broker.runtime import Runtime
from tocsin.errors import NoSuchBox, TocsinError
from tocsin.services.mailbox.box_reader import Taken
from tocsin.services.mailbox.mailboxes import Mailboxes
from tocsin.services.soap.call import ACCEPTED, Handler, Handlers, Reply, Request
from tocsin.wire.msgbox import write as msgbox
from tocsin.wire.msgbox.content import BoxMessage, box_message, dropped_header
from tocsin.wire.msgbox.read import named_box
from tocsin.wire.pullpoint import operations as pullpoint
from tocsin.wire.pullpoint.notifications import notification_messages
from tocsin.wire.pullpoint.operations import pull_point_fault
from tocsin.wire.soap.detect import http_action
from tocsin.wire.soap.envelope import elements
from tocsin.wire.soap.fault import SoapFault, addressing_fault, fault_of
from tocsin.wire.soap.names import WSMAN_URI, WSN13, WSRM10, WSRM11
from tocsin.wire.soap.slices import cut_out
from tocsin.wire.soap.topics import read_topic, topic_block
from tocsin.wire.wse.notifications import wants_acknowledgement

ORIGINAL_PATH: Final = "/axis2/services/MsgBoxService"
ELEMENTS_MAX: Final = 100  # in the body of one message to a box
_NEVER_KEPT: Final = frozenset({WSRM10, WSRM11})


class BoxService:
    """Makes boxes, fills them, hands out what they hold."""

    def __init__(self, runtime: Runtime, mailboxes: Mailboxes) -> None:
        self._runtime = runtime
        self._mailboxes = mailboxes
        handlers: dict[tuple[str, str], Handler] = {
            (WSN13, pullpoint.CREATE): self._pull_point(self.create_pull_point),
            (WSN13, pullpoint.GET): self._pull_point(self.get_messages),
            (WSN13, pullpoint.DESTROY): self._pull_point(self.destroy_pull_point),
        }
        for namespace in msgbox.NAMESPACES:
            handlers[namespace, msgbox.CREATE] = self.create_box
            handlers[namespace, msgbox.TAKE] = self.take_messages
            handlers[namespace, msgbox.DESTROY] = self.destroy_box
        self.handlers: Handlers = handlers
        self.takes_all: dict[str, Handler] = {"boxes": self.store}

    async def store(self, request: Request) -> Reply:
        """Whatever is sent to a box and asks it nothing is put into it."""
        if request.name[0] in _NEVER_KEPT:
            raise addressing_fault(
                request.addressing.wsa,
                "ActionNotSupported",
                f"{request.name[1][:80]} is a request, not a message to store",
            )
        try:
            await self._mailboxes.store(request.session, _token(request), _messages(request))
        except NoSuchBox as gone:
            # By 410 a broker knows that its subscription to this box is over.
            fault = fault_of(gone)
            fault.status = 410
            raise fault from None
        if wants_acknowledgement(request.envelope):
            return Reply(b"", f"{WSMAN_URI}/Ack")
        if request.call.path.startswith(ORIGINAL_PATH):
            # The original's clients wait for an envelope: 202 with nothing in it makes them fail.
            return Reply(msgbox.stored(is_stored=True), msgbox.response_action(msgbox.STORE))
        return ACCEPTED

    # The original's operations

    async def create_box(self, request: Request) -> Reply:
        token = await self._mailboxes.create(request.session)
        return Reply(msgbox.created(token), msgbox.response_action(msgbox.CREATE))

    async def take_messages(self, request: Request) -> Reply:
        taken = await self._mailboxes.take(request.session, _token(request), PULL_EVENTS_MAX)
        bodies = [box_message(stored.event).body for stored in taken.messages]
        return Reply(
            msgbox.taken(bodies),
            msgbox.response_action(msgbox.TAKE),
            headers=dropped_header(taken.dropped),
            receipt=taken.receipt,
        )

    async def destroy_box(self, request: Request) -> Reply:
        """The original says of a box that is not there that it was not destroyed, and no more."""
        try:
            await self._mailboxes.destroy(request.session, _token(request))
        except NoSuchBox:
            body = msgbox.destroyed(is_destroyed=False)
        else:
            body = msgbox.destroyed(is_destroyed=True)
        return Reply(body, msgbox.response_action(msgbox.DESTROY))

    # Pull points

    async def create_pull_point(self, request: Request) -> Reply:
        token = await self._mailboxes.create(request.session)
        reference = pullpoint.box_reference(request.address("boxes", token), token)
        return Reply(
            pullpoint.created(reference, request.versions.wsa),
            pullpoint.response_action(pullpoint.CREATE),
        )

    async def get_messages(self, request: Request) -> Reply:
        wanted = min(pullpoint.read_maximum(request.envelope) or PULL_EVENTS_MAX, PULL_EVENTS_MAX)
        taken = await self._mailboxes.take(request.session, _token(request), wanted)
        return Reply(
            pullpoint.messages(_fitting(taken, wanted)),
            pullpoint.response_action(pullpoint.GET),
            headers=dropped_header(taken.dropped),
            receipt=taken.receipt,
        )

    async def destroy_pull_point(self, request: Request) -> Reply:
        await self._mailboxes.destroy(request.session, _token(request))
        return Reply(pullpoint.destroyed(), pullpoint.response_action(pullpoint.DESTROY))

    def _pull_point(self, handler: Handler) -> Handler:
        async def handle(request: Request) -> Reply:
            try:
                return await handler(request)
            except TocsinError as error:
                raise pull_point_fault(error, request.name[1], self._runtime.now_ns()) from error

        return handle


def _fitting(taken: Taken, wanted: int) -> list[bytes]:
    """As many notifications as are wanted; a message to the box may have brought several."""
    found: list[bytes] = []
    skipped = taken.part
    for number, stored in enumerate(taken.messages):
        fresh = notification_messages(box_message(stored.event))[skipped:]
        room = wanted - len(found)
        found += fresh[:room]
        if len(fresh) > room:
            taken.keep_back(number, skipped + room)
            break
        skipped = 0
    return found


def _token(request: Request) -> str:
    token = request.resource or named_box(request.envelope)
    if not token:
        raise NoSuchBox(
            "the message names no box",
            remedy="Send it to the address of a box, or name one with MsgBoxId.",
        )
    return token


def _messages(request: Request) -> list[BoxMessage]:
    """What a message to a box brought: the elements of its body."""
    envelope, addressing = request.envelope, request.addressing
    found = elements(envelope.body)
    if not found or len(found) > ELEMENTS_MAX:
        raise SoapFault("Sender", f"the body holds 1 to {ELEMENTS_MAX} elements, not {len(found)}")
    sender = addressing.sender
    action = http_action(request.call.soap_action, request.call.content_type)
    return [
        BoxMessage(
            body=body,
            action=addressing.action or action or None,
            message_id=addressing.message_id,
            sender=None if sender is None or sender.is_anonymous else sender.address,
            topic=read_topic(topic_block(envelope)),
        )
        for body in cut_out(envelope, found)
    ]

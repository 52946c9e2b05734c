"""Boxes behind a dispatcher, without a network: laws for every order of messages and takes."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.boxes.box_process import payloads
from tocsin.access.session import Session, anonymous
from tocsin.config import load
from tocsin.drivers.application import Application
from tocsin.drivers.logger import Logger
from tocsin.drivers.soap_services import MailboxNode, SoapServices, soap_context
from tocsin.errors import DiskFailed
from tocsin.services.mailbox.box_reader import Taken
from tocsin.services.mailbox.local_delivery import SERVICE
from tocsin.services.soap.call import SoapCall
from tocsin.services.soap_services import mailbox_dispatcher
from tocsin.store.store import Store
from tocsin.wire.msgbox import write as msgbox
from tocsin.wire.msgbox.content import BoxMessage, box_message
from tocsin.wire.pullpoint import operations as pullpoint
from tocsin.wire.soap.envelope import read_envelope, write_envelope
from tocsin.wire.soap.names import WSN13

PATIENCE_S = 30.0
SENDER = anonymous("soap", "127.0.0.1:1")
EXAMPLES = 20  # each opens a log on a real disk
BASE = "http://127.0.0.1:8400"

Ask = Callable[..., Awaitable[bytes]]


def with_dispatcher(script: Callable[[Ask], Awaitable[None]]) -> None:
    """A dispatcher for boxes in a fresh directory."""

    async def main(directory: Path) -> None:
        asked, _ = load({"log.directory": str(directory)}, {})
        boxes = MailboxNode(asked, Logger())
        dispatcher = mailbox_dispatcher(soap_context(boxes.open()), boxes.mailboxes)

        async def ask(
            path: str, body: bytes, session: Session = SENDER, header: bytes = b""
        ) -> bytes:
            message = write_envelope("1.1", header=header, body=body)
            call = SoapCall(message, "text/xml", "", path, "", BASE, session)
            answer = await dispatcher.answer(call)
            if answer.receipt is not None:
                answer.receipt.arrived()
            return answer.body

        try:
            await asyncio.wait_for(script(ask), PATIENCE_S)
        finally:
            dispatcher.close()
            await boxes.close()

    with tempfile.TemporaryDirectory(prefix="tocsin-") as directory:
        uvloop.run(main(Path(directory)))


def notify(numbers: range) -> bytes:
    inside = b"".join(
        b"<n:NotificationMessage><n:Message><m>%d</m></n:Message></n:NotificationMessage>" % number
        for number in numbers
    )
    return b'<n:Notify xmlns:n="%b">%b</n:Notify>' % (WSN13.encode(), inside)


@settings(max_examples=EXAMPLES)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    limits=st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_however_many_are_asked_for_each_notification_comes_once_and_in_order(
    sizes: list[int], limits: list[int]
) -> None:
    async def script(ask: Ask) -> None:
        created = await ask("/soap", pullpoint.create_request())
        address = pullpoint.read_pull_point(read_envelope(created)).address.removeprefix(BASE)
        sent = 0
        for size in sizes:
            await ask(address, notify(range(sent, sent + size)))
            sent += size

        came: list[bytes] = []
        for turn in range(sent):
            limit = limits[turn % len(limits)]
            answer = await ask(address, pullpoint.get_request(limit))
            found = pullpoint.read_messages(read_envelope(answer))
            assert len(found) == min(limit, sent - len(came))
            came += found

        assert b"".join(payloads(came)).count(b"<m") == sent
        for number, payload in enumerate(payloads(came)):
            assert b">%d</m>" % number in payload

    with_dispatcher(script)


def test_what_the_broker_delivers_to_a_box_asks_it_nothing_whatever_the_event_is() -> None:
    """Anybody's event may look like a request; the broker delivers with rights to everything."""

    async def script(ask: Ask) -> None:
        created = await ask("/soap", pullpoint.create_request())
        address = pullpoint.read_pull_point(read_envelope(created)).address.removeprefix(BASE)
        requests = [
            msgbox.request(msgbox.TAKE, "another"),
            msgbox.request(msgbox.DESTROY, "another"),
            msgbox.request(msgbox.CREATE, ""),
            pullpoint.get_request(None),
            pullpoint.create_request(),
        ]

        for request in requests:
            assert not await ask(address, request, SERVICE)
            # The sink of such a subscription may be changed, to an address that is no box.
            assert b"ActionNotSupported" in await ask("/soap", request, SERVICE)

        found = pullpoint.read_messages(read_envelope(await ask(address, pullpoint.get_request(9))))
        assert len(found) == len(requests)

    with_dispatcher(script)


steps = st.lists(
    st.tuples(st.just("store"), st.integers(1, 3))
    | st.tuples(st.just("take"), st.integers(1, 3))
    | st.tuples(st.just("restart"), st.just(0)),
    max_size=12,
)


@settings(max_examples=EXAMPLES)
@given(steps=steps)
def test_nothing_is_lost_and_only_a_restart_makes_the_last_answer_come_again(
    steps: list[tuple[str, int]],
) -> None:
    async def main(directory: Path) -> None:
        asked, _ = load({"log.directory": str(directory)}, {})
        boxes = MailboxNode(asked, Logger())
        box = await boxes.mailboxes.create(SENDER)
        stored, handed, released = 0, 0, 0  # messages in the box, in answers, and gone for good
        last: Taken | None = None
        for step, count in [*steps, *[("take", 100)] * 10]:
            if step == "store":
                numbers = range(stored, stored + count)
                await boxes.mailboxes.store(
                    SENDER, box, [BoxMessage(b"<m>%d</m>" % n) for n in numbers]
                )
                stored += count
            elif step == "restart":
                await boxes.close()
                boxes = MailboxNode(asked, Logger())
                handed, last = released, None
            else:
                if last is not None:
                    last.receipt.arrived()
                last = taken = await boxes.mailboxes.take(SENDER, box, count)
                found = [box_message(each.event).body for each in taken.messages]
                wanted = [b"<m>%d</m>" % n for n in range(handed, min(handed + count, stored))]
                # A box that was just opened may have found only the first of them yet.
                assert found == wanted[: len(found)]
                assert bool(found) == bool(wanted)
                released, handed = handed, handed + len(found)
        assert handed == stored
        await boxes.close()

    with tempfile.TemporaryDirectory(prefix="tocsin-") as directory:
        uvloop.run(asyncio.wait_for(main(Path(directory)), PATIENCE_S))


def test_a_broker_whose_boxes_are_on_a_failing_disk_stops(tmp_path: Path) -> None:
    async def main() -> None:
        asked, _ = load({"log.directory": str(tmp_path)}, {})
        app = Application(asked, Store.open(tmp_path), Logger())
        node = app.node
        service = SoapServices(app)
        boxes = service.boxes.open().node
        boxes.failure = DiskFailed("the disk is gone", remedy="Look at it.")
        boxes.failed.set()

        await asyncio.wait_for(node.failed.wait(), PATIENCE_S)

        assert node.failure is boxes.failure
        await service.close()
        await app.close()

    uvloop.run(main())

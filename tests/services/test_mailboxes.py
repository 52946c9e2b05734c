"""Mailboxes without a socket: boxes in order, bounded, that expire, and hand out what came."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from manual_runtime import ManualRuntime
from tocsin.access.session import anonymous
from tocsin.broker.delivery.outcome import Answered, Failed, Outcome
from tocsin.broker.effects import Push
from tocsin.errors import NoSuchBox, TooLarge, TooManySubscriptions
from tocsin.event.event import Event
from tocsin.event.stored import Stored
from tocsin.event.subscription import Kind, SoapTerms, Subscription
from tocsin.services.mailbox.box_reader import Taken
from tocsin.services.mailbox.local_delivery import OwnBoxes
from tocsin.services.mailbox.mailboxes import Mailboxes, MailboxOptions
from tocsin.services.soap.call import SoapAnswer, SoapCall
from tocsin.wire.msgbox.content import BoxMessage, box_message

OWNER = anonymous("soap")
OPTIONS = MailboxOptions(
    boxes_max=100, backlog=1_000, lease_s=3_600.0, redeliver_s=30.0, message_bytes_max=1 << 20
)


class Owner:
    """A client with one connection: its next request shows that the last answer arrived."""

    def __init__(self, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes
        self._last: dict[str, Taken] = {}

    async def take(self, box: str, count: int) -> Taken:
        if box in self._last:
            self._last.pop(box).receipt.arrived()
        taken = self._last[box] = await self._mailboxes.take(OWNER, box, count)
        return taken


Script = Callable[[Mailboxes, Owner, ManualRuntime], Awaitable[None]]


def run(script: Script, **options: float) -> None:
    runtime = ManualRuntime()
    mailboxes = Mailboxes(lambda: runtime.port, replace(OPTIONS, **options))
    runtime.run(script(mailboxes, Owner(mailboxes), runtime))


def numbered(*numbers: int) -> list[BoxMessage]:
    return [BoxMessage(b"<m>%d</m>" % number) for number in numbers]


def bodies(taken: Taken) -> list[bytes]:
    return [box_message(stored.event).body for stored in taken.messages]


def expected(*numbers: int) -> list[bytes]:
    return [message.body for message in numbered(*numbers)]


def test_what_was_sent_to_a_box_is_taken_once_in_order_and_from_that_box_alone() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        mine, yours = await mailboxes.create(OWNER), await mailboxes.create(OWNER)
        await mailboxes.store(OWNER, mine, numbered(1, 2))
        await mailboxes.store(OWNER, yours, numbered(7))
        await mailboxes.store(OWNER, mine, numbered(3))

        assert bodies(await owner.take(mine, 2)) == expected(1, 2)
        assert bodies(await owner.take(mine, 2)) == expected(3)
        assert bodies(await owner.take(mine, 2)) == []
        assert bodies(await owner.take(yours, 2)) == expected(7)

    run(script)


def test_a_destroyed_box_takes_nothing_and_gives_nothing() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        box = await mailboxes.create(OWNER)
        await mailboxes.store(OWNER, box, numbered(1))
        await mailboxes.destroy(OWNER, box)

        for ask in (
            owner.take(box, 1),
            mailboxes.store(OWNER, box, numbered(2)),
            mailboxes.destroy(OWNER, box),
        ):
            with pytest.raises(NoSuchBox):
                await ask

    run(script)


def test_the_same_message_sent_again_is_in_the_box_once() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        box, other = await mailboxes.create(OWNER), await mailboxes.create(OWNER)
        message = BoxMessage(b"<m/>", message_id="urn:1")
        for sent in (message, message, BoxMessage(b"<n/>", message_id="urn:1")):
            await mailboxes.store(OWNER, box, [sent])
        await mailboxes.store(OWNER, other, [message])

        assert bodies(await owner.take(box, 10)) == [b"<m/>", b"<n/>"]
        assert bodies(await owner.take(other, 10)) == [b"<m/>"]

    run(script)


def test_past_its_limit_a_box_gives_up_the_oldest_and_says_so_once() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        box = await mailboxes.create(OWNER)
        await mailboxes.store(OWNER, box, numbered(*range(8)))

        first = await owner.take(box, 2)
        second = await owner.take(box, 10)

        assert (bodies(first), first.dropped) == (expected(3, 4), 3)
        assert (bodies(second), second.dropped) == (expected(5, 6, 7), 0)

    run(script, backlog=5)


def test_what_was_handed_out_already_is_not_missed_when_it_goes() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        box = await mailboxes.create(OWNER)
        await mailboxes.store(OWNER, box, numbered(1, 2, 3))
        await owner.take(box, 10)

        await mailboxes.store(OWNER, box, numbered(4, 5))
        kept = await owner.take(box, 10)
        await mailboxes.store(OWNER, box, numbered(*range(10, 17)))
        lossy = await owner.take(box, 10)

        assert (bodies(kept), kept.dropped) == (expected(4, 5), 0)
        assert (bodies(lossy), lossy.dropped) == (expected(14, 15, 16), 4)

    run(script, backlog=3)


def test_a_box_lives_as_long_as_it_is_taken_from() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        taken_from, left_alone = await mailboxes.create(OWNER), await mailboxes.create(OWNER)
        for _ in range(6):
            await runtime.sleep(0.25)
            await owner.take(taken_from, 1)

        with pytest.raises(NoSuchBox):
            mailboxes.view(OWNER, left_alone)
        await runtime.sleep(1.2)
        with pytest.raises(NoSuchBox):
            mailboxes.view(OWNER, taken_from)

    run(script, lease_s=1.0)


def test_there_is_a_limit_to_boxes_and_one_that_goes_makes_room() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        first, _ = await mailboxes.create(OWNER), await mailboxes.create(OWNER)
        with pytest.raises(TooManySubscriptions, match=r"boxes\.boxes_max|2 message boxes"):
            await mailboxes.create(OWNER)
        await mailboxes.destroy(OWNER, first)
        await mailboxes.create(OWNER)

    run(script, boxes_max=2)


def test_a_message_too_large_for_a_box_is_refused_and_nothing_of_it_kept() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        box = await mailboxes.create(OWNER)
        with pytest.raises(TooLarge):
            await mailboxes.store(OWNER, box, [*numbered(1), BoxMessage(b"<m>" + b"x" * (1 << 20))])
        assert bodies(await owner.take(box, 10)) == []

    run(script)


def test_an_answer_that_did_not_arrive_is_in_the_box_again() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        box = await mailboxes.create(OWNER)
        await mailboxes.store(OWNER, box, numbered(1, 2))
        lost = await mailboxes.take(OWNER, box, 10)
        assert bodies(await mailboxes.take(OWNER, box, 10)) == []

        lost.receipt.lost()

        assert bodies(await owner.take(box, 10)) == expected(1, 2)
        assert bodies(await owner.take(box, 10)) == []

    run(script)


def test_an_answer_of_which_nothing_is_heard_comes_again_after_a_while() -> None:
    async def script(mailboxes: Mailboxes, owner: Owner, runtime: ManualRuntime) -> None:
        box = await mailboxes.create(OWNER)
        await mailboxes.store(OWNER, box, numbered(1))
        for is_acknowledged in (False, True):
            taken = await mailboxes.take(OWNER, box, 10)
            assert bodies(taken) == expected(1)
            taken.receipt.is_acknowledged = lambda answer=is_acknowledged: answer  # type: ignore
            await runtime.sleep(OPTIONS.redeliver_s)
        assert bodies(await mailboxes.take(OWNER, box, 10)) == []

    run(script)


def test_what_was_not_acknowledged_comes_again_after_a_crash() -> None:
    runtime = ManualRuntime()
    mailboxes = Mailboxes(lambda: runtime.port, OPTIONS)
    box = runtime.run(mailboxes.create(OWNER))
    runtime.run(mailboxes.store(OWNER, box, numbered(1, 2, 3)))
    runtime.run(mailboxes.take(OWNER, box, 1)).receipt.arrived()
    runtime.run(mailboxes.take(OWNER, box, 1))
    runtime.pass_s(1.0)  # the cursor is on disk

    after = runtime.restarted()

    found = after.run(Mailboxes(lambda: after.port, OPTIONS).take(OWNER, box, 10))
    assert bodies(found) == expected(2, 3)


def test_nothing_is_delivered_by_the_broker_itself_to_a_path_that_is_no_box() -> None:
    """It would be stored there with rights to everything."""
    runtime = ManualRuntime()
    calls: list[str] = []
    outcomes: list[Outcome] = []

    async def answer(call: SoapCall) -> SoapAnswer:
        calls.append(call.path)
        return SoapAnswer(202, "", b"")

    boxes = OwnBoxes(runtime, answer)
    terms = SoapTerms(spec="wsn13", box=True)
    for path in ("/soap/topic/a", "/soap", "/soap/boxes/x"):
        sink = f"http://elsewhere{path}"
        subscription = Subscription(id="s", kind=Kind.PUSH, sink=sink, soap=terms)
        push = Push(1, sink, subscription, [Stored(1, 0, Event("1", "/s", "t"))], 1.0)
        boxes.send(push, lambda _, outcome: outcomes.append(outcome))
        runtime.settle()

    assert calls == ["/soap/boxes/x"]
    assert [type(each) for each in outcomes] == [Failed, Failed, Answered]

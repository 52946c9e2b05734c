"""The box office: message boxes in a log of their own, beside the broker's.

The broker's log holds what was published and nothing else; what is sent to a box is its owner's
affair. So the office is a second node, in the directory `boxes` of the data directory, opened when
the first box is asked for. A box is a box of that node whose filter is the topic of its token.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from tocsin.broker.registry import Change
from tocsin.broker.subscriber import SubscriptionView
from tocsin.config import Settings
from tocsin.drivers.boxes.taking import Taken, Taking
from tocsin.drivers.disk import BOXES_DIRECTORY, open_store
from tocsin.drivers.node import Node
from tocsin.drivers.notes import Notes
from tocsin.errors import NoSuchBox, TocsinError, TooLarge, TooManySubscriptions
from tocsin.event.cloudevents_filters import read_filters
from tocsin.event.event import Event
from tocsin.event.subscription import Config, Kind, Subscription
from tocsin.wire.msgbox.content import BoxMessage, box_event, box_filters, token_of

TAKEN_KEPT_S: Final = 60.0  # what was taken is gone from the disk so much later, at the latest
# A lease is written down again when a hundredth of it has passed: not with every take.
LEASE_GRAINS: Final = 100
NS_PER_S: Final = 1_000_000_000


class Office:
    """Makes boxes, puts messages into them, hands them out, and takes boxes away."""

    def __init__(
        self,
        settings: Settings,
        notes: Notes,
        on_failure: Callable[[TocsinError], None] | None = None,
        beside: Node | None = None,
    ) -> None:
        """`on_failure` is told if the disk fails: after that no box answers any more. `beside` is
        the broker of this process, if there is one."""
        self._beside = beside
        self._settings = _own_settings(settings)
        self._notes = notes
        self._on_failure = on_failure
        self._watch: asyncio.Task[None] | None = None
        self._node: Node | None = None
        self._is_closed = False
        self._taking: Taking | None = None
        self._ids: dict[str, str] = {}  # token: the subscription that is the box
        if Path(self._settings.log.directory).is_dir():
            self.open()

    def open(self) -> Node:
        """The node that holds the boxes."""
        if self._node is None:
            store = open_store(self._settings.log, self._notes)
            self._node = Node(self._settings, store, self._notes, self._beside)
            self._taking = Taking(self._node)
            self._watch = self._node.loop.create_task(self._tell_failure(self._node))
            for view in self._node.broker.views():
                token = token_of(msgspec.json.decode(view.subscription.filters))
                if token is not None:
                    self._ids[token] = view.subscription.id
        return self._node

    async def create(self) -> str:
        """A new box; returns the token by which it is known, and known to nobody else."""
        node = self.open()
        self._check_room()
        token = str(uuid.uuid4())
        filters = box_filters(token)
        asked = Subscription(
            id="",
            kind=Kind.BOX,
            filters=msgspec.Raw(msgspec.json.encode(filters)),
            config=Config(backlog=self._settings.boxes.backlog),
            expires_ns=node.now_ns() + self._lease_ns,
        )
        made: SubscriptionView = await node.ask(
            lambda waiter, now_ns: node.broker.subscribe(
                asked, read_filters(filters), None, waiter, now_ns
            )
        )
        self._ids[token] = made.subscription.id
        return token

    async def store(self, token: str, messages: Sequence[BoxMessage]) -> None:
        """Put messages into a box; they are on disk when this returns."""
        node = self.open()
        self.view(token)
        size_max = self._settings.events.event_bytes_max
        if any(len(message.body) > size_max for message in messages):
            raise TooLarge(
                f"a message in a box may have at most {size_max} bytes",
                remedy="Send less at a time, or raise events.event_bytes_max.",
            )
        events = [_event(token, message) for message in messages]
        await node.ask(lambda waiter, _: node.broker.publish(events, waiter))

    async def take(self, token: str, count_max: int) -> Taken:
        """What waits in a box and is in no other answer. Renews the lease of the box."""
        node = self.open()
        view = self.view(token)
        await self._renew(node, view.subscription)
        return await self._taker().take(view.subscription.id, count_max)

    async def destroy(self, token: str) -> None:
        """Take the box away, with what is in it."""
        node = self.open()
        box_id = self.view(token).subscription.id
        await node.ask(lambda waiter, now_ns: node.broker.unsubscribe(box_id, waiter, now_ns))
        self._taker().forget(box_id)
        self._ids.pop(token, None)

    def view(self, token: str) -> SubscriptionView:
        """The box as it is now; raises NoSuchBox."""
        node = self.open()
        box_id = self._ids.get(token)
        try:
            if box_id is not None:
                return node.broker.view_box(box_id)
        except NoSuchBox:
            del self._ids[token]
        raise NoSuchBox(
            f"there is no message box {token[:64]!r}",
            remedy="It was destroyed, or nobody read from it for too long. Create a new one.",
        )

    async def close(self) -> None:
        """Let go of the log; once, however often it is asked."""
        if self._node is not None and not self._is_closed:
            self._is_closed = True
            if self._watch is not None:
                self._watch.cancel()
            await self._node.close()

    async def _tell_failure(self, node: Node) -> None:
        await node.failed.wait()
        if self._on_failure is not None and node.failure is not None:
            self._on_failure(node.failure)

    @property
    def _lease_ns(self) -> int:
        return int(self._settings.boxes.lease_s * NS_PER_S)

    def _taker(self) -> Taking:
        assert self._taking is not None, "open() made it"
        return self._taking

    def _check_room(self) -> None:
        boxes_max = self._settings.boxes.boxes_max
        if len(self._ids) < boxes_max:
            return
        assert self._node is not None
        alive = {view.subscription.id for view in self._node.broker.views()}
        self._ids = {token: box for token, box in self._ids.items() if box in alive}
        if len(self._ids) >= boxes_max:
            raise TooManySubscriptions(
                f"there are {boxes_max} message boxes",
                remedy="Destroy some, or raise boxes.boxes_max.",
            )

    async def _renew(self, node: Node, box: Subscription) -> None:
        until_ns = node.now_ns() + self._lease_ns
        if until_ns - (box.expires_ns or 0) < self._lease_ns // LEASE_GRAINS:
            return
        change = Change(expires_ns=until_ns)
        await node.ask(lambda waiter, now_ns: node.broker.change(box.id, change, waiter, now_ns))


def _event(token: str, message: BoxMessage) -> Event:
    """With an id by which the same message, sent again, is known: a sender that got no answer
    repeats it."""
    if message.message_id is None:
        return box_event(token, message, str(uuid.uuid4()))
    digest = hashlib.sha256(message.body).hexdigest()
    return box_event(token, message, f"{message.message_id} {digest}")


def _own_settings(settings: Settings) -> Settings:
    """The broker's, where they are not the boxes' own."""
    boxes = settings.boxes
    directory = str(Path(settings.log.directory) / BOXES_DIRECTORY)
    return replace(
        settings,
        log=replace(settings.log, directory=directory, retain_age_s=TAKEN_KEPT_S),
        delivery=replace(settings.delivery, backlog_age_s=boxes.lease_s),
        limits=replace(settings.limits, subscriptions_max=boxes.boxes_max),
    )

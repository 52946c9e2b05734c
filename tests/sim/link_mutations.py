"""Mistakes put into the links between brokers, to see that simulated runs notice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from sim.mutations import Mutate
from tocsin.access.session import internal
from tocsin.broker.commit import numbering
from tocsin.broker.commit.numbering import Applied, Numbering
from tocsin.errors import NoSuchSubscription
from tocsin.event.filter import NOTHING
from tocsin.event.stored import Append, Stored
from tocsin.event.subscription import Kind
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.routing.effects import Effect, NeighbourFilter, NeighbourForgotten, Send
from tocsin.overlay.routing.router import Router
from tocsin.services.link.forwarder import Forwarder
from tocsin.services.link.handovers import Handovers
from tocsin.services.link.intake import EventIntake
from tocsin.services.link.neighbour import Neighbour
from tocsin.services.link.neighbours import Neighbours
from tocsin.services.link.performer import Performer
from tocsin.services.link.service import LinkService
from tocsin.sim.clients import publishers
from tocsin.wire.link.discovery_messages import Result
from tocsin.wire.link.messages import Acknowledge, Events, Handover, Reached

SERVICE = internal("link")


def acknowledge_to_a_neighbour_before_the_commit(patch: pytest.MonkeyPatch) -> None:
    """Tell a neighbour that its events are on disk when they have come."""
    take = EventIntake.take

    def hasty(self: EventIntake, message: Events, size: int) -> bool:
        if message.through:
            self._connection.send(Acknowledge(message.through))
        return take(self, message, size)

    patch.setattr(EventIntake, "take", hasty)


def release_what_was_sent_to_a_neighbour_at_once(patch: pytest.MonkeyPatch) -> None:
    """Take what was sent for what has arrived."""
    send = Forwarder._send

    def hopeful(self: Forwarder, chosen: Any, token: Any, through: int) -> None:
        send(self, chosen, token, through)
        self.acknowledged(through)

    patch.setattr(Forwarder, "_send", hopeful)


def say_that_a_subscription_holds_before_it_is_saved(patch: pytest.MonkeyPatch) -> None:
    """Send Reached when the router says so, not when its rows are on disk."""
    perform = LinkService._perform

    def hasty(self: LinkService, effects: Iterable[Effect]) -> None:
        wanted = list(effects)
        for effect in wanted:
            if isinstance(effect, Send) and isinstance(effect.message, Reached):
                self._connections[effect.link].send(effect.message)
        perform(self, wanted)

    patch.setattr(LinkService, "_perform", hasty)


def send_events_back_and_know_no_repeats(patch: pytest.MonkeyPatch) -> None:
    """Send a neighbour also what came from there; store what it sends as if that were new."""
    apply = Numbering.apply

    def forgetful(self: Numbering, append: Append, head: int) -> Applied:
        for arrivals in append.arrivals.values():
            for arrival in arrivals:
                self._recent.pop((arrival.origin_log, arrival.number), None)
        return apply(self, append, head)

    patch.setattr(Numbering, "apply", forgetful)
    patch.setattr(Neighbours, "_is_for", lambda *_: True)
    patch.setattr(EventIntake, "_is_taken", lambda *_: True)


def know_a_relayed_event_by_its_source_and_id(patch: pytest.MonkeyPatch) -> None:
    """Take an event for a repeat of another broker's that has the same source and id."""
    patch.setattr(publishers, "source_of", lambda _, number: f"/publisher/{number}")
    patch.setattr(numbering, "repeat_key", lambda event, _: (event.source, event.id))


def drop_handovers_when_a_neighbour_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Keep nothing more for anybody of what a neighbour had to get that is forgotten."""
    do = Performer._do

    async def thorough(self: Performer, item: Any) -> None:
        if isinstance(item, NeighbourForgotten):
            for link_id in list(self._handovers._rows):
                with suppress(NoSuchSubscription):
                    await self._port.unsubscribe(SERVICE, link_id, Kind.LINK, quietly=True)
        await do(self, item)

    patch.setattr(Performer, "_do", thorough)


def hand_over_after_the_place_is_gone(patch: pytest.MonkeyPatch) -> None:
    """Let a forgotten neighbour's place in the log go before its backlog is handed over."""
    done = Router._done

    def early(self: Router, now_ns: int) -> list[Effect]:
        effects = done(self, now_ns)
        effects.sort(key=lambda effect: not isinstance(effect, NeighbourForgotten))
        return effects

    patch.setattr(Router, "_done", early)


def hand_over_to_the_addressee_alone(patch: pytest.MonkeyPatch) -> None:
    """Let brokers on the way pass a handover on without taking what they want of it."""
    take_over = Handovers._take_over

    async def narrow(self: Handovers, neighbour: Neighbour, message: Handover) -> None:
        if message.to != self._origin[0]:
            self.pass_on(message.to, message)
        else:
            await take_over(self, neighbour, message)

    patch.setattr(Handovers, "_take_over", narrow)


def keep_back_what_came_from_behind(patch: pytest.MonkeyPatch) -> None:
    """Do not send a neighbour what came from a broker that is behind it now, by whatever way it
    came."""
    is_for = Neighbours._is_for

    def narrow(self: Neighbours, broker: str, stored: Stored) -> bool:
        came = stored.arrival
        is_behind = came is not None and self._router.is_behind(came.origin, broker)
        return is_for(self, broker, stored) and not is_behind

    patch.setattr(Neighbours, "_is_for", narrow)


def forget_what_neighbours_want_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    """Do not give a neighbour's place in the log its filters back. Their names are there, so that
    taking one away later is no error."""
    restore = Router.restore

    def forgetful(self: Router, rows: Mapping[str, bytes], now_ns: int) -> list[Effect]:
        return [_of_nothing(each) for each in restore(self, rows, now_ns)]

    def _of_nothing(effect: Effect) -> Effect:
        if not isinstance(effect, NeighbourFilter):
            return effect
        return replace(effect, added=dict.fromkeys(effect.added, NOTHING))

    patch.setattr(Router, "restore", forgetful)


def hand_over_nothing(patch: pytest.MonkeyPatch) -> None:
    """Drop the backlog of brokers that are reached in another way now."""

    async def lazy(self: Handovers, *_: Any) -> None:
        pass

    patch.setattr(Handovers, "add", lazy)


def send_results_unfiltered(patch: pytest.MonkeyPatch) -> None:
    """Give a request that waits for another one everything that the other one finds (A4)."""
    make = DiscoveryCore._make_one_time

    def mistaken(self: DiscoveryCore, covers: Any) -> Any:
        made = make(self, covers)
        patch.setattr(type(made), "_for_waiter", _everything)
        return made

    def _everything(self: Any, waiter: Any, results: Any) -> list[Result]:
        return list(results)

    patch.setattr(DiscoveryCore, "_make_one_time", mistaken)


LINK_MUTATIONS: dict[Mutate, str] = {
    acknowledge_to_a_neighbour_before_the_commit: "has not got",
    release_what_was_sent_to_a_neighbour_at_once: "has not got",
    say_that_a_subscription_holds_before_it_is_saved: "has not got",
    send_events_back_and_know_no_repeats: "was stored as|was published here|took",
    know_a_relayed_event_by_its_source_and_id: "was not applied as it was sent",
    drop_handovers_when_a_neighbour_is_forgotten: "has not got|handovers",
    hand_over_after_the_place_is_gone: "has not got",
    hand_over_to_the_addressee_alone: "has not got",
    keep_back_what_came_from_behind: "has not got",
    hand_over_nothing: "has not got",
    forget_what_neighbours_want_at_a_restart: "has not got",
    send_results_unfiltered: "the discovery of",
}
"""Each mistake, and what a run may say of it first."""

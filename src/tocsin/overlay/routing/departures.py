"""Departures: neighbours that leave, brokers that turn up elsewhere, and those gone for good.

What a neighbour asked for outlives its link: the log keeps it until the neighbour returns. It goes
when its origin is reached through somebody else, or is forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from tocsin.errors import BrokerStillThere, NoSuchBroker, RoutingTableFull
from tocsin.event.filter import EVERYTHING
from tocsin.event.instant import NS_PER_S
from tocsin.overlay.routing.effects import (
    EntryIgnored,
    EntryKey,
    NeighbourDown,
    NeighbourForgotten,
    Send,
    SubscriptionMoved,
)
from tocsin.overlay.routing.links import Link, Phase
from tocsin.overlay.routing.places import not_behind, say_kept
from tocsin.overlay.routing.room import take_brokers
from tocsin.overlay.routing.state import ADVERTISEMENTS, SUBSCRIPTIONS, RouterState
from tocsin.overlay.routing.updates import named
from tocsin.wire.link.messages import ENTRY_ID_CHARS_MAX, Forget

KEPT = "kept/"  # begins the ids of entries that are kept for brokers behind a neighbour
FILTERS_MAX = 1_000  # for one broker that moved; with more it is sent everything that is kept

BRIEF_NS = 600 * NS_PER_S  # a neighbour that was connected for less may be an invented one
REPEAT_NS = NS_PER_S  # the same broker forgotten again in less is the same message, come back
SAVE_AGE_NS = 3_600 * NS_PER_S  # so much of its age may be lost when this broker starts again


def left(state: RouterState, neighbour: str, now_ns: int) -> None:
    """The neighbour is not connected any more."""
    known = state.neighbours[neighbour]
    known.gone_ns = known.seen_ns = now_ns
    known.away_ns = 0
    state.save_neighbour(neighbour)
    state.effects.append(NeighbourDown(neighbour))
    gone = state.reach.remove_neighbour(neighbour)
    state.set_live(neighbour, is_live=False)
    state.ways_changed(gone)
    state.displaced.update(gone)
    state.touched.update(dict.fromkeys(gone))
    tables = (state.advertisements, state.subscriptions)
    origins = {origin for table in tables for origin, _ in table.rows_from(neighbour)}
    arrived(state, sorted({*gone, *origins}))


def receive_behind(
    state: RouterState, link: Link, added: Mapping[str, str], removed: tuple[str, ...]
) -> None:
    """The neighbour says which brokers are behind it now, and which are not any more."""
    behind = state.reach.behind(link.neighbour)
    removed = tuple(each for each in removed if each != link.neighbour and each in behind)
    added = {each: before for each, before in added.items() if each != link.neighbour}
    state.reach.change(link.neighbour, {}, removed)
    added = take_brokers(state, link, added)
    state.reach.change(link.neighbour, added, ())
    state.ways_changed([*added, *removed])
    named(state, link, added)
    not_behind(state, link, removed)
    state.displaced.update(removed)
    state.add_behind(link.neighbour, added)
    if link.phase is Phase.COMPLETE:
        say_kept(state, link, added)
        state.touched.update(dict.fromkeys(removed))
        arrived(state, [*added, *removed])


def arrived(state: RouterState, brokers: Iterable[str]) -> None:
    """These brokers are reached through a neighbour now."""
    here = {broker: None for broker in brokers if state.reach.way_to(broker) is not None}
    state.touched.update(here)
    for broker in here:
        state.set_forgotten(broker, None)
    if here:
        for neighbour in list(state.neighbours):
            if state.is_down(neighbour):
                _hand_over(state, neighbour, here.keys())
            else:
                _hand_over_from_connected(state, neighbour, here.keys())
    state.advertisements.choose_again()
    state.subscriptions.choose_again()


def _hand_over(state: RouterState, neighbour: str, here: Collection[str]) -> None:
    """What is kept for a neighbour that is away, and is reached in another way by now, goes."""
    known = state.behind_or_lost(neighbour)
    moved = sorted(broker for broker in here if broker in known)
    state.remove_behind(neighbour, moved)
    for key in _keys_of(state, ADVERTISEMENTS, neighbour, here):
        state.take(ADVERTISEMENTS, neighbour, key)
    keys = _keys_of(state, SUBSCRIPTIONS, neighbour, here)
    for key in keys:
        entry = state.subscriptions.entries[key]
        text, wanted = state.subscriptions.rows_from(neighbour)[key]
        state.take(SUBSCRIPTIONS, neighbour, key)
        if state.behind_or_lost(neighbour) and key[0] != neighbour and not key[1].startswith(KEPT):
            # It may have stood for what others there asked for, who are not reached yet.
            kept = (neighbour, f"{KEPT}{key[0]}/{key[1]}"[:ENTRY_ID_CHARS_MAX])
            state.put(SUBSCRIPTIONS, neighbour, kept, text, wanted)
        way = state.reach.way_to(key[0])
        # If another neighbour says the entry too, the update that follows reports the move. If
        # none does, a wider one stands for it there.
        if key not in state.subscriptions.entries and entry.hop == neighbour and way is not None:
            state.effects.append(SubscriptionMoved(key, entry.filter, neighbour, way))
    for broker in moved:
        _hand_over_covered(state, neighbour, broker, keys)
    if not state.behind_or_lost(neighbour):
        for key in list(state.subscriptions.rows_from(neighbour)):
            if key[1].startswith(KEPT):
                state.take(SUBSCRIPTIONS, neighbour, key)
    if state.reach.way_to(neighbour) is not None and not state.subscriptions.rows_from(neighbour):
        _drop_neighbour(state, neighbour)


def _hand_over_from_connected(state: RouterState, neighbour: str, here: Collection[str]) -> None:
    """These were behind a neighbour that is connected, and are elsewhere. It hands over what it
    has; what is still on its way there would not come back from it."""
    there, known = state.reach.behind(neighbour), state.behind_or_lost(neighbour)
    moved = sorted(broker for broker in here if broker in known and broker not in there)
    state.remove_behind(neighbour, moved)
    for broker in moved:
        _hand_over_covered(state, neighbour, broker, ())


def _hand_over_covered(
    state: RouterState, neighbour: str, broker: str, known: Collection[EntryKey]
) -> None:
    """A wider entry may have stood for what this broker asked for, so that none of its own is
    known. It is sent what anybody wants there where it is now, and stores what it wants."""
    way = state.reach.way_to(broker)
    assert way is not None
    wanted = state.subscriptions.by_hop.get(way, {})
    filters = {key[1]: entry.filter for key, entry in wanted.items()}
    if len(filters) > FILTERS_MAX:
        filters = {"": EVERYTHING}
    for name, wide in filters.items():
        if (broker, name) not in known:
            state.effects.append(SubscriptionMoved((broker, name), wide, neighbour, way))


def _keys_of(
    state: RouterState, name: str, neighbour: str, origins: Collection[str]
) -> list[EntryKey]:
    return [key for key in state.table(name).rows_from(neighbour) if key[0] in origins]


def _drop_neighbour(state: RouterState, neighbour: str) -> None:
    for name in (ADVERTISEMENTS, SUBSCRIPTIONS):
        for key in list(state.table(name).rows_from(neighbour)):
            state.take(name, neighbour, key)
    state.remove_behind(neighbour, list(state.behind_or_lost(neighbour)))
    del state.neighbours[neighbour]
    state.save_neighbour(neighbour)
    state.effects.append(NeighbourForgotten(neighbour))


def forget(state: RouterState, broker: str, now_ns: int) -> None:
    """On the word of an operator."""
    if broker == state.own.broker or state.reach.way_to(broker) or broker in state.link_of:
        raise BrokerStillThere(
            f"broker {broker} is connected to the overlay",
            remedy="Only one that is gone can be forgotten: stop it first.",
        )
    origins = {
        origin
        for table in (state.advertisements, state.subscriptions)
        for origin, _ in table.entries
    }
    lost = {each for behind in state.behind.values() for each in behind}
    if broker not in origins | lost | state.neighbours.keys() | state.forgotten.keys():
        raise NoSuchBroker(
            f"broker {broker} is not known here",
            remedy="`tocsin overlay` lists the brokers that are.",
        )
    _forget(state, broker, now_ns, now_ns)


def receive_forget(
    state: RouterState, broker: str, since_ns: int, now_ns: int, neighbour: str
) -> None:
    """A broker is gone, somebody says: believed of all that are not connected, and were not since
    that was first reported; passed on to all others. The time is by the clock of this broker."""
    if broker == state.own.broker:
        return
    before_ns = state.forgotten.get(broker)
    if before_ns is not None and since_ns - before_ns < REPEAT_NS:
        return
    known = state.neighbours.get(broker)
    if known is not None and known.seen_ns > since_ns:
        return
    if broker in state.link_of or state.reach.way_to(broker) is not None:
        return
    _forget(state, broker, since_ns, now_ns, sender=neighbour)


def _forget(
    state: RouterState, broker: str, since_ns: int, now_ns: int, *, sender: str = ""
) -> None:
    while len(state.forgotten) >= state.options.brokers_max:
        state.set_forgotten(min(state.forgotten, key=state.forgotten.__getitem__), None)
    state.set_forgotten(broker, since_ns)
    state.holds_no_more(broker)
    if broker in state.neighbours:
        _drop_neighbour(state, broker)
    for neighbour in state.neighbours:
        state.remove_behind(neighbour, [broker])
        if state.is_down(neighbour):
            for name in (ADVERTISEMENTS, SUBSCRIPTIONS):
                for key in _keys_of(state, name, neighbour, {broker}):
                    state.take(name, neighbour, key)
    for link in state.up_links():
        if link.neighbour != sender:
            state.effects.append(Send(link.number, Forget(broker, max(0, now_ns - since_ns))))


def count_ages(state: RouterState, passed_ns: int) -> None:
    """So much time has passed for each neighbour, connected or away."""
    for neighbour, known in state.neighbours.items():
        if known.gone_ns is None:
            before, known.linked_ns = known.linked_ns, known.linked_ns + passed_ns
            is_due = before < BRIEF_NS <= known.linked_ns
        else:
            before, known.away_ns = known.away_ns, known.away_ns + passed_ns
            is_due = before // SAVE_AGE_NS < known.away_ns // SAVE_AGE_NS
        if is_due:
            state.save_neighbour(neighbour)


def forget_expired(state: RouterState, now_ns: int) -> None:
    """Neighbours that have been away for longer than is waited for, or there is room for."""
    for neighbour, known in list(state.neighbours.items()):
        if known.gone_ns is not None and known.away_ns >= state.options.forget_after_ns:
            _forget_or_drop(state, neighbour, now_ns)
    _forget_early(state)


def _forget_or_drop(state: RouterState, neighbour: str, now_ns: int) -> None:
    if state.reach.way_to(neighbour) is None:
        state.set_forgotten(neighbour, None)
        _forget(state, neighbour, now_ns, now_ns)
    else:
        _drop_neighbour(state, neighbour)


def _forget_early(state: RouterState) -> None:
    """Brokers that were connected briefly, and what was behind them, may be invented: they share
    half of the room, and who left first goes first. Those that were connected for longer have the
    other half to themselves."""
    maximum = max(1, state.options.brokers_max // 2)
    brief = [
        (-known.away_ns, known.gone_ns, neighbour)
        for neighbour, known in state.neighbours.items()
        if known.gone_ns is not None and known.linked_ns < BRIEF_NS
    ]
    named = sum(len(state.behind_or_lost(neighbour)) for *_, neighbour in brief)
    if max(len(brief), named) <= maximum:
        return
    left_over = len(brief)
    for *_, neighbour in sorted(brief):
        if left_over <= maximum and named <= maximum:
            return
        named -= len(state.behind_or_lost(neighbour))
        _note_early(state, neighbour)
        if left_over > maximum:
            left_over -= 1
            _drop_neighbour(state, neighbour)
        else:
            others = [each for each in state.behind_or_lost(neighbour) if each != neighbour]
            state.remove_behind(neighbour, others)
            named += len(state.behind_or_lost(neighbour))


def _note_early(state: RouterState, neighbour: str) -> None:
    state.forgotten_early += 1
    if state.forgotten_early.bit_count() == 1:  # the first, the second, the fourth, ...
        problem = (
            f"{state.forgotten_early} neighbours that were connected for a short time are "
            "forgotten, or what was behind them is, because there were too many"
        )
        remedy = "Find out who invents brokers; or raise brokers_max in [overlay]."
        state.effects.append(EntryIgnored(neighbour, RoutingTableFull(problem, remedy=remedy)))

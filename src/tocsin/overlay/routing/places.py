"""Places: where brokers are, as neighbours are told of it, and who has that on disk.

Who keeps events for a neighbour hands them over to a broker behind it that turns up elsewhere, if
it knows that the broker was there. So a subscription holds at a broker by way of a wider one, which
covers it, only when that broker has the place of its origin on disk.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tocsin.overlay.routing.effects import Send
from tocsin.overlay.routing.links import Link, Phase
from tocsin.overlay.routing.state import RouterState
from tocsin.wire.link.messages import Behind, PlacesKept

_NONE: frozenset[str] = frozenset()


def send_touched_places(state: RouterState) -> None:
    """Tell everybody of the brokers whose place may be another one, and who has on disk what."""
    touched, state.touched = state.touched, {}
    if touched:
        for link in state.up_links():
            # A neighbour that has not all advertisements yet is told of all places after them.
            if not any(each.table == "advertisements" for each in link.remaining):
                send_places(state, link, touched)
    state.places_told(touched)
    if len(state.lacking_places) < 2:
        for number in sorted(state.holding_places):
            if state.lacking_places <= {number}:
                _send_held(state, number)


def send_all_held(state: RouterState) -> None:
    """Waits no longer for those that have not answered."""
    for number in sorted(state.holding_places):
        _send_held(state, number)


def note_lacking(state: RouterState, link: Link) -> None:
    """Whether all behind the neighbour have every place may be another thing now."""
    if link.places_lacking and link.phase is Phase.COMPLETE:
        state.lacking_places.add(link.number)
    else:
        state.lacking_places.discard(link.number)


def forget_link(state: RouterState, link: Link) -> None:
    """It has ended."""
    state.lacking_places.discard(link.number)
    state.holding_places.pop(link.number, None)


def send_places(state: RouterState, link: Link, brokers: Iterable[str]) -> None:
    """Tell the neighbour which of these brokers are behind this one."""
    added: dict[str, str] = {}
    fresh: set[str] = set()
    removed: list[str] = []
    for broker in brokers:
        before = state.reach.hop_before(link.neighbour, broker)
        sent = link.sent_behind.get(broker)
        if before is None:
            if sent is not None:
                del link.sent_behind[broker]
                removed.append(broker)
        elif sent != before:
            added[broker] = link.sent_behind[broker] = before
            if sent is None:
                fresh.add(broker)
    if added or removed:
        state.effects.append(Send(link.number, Behind(added, tuple(removed))))
        for there, missing in link.places_missing.items():
            _set_missing(link, there, (missing - set(removed)) | fresh)
        note_lacking(state, link)
        _take_back(link, at=removed)
        state.places_told(fresh)
        if link.phase is Phase.COMPLETE:
            _pass_on_known(state, link, state.reach.behind(link.neighbour), fresh)


def say_kept(state: RouterState, link: Link, brokers: Collection[str]) -> None:
    """Where these brokers are, as the neighbour has said, is saved: here, and by those behind this
    broker that knew of them before, and have said so."""
    own = state.own.broker
    link.places_lacking.update(each for each in brokers if link.places_missing.get(each) != _NONE)
    note_lacking(state, link)
    _hold(state, link, [broker for broker in brokers if broker != own], [own])
    _pass_on_known(state, link, brokers, link.sent_behind)


def not_behind(state: RouterState, link: Link, brokers: Collection[str]) -> None:
    """The neighbour says that these are not behind it any more."""
    for broker in brokers:
        link.places_missing.pop(broker, None)
        link.places_lacking.discard(broker)
    note_lacking(state, link)
    _take_back(link, brokers=brokers)


def receive_kept(state: RouterState, link: Link, brokers: Iterable[str], at: Iterable[str]) -> None:
    """The neighbour says it of itself, or passes it on of brokers behind it. What was not told to
    it, or is not behind it, does not count."""
    behind = state.reach.behind(link.neighbour)
    named, told = frozenset(brokers), _NONE
    news: dict[frozenset[str], list[str]] = {}
    for there in at:
        if there in behind:
            missing = link.places_missing.get(there)
            if missing is None:
                told = told or _told(state, link)
                missing = told
            _set_missing(link, there, missing - named)
            news.setdefault(missing & named, []).append(there)
    note_lacking(state, link)
    for fresh, those in news.items():
        if fresh:
            state.displaced.update(those)  # what is covered is looked at again, for these
            _pass_on(state, link, fresh, those)


def is_place_kept(state: RouterState, broker: str, at: str) -> bool:
    """True if it has said to have on its disk that the broker is behind this one, or is this."""
    link = _link_to(state, at)
    if link is None or not (broker == state.own.broker or broker in link.sent_behind):
        return False
    missing = link.places_missing.get(at)
    return missing is not None and broker not in missing


def _link_to(state: RouterState, broker: str) -> Link | None:
    way = state.reach.way_to(broker)
    return None if way is None else state.link_of.get(way)


def _set_missing(link: Link, there: str, missing: frozenset[str]) -> None:
    link.places_missing[there] = missing or _NONE
    if missing:
        link.places_lacking.add(there)
    else:
        link.places_lacking.discard(there)


def _told(state: RouterState, link: Link) -> frozenset[str]:
    """The brokers of which the neighbour knows that they are on this side."""
    return frozenset((state.own.broker, *link.sent_behind))


def _told_of(state: RouterState, link: Link, brokers: frozenset[str]) -> frozenset[str]:
    """Those of these of which it knows that."""
    if len(brokers) > len(link.sent_behind):
        return brokers & _told(state, link)
    own, sent = state.own.broker, link.sent_behind
    return frozenset(each for each in brokers if each == own or each in sent)


def _pass_on(
    state: RouterState, source: Link, brokers: Collection[str], at: Collection[str]
) -> None:
    by_way: dict[str, list[str]] = {}
    for broker in brokers:
        for way in state.reach.ways(broker):
            by_way.setdefault(way, []).append(broker)
    for way, there in by_way.items():
        link = state.link_of.get(way)
        if link is not None and link is not source and link.phase is Phase.COMPLETE:
            _hold(state, link, there, [each for each in at if each in link.sent_behind])


def _pass_on_known(
    state: RouterState, link: Link, brokers: Iterable[str], at: Iterable[str]
) -> None:
    """Which of these places behind the neighbour are kept at those, of whom it was told."""
    named = frozenset(brokers)
    told: dict[int, frozenset[str]] = {}  # of those, by each link
    known: dict[frozenset[str], list[str]] = {}
    for there in at:
        source = _link_to(state, there)
        missing = None if source is None else source.places_missing.get(there)
        if source is not None and missing is not None:
            if source.number not in told:
                told[source.number] = _told_of(state, source, named)
            known.setdefault(told[source.number] - missing, []).append(there)
    for kept, those in known.items():
        _hold(state, link, kept, those)


def _hold(state: RouterState, link: Link, brokers: Iterable[str], at: Iterable[str]) -> None:
    """Goes to the neighbour together with what is still to come, or at the next tick: else there
    would be as many messages as pairs of brokers."""
    kept = (frozenset(brokers), frozenset(at))
    if all(kept) and state.options.report_reached:
        link.places_held.append(kept)
        state.holding_places[link.number] = link


def _take_back(link: Link, *, brokers: Collection[str] = (), at: Collection[str] = ()) -> None:
    if link.places_held and (brokers or at):
        held = [(named - set(brokers), those - set(at)) for named, those in link.places_held]
        link.places_held = [each for each in held if all(each)]


def _send_held(state: RouterState, number: int) -> None:
    link = state.holding_places.pop(number)
    held, link.places_held = link.places_held, []
    by_brokers: dict[frozenset[str], frozenset[str]] = {}
    for brokers, at in held:
        by_brokers[brokers] = by_brokers.get(brokers, _NONE) | at
    by_at: dict[frozenset[str], frozenset[str]] = {}
    for brokers, at in by_brokers.items():
        by_at[at] = by_at.get(at, _NONE) | brokers
    for at, brokers in by_at.items():
        message = PlacesKept(tuple(sorted(brokers)), tuple(sorted(at)))
        state.effects.append(Send(link.number, message))

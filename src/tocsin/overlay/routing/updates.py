"""Updates: what the neighbours have to hear now, and have not heard yet.

Each link remembers what was sent on it. After every change the entries concerned are compared with
that, and the difference is sent: first what is new, then what is withdrawn, so that an event that
passes both always finds one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet

from tocsin.errors import RoutingTableFull
from tocsin.event.filter import EVERYTHING, Filter
from tocsin.overlay.routing.cover_index import Entry
from tocsin.overlay.routing.effects import Began, EntryKey, NeighbourFilter, Send, SubscriptionMoved
from tocsin.overlay.routing.links import Link, Phase
from tocsin.overlay.routing.offers import Offers, too_costly
from tocsin.overlay.routing.places import is_place_kept, send_all_held, send_touched_places
from tocsin.overlay.routing.room import ignore
from tocsin.overlay.routing.state import RouterState
from tocsin.overlay.routing.table import OWN, Before, RoutingTable
from tocsin.wire.link.messages import (
    Advertise,
    Message,
    Reached,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)

# Advertisements of one neighbour that each subscription is compared with. With more, all go there.
OFFERS_MAX = 256
EARLY_MAX = 10_000  # reports of one neighbour about brokers that it has not named yet
ANEW_MAX = 16  # that came or went at once: past that, all that it offers are looked at


def send_updates(state: RouterState) -> None:
    """Send every neighbour what it has not heard yet. Where brokers are comes last: by then the
    neighbour has the entries that come from there."""
    state.subscriptions.changed_filters.clear()  # of those `changed` says enough
    if state.may_withdraw:
        state.advertisements.mark_withheld()
        state.subscriptions.mark_withheld()
    if not (
        state.advertisements.changed
        or state.advertisements.changed_filters
        or state.subscriptions.changed
        or state.touched
        or state.holding_places
        or (state.displaced and not state.has_looked_at_all)
    ):
        return
    advertised = state.advertisements.take_changed()
    for link in state.up_links() if advertised else ():
        send_advertisements(state, link, advertised)
    offering = state.advertisements.take_changed_filters()
    subscribed = state.subscriptions.take_changed()
    for link in state.up_links(Phase.SUBSCRIBING) if subscribed else _links_of(state, offering):
        affected = _affected(state, link, offering.get(link.neighbour, []))
        keys = sorted({*affected, *subscribed}) if affected else subscribed
        if keys:
            send_subscriptions(state, link, keys)
    _report_wanted(state, subscribed)
    _report_reached(state, subscribed)
    if state.displaced and not state.has_looked_at_all:
        state.has_looked_at_all = True  # until the next tick: a neighbour may say so all the time
        displaced, state.displaced = state.displaced, set()
        for entry in list(state.subscriptions.entries.values()):
            _note_by_covers(state, entry, displaced)
    send_touched_places(state)


def _links_of(state: RouterState, neighbours: Iterable[str]) -> list[Link]:
    links = [state.link_of[each] for each in neighbours if each in state.link_of]
    return [link for link in links if link.phase >= Phase.SUBSCRIBING]


def send_advertisements(state: RouterState, link: Link, keys: Iterable[EntryKey]) -> None:
    gone: list[Message] = []
    sent = link.sent_advertisements
    for key in keys:
        entry = state.advertisements.entries.get(key)
        goes = entry is not None and entry.goes_to(link.neighbour)
        if entry is not None and goes:
            if sent.get(key) != entry.text:
                sent[key] = entry.text
                _send(state, link, Advertise(*key, entry.text))
        elif _take_sent(state, state.advertisements, key, sent):
            gone.append(Unadvertise(*key))
    for message in gone:
        _send(state, link, message)


def send_subscriptions(state: RouterState, link: Link, keys: Iterable[EntryKey]) -> None:
    offers = _offers(state, link)
    link.offers_all = offers.is_everything
    meeting: dict[EntryKey, Entry] = {}
    looked_at: list[EntryKey] = []
    for key in keys:
        entry = state.subscriptions.entries.get(key)
        looked_at.append(key)
        if entry is not None and entry.goes_to(link.neighbour) and offers.meet(entry.filter):
            meeting[key] = entry
        if _is_too_costly(state, link):
            send_subscriptions(state, link, sorted(state.subscriptions.entries))
            return
    gone: list[Message] = []
    sent = link.sent_subscriptions
    for key in looked_at:
        if key in meeting:
            entry = meeting[key]
            if sent.get(key) != entry.text:
                sent[key] = entry.text
                entry.sent_to(link.neighbour)
                _send(state, link, Subscribe(*key, entry.text))
        elif _is_told(state, link, key) and _take_sent(state, state.subscriptions, key, sent):
            gone.append(Unsubscribe(*key))
    for message in gone:
        _send(state, link, message)


def _is_told(state: RouterState, link: Link, key: EntryKey) -> bool:
    """False if the neighbour has still to hear where the subscription comes from. By the
    subscription it can see who is there, so that goes no sooner."""
    origin, sent = key[0], link.sent_subscriptions
    if key not in sent or origin in link.sent_behind or origin == state.own.broker:
        return True
    if not state.reach.is_coming(link.neighbour, origin):
        return True
    state.untold.setdefault(origin, {})[key] = None
    if key not in state.subscriptions.entries:
        sent[key] = None  # if it comes back it is sent again, so that the neighbour answers it
    return False


def _take_sent(
    state: RouterState, table: RoutingTable, key: EntryKey, sent: dict[EntryKey, str | None]
) -> bool:
    """True if the entry was sent, and is withdrawn now: not while there is a cycle. Brokers on it
    hear of an entry from two sides, and would send and withdraw it over and over."""
    if key not in sent or key in table.leaving:
        return False
    if state.may_withdraw:
        del sent[key]
        return True
    table.withheld[key] = None
    if key not in table.entries:
        sent[key] = None  # if it comes back it is sent again, so that the neighbour answers it
    return False


def _offers(state: RouterState, link: Link) -> Offers:
    """What may come from there. That is all the neighbour says, also of brokers that are away: one
    of theirs may stand for one of its own."""
    offered = state.advertisements.rows_from(link.neighbour).values()
    if (
        link.is_costly
        or len(offered) > OFFERS_MAX
        or any(each == EVERYTHING for _, each in offered)
    ):
        return Offers(link, [], is_everything=True)
    return Offers(link, [filter for _, filter in offered], is_everything=False)


def _is_too_costly(state: RouterState, link: Link) -> bool:
    """True once: from now on every subscription goes there."""
    error = too_costly(link)
    if error is not None:
        ignore(state, link, error)
    return error is not None


def _affected(state: RouterState, link: Link, anew: list[Filter]) -> Collection[EntryKey]:
    """The subscriptions that may have to be sent, or not any more, because of these
    advertisements, which came or went."""
    if not anew:
        return ()
    entries = state.subscriptions.entries
    offers_all = _offers(state, link).is_everything
    if offers_all != link.offers_all or len(anew) > ANEW_MAX:
        return entries.keys()
    if offers_all:
        return ()
    changed = Offers(link, anew, is_everything=EVERYTHING in anew)
    found: list[EntryKey] = []
    for key, entry in entries.items():
        if entry.goes_to(link.neighbour) and changed.meet(entry.filter):
            found.append(key)
        if _is_too_costly(state, link):
            return entries.keys()
    return found


def _report_wanted(state: RouterState, changed: dict[EntryKey, Before]) -> None:
    added: dict[str, dict[EntryKey, Filter]] = {}
    removed: dict[str, list[EntryKey]] = {}
    moved: list[SubscriptionMoved] = []
    for key, before in changed.items():
        entry = state.subscriptions.entries.get(key)
        if entry is not None and before == (entry.hop, entry.text):
            continue
        if entry is not None and entry.hop != OWN:
            added.setdefault(entry.hop, {})[key] = entry.filter
        if before is not None and before[0] != OWN and (entry is None or entry.hop != before[0]):
            removed.setdefault(before[0], []).append(key)
            if entry is not None and entry.hop != OWN:
                moved.append(SubscriptionMoved(key, entry.filter, before[0], entry.hop))
    # What moved is wanted there before it is handed over here, and here until then: else events
    # in between are looked at while nobody wants them.
    state.effects.extend(NeighbourFilter(name, added[name]) for name in sorted(added))
    state.effects.extend(moved)
    state.effects.extend(
        NeighbourFilter(name, {}, tuple(removed[name])) for name in sorted(removed)
    )


def _report_reached(state: RouterState, changed: dict[EntryKey, Before]) -> None:
    for key, before in changed.items():
        entry = state.subscriptions.entries.get(key)
        if entry is None:
            continue
        if entry.hop != OWN and before != (entry.hop, entry.text):
            answer_reached(state, entry)
        _note_by_covers(state, entry, None)


def _note_by_covers(state: RouterState, entry: Entry, among: set[str] | None) -> None:
    for wide in entry.covered_by.values():
        brokers = wide.reached.keys() if among is None else wide.reached.keys() & among
        note_reached(state, entry, _by_cover(state, entry, wide, brokers))


def answer_reached(state: RouterState, entry: Entry) -> None:
    """Tell where the entry comes from that it is here, and where else it is known to be.

    Once those beyond have answered: one message a link then, in place of one for each broker.
    """
    if entry.unheard:
        state.held[entry.key] = None
    else:
        _send_reached(state, entry, {state.own.broker, *entry.reached})


def receive_reached(
    state: RouterState, link: Link, key: EntryKey, brokers: Iterable[str]
) -> RoutingTableFull | None:
    """A neighbour says where beyond it a subscription holds. Gives what is wrong about that.

    It may only speak of what it was sent, and of brokers behind it. Of one that is on its way here
    the report may come first: that waits until the neighbour names the broker.
    """
    entry = state.subscriptions.entries.get(key)
    if key not in link.sent_subscriptions or entry is None:
        return None  # of an earlier connection, or withdrawn since; or invented
    behind = state.reach.behind(link.neighbour)
    wrong = None
    for broker in brokers:
        if broker in behind or broker in (state.own.broker, key[0]):
            continue
        if link.early_count >= EARLY_MAX:
            wrong = _not_behind(link, broker)
            break
        link.early.setdefault(broker, []).append(key)
        link.early_count += 1
    _take_reached(state, link, entry, [each for each in brokers if each in behind])
    return wrong


def named(state: RouterState, link: Link, brokers: Iterable[str]) -> None:
    """The neighbour has named these brokers: what was said too early of them holds now."""
    for broker in brokers:
        keys = link.early.pop(broker, [])
        link.early_count -= len(keys)
        for key in keys:
            entry = state.subscriptions.entries.get(key)
            if entry is not None and key in link.sent_subscriptions:
                _take_reached(state, link, entry, [broker])


def _not_behind(link: Link, broker: str) -> RoutingTableFull:
    return RoutingTableFull(
        f"{link.neighbour} has said {EARLY_MAX} times that a subscription holds at brokers that "
        f"are not behind it, as {broker}",
        remedy="Nothing needs to be done: it is ignored. That broker may be a wrong one.",
    )


def _take_reached(state: RouterState, link: Link, entry: Entry, brokers: list[str]) -> None:
    entry.heard_from(link.neighbour)
    note_reached(state, entry, brokers)
    if not entry.unheard and entry.key in state.held:
        del state.held[entry.key]
        answer_reached(state, entry)


def answer_held(state: RouterState) -> None:
    """Waits no longer for those that have not answered."""
    held, state.held = state.held, {}
    for key in held:
        entry = state.subscriptions.entries.get(key)
        if entry is not None:
            entry.unheard = frozenset()
            answer_reached(state, entry)
    send_all_held(state)


def note_reached(state: RouterState, entry: Entry, brokers: Iterable[str]) -> None:
    """The entry holds at these brokers, and so do those that it covers."""
    waiting: list[tuple[Entry, AbstractSet[str]]] = [(entry, set(brokers))]
    while waiting:
        at, found = waiting.pop()
        fresh = found - at.reached.keys() - {state.own.broker, at.key[0]}
        if not fresh or len(at.reached) + len(fresh) > state.options.brokers_max:
            continue
        at.add_reached(fresh, state.now_ns)
        state.holding |= fresh
        if at.hop == OWN:
            state.effects.extend(Began(at.key[1], broker) for broker in sorted(fresh))
        elif at.key not in state.held:
            _send_reached(state, at, fresh)
        waiting.extend((each, _by_cover(state, each, at, fresh)) for each in at.covers.values())


def _by_cover(
    state: RouterState, entry: Entry, wide: Entry, brokers: AbstractSet[str]
) -> AbstractSet[str]:
    """Of brokers at which a wider entry holds, those at which one that it covers holds too. Not the
    ones on the side that it comes from; nor who does not know yet that its origin is over here, and
    would not hand over to it what is kept for the wider one, if it turned up elsewhere."""
    origin = entry.key[0]
    ahead = brokers - state.reach.behind(entry.hop).keys()
    if origin == wide.key[0]:
        return ahead
    return {broker for broker in ahead if is_place_kept(state, origin, broker)}


def _send_reached(state: RouterState, entry: Entry, brokers: AbstractSet[str]) -> None:
    link = state.link_of.get(entry.hop)
    if link is not None and link.phase >= Phase.UP and state.options.report_reached:
        _send(state, link, Reached(*entry.key, tuple(sorted(brokers))))


def _send(state: RouterState, link: Link, message: Message) -> None:
    state.effects.append(Send(link.number, message))

"""Room: how much each neighbour, and all together, may have in the routing tables."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.errors import RoutingTableFull, TocsinError
from tocsin.overlay.routing.effects import EntryIgnored, EntryKey, Send
from tocsin.overlay.routing.links import Link
from tocsin.overlay.routing.state import SUBSCRIPTIONS, RouterState
from tocsin.overlay.routing.table import size_of
from tocsin.wire.link.messages import REASON_CHARS_MAX, Ignored

_LIMIT_REMEDY = "Raise {} in [overlay] there, or use fewer and wider {}."


def check_room(state: RouterState, name: str) -> None:
    """RoutingTableFull if the table can have no other row."""
    options, kind = state.options, _kind(name)
    is_subscription = name == SUBSCRIPTIONS
    maximum = options.subscriptions_max if is_subscription else options.advertisements_max
    if len(state.table(name)) >= maximum:
        raise RoutingTableFull(
            f"the routing table has {maximum} {kind}, as many as it may have",
            remedy=f"Raise {kind}_max in [overlay], or use fewer and wider {kind}.",
        )


def check_share(state: RouterState, name: str, neighbour: str, key: EntryKey, text: str) -> None:
    """RoutingTableFull if the neighbour may not say this, besides all it has said."""
    options, kind, table = state.options, _kind(name), state.table(name)
    known = table.text_from(neighbour, key)
    if known is None:
        check_room(state, name)
        of_subscriptions = options.subscriptions_per_neighbour_max
        of_advertisements = options.advertisements_per_neighbour_max
        maximum = of_subscriptions if name == SUBSCRIPTIONS else of_advertisements
        if len(table.rows_from(neighbour)) >= maximum:
            raise RoutingTableFull(
                f"{maximum} {kind} came over the link with {neighbour}, as many as may come by one",
                remedy=_LIMIT_REMEDY.format(f"{kind}_per_neighbour_max", kind),
            )
    more = size_of(key, text) - (0 if known is None else size_of(key, known))
    if more <= 0:
        return
    tables = (state.advertisements, state.subscriptions)
    maximum = options.entry_bytes_per_neighbour_max
    if sum(each.bytes_of.get(neighbour, 0) for each in tables) + more > maximum:
        raise RoutingTableFull(
            f"entries of {maximum} bytes came over the link with {neighbour}, as many as may come "
            "by one",
            remedy=_LIMIT_REMEDY.format("entry_bytes_per_neighbour_max", kind),
        )
    if sum(each.bytes_total for each in tables) + more > options.entry_bytes_max:
        raise RoutingTableFull(
            f"the routing tables have entries of {options.entry_bytes_max} bytes, as many as they "
            "may have",
            remedy=_LIMIT_REMEDY.format("entry_bytes_max", kind),
        )


def take_brokers(state: RouterState, link: Link, added: Mapping[str, str]) -> dict[str, str]:
    """Those of the brokers behind a neighbour that there is room for. Who is left out can be
    reached all the same, aside from what the log keeps for it where it was before."""
    options, behind = state.options, state.reach.behind(link.neighbour)
    # A tenth is for neighbours themselves, who are not refused because others name too many.
    named = max(0, len(state.reach) - len(state.link_of))
    of_all = options.brokers_max - options.brokers_max // 10 - named
    of_one = options.brokers_per_neighbour_max - max(0, len(behind) - 1)
    room = max(0, min(of_all, of_one))
    if len(added) <= room:
        return dict(added)
    fresh = sorted(each for each in added if each not in behind and each != state.own.broker)
    if len(fresh) > room:
        is_share = of_one <= of_all
        most = options.brokers_per_neighbour_max if is_share else options.brokers_max
        name = "brokers_per_neighbour_max" if is_share else "brokers_max"
        problem = (
            f"{link.neighbour} names {len(fresh) - room} brokers too many: {most} may be behind "
            f"{'one neighbour' if is_share else 'all neighbours together'}"
        )
        remedy = f"Raise {name} in [overlay] there; or find out who invents brokers."
        ignore(state, link, RoutingTableFull(problem, remedy=remedy))
    left_out = set(fresh[room:])
    return {each: before for each, before in added.items() if each not in left_out}


def ignore(state: RouterState, link: Link, problem: TocsinError) -> None:
    """An entry is not taken. The neighbour is told of the first, the second, the fourth, ..."""
    state.effects.append(EntryIgnored(link.neighbour, problem))
    link.ignored += 1
    if link.ignored.bit_count() == 1:
        words = problem.problem[:REASON_CHARS_MAX]
        state.effects.append(Send(link.number, Ignored(link.ignored, problem.code, words)))


def _kind(name: str) -> str:
    return "subscriptions" if name == SUBSCRIPTIONS else "advertisements"

"""Random trees with delay, failures and restarts: in the end everything is as if nothing failed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from overlay.routing import overlay_sim
from overlay.routing.overlay_sim import Overlay, S, fresh_like, is_tree, parsed
from tocsin.event.event import Event
from tocsin.event.filter import Filter
from tocsin.event.filter_eval import matches
from tocsin.matching.covering import intersects, never_matches
from tocsin.overlay.routing import departures, router, table, updates
from tocsin.overlay.routing.cover_index import CoverIndex, Entry, _at
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.reach import Reach
from tocsin.overlay.routing.table import RoutingTable

SEEDS = range(12)
STEPS_MAX = 60_000
TOPICS = ("", "a", "a/b", "a/b/c", "b", "b/c")
NARROW = (("topic a/**",), ("x > 3",), ("topic b", "y = 1"), ())


def some_filter(random: Random) -> str:
    """Many that cover each other, and some that nothing can cover."""
    low = random.randrange(8)
    return random.choice(
        [
            f"x > {low}",
            f"x > {low} and y = {random.randrange(3)}",
            f"x > {low} and x < {low + random.randrange(4)}",
            f"topic {random.choice(['a', 'a/*', 'a/**', '**', '*/b', 'b/**'])}",
            f"topic a/** and x > {low}",
            f"x = {low} or y = {random.randrange(3)}",
            f"not x > {low}",
            f'sql "x > {low}"',
            "",
        ]
    )


def events() -> list[Event]:
    return [
        Event(id="1", source="/s", type="t", topic=topic, attributes={"x": x, "y": y})
        for topic in TOPICS
        for x, y in ((0, 0), (4, 1), (9, 2))
    ]


EVENTS = events()


def planned(seed: int, *, covering: bool = True, extra_links: int = 0) -> Overlay:
    """A random tree of 2 to 30 brokers, with as many links too many as asked for."""
    random = Random(seed)
    overlay = Overlay(seed)
    size = random.randint(2, 30)
    names = random.sample([f"b{number:02}" for number in range(100)], size)
    for place, name in enumerate(names):
        advertises = random.choice(NARROW) if random.random() < 0.2 else ("",)
        overlay.add(name, RoutingOptions(covering=covering, advertises=advertises))
        if place:
            overlay.dials.append((name, random.choice(names[:place])))
    for _ in range(min(extra_links, size - 2)):
        one, other = random.sample(names, 2)
        if (one, other) not in overlay.dials and (other, one) not in overlay.dials:
            overlay.dials.append((one, other))
    random.shuffle(overlay.dials)
    return overlay


def live(overlay: Overlay, *, rounds: int = 25, faults: bool = True) -> None:
    """Subscriptions come and go; links and brokers fail and return."""
    random = Random(overlay.random.random())
    numbers = iter(range(1_000_000))
    down: list[str] = []
    for _ in range(rounds):
        for _ in range(random.randint(1, 4)):
            broker = random.choice(list(overlay.nodes))
            clients = overlay.nodes[broker].clients
            if clients and random.random() < 0.4:
                overlay.unsubscribe(broker, random.choice(list(clients)))
            else:
                overlay.subscribe(broker, f"s{next(numbers)}", some_filter(random))
        if faults and random.random() < 0.3:
            overlay.cut(*random.choice(overlay.dials))
        if faults and random.random() < 0.15 and len(down) < 3:
            broker = random.choice([each for each in overlay.nodes if each not in down])
            overlay.crash(broker)
            down.append(broker)
        if down and random.random() < 0.5:
            overlay.restart(down.pop(0))
        overlay.run(random.randrange(3 * S))
    for broker in down:
        overlay.restart(broker)
    overlay.run(60 * S)
    overlay.settle()


def check(overlay: Overlay) -> dict[tuple[str, int], set[str]]:
    """Everything that must hold once nothing happens any more; gives who got each event."""
    assert is_tree(overlay.nodes, overlay.up())
    fresh = fresh_like(overlay)
    delivered: dict[tuple[str, int], set[str]] = {}
    for broker, node in overlay.nodes.items():
        assert overlay.tables(broker) == fresh.tables(broker), broker
        neighbours = [each.broker for each in overlay.router(broker).tables().neighbours]
        wanted = {each: overlay.router(broker).wanted_by(each) for each in neighbours}
        assert {each: filters for each, filters in wanted.items() if filters} == node.wanted
        check_began(overlay, broker)
        offered = [parsed(text) for text in node.options.advertises]
        for number, event in enumerate(EVENTS):
            if any(matches(each, event) for each in offered):
                delivered[broker, number] = check_way(overlay, event, broker)
    return delivered


def check_way(overlay: Overlay, event: Event, origin: str) -> set[str]:
    """It comes to all who want it, and by nobody who is not on the way to one of them."""
    came = overlay.way(event, origin)
    wanting = overlay.wanting(event)
    assert wanting <= came.keys() | {origin}, (event, origin)
    useful = {origin}
    for broker in wanting:
        while broker not in useful:
            useful.add(broker)
            broker = came[broker]
    assert came.keys() == useful, (event, origin)
    return wanting


def check_began(overlay: Overlay, broker: str) -> None:
    """A subscription knows of every broker that may publish something for it."""
    node = overlay.nodes[broker]
    for subscription, text in node.clients.items():
        wanted = parsed(text)
        if never_matches(wanted):
            continue
        for other, at in overlay.nodes.items():
            if other != broker and may_publish(at.options, wanted):
                assert other in node.began.get(subscription, set()), (broker, text, other)


def may_publish(options: RoutingOptions, wanted: Filter) -> bool:
    return any(intersects(wanted, parsed(text)) for text in options.advertises)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_failures_every_event_reaches_those_who_want_it(seed: int) -> None:
    overlay = planned(seed)

    live(overlay)

    check(overlay)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_covering_the_same_events_reach_the_same_brokers(seed: int) -> None:
    covered, plain = planned(seed), planned(seed, covering=False)

    live(covered)
    live(plain)

    assert [node.clients for node in covered.nodes.values()] == [
        node.clients for node in plain.nodes.values()
    ]
    assert check(covered) == check(plain)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_withdrawn_bit_by_bit_loses_no_event(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (table, router):
        monkeypatch.setattr(module, "UNCOVERED_AT_ONCE", 1)
    overlay = planned(seed, extra_links=6)

    live(overlay)

    check(overlay)


@pytest.mark.parametrize("seed", SEEDS)
def test_links_too_many_leave_a_tree_however_they_come_about(seed: int) -> None:
    overlay = planned(seed, extra_links=6)

    live(overlay)

    check(overlay)


@pytest.mark.parametrize(("seed", "extra_links"), [(2, 10), (0, 15), (2, 15)])
def test_while_there_are_cycles_messages_do_not_multiply(seed: int, extra_links: int) -> None:
    """29 brokers, up to 43 links: more than a million messages if entries are withdrawn then, and
    from 6,000 to 130,000 if not, as the delays are drawn."""
    overlay = planned(seed, extra_links=extra_links)

    live(overlay)

    check(overlay)
    assert overlay.messages < 250_000


@pytest.mark.parametrize("seed", range(10))
def test_while_others_come_and_go_nobody_who_began_misses_an_event(seed: int) -> None:
    overlay = planned(seed)
    random = Random(seed)
    overlay.run(60 * S)
    overlay.settle()
    names = list(overlay.nodes)
    for number in range(20):
        overlay.subscribe(random.choice(names), f"kept{number}", some_filter(random))
    overlay.settle()
    kept = {(b, s): text for b in names for s, text in overlay.nodes[b].clients.items()}

    for number in range(60):
        broker = random.choice(names)
        passing = [each for each in overlay.nodes[broker].clients if (broker, each) not in kept]
        if passing and random.random() < 0.5:
            overlay.unsubscribe(broker, random.choice(passing))
        else:
            overlay.subscribe(broker, f"s{number}", some_filter(random))
        overlay.run(random.randrange(60_000_000))
        event, origin = random.choice(EVENTS), random.choice(names)
        if not any(matches(parsed(t), event) for t in overlay.nodes[origin].options.advertises):
            continue
        came = overlay.way(event, origin)
        for (broker, subscription), text in kept.items():
            if matches(parsed(text), event):
                assert broker in came, (subscription, text, event, origin)


Mutation = Callable[[pytest.MonkeyPatch], None]


def uncovering_left_out(patch: pytest.MonkeyPatch) -> None:
    def forget_only(table: RoutingTable, entry: Entry) -> None:
        for narrow in list(entry.covers.values()):
            entry.covers.clear()
            narrow.covered_by = {h: w for h, w in narrow.covered_by.items() if w is not entry}
        remove(table, entry)

    remove = RoutingTable._remove
    patch.setattr(RoutingTable, "_remove", forget_only)


def sent_back_to_the_last_hop(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Entry, "goes_to", lambda entry, to: all(hop == to for hop in entry.covered_by))


def covered_in_its_own_direction(patch: pytest.MonkeyPatch) -> None:
    """One cover counts for every direction, also for the one that it came from."""
    patch.setattr(Entry, "goes_nowhere", property(lambda entry: bool(entry.covered_by)))
    patch.setattr(Entry, "goes_to", lambda e, to: to != e.hop and not e.covered_by)


def covers_found_are_all_believed(patch: pytest.MonkeyPatch) -> None:
    """Covering without asking the regions."""
    patch.setattr(CoverIndex, "covering", lambda index, narrow: iter_filed(index, narrow))

    def iter_filed(index: CoverIndex, narrow: Entry) -> list[Entry]:
        filed = [entry for access in index._filed for entry in _at(index._filed, access)]
        return [entry for entry in filed if entry.key < narrow.key]


def unnamed_entries_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        router.Router,
        "_synced",
        lambda self, link, table: (
            link.unnamed_advertisements.clear(),
            link.unnamed_subscriptions.clear(),
            synced(self, link, table),
        ),
    )


synced = router.Router._synced


def advertisements_ignored_when_they_change(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RoutingTable, "take_changed_filters", lambda table: {})


def kept_entries_never_handed_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(departures, "_hand_over", lambda state, neighbour, here: None)


def nothing_saved(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(router.Router, "restore", lambda self, rows, now_ns: [])


def cycles_left_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reach, "edge_to_cut", lambda reach: None)


def any_edge_cut(patch: pytest.MonkeyPatch) -> None:
    """Every broker cuts an edge of its own, not the one that all agree on."""
    patch.setattr(Reach, "has_cycle", property(lambda reach: False))


def covers_do_not_say_where_they_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        updates,
        "note_reached",
        lambda state, entry, brokers: noted(state, entry, brokers) if brokers is None else None,
    )


noted = updates.note_reached


@pytest.mark.parametrize(
    "mutate",
    [
        uncovering_left_out,
        sent_back_to_the_last_hop,
        covered_in_its_own_direction,
        covers_found_are_all_believed,
        unnamed_entries_stay,
        advertisements_ignored_when_they_change,
        kept_entries_never_handed_over,
        cycles_left_alone,
        any_edge_cut,
        covers_do_not_say_where_they_hold,
    ],
)
def test_a_broken_router_is_caught(mutate: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    # A router that works needs fewer; one that never comes to rest need not go on for longer.
    monkeypatch.setattr(overlay_sim, "STEPS_MAX", STEPS_MAX)

    for seed in SEEDS:
        overlay = planned(seed, extra_links=10)
        try:
            live(overlay)
            check(overlay)
        except (AssertionError, KeyError):
            return
    raise AssertionError("every seed passed")

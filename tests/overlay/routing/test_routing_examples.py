"""Routing between a few brokers: figure 1 of paper 001, covering, failures, and refusals."""

from __future__ import annotations

import pytest

from overlay.routing.overlay_sim import Overlay, S, fresh_like, identity
from tocsin.errors import BrokerStillThere, NoSuchBroker
from tocsin.event.event import Event
from tocsin.event.filter_eval import matches
from tocsin.overlay.routing.effects import (
    CloseLink,
    Effect,
    Moved,
    NeighbourForgotten,
    NeighbourUp,
    Save,
    Send,
)
from tocsin.overlay.routing.options import RoutingOptions
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


def star(*edges: str, advertises: dict[str, tuple[str, ...]] | None = None) -> Overlay:
    """Brokers with one letter each, linked as the pairs of letters say."""
    overlay = Overlay()
    for broker in sorted({letter for edge in edges for letter in edge}):
        offered = (advertises or {}).get(broker, ("",))
        overlay.add(broker, RoutingOptions(advertises=offered))
    for one, other in edges:
        overlay.dial(one, other)
    overlay.settle()
    return overlay


def at(overlay: Overlay, broker: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The PRT: id -> last hop and where it was sent."""
    rows = overlay.router(broker).tables().subscriptions
    return {row.id: (row.last_hop, row.sent_to) for row in rows}


def reading(**attributes: float) -> Event:
    return Event(id="1", source="/s", type="t", attributes=dict(attributes))


def abc(low: str) -> str:
    return f"kind = abc and a > {low}"


def figure_1() -> Overlay:
    """Publisher at A; C in the middle; subscribers at B and D. D publishes nothing of the kind."""
    other = ("kind = other",)
    return star(
        "AC", "BC", "DC", advertises={"A": (abc("10"),), "B": other, "C": other, "D": other}
    )


def test_a_subscription_follows_the_advertisement_and_nothing_else() -> None:
    overlay = figure_1()

    overlay.subscribe("B", "sub1", abc("15"))
    overlay.settle()

    assert at(overlay, "B") == {"sub1": ("", ("C",))}
    assert at(overlay, "C") == {"sub1": ("B", ("A",))}
    assert at(overlay, "A") == {"sub1": ("C", ())}
    assert at(overlay, "D") == {}


def test_an_event_goes_back_the_way_that_the_subscription_came() -> None:
    overlay = figure_1()
    overlay.subscribe("B", "sub1", abc("15"))
    overlay.settle()
    event = Event(id="1", source="/s", type="t", attributes={"kind": "abc", "a": 20})

    assert overlay.way(event, "A") == {"A": "", "C": "A", "B": "C"}


def test_a_covered_subscription_is_not_sent_on() -> None:
    overlay = figure_1()
    overlay.subscribe("B", "sub1", abc("15"))
    overlay.settle()

    overlay.subscribe("D", "sub3", abc("18"))
    overlay.settle()

    assert at(overlay, "C") == {"sub1": ("B", ("A",)), "sub3": ("D", ())}
    assert at(overlay, "A") == {"sub1": ("C", ())}


def test_it_is_sent_on_when_its_cover_goes() -> None:
    overlay = figure_1()
    overlay.subscribe("B", "sub1", abc("15"))
    overlay.subscribe("D", "sub3", abc("18"))
    overlay.settle()

    overlay.unsubscribe("B", "sub1")
    overlay.settle()

    assert at(overlay, "A") == {"sub3": ("C", ())}
    assert at(overlay, "B") == {}


def test_what_a_wider_one_covers_is_withdrawn_after_that_one_was_sent() -> None:
    overlay = figure_1()
    overlay.subscribe("B", "sub1", abc("15"))
    overlay.settle()

    overlay.subscribe("D", "all", "")
    overlay.settle()

    assert at(overlay, "A") == {"all": ("C", ())}
    assert at(overlay, "C") == {"all": ("D", ("A", "B")), "sub1": ("B", ())}


def test_a_filter_that_is_no_box_is_never_covered_and_goes_everywhere() -> None:
    overlay = figure_1()
    overlay.subscribe("D", "all", "")

    for number, text in enumerate(['sql "a > 5"', "not a = 5", 'xpath "/a"']):
        overlay.subscribe("B", f"s{number}", text)
    overlay.settle()

    for broker, last_hop in (("A", "C"), ("C", "B"), ("D", "C")):
        rows = at(overlay, broker)
        assert {rows[f"s{number}"][0] for number in range(3)} == {last_hop}


def test_of_equal_advertisements_one_is_enough_in_each_direction() -> None:
    overlay = star("AB", "BC", "CD")

    known = {b: [row.origin for row in overlay.router(b).tables().advertisements] for b in "ABCD"}

    assert known == {"A": ["A", "B"], "B": ["A", "B", "C"], "C": ["A", "C", "D"], "D": ["A", "D"]}


def test_where_a_subscription_holds_is_reported_once_a_link() -> None:
    overlay = star("AB", "BC", "CD", "CE")
    before = overlay.messages

    overlay.subscribe("A", "s", "load > 5")
    overlay.settle()

    assert overlay.messages - before == 4 + 4
    assert overlay.nodes["A"].began == {"s": {"B", "C", "D", "E"}}


def test_a_broker_that_does_not_answer_is_waited_for_until_the_next_tick() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("A", "s", "load > 5")
    while not overlay.nodes["C"].wanted:
        overlay.step()

    overlay.cut("C", "D")
    overlay.settle()
    assert overlay.nodes["A"].began == {}

    overlay.run(2 * S)
    assert overlay.nodes["A"].began == {"s": {"B", "C"}}


def test_a_subscription_says_when_it_began_at_each_broker_also_if_it_is_covered() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("A", "wide", "load > 5")
    overlay.settle()

    overlay.subscribe("A", "narrow", "load > 6")
    overlay.subscribe("B", "between", "load > 7")
    overlay.settle()

    assert overlay.nodes["A"].began == {"wide": {"B", "C", "D"}, "narrow": {"B", "C", "D"}}
    assert overlay.nodes["B"].began == {"between": {"A", "C", "D"}}


def test_a_neighbour_that_is_away_keeps_its_place_in_the_tables() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.settle()
    before = at(overlay, "A")

    overlay.crash("C")
    overlay.settle()

    assert at(overlay, "A") == before == {"s": ("B", ())}
    assert overlay.router("B").wanted_by("C").keys() == {("C", "s")}


def test_it_is_kept_also_when_this_broker_starts_again() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.settle()
    overlay.crash("C")
    overlay.crash("B")
    overlay.settle()

    overlay.restart("B")

    assert overlay.router("B").wanted_by("C").keys() == {("C", "s")}


def test_what_was_unsubscribed_meanwhile_is_gone_when_the_link_returns() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.subscribe("C", "t", "load < 2")
    overlay.settle()
    overlay.cut("B", "C")
    overlay.settle()

    overlay.unsubscribe("C", "s")
    overlay.dial("C", "B")
    overlay.settle()

    assert at(overlay, "A") == {"t": ("B", ())}


def moved_at(overlay: Overlay, broker: str) -> list[tuple[str, str, str]]:
    seen = [each for each in overlay.nodes[broker].seen if isinstance(each, Moved)]
    return [(each.key[0], each.before, each.after) for each in seen]


def test_a_place_in_the_log_goes_after_what_it_held_was_handed_over() -> None:
    overlay = star("AB", "AC")
    overlay.subscribe("B", "s", "a > 1")
    overlay.settle()
    overlay.cut("A", "B")
    overlay.settle()

    overlay.dial("B", "C")
    overlay.settle()

    kinds = [type(each) for each in overlay.nodes["A"].seen]
    assert moved_at(overlay, "A") == [("B", "B", "C")]
    assert kinds.index(Moved) < kinds.index(NeighbourForgotten)


@pytest.mark.parametrize("first", ["A", "B"])
def test_who_was_behind_a_neighbour_is_known_also_when_this_broker_starts_again(first: str) -> None:
    """C asks for less than B, which stands for it at A; what A keeps for B is owed to C too."""
    overlay = star("AB", "BC")
    overlay.subscribe("B", "wide", "")
    overlay.subscribe("C", "narrow", "a > 1")
    overlay.settle()
    for broker in (first, *"AB".replace(first, "")):
        overlay.crash(broker)
        overlay.settle()
    overlay.restart("A")

    overlay.dial("C", "A")
    overlay.settle()

    moved = [each for each in overlay.nodes["A"].seen if isinstance(each, Moved)]
    assert [(each.key, each.before, each.after) for each in moved] == [(("C", "narrow"), "B", "C")]


@pytest.mark.parametrize("is_away", [False, True])
def test_who_was_lost_behind_a_neighbour_is_handed_over_what_is_still_on_its_way_there(
    is_away: bool,
) -> None:
    """What comes to B from A from now on, B would not send back to A on its way to C."""
    overlay = star("AB", "BC")
    overlay.subscribe("B", "wide", "")
    overlay.subscribe("C", "narrow", "a > 1")
    overlay.settle()
    overlay.cut("B", "C")
    overlay.settle()
    if is_away:
        overlay.cut("A", "B")
        overlay.settle()

    overlay.dial("C", "A")
    overlay.settle()

    assert ("C", "B", "C") in moved_at(overlay, "A")


def test_of_brokers_that_are_away_no_more_are_known_than_may_be() -> None:
    router = Router(identity("A"), RoutingOptions(brokers_per_neighbour_max=1))
    router.link_opened(1, 0, is_outgoing=False)
    for message in (
        m.Hello(m.PROTOCOL_VERSION, "B", "log-B", 1, "x"),
        m.Welcome(),
        m.Synced("advertisements"),
        m.Synced("subscriptions"),
    ):
        router.receive(1, message, 0)
    saved: dict[str, bytes | None] = {}

    for number in range(10):
        effects = router.receive(1, m.Behind({f"C{number}": "B"}), 0)
        effects += router.receive(1, m.Behind({}, (f"C{number}",)), 0)
        saved |= {each.key: each.value for each in effects if isinstance(each, Save)}

    assert [row for row, value in saved.items() if value is not None] == ["b/B/C9"]


def test_what_was_behind_a_neighbour_is_dropped_with_it() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("B", "s", "")
    overlay.settle()
    overlay.crash("B")
    overlay.crash("C")
    overlay.settle()
    overlay.crash("A")
    overlay.restart("A")

    overlay.forget("A", "C")
    overlay.forget("A", "B")

    assert [row for row in overlay.nodes["A"].rows if row.startswith(("b/", "n/"))] == []


def test_who_was_behind_a_neighbour_is_not_forgotten_by_a_link_that_fails_half_way() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("B", "wide", "")
    overlay.subscribe("C", "narrow", "a > 1")
    overlay.settle()
    overlay.crash("B")
    overlay.settle()
    overlay.restart("B")

    overlay.dial("B", "A")
    while overlay.router("A").tables().neighbours[0].state != "connecting":
        overlay.step()
    overlay.crash("B")
    overlay.settle()
    overlay.dial("C", "A")
    overlay.settle()

    assert ("C", "B", "C") in moved_at(overlay, "A")


def test_a_broker_that_moved_is_reached_by_its_new_way() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("D", "s", "load > 5")
    overlay.settle()
    overlay.cut("C", "D")
    overlay.settle()

    overlay.dial("D", "A")
    overlay.settle()

    assert at(overlay, "C") == {"s": ("B", ())}
    assert at(overlay, "A") == {"s": ("D", ("B",))}
    moved = [each for each in overlay.nodes["C"].seen if type(each).__name__ == "Moved"]
    assert [(each.key, each.before, each.after) for each in moved] == [(("D", "s"), "D", "B")]
    assert "D" not in {each.broker for each in overlay.router("C").tables().neighbours}
    for broker in "ABCD":
        assert overlay.tables(broker) == fresh_like(overlay).tables(broker)


def test_the_brokers_behind_one_that_died_are_reached_through_their_standby() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.subscribe("A", "t", "load > 7")
    overlay.settle()
    overlay.crash("B")
    overlay.settle()

    overlay.dial("C", "A")
    overlay.settle()

    assert overlay.way(reading(load=6), "A") == {"A": "", "C": "A"}
    assert overlay.way(reading(load=8), "C") == {"C": "", "A": "C"}


def test_back_to_the_first_peer_without_a_cycle() -> None:
    overlay = star("AB", "BC")
    overlay.crash("B")
    overlay.settle()
    overlay.dial("C", "A")
    overlay.settle()
    overlay.restart("B")
    overlay.dial("A", "B")
    overlay.settle()
    assert overlay.up() == {("A", "B"), ("A", "C")}

    overlay.dial("C", "B")
    overlay.settle()
    assert overlay.up() == {("A", "B"), ("A", "C")}, "the standby is in use"

    overlay.dial("C", "B", replacing="A")
    overlay.settle()
    assert overlay.up() == {("A", "B"), ("B", "C")}


def test_the_standby_is_not_left_for_a_peer_that_would_close_a_cycle() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.add("E")
    overlay.dial("E", "A")
    overlay.settle()
    overlay.cut("B", "C")
    overlay.settle()
    overlay.dial("D", "E")
    overlay.settle()

    overlay.dial("E", "C", replacing="A")
    overlay.settle()

    assert overlay.up() == {("A", "B"), ("C", "D"), ("A", "E"), ("D", "E")}


def test_a_forgotten_broker_is_gone_everywhere() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("D", "s", "load > 5")
    overlay.settle()
    overlay.crash("D")
    overlay.settle()

    overlay.forget("A", "D")
    overlay.settle()

    assert [at(overlay, broker) for broker in "ABC"] == [{}, {}, {}]
    assert "D" not in {each.broker for each in overlay.router("C").tables().neighbours}


def rows_about(overlay: Overlay, broker: str, other: str) -> list[str]:
    rows = overlay.nodes[broker].rows
    return [row for row in rows if other in row.split("/")[1:] and not row.startswith(("f/", "t/"))]


def test_a_broker_that_asked_for_nothing_is_forgotten_by_all_wherever_somebody_says_so() -> None:
    """Nothing in the tables of A is D's: others stand for it."""
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("A", "all", "")
    overlay.settle()
    overlay.crash("D")
    overlay.settle()

    overlay.forget("A", "D")
    overlay.settle()

    assert [rows_about(overlay, broker, "D") for broker in "ABC"] == [[], [], []]


def test_a_broker_that_returned_is_forgotten_anew_also_by_who_did_not_hear_of_its_return() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.settle()
    overlay.crash("D")
    overlay.settle()
    overlay.forget("A", "D")
    overlay.settle()
    overlay.cut("B", "C")
    overlay.settle()
    overlay.restart("D")
    overlay.dial("D", "C")
    overlay.settle()
    overlay.crash("D")
    overlay.settle()
    overlay.dial("B", "C")
    overlay.run(5 * S)
    assert rows_about(overlay, "C", "D") != []

    overlay.forget("A", "D")
    overlay.settle()

    assert rows_about(overlay, "C", "D") == []


def test_a_clock_that_was_ahead_before_a_restart_keeps_nobody_from_being_forgotten() -> None:
    overlay = star("AB", "BC")
    overlay.settle()
    overlay.now_ns += 365 * 24 * 3_600 * S
    overlay.crash("C")
    overlay.settle()
    overlay.crash("B")
    overlay.settle()
    overlay.now_ns -= 365 * 24 * 3_600 * S
    overlay.restart("B")
    overlay.dial("A", "B")
    overlay.settle()

    overlay.forget("A", "C")
    overlay.settle()

    assert rows_about(overlay, "B", "C") == []


def test_a_forgotten_broker_that_returns_is_known_again() -> None:
    overlay = star("AB", "BC")
    overlay.subscribe("C", "s", "load > 5")
    overlay.settle()
    overlay.crash("C")
    overlay.settle()
    overlay.forget("A", "C")
    overlay.settle()

    overlay.restart("C")
    overlay.dial("C", "B")
    overlay.settle()

    assert at(overlay, "A") == {"s": ("B", ())}
    assert overlay.router("A").tables().forgotten == ()


def test_who_was_away_when_a_broker_was_forgotten_hears_of_it_later() -> None:
    overlay = star("AB", "BC", "CD")
    overlay.subscribe("D", "s", "load > 5")
    overlay.settle()
    overlay.crash("D")
    overlay.crash("C")
    overlay.settle()
    overlay.forget("A", "D")
    overlay.settle()

    overlay.restart("C")
    overlay.dial("C", "B")
    overlay.settle()

    assert [at(overlay, broker) for broker in "ABC"] == [{}, {}, {}]


def test_a_neighbour_is_forgotten_after_the_time_that_was_set() -> None:
    overlay = star("AB")
    overlay.add("C", RoutingOptions(forget_after_ns=100 * S))
    overlay.dial("C", "B")
    overlay.subscribe("B", "s", "load > 5")
    overlay.settle()
    overlay.crash("B")
    overlay.settle()

    overlay.run(90 * S)
    kept = at(overlay, "C")
    overlay.run(20 * S)

    assert kept == {"s": ("B", ())}
    assert at(overlay, "C") == {}


def test_only_a_broker_that_is_gone_can_be_forgotten() -> None:
    overlay = star("AB", "BC")

    with pytest.raises(BrokerStillThere):
        overlay.forget("A", "C")
    with pytest.raises(BrokerStillThere):
        overlay.forget("A", "A")
    with pytest.raises(NoSuchBroker):
        overlay.forget("A", "Z")


def test_a_link_that_closes_a_cycle_is_refused_with_the_way_that_is_there() -> None:
    overlay = star("AB", "BC")

    overlay.dial("A", "C")
    overlay.settle()

    assert overlay.up() == {("A", "B"), ("B", "C")}
    refusals = [each.error for each in overlay.nodes["A"].seen if isinstance(each, CloseLink)]
    assert {error.code for error in refusals if error} <= {"T803", "T809"}
    assert "C is reached through B already" in str(refusals[0]) or "would close a cycle" in str(
        refusals[0]
    )


def test_two_links_between_two_trees_made_at_once_leave_one() -> None:
    overlay = star("AB", "CD")

    overlay.dial("A", "C")
    overlay.dial("B", "D")
    overlay.run(30 * S)

    assert overlay.up() == {("A", "B"), ("A", "C"), ("B", "D")}, "the largest edge, C to D, is cut"


def test_two_connections_made_at_once_by_both_sides_leave_the_one_of_the_smaller_id() -> None:
    overlay = star("AB")
    overlay.add("C")

    overlay.dial("C", "B")
    overlay.dial("B", "C")
    overlay.settle()

    assert overlay.up() == {("A", "B"), ("B", "C")}
    assert [c.ends for c in overlay.nodes["C"].ends.values()] == [{"B": 3, "C": 2}]


def greeting(router: Router, hello: m.Hello) -> list[Effect]:
    router.link_opened(1, 0, is_outgoing=False)
    return router.receive(1, hello, 0)


def test_a_subscription_has_its_way_by_where_its_broker_is_while_two_neighbours_name_it() -> None:
    router = linked()
    router.link_opened(2, 0, is_outgoing=False)
    router.receive(2, m.Hello(m.PROTOCOL_VERSION, "C", "log-C", 1, "x"), 0)
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        router.receive(2, message, 0)
    router.receive(1, m.Behind({"D": "B"}), 0)
    router.receive(1, m.Subscribe("D", "s", "a > 5"), 0)
    router.receive(2, m.Subscribe("D", "s", "a > 5"), 0)

    before = router.tables().subscriptions[0].last_hop
    router.receive(1, m.Behind({}, ("D",)), 0)
    router.receive(2, m.Behind({"D": "C"}), 0)

    assert before == "B"
    assert router.tables().subscriptions[0].last_hop == "C"


@pytest.mark.parametrize(("wide", "narrow"), [("a > 1", "a > 5"), ("a > 1", "a > 1")])
@pytest.mark.parametrize("middle", ["B", "Z"])
def test_what_is_kept_for_a_broker_that_is_away_stands_for_nobody_elses_subscription(
    wide: str, narrow: str, middle: str
) -> None:
    overlay = star(f"A{middle}", f"{middle}C")
    overlay.subscribe(middle, "m", wide)
    overlay.subscribe("C", "c", narrow)
    overlay.settle()
    overlay.crash(middle)
    overlay.run(5 * S)

    overlay.dial("C", "A")
    overlay.settle()

    assert overlay.way(reading(a=7), "A") == {"A": "", "C": "A"}


@pytest.mark.parametrize("dead", ["A", "M", "Z"])
def test_a_standby_is_asked_for_events_also_if_a_dead_broker_stands_for_what_it_offers(
    dead: str,
) -> None:
    """The advertisements are alike, so that of the smallest id stands for the others."""
    overlay = star(f"B{dead}", f"C{dead}")
    overlay.subscribe("C", "s", "a > 5")
    overlay.settle()
    overlay.crash(dead)
    overlay.run(5 * S)

    overlay.dial("C", "B")
    overlay.settle()

    assert at(overlay, "B")["s"] == ("C", ())
    assert at(overlay, "C")["s"] == ("", ("B",))


@pytest.mark.parametrize(
    ("hello", "code"),
    [
        (m.Hello(m.PROTOCOL_VERSION, "A", "log-A", 1, "x"), "T804"),
        (m.Hello(m.PROTOCOL_VERSION + 1, "B", "log-B", 1, "x"), "T802"),
        (m.Hello(m.PROTOCOL_VERSION, "B", "log-B", 2, "x"), "T802"),
        (m.Hello(m.PROTOCOL_VERSION, "B", "log-B", 1, "x", behind={"C": "B", "A": "C"}), "T805"),
        (
            m.Hello(
                m.PROTOCOL_VERSION, "B", "l", 1, "x", behind={f"b{n}": "B" for n in range(10_000)}
            ),
            "T806",
        ),
    ],
)
def test_who_cannot_be_a_neighbour_is_told_why(hello: m.Hello, code: str) -> None:
    effects = greeting(Router(identity("A")), hello)

    refused = [each.message for each in effects if isinstance(each, Send)]
    assert [each.code for each in refused if isinstance(each, m.Refuse)] == [code]
    assert [each.error.code for each in effects if isinstance(each, CloseLink) and each.error] == [
        code
    ]


def test_a_message_out_of_turn_closes_the_link() -> None:
    router = Router(identity("A"))
    router.link_opened(1, 0, is_outgoing=False)

    effects = router.receive(1, m.Subscribe("B", "s", ""), 0)

    assert [each.error.code for each in effects if isinstance(each, CloseLink) and each.error] == [
        "T801"
    ]
    assert router.tables().subscriptions == ()


def linked(options: RoutingOptions | None = None) -> Router:
    router = Router(identity("A"), options)
    greeting(router, m.Hello(m.PROTOCOL_VERSION, "B", "log-B", 1, "x"))
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        router.receive(1, message, 0)
    return router


def test_an_entry_that_cannot_be_read_or_has_no_room_is_left_out_and_somebody_hears() -> None:
    router = linked(RoutingOptions(subscriptions_max=2))

    ignored = [
        type(effect.error).__name__
        for number, text in enumerate(["a >", "a > 1", "a > 2", "a > 3"])
        for effect in router.receive(1, m.Subscribe("B", f"s{number}", text), 0)
        if type(effect).__name__ == "EntryIgnored"
    ]

    assert ignored == ["BadFilter", "RoutingTableFull"]
    assert [row.id for row in router.tables().subscriptions] == ["s1", "s2"]


def test_a_neighbour_cannot_speak_for_a_broker_behind_another_or_for_this_one() -> None:
    router = linked()
    router.link_opened(2, 0, is_outgoing=False)
    router.receive(2, m.Hello(m.PROTOCOL_VERSION, "C", "log-C", 1, "x"), 0)
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        router.receive(2, message, 0)
    router.receive(2, m.Subscribe("C", "s", "a > 5"), 0)

    router.receive(1, m.Subscribe("C", "s", "nothing"), 0)
    router.receive(1, m.Subscribe("A", "mine", ""), 0)

    assert [(row.id, row.filter, row.last_hop) for row in router.tables().subscriptions] == [
        ("s", "a > 5", "C")
    ]


def test_an_old_word_that_a_broker_is_gone_is_not_believed_of_one_that_was_seen_since() -> None:
    router = linked()
    router.link_closed(1, 50)
    router.link_opened(2, 60, is_outgoing=False)
    router.receive(2, m.Hello(m.PROTOCOL_VERSION, "C", "log-C", 1, "x"), 60)
    for message in (m.Welcome(), m.Synced("advertisements"), m.Synced("subscriptions")):
        router.receive(2, message, 60)

    router.receive(2, m.Forget("B", 70 - 40), 70)
    before = [each.broker for each in router.tables().neighbours]
    router.receive(2, m.Forget("B", 70 - 55), 70)

    assert before == ["B", "C"]
    assert [each.broker for each in router.tables().neighbours] == ["C"]


def test_brokers_that_are_away_count_towards_the_limit() -> None:
    router = linked(RoutingOptions(brokers_max=1))
    router.link_closed(1, 50)

    router.link_opened(2, 60, is_outgoing=False)
    effects = router.receive(2, m.Hello(m.PROTOCOL_VERSION, "C", "log-C", 1, "x"), 60)

    refused = [each.message for each in effects if isinstance(each, Send)]
    assert [each.code for each in refused if isinstance(each, m.Refuse)] == ["T806"]


@pytest.mark.parametrize("moves", ["A", "Z"])
@pytest.mark.parametrize("direct", [True, False])
def test_a_broker_that_changes_its_place_is_asked_at_once_for_what_others_want_there(
    moves: str, direct: bool
) -> None:
    """What it asked for itself, at the place before, stands for nobody who is sent its events."""
    overlay = star(f"{moves}B", "BC", "CD")
    overlay.subscribe(moves, "mine", "")
    overlay.subscribe("C", "theirs", "")
    overlay.subscribe("B", "narrow", "a > 5")
    overlay.settle()
    overlay.cut(moves, "B")
    overlay.settle()
    there = "C" if direct else "D"

    overlay.dial(moves, there)
    while not is_up(overlay, moves, there):
        overlay.step()

    assert wanted_at(overlay, moves, there, reading(a=6))
    assert wanted_at(overlay, moves, there, reading(a=1))


def wanted_at(overlay: Overlay, broker: str, neighbour: str, event: Event) -> bool:
    filters = overlay.nodes[broker].wanted.get(neighbour, {})
    return any(matches(each, event) for each in filters.values())


def is_up(overlay: Overlay, broker: str, neighbour: str) -> bool:
    seen = overlay.nodes[broker].seen
    return any(isinstance(each, NeighbourUp) and each.neighbour == neighbour for each in seen)

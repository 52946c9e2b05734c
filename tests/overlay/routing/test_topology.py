"""What neighbours say of the brokers behind them: bounded work, and bounded memory."""

from __future__ import annotations

import time

import msgspec

from overlay.routing.one_router import S, broker_a, link
from tocsin.errors import TocsinError
from tocsin.event.filter import EVERYTHING
from tocsin.event.filter_text import parse_filter
from tocsin.overlay.routing.effects import Began, CloseLink, Effect, EntryIgnored, Save, Send
from tocsin.overlay.routing.reach import Reach
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m


def chain(first: str, names: list[str]) -> dict[str, str]:
    """Each broker is reached by way of the one before it in the list."""
    return dict(zip(names, [first, *names], strict=False))


def refusals(effects: list[Effect]) -> list[str]:
    return [each.error.code for each in effects if isinstance(each, CloseLink) and each.error]


def test_a_long_chain_of_brokers_behind_two_neighbours_is_compared_in_time_that_is_linear() -> None:
    names = [f"n{number:05}" for number in range(4_900)]
    router = broker_a()
    link(router, 1, "B", chain("B", names))
    link(router, 2, "C")
    began_s = time.process_time()

    router.receive(2, m.Behind(chain("C", names)), 1)
    router.tick(1)
    router.tick(10 * S)

    assert time.process_time() - began_s < 2.0


def test_brokers_that_do_not_lead_back_to_their_neighbour_are_not_walked_one_by_one() -> None:
    """Each is behind two neighbours, and what they say of it goes in a circle."""
    names = [f"n{number:05}" for number in range(4_000)]
    circle = chain(names[-1], names)
    reach = Reach("A")
    for neighbour in ("B", "C"):
        reach.add_neighbour(neighbour, circle)
    began_s = time.process_time()

    assert reach.edge_to_cut() is None
    assert time.process_time() - began_s < 1.0


def test_the_edge_that_is_cut_is_the_largest_of_the_cycle() -> None:
    reach = Reach("A")
    reach.add_neighbour("B", {"D": "B"})
    reach.add_neighbour("C", {"D": "C", "E": "D"})

    assert reach.edge_to_cut() == ("C", "D")


def state_of(router: Router, broker: str) -> str | None:
    found = [each.state for each in router.tables().neighbours if each.broker == broker]
    return found[0] if found else None


def behind(router: Router, broker: str) -> set[str]:
    return next(set(e.behind) for e in router.tables().neighbours if e.broker == broker)


def errors_ignored(effects: list[Effect]) -> list[TocsinError]:
    return [each.error for each in effects if isinstance(each, EntryIgnored)]


def test_a_neighbour_that_names_too_many_brokers_keeps_its_link_and_hears_what_is_left_out() -> (
    None
):
    router = broker_a(brokers_max=100, brokers_per_neighbour_max=50)
    invented = [f"n{number:02}" for number in range(80)]
    effects = link(router, 1, "liar", dict.fromkeys(invented, "liar"))
    effects += router.receive(1, m.Behind(dict.fromkeys(["more"], "liar")), 1)

    assert state_of(router, "liar") == "up"
    assert len(behind(router, "liar")) == 51
    assert [error.code for error in errors_ignored(effects)] == ["T806", "T806"]
    assert "brokers_per_neighbour_max" in errors_ignored(effects)[0].remedy
    told = [each.message for each in effects if isinstance(each, Send)]
    assert [each.code for each in told if isinstance(each, m.Ignored)] == ["T806", "T806"]


def test_brokers_that_liars_invent_leave_room_for_an_honest_neighbour() -> None:
    router = broker_a(brokers_max=100, brokers_per_neighbour_max=50)
    for number in range(4):
        names = dict.fromkeys([f"n{number}-{each}" for each in range(90)], f"liar{number}")
        link(router, 1 + number, f"liar{number}", names)

    effects = link(router, 9, "honest")

    assert state_of(router, "honest") == "up"
    assert refusals(effects) == []


def test_what_a_broker_has_named_already_may_be_named_again_whatever_the_room() -> None:
    router = broker_a(brokers_max=100, brokers_per_neighbour_max=3)
    link(router, 1, "B", {"x": "B", "y": "x", "z": "y"})

    effects = router.receive(1, m.Behind({"z": "B", "w": "B", "v": "B"}, ("x",)), 1)

    assert behind(router, "B") == {"B", "y", "z", "v"}
    assert len(errors_ignored(effects)) == 1


def test_a_hello_of_a_broker_that_is_behind_itself_is_refused() -> None:
    assert refusals(link(broker_a(), 1, "B", {"B": "C", "C": "B"})) == ["T801"]


def test_brokers_that_come_once_and_leave_do_not_fill_the_room_for_a_week() -> None:
    router = broker_a(brokers_max=20)
    link(router, 1, "honest")
    for second in range(1, 1_000):
        router.tick(second * S)
    router.receive(1, m.Subscribe("honest", "s", "a > 5"), 1_000 * S)
    router.link_closed(1, 1_000 * S)
    effects: list[Effect] = []
    for number in range(2, 100):
        link(router, number, f"fake{number}", {f"behind{number}": f"fake{number}"}, 1_001 * S)
        router.receive(number, m.Subscribe(f"fake{number}", "s", ""), 1_001 * S)
        effects += router.link_closed(number, 1_001 * S)
        effects += router.tick(1_001 * S)

    late = link(router, 100, "late", None, 1_002 * S)

    assert refusals(late) == []
    assert state_of(router, "honest") == "down"
    assert state_of(router, "late") == "up"
    assert len(router.neighbours()) <= 12
    assert 2 <= len(errors_ignored(effects)) <= 12, "somebody hears, and not of each"


def test_what_was_behind_brokers_that_came_once_is_not_all_kept() -> None:
    router = broker_a(brokers_max=100)
    for number in range(1, 6):
        names = dict.fromkeys([f"n{number}-{each}" for each in range(40)], f"fake{number}")
        link(router, number, f"fake{number}", names)
        router.receive(number, m.Subscribe(f"fake{number}", "s", ""), 0)
        router.link_closed(number, number)
        router.tick(number)

    kept = [len(router._state.behind[f"fake{number}"]) for number in range(1, 6)]

    assert kept == [1, 1, 1, 1, 41]


def test_a_neighbour_is_not_forgotten_because_the_clock_was_put_forward() -> None:
    router = broker_a()
    link(router, 1, "B")
    router.tick(0, 0)
    router.link_closed(1, S)
    week_ns = 7 * 24 * 3_600 * S

    router.tick(30 * week_ns, 10 * S)
    kept = router.neighbours()
    for hour in range(1, 7 * 24 + 1):
        router.tick(31 * week_ns, hour * 3_600 * S + 10 * S)

    assert kept == ["B"]
    assert router.neighbours() == []


def test_the_age_of_a_neighbour_that_is_away_outlives_a_restart() -> None:
    router = broker_a()
    link(router, 1, "B")
    router.tick(0, 0)
    effects = router.link_closed(1, S)
    for hour in range(1, 101):
        effects += router.tick(S, hour * 3_600 * S)
    rows = {each.key: each.value for each in effects if isinstance(each, Save) and each.value}

    again = broker_a()
    again.restore(rows, 5 * S)
    again.tick(0, 0)
    for hour in range(1, 67):
        again.tick(0, hour * 3_600 * S)
    kept = again.neighbours()
    for hour in range(67, 70):
        again.tick(0, hour * 3_600 * S)

    assert kept == ["B"]
    assert again.neighbours() == []


def test_a_row_that_an_earlier_version_saved_is_read() -> None:
    router = broker_a()
    old = msgspec.msgpack.encode(("log-B", 5, ("B", "C"), 4))

    router.restore({"n/B": old}, 10)

    assert router.neighbours() == ["B"]


def asking(router: Router) -> None:
    """A client of this broker wants everything; both neighbours offer all they have."""
    link(router, 1, "B", {"D": "B"})
    link(router, 2, "C")
    router.receive(1, m.Advertise("B", "all", ""), 1)
    router.local_subscribe("s", EVERYTHING, 1)


def began(effects: list[Effect]) -> set[str]:
    return {each.broker for each in effects if isinstance(each, Began)}


def test_a_neighbour_says_where_a_subscription_holds_of_brokers_behind_it_alone() -> None:
    router = broker_a()
    asking(router)

    effects = router.receive(1, m.Reached("A", "s", ("B", "D", "C", "nobody")), 2)

    assert began(effects) == {"B", "D"}
    assert router.reached("s") == {"B": 2, "D": 2}


def test_it_is_kept_since_when_a_subscription_holds_at_each_broker() -> None:
    router = broker_a()
    asking(router)
    router.receive(1, m.Reached("A", "s", ("B",)), 2)
    router.receive(1, m.Reached("A", "s", ("B", "D")), 3)
    router.local_subscribe("narrow", parse_filter("topic a"), 4)

    router.link_closed(1, 5)
    link(router, 3, "B", {"D": "B"}, 6)
    router.receive(3, m.Advertise("B", "all", ""), 6)
    router.receive(3, m.Reached("A", "s", ("B", "D")), 7)

    assert router.reached("s") == {"B": 2, "D": 3}
    assert router.reached("narrow") == {"B": 4, "D": 4}, "the wider one was there by then"


def test_a_subscription_begins_again_at_a_broker_that_was_forgotten() -> None:
    router = broker_a()
    asking(router)
    router.receive(1, m.Reached("A", "s", ("B", "D")), 2)
    router.link_closed(1, 3)

    router.forget("D", 4)
    assert router.reached("s") == {"B": 2}

    link(router, 3, "B", {"D": "B"}, 5)
    router.receive(3, m.Advertise("B", "all", ""), 5)
    effects = router.receive(3, m.Reached("A", "s", ("B", "D")), 6)
    assert began(effects) == {"D"}
    assert router.reached("s") == {"B": 2, "D": 6}


def test_where_a_subscription_holds_is_not_believed_of_a_neighbour_that_was_not_sent_it() -> None:
    router = broker_a()
    asking(router)

    effects = router.receive(2, m.Reached("A", "s", ("C",)), 2)

    assert began(effects) == set()
    assert state_of(router, "C") == "up"


def test_a_report_that_comes_before_its_broker_is_named_counts_once_it_is() -> None:
    router = broker_a()
    asking(router)

    router.receive(1, m.Reached("A", "s", ("E",)), 2)
    before = router.reached("s")
    effects = router.receive(1, m.Behind({"E": "B"}), 3)

    assert before == {}
    assert began(effects) == {"E"}


def test_reports_of_invented_brokers_are_counted_and_take_no_more_room_than_they_may() -> None:
    router = broker_a()
    asking(router)

    for number in range(3):
        names = tuple(f"n{number}-{each}" for each in range(9_000))
        effects = router.receive(1, m.Reached("A", "s", names), 2)

    assert router.reached("s") == {}
    assert [error.code for error in errors_ignored(effects)] == ["T806"]
    assert router._state.link_of["B"].early_count == 10_000


def test_what_is_said_of_a_subscription_that_was_just_withdrawn_is_no_mistake() -> None:
    router = broker_a()
    asking(router)
    router.receive(1, m.Unadvertise("B", "all"), 2)

    effects = router.receive(1, m.Reached("A", "s", ("B",)), 3)

    assert began(effects) == set()
    assert errors_ignored(effects) == []


def test_a_neighbour_that_changes_what_it_offers_again_and_again_costs_no_more_than_it_may() -> (
    None
):
    router = broker_a()
    link(router, 1, "B")
    link(router, 2, "C")
    for number in range(3_000):
        text = f"a > {number} and b = {number % 7} and topic lead/{number}/*"
        router.receive(2, m.Subscribe("C", f"s{number}", text), 1)
    effects: list[Effect] = []
    began_s = time.process_time()

    for number in range(600):
        offered = f"a < -{number} and c > {number} and topic lead/**"
        effects += router.receive(1, m.Advertise("B", "it", offered), 2)
        effects += router.receive(1, m.Unadvertise("B", "it"), 2)

    assert time.process_time() - began_s < 12, "some 3 s; 50 if each is compared with all"
    assert [error.code for error in errors_ignored(effects)] == ["T806"]
    assert len(router._state.link_of["B"].sent_subscriptions) == 3_000
    assert state_of(router, "B") == "up"


def test_offers_about_other_topics_are_not_compared() -> None:
    router = broker_a()
    link(router, 1, "B")
    link(router, 2, "C")
    for number in range(200):
        router.receive(1, m.Advertise("B", f"a{number}", f"topic t{number}/**"), 1)
    at = router._state.link_of["B"]
    before = at.compared

    for number in range(100):
        router.receive(2, m.Subscribe("C", f"s{number}", f"topic t{number}/x and a > 1"), 1)
    router.receive(2, m.Subscribe("C", "none", "topic nobody/x"), 1)
    router.receive(2, m.Subscribe("C", "any", "topic */y"), 1)

    assert set(at.sent_subscriptions) == {("C", f"s{number}") for number in range(100)} | {
        ("C", "any")
    }
    assert at.compared - before < 300

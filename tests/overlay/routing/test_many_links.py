"""The middle of a star: what a message costs follows what it changes, and not how many links there
are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from overlay.routing.one_router import broker_a, link, sent_to
from overlay.routing.work import lines_run
from tocsin.overlay.routing.router import Router
from tocsin.wire.link import messages as m

Says = Callable[[Router], object]


def middle_of(leaves: int) -> Router:
    """Every leaf offers everything; L1 asks for all there is, and has not been answered by others;
    nobody has said to have the places of others."""
    router = broker_a()
    for number in range(1, leaves + 1):
        link(router, number, f"L{number}")
        router.receive(number, m.Advertise(f"L{number}", "all", ""), 1)
    effects = router.receive(1, m.Subscribe("L1", "wide", "a > 1"), 2)
    assert len([each for n in range(2, leaves + 1) for each in sent_to(effects, n)]) == leaves - 1
    return router


def says(message: m.Message) -> Says:
    return lambda router: router.receive(2, message, 3)


@pytest.mark.parametrize(
    "say",
    [
        says(m.PlacesKept(("A", "L1"), ("L2",))),
        says(m.Reached("L1", "wide", ("L2",))),
        says(m.Unsubscribe("L2", "never said")),
        lambda router: router.local_unsubscribe("never said", 3),
    ],
    ids=["places", "a report", "nothing new", "nothing new here"],
)
def test_what_changes_nothing_elsewhere_costs_as_much_with_ten_times_as_many_links(
    say: Says,
) -> None:
    few, many = middle_of(20), middle_of(200)

    lines = [lines_run(lambda at=at: say(at)) for at in (few, many)]

    assert lines[1] <= 1.1 * lines[0]


def test_a_subscription_that_all_have_to_hear_of_costs_so_much_for_each_and_no_more() -> None:
    few, many = middle_of(20), middle_of(200)
    wide = m.Subscribe("L2", "other", "b > 1")

    lines = [lines_run(lambda at=at: at.receive(2, wide, 3)) for at in (few, many)]

    assert lines[1] <= 1.1 * 10 * lines[0]

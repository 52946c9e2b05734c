"""What control messages may take: rates, what is remembered, and what waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.control.control_network import DEFAULTS, S, chain
from tocsin.errors import RoutingTableFull
from tocsin.overlay.control.rates import Rates
from tocsin.overlay.control.seen import Seen
from tocsin.overlay.control.waiting import Waiting
from tocsin.wire.link.messages import Serves

MS = S // 1_000


@given(
    st.integers(1, 200),
    st.lists(st.tuples(st.integers(0, 300 * MS), st.sampled_from("ab")), max_size=200),
)
def test_in_no_time_does_a_sender_get_more_than_its_rate_and_a_burst(
    rate: int, sent: list[tuple[int, str]]
) -> None:
    rates, now_ns = Rates(rate, 10), S
    taken: dict[str, list[int]] = {"a": [], "b": []}
    for passed_ns, sender in sent:
        now_ns += passed_ns
        if rates.take(sender, now_ns):
            taken[sender].append(now_ns)

    for times in taken.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                seconds = (times[last] - times[first]) / S
                assert last - first + 1 <= rate * (seconds + 2) + 1e-6


@given(st.integers(1, 100))
def test_who_keeps_to_the_rate_is_never_refused(rate: int) -> None:
    rates = Rates(rate, 10)
    interval_ns = -(-S // rate)

    assert all(rates.take("a", S + number * interval_ns) for number in range(500))


def test_who_was_refused_may_send_after_the_wait_that_was_said() -> None:
    rates = Rates(7, 10)
    while rates.take("a", S):
        pass

    wait_s = rates.wait_s("a", S)

    assert wait_s > 0
    assert not rates.take("a", S + int(wait_s * S) - MS)
    assert rates.take("a", S + int(wait_s * S) + 1)


@pytest.mark.parametrize("rate", [0, 0.001, 0.4])
def test_a_low_rate_lets_one_message_through_and_then_none_for_long(rate: float) -> None:
    rates = Rates(rate, 10)

    assert rates.take("a", S)
    assert not rates.take("a", 2 * S)


def test_senders_that_are_counted_are_bounded_and_idle_ones_make_room() -> None:
    rates = Rates(1, 3)
    assert all(rates.take(name, S) for name in "abc")

    assert not rates.take("d", S)
    assert rates.take("d", 2 * S)
    assert len(rates) <= 3


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=100))
def test_what_is_remembered_is_what_came_within_its_time(came: list[tuple[int, int]]) -> None:
    seen, now_ns = Seen(10, 1_000), 0
    last: dict[int, int] = {}
    for passed_ns, number in came:
        now_ns += passed_ns
        key = ("o", str(number))
        seen.forget(now_ns)
        assert (key in seen) == (number in last and now_ns < last[number] + 10)
        if key not in seen:
            seen.add(key, now_ns)
            last[number] = now_ns
    assert len(seen) <= 6


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(1, 60), st.integers(0, 100)), max_size=100
    )
)
def test_what_waits_never_passes_its_limits_and_is_what_was_not_taken(
    steps: list[tuple[str, int, int]],
) -> None:
    written = {"a": 0, "b": 0}
    taken = {"a": 0, "b": 0}
    ends: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
    waiting = Waiting(100, 150, taken.__getitem__)

    def waits(name: str) -> int:
        return sum(size for end, size in ends[name] if end > taken[name])

    for name, size, moved in steps:
        taken[name] = min(written[name], taken[name] + moved)
        written[name] += 7  # events go over the same connection
        has_room = waiting.has_room(name, size)
        fits_in_all = waits("a") + waits("b") + size <= 150
        assert has_room == (waits(name) + size <= 100 and fits_in_all)
        if has_room:
            written[name] += size
            ends[name].append((written[name], size))
            waiting.add(name, size, written[name])
        assert waits("a") + waits("b") <= waiting.total <= 150
        assert waiting.of(name) <= 100

    waiting.forget("a")
    waiting.forget("b")
    assert waiting.total == 0


def test_brokers_that_a_neighbour_invents_take_its_share_and_no_more() -> None:
    network = chain(2, replace(DEFAULTS, tdn_brokers_max=8, tdn_brokers_per_neighbour_max=5))
    serving = network.nodes["b1"].core.serving
    for number in range(5):
        serving.receive("b0", Serves(f"invented{number}", 1, ("tdn",)))

    with pytest.raises(RoutingTableFull):
        serving.receive("b0", Serves("another", 1, ("tdn",)))

    serving.receive("b0", Serves("invented0", 2, ("other",)))  # what is known may change
    serving.receive("b0", Serves("invented1", 2))
    serving.receive("b0", Serves("b0", 1, ("tdn",)))
    assert len(serving) == 5
    assert [each.broker for each in serving.brokers()] == ["b0"]  # the others are nowhere
    network.unlink("b0", "b1")
    assert len(serving) == 0


def test_brokers_of_all_neighbours_together_are_bounded() -> None:
    network = chain(3, replace(DEFAULTS, tdn_brokers_max=6, tdn_brokers_per_neighbour_max=5))
    serving = network.nodes["b1"].core.serving
    for number in range(5):
        serving.receive("b0", Serves(f"one{number}", 1, ("tdn",)))
    serving.receive("b2", Serves("two", 1, ("tdn",)))
    serving.receive("b2", Serves("one0", 2, ("tdn",)))  # spoken of already

    with pytest.raises(RoutingTableFull):
        serving.receive("b2", Serves("three", 1, ("tdn",)))

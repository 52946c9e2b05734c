"""Similarity forwarding in random trees: the invariants, and each known mistake is found by them.

A run is one seed: 2 to 12 brokers, up to 25 resources, up to 24 requests of which most are equal to
or part of another, links with a delay of 1 to 40 ms.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from overlay.discovery_runs import (
    OPTIONS,
    Plan,
    expected,
    make_plan,
    problems_of,
    run,
    trace_hash,
)
from overlay.network import MS, Network, S
from tocsin.event.event import Value
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Effect
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.requests import Registration, Request
from tocsin.overlay.region import admits
from tocsin.overlay.region_index import RegionIndex
from tocsin.wire.link.discovery_messages import Discover, DiscoveryMessage, Done, Results

SEEDS = range(250)


@pytest.mark.parametrize("start", range(0, len(SEEDS), 50))
def test_every_request_finds_each_resource_once_and_ends_and_nothing_is_left(start: int) -> None:
    covered = 0
    for seed in SEEDS[start : start + 50]:
        plan = make_plan(seed)

        network = run(plan, seed)

        assert not problems_of(plan, network), f"seed {seed}"
        covered += sum(core.counters.covered for core in network.cores.values())
    assert covered > 100


def test_the_same_seed_gives_the_same_messages() -> None:
    for seed in range(20):
        plan = make_plan(seed)
        assert trace_hash(run(plan, seed)) == trace_hash(run(plan, seed))


def test_without_a_cache_the_messages_are_those_of_the_normal_algorithm() -> None:
    for seed in range(40):
        plan = make_plan(seed)
        short = run(plan, seed, options=replace(OPTIONS, cache_expiry_ns=0))
        normal = run(plan, seed, options=replace(OPTIONS, similarity=False))

        ways = [
            [(sent.at_ns, sent.sender, sent.receiver, type(sent.message)) for sent in each.trace]
            for each in (short, normal)
        ]

        assert ways[0] == ways[1], f"seed {seed}"
        assert not problems_of(plan, short)


def test_a_summary_counts_every_message_that_was_sent_for_its_request() -> None:
    for seed in range(60):
        plan = make_plan(seed)
        network = run(plan, seed)
        sent: Counter[str] = Counter()
        for each in network.trace:
            if isinstance(each.message, Discover | Results | Done):
                sent[each.message.request_id] += 1

        reported = {name: summary.messages for name, summary in network.finished.items()}

        assert reported == {name: sent[name] for name in reported}, f"seed {seed}"


def test_first_n_are_found_wherever_they_come_from_and_others_find_all() -> None:
    stopped = 0
    for seed in range(100):
        random = Random(seed)
        plan = make_plan(seed)
        requests = [
            (at_ns, broker, replace(request, first=random.choice([0, 0, 1, 3])))
            for at_ns, broker, request in plan.requests
        ]
        plan = replace(plan, requests=requests)

        network = run(plan, seed)

        for _, _, request in requests:
            name, all_of_them = request.request_id, expected(plan, request)
            found = network.found(name)
            wanted = min(request.first or len(all_of_them), len(all_of_them))
            assert len(found) == len(set(found)) == wanted, f"seed {seed}, {name}"
            assert set(found) <= set(all_of_them)
            assert not network.finished[name].incomplete, f"seed {seed}, {name}"
            stopped += network.finished[name].stopped_early
        assert not any(core.one_time.paths for core in network.cores.values()), f"seed {seed}"
    assert stopped > 100


def indexed(broker_id: str, options: DiscoveryOptions) -> DiscoveryCore:
    return DiscoveryCore(broker_id, options, RegionIndex)


def test_with_an_index_the_messages_are_those_of_a_scan() -> None:
    for seed in range(30):
        plan = make_plan(seed)

        assert trace_hash(run(plan, seed, make_core=indexed)) == trace_hash(run(plan, seed))


def test_a_cached_answer_is_one_message_also_if_results_are_sent_one_by_one() -> None:
    for package_cached, messages in ((True, 3), (False, 9)):
        options = replace(OPTIONS, package=False, package_cached=package_cached)
        network = Network([("A", "B"), ("B", "C"), ("C", "D")], options)
        for number in range(3):
            network.register("D", f"R{number}", "[disk,<=,320]", {"disk": 200})
        network.settle()
        network.discover("D", "D1", "[disk,>,40]")
        network.settle()
        before = len(network.sent(Results))

        network.discover("A", "D2", "[disk,>,50]")
        network.settle()

        assert network.found("D2") == ["R0", "R1", "R2"]
        assert len(network.sent(Results)) - before == messages


def test_packaged_or_not_and_direct_or_not_the_answers_are_the_same() -> None:
    for seed in range(60):
        plan = make_plan(seed)
        one_by_one = run(plan, seed, options=replace(OPTIONS, package=False, package_cached=False))
        direct = run(plan, seed, options=replace(OPTIONS, direct=True))

        for _, _, request in plan.requests:
            want = expected(plan, request)
            assert one_by_one.found(request.request_id) == want, f"seed {seed}"
            assert direct.found(request.request_id) == want, f"seed {seed}"
            assert not direct.finished[request.request_id].incomplete
        assert all(len(package.results) == 1 for package in _packages(one_by_one))
        assert not any(core.one_time.paths for core in direct.cores.values())


def _packages(network: Network) -> list[Results]:
    return [sent.message for sent in network.trace if isinstance(sent.message, Results)]


def history_of(plan: Plan, registration: Registration) -> list[tuple[int, dict[str, Value]]]:
    """The values of a resource and since when it had them, after the start of the requests."""
    history: list[tuple[int, dict[str, Value]]] = [(-1 << 60, dict(registration.values))]
    for at_ns, _, resource_id, values in sorted(plan.updates, key=lambda update: update[0]):
        if resource_id == registration.resource_id:
            history.append((at_ns, dict(values)))
    return history


def had(
    history: list[tuple[int, dict[str, Value]]], values: object, begin_ns: int, end_ns: int
) -> bool:
    """True if the resource had the values at some moment between the two."""
    ends = [since for since, _ in history[1:]] + [1 << 60]
    return any(
        known == values and since <= end_ns and until > begin_ns
        for (since, known), until in zip(history, ends, strict=True)
    )


@pytest.mark.parametrize("start", range(0, 120, 40))
def test_no_answer_is_older_than_its_client_allows(start: int) -> None:
    """Also if what is shared was itself shared: requests come for longer than answers are kept."""
    options = replace(OPTIONS, cache_expiry_ns=2 * S, guard_ns=100 * MS)
    shared = 0
    for seed in range(start, start + 40):
        plan = with_ages(make_plan(seed, with_updates=True), seed)
        registrations = {each.resource_id: each for _, each in plan.resources}

        network = run(plan, seed, options=options)

        begin = network.started_ns
        for at_ns, _, request in plan.requests:
            name = request.request_id
            summary = network.finished[name]
            age_ns = 2 * S if request.max_age_ns is None else request.max_age_ns
            oldest = at_ns - age_ns - (options.guard_ns if age_ns else 0)
            assert not summary.incomplete
            assert summary.oldest_ns - begin >= oldest, f"seed {seed}, {name}"
            found = network.answers.get(name, [])
            assert len({each.id for each in found}) == len(found), f"seed {seed}, {name}"
            for resource in found:
                assert admits(request.region, resource.attributes)
                history = history_of(plan, registrations[resource.id])
                finished = network.finished_at[name] - begin
                assert had(history, resource.attributes, oldest, finished), f"seed {seed}, {name}"
            shared += summary.shared
    assert shared


def test_an_answer_that_was_shared_twice_and_is_too_old_is_asked_for_again() -> None:
    network = Network([("A", "B"), ("B", "C"), ("C", "D")], delay_ms=(10, 10))
    network.register("D", "R", "[disk,<=,320]", {"disk": 200})
    network.settle()
    network.discover("C", "D1", "[disk,>,40]")
    network.settle()
    network.now_ns += 60 * S
    network.update("D", "R", {"disk": 150})
    network.discover("A", "D2", "[disk,>,50]")  # at B not covered, at C by D1
    network.run_until(network.now_ns + 5 * MS)
    network.discover("A", "D3", "[disk,>,60]", max_age_ns=S)  # covered by D2, which looks young
    network.settle()

    assert network.answers["D2"][0].attributes == {"disk": 200}
    assert network.finished["D2"].shared
    assert network.answers["D3"][0].attributes == {"disk": 150}
    assert not network.finished["D3"].shared
    assert network.dropped() == {"result too old": 1}


def test_a_result_crosses_no_link_twice_where_a_broker_on_the_way_shares_nothing() -> None:
    """B does not know that C has a cover, and asks for itself what lies on its side of C."""
    network = Network([("A", "B"), ("B", "C"), ("C", "D")])
    network.cores["B"].options = replace(network.options, cache_expiry_ns=0)
    network.register("B", "near", "[disk,<=,320]", {"disk": 200})
    network.register("D", "far", "[disk,<=,320]", {"disk": 100})
    network.settle()
    network.discover("D", "wide", "[disk,>,40]")
    network.settle()
    network.discover("A", "narrow", "[disk,>,50]")
    network.settle()

    crossed = Counter(
        (each.sender, each.receiver, result.resource_id)
        for each in network.trace
        if isinstance(each.message, Results) and each.message.request_id == "narrow"
        for result in each.message.results
    )
    assert network.finished["narrow"].shared
    assert sorted(each.id for each in network.answers["narrow"]) == ["far", "near"]
    assert set(crossed.values()) == {1}
    assert ("C", "B", "near") not in crossed


def behind_by(behind_ns: int) -> type[DiscoveryCore]:
    """Cores of which that of B goes by a clock that is late."""

    class Late(DiscoveryCore):
        def by_its_clock(self, now_ns: int) -> int:
            return now_ns - behind_ns if self.broker_id == "B" else now_ns

        def discover(self, request: Request, now_ns: int) -> list[Effect]:
            return super().discover(request, self.by_its_clock(now_ns))

        def receive(self, neighbour: str, message: DiscoveryMessage, now_ns: int) -> list[Effect]:
            return super().receive(neighbour, message, self.by_its_clock(now_ns))

        def tick(self, now_ns: int) -> list[Effect]:
            return super().tick(self.by_its_clock(now_ns))

        def next_due_ns(self) -> int | None:
            due_ns = super().next_due_ns()
            return None if due_ns is None else due_ns - self.by_its_clock(0)

    return Late


@pytest.mark.parametrize("behind_ns", [50 * MS, 600 * S], ids=["little", "much"])
@pytest.mark.parametrize("is_direct", [False, True], ids=["first-one", "direct"])
def test_an_answer_that_is_not_for_others_is_shared_by_no_broker_whose_clock_is_behind(
    *, is_direct: bool, behind_ns: int
) -> None:
    network = Network([("A", "B"), ("B", "C")], make_core=behind_by(behind_ns), delay_ms=(10, 10))
    network.cores["A"].options = replace(network.options, direct=is_direct, reply_to="A")
    for number in (1, 2):
        network.register("C", f"R{number}", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("A", "few", "[a,>,1]", first=0 if is_direct else 1)
    network.run_until(network.now_ns + 15 * MS)  # it is on its way from B to C
    network.discover("B", "all", "[a,>,2]")
    network.settle()

    assert network.found("all") == ["R1", "R2"]
    assert not network.finished["all"].shared


def with_ages(plan: Plan, seed: int) -> Plan:
    """The requests come close to each other, and some take only what is young."""
    random = Random(seed)
    ages = [None, None, 0, 200 * MS, 500 * MS]
    requests = [
        (random.randint(0, 2_500) * MS, broker, replace(request, max_age_ns=random.choice(ages)))
        for _, broker, request in plan.requests
    ]
    return replace(plan, requests=requests)

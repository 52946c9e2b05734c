"""Links that fail and return while resources come and go: tables converge, requests end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

import pytest

from overlay.discovery_runs import OPTIONS, make_plan
from overlay.network import MS, Network, S
from tocsin.overlay.discovery.effects import Change, Send
from tocsin.overlay.discovery.requests import ModelType, Registration, Request
from tocsin.overlay.region import admits, overlaps
from tocsin.sim.checks.checked_core import CheckedCore
from tocsin.sim.checks.discovery import DiscoveryCheck
from tocsin.wire.link.discovery_messages import Results

DYNAMIC_CONTINUOUS = ModelType.DYNAMIC_CONTINUOUS
ADDED_AGAIN = [Change.ADDED, Change.REMOVED, Change.ADDED]
EDGES = [("A", "B"), ("B", "C"), ("C", "D")]


def test_when_a_link_fails_requests_that_wait_there_end_and_say_what_is_missing() -> None:
    network = Network(EDGES, delay_ms=(10, 10))
    network.register("A", "near", "[a,<=,9]", {"a": 5})
    network.register("D", "far", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("A", "Q", "[a,>,1]")
    network.run_until(network.now_ns + 25 * MS)  # it is on its way from C to D

    network.disconnect("C", "D")
    network.settle()

    assert network.found("Q") == ["near"]
    assert network.finished["Q"].incomplete == "the link from C to D is down"


def test_an_incomplete_answer_is_not_shared() -> None:
    network = Network(EDGES, delay_ms=(10, 10))
    network.register("D", "far", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("A", "Q1", "[a,>,1]")
    network.run_until(network.now_ns + 25 * MS)
    network.disconnect("C", "D")
    network.settle()
    network.connect("C", "D")
    network.settle()

    network.discover("A", "Q2", "[a,>,1]")
    network.settle()

    assert network.found("Q2") == ["far"]
    assert not network.finished["Q2"].shared


def test_a_continuous_request_is_told_what_went_with_a_link_and_what_came_back() -> None:
    network = Network(EDGES)
    network.register("D", "R", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("A", "Q", "[a,>,1]", DYNAMIC_CONTINUOUS)
    network.discover("A", "S", "[a,>,1]", ModelType.STATIC_CONTINUOUS)
    network.register("D", "static", "[a,<=,9]", model=ModelType.STATIC)
    network.settle()

    network.disconnect("B", "C")
    network.settle()
    network.update("D", "R", {"a": 7})
    network.connect("B", "C")
    network.settle()
    network.update("D", "R", {"a": 8})
    network.settle()

    assert [change for change, _ in network.reported("Q")] == [*ADDED_AGAIN, Change.CHANGED]
    assert [change for change, _ in network.reported("S")] == ADDED_AGAIN


def test_the_check_allows_for_a_broker_on_the_way_that_asked_again() -> None:
    """The client's broker asked once, and gets the result twice: it was told to forget it."""
    problems: list[str] = []
    checked = partial(CheckedCore, check=DiscoveryCheck(problems.append))
    network = Network(EDGES, make_core=checked)
    network.register("D", "R", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("A", "Q", "[a,>,1]", DYNAMIC_CONTINUOUS)
    network.settle()

    network.disconnect("B", "C")
    network.settle()
    network.connect("B", "C")
    network.settle()

    to_a = [sent.message for sent in network.sent(Results) if sent.receiver == "A"]
    assert len(to_a) == 2
    assert network.reported("Q") == [(change, "R") for change in ADDED_AGAIN]
    assert not problems


def test_the_check_sees_a_broker_that_sends_a_result_of_a_continuous_request_twice() -> None:
    problems: list[str] = []
    check = DiscoveryCheck(problems.append)
    network = Network(EDGES, make_core=partial(CheckedCore, check=check))
    network.register("D", "R", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("A", "Q", "[a,>,1]", DYNAMIC_CONTINUOUS)
    network.settle()
    assert not problems

    for sent in network.sent(Results):
        core = network.cores[sent.sender]
        assert isinstance(core, CheckedCore)
        check.step(core, [Send(sent.receiver, sent.message)], network.now_ns)
    stranger = Send("D", network.sent(Results)[0].message)
    core = network.cores["C"]
    assert isinstance(core, CheckedCore)
    check.step(core, [stranger], network.now_ns)

    assert [each.split(" goes ")[1] for each in problems] == [
        "from D to C more often than it was asked for",
        "from C to D, which did not ask for it",
    ]


def test_a_tree_heals_around_a_dead_middle_whatever_comes_first() -> None:
    for delay in (1, 50):
        network = Network([("A", "M"), ("M", "B"), ("B", "C")], delay_ms=(1, delay), seed=delay)
        network.register("C", "R", "[a,<=,9]", {"a": 5})
        network.settle()

        network.disconnect("A", "M")
        network.disconnect("M", "B")
        network.connect("A", "B")
        network.settle()
        network.discover("A", "Q", "[a,>,1]")
        network.settle()

        assert network.found("Q") == ["R"]
        assert network.answers["Q"][0].hops == 2


def test_a_second_way_to_a_resource_is_used_when_the_first_one_is_gone() -> None:
    """The new link is up before the old way is known to be lost."""
    network = Network([("A", "B"), ("B", "C")], delay_ms=(1, 1))
    network.register("C", "R", "[a,<=,9]", {"a": 5})
    network.settle()

    network.connect("A", "C")
    network.settle()
    network.disconnect("B", "C")
    network.settle()
    network.discover("A", "Q", "[a,>,1]")
    network.discover("B", "P", "[a,>,1]")
    network.settle()

    assert network.found("Q") == network.found("P") == ["R"]
    assert not network.finished["P"].incomplete


def components(network: Network) -> Iterator[set[str]]:
    left = set(network.cores)
    while left:
        found, waiting = set(), [min(left)]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [there for here, there in network.links if here == name]
        left -= found
        yield found


class Run:
    """A random run: links and resources come and go; a model of what there is."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        plan = make_plan(seed)
        self.network = Network(plan.edges, OPTIONS, seed, (1, 40))
        self.registrations = {each.resource_id: (broker, each) for broker, each in plan.resources}
        self.requests = plan.requests
        self.present: dict[str, tuple[str, Registration]] = {}
        self.down: list[tuple[str, str]] = []
        self.asked: list[str] = []
        self.names = list(self.network.cores)

    def go(self) -> None:
        network, random = self.network, self.random
        for number in range(60):
            self.step(number)
            network.run_until(network.now_ns + random.choice((0, 5, 30, 100, 400)) * MS)
        network.run_until(network.now_ns + 15 * S)

    def step(self, number: int) -> None:
        network, random = self.network, self.random
        match random.randrange(6):
            case 0:
                self.change_a_link()
            case 1 | 2 if self.registrations:
                self.change_a_resource()
            case 3:
                _, broker, request = random.choice(self.requests)
                watch = Request(f"w{number}", DYNAMIC_CONTINUOUS, request.region)
                network.discover_it(broker, watch)
            case _:
                _, broker, request = random.choice(self.requests)
                self.asked.append(f"o{number}")
                one = Request(f"o{number}", ModelType.DYNAMIC, request.region)
                network.discover_it(broker, one)

    def change_a_link(self) -> None:
        network, random = self.network, self.random
        if self.down and random.random() < 0.6:
            one, other = self.down.pop(random.randrange(len(self.down)))
            if random.random() < 0.5:  # elsewhere between the same two parts
                parts = list(components(network))
                one = random.choice(sorted(next(part for part in parts if one in part)))
                other = random.choice(sorted(next(part for part in parts if other in part)))
            network.connect(one, other)
        elif network.links:
            edge = random.choice(sorted(network.links))
            self.down.append(edge)
            network.disconnect(*edge)

    def change_a_resource(self) -> None:
        network, random = self.network, self.random
        resource_id = random.choice(sorted(self.registrations))
        broker, registration = self.registrations[resource_id]
        if resource_id not in self.present:
            network.register_it(broker, registration)
            self.present[resource_id] = (broker, registration)
        elif random.random() < 0.4:
            network.withdraw(broker, resource_id)
            del self.present[resource_id]
        else:
            values = {
                name: random.randint(1, int(bound[1]))
                for (name, _), bound in registration.region.bounds.items()
                if not isinstance(bound, str)
            }
            changed = Registration(resource_id, registration.model, registration.region, values)
            network.update(broker, resource_id, values)
            self.present[resource_id] = self.registrations[resource_id] = (broker, changed)

    def matching(self, request: Request, part: set[str]) -> list[str]:
        return sorted(
            name
            for name, (broker, registration) in self.present.items()
            if broker in part
            and overlaps(request.region, registration.region)
            and admits(request.region, registration.values)
        )


@pytest.mark.parametrize("start", range(0, 120, 30))
def test_tables_converge_and_every_request_ends_whatever_fails(start: int) -> None:
    for seed in range(start, start + 30):
        run = Run(seed)
        run.go()
        network = run.network

        for part in components(network):
            here = sorted(name for name, (broker, _) in run.present.items() if broker in part)
            for name in part:
                core = network.cores[name]
                known = sorted(entry.message.resource_id for entry in core.advertisements.entries())
                assert known == here, f"seed {seed}: advertisements at {name}"
                for watch in core.dynamic_watches.watches.values():
                    if watch.last_hop == "":
                        request = Request(watch.id, DYNAMIC_CONTINUOUS, watch.region)
                        held = sorted(resource for _, resource in watch.held)
                        assert held == run.matching(request, part), f"seed {seed}: {watch.id}"
        assert not set(run.asked) - set(network.finished), f"seed {seed}"
        check_new_requests(run, seed)
        network.run_until(network.now_ns + 60 * S)
        assert not any(core.one_time.paths for core in network.cores.values()), f"seed {seed}"


def check_new_requests(run: Run, seed: int) -> None:
    """When all is quiet, requests are exact again."""
    network = run.network
    for number, (_, broker, request) in enumerate(run.requests[:6]):
        name = f"late{number}"
        network.discover_it(broker, Request(name, ModelType.DYNAMIC, request.region))
        network.settle()
        part = next(part for part in components(network) if broker in part)

        assert not network.finished[name].incomplete, f"seed {seed}: {name}"
        if not network.finished[name].shared:
            assert network.found(name) == run.matching(request, part), f"seed {seed}: {name}"

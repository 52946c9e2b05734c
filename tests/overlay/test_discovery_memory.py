"""The tables of discovery have limits in bytes: what has no room is refused, and somebody told."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from overlay.network import Network, S
from tocsin.errors import DiscoveryFull
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Ignored, Refused, Send
from tocsin.overlay.discovery.options import DEFAULTS
from tocsin.overlay.discovery.requests import ModelType, Registration, parse_request
from tocsin.overlay.region import Region
from tocsin.wire.link.discovery_messages import Advertise, Bound, Discover, Done

NOW = 1_000 * S
LARGE = tuple(Bound(f"t{number}", "s", text="x" * 4_000) for number in range(10))  # 40 KB


def request(name: str, row: tuple[Bound, ...] = LARGE, model: str = "dynamic") -> Discover:
    return Discover(
        request_id=name,
        host="left",
        region=row,
        model=model,
        issued_ns=NOW,
        shared_until_ns=NOW + 5 * S,
        expires_ns=NOW + 10 * S,
        max_age_ns=5 * S,
    )


def held(core: DiscoveryCore) -> dict[str, int]:
    found = core.tables()["bytes"]
    assert isinstance(found, dict)
    return found


def large(name: str) -> Registration:
    """A resource whose result has 4 KB."""
    region = Region({("a", "n"): (0.0, 99.0), ("t", "s"): "x" * 4_000})
    return Registration(name, ModelType.DYNAMIC, region, {"a": 5})


def test_large_requests_of_one_neighbour_leave_room_for_others_and_are_answered() -> None:
    options = replace(DEFAULTS, request_bytes_max=500_000, request_bytes_per_neighbour_max=200_000)
    core = DiscoveryCore("me", options)
    for name in ("left", "right", "third"):
        core.link_up(name, NOW)
    # Those that are asked once stay while their answers are shared: they are sent on.
    row = tuple(Bound(each.name, "s", text=each.text) for each in LARGE)
    core.receive(
        "third",
        Advertise(adv_id="v", broker="far", resource_id="r", model="dynamic", rows=(row,)),
        NOW,
    )

    effects = []
    for number in range(8):
        model = "dynamic" if number % 2 else "dynamic continuous"
        effects += core.receive("left", request(f"q{number}", model=model), NOW)
    others = core.receive("right", request("other"), NOW)

    refused = [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, Done)]
    assert [done.incomplete for done in refused] == [
        "too many bytes of requests over one link, at me"
    ] * 4
    assert [type(e.error) for e in effects if isinstance(e, Ignored)] == [DiscoveryFull] * 4
    assert not any(isinstance(e, Ignored) for e in others)
    assert 190_000 < held(core)["requests"] < 250_000
    for neighbour in ("left", "right", "third"):
        core.link_down(neighbour, NOW)
    assert set(held(core).values()) == {0}


def test_a_client_is_refused_when_requests_have_taken_all_bytes() -> None:
    core = DiscoveryCore("me", replace(DEFAULTS, request_bytes_max=100))
    core.discover(parse_request("w", ModelType.DYNAMIC_CONTINUOUS, "a > 1"), NOW)

    [refused] = core.discover(parse_request("q", ModelType.DYNAMIC, "a > 1"), NOW)

    assert isinstance(refused, Refused)
    assert isinstance(refused.error, DiscoveryFull)
    core.cancel("w", NOW)
    assert set(held(core).values()) == {0}


def network_of(resources: int, result_bytes_max: int) -> Network:
    options = replace(DEFAULTS, result_bytes_max=result_bytes_max)
    network = Network([("A", "B")], options)
    for number in range(resources):
        network.register_it("B", large(f"r{number}"))
    network.settle()
    return network


def test_the_oldest_shared_answer_makes_room_for_a_new_one() -> None:
    network = network_of(10, result_bytes_max=100_000)  # two answers of 40 KB

    for number in range(5):
        network.discover("A", f"q{number}", f"[a,>,{number / 10}]", max_age_ns=0)
        network.settle()

    assert all(len(network.found(f"q{number}")) == 10 for number in range(5))
    assert not any(summary.incomplete for summary in network.finished.values())
    assert held(network.cores["A"])["results"] < 100_000
    assert network.dropped() == {"shared answer, for want of room": 3}
    assert list(network.cores["A"].one_time.paths) == ["q3", "q4"]
    network.run_until(network.now_ns + 200 * S)
    left = held(network.cores["A"])
    assert (left["requests"], left["results"]) == (0, 0)


def test_a_request_whose_cover_made_room_goes_on_without_it() -> None:
    network = network_of(10, result_bytes_max=50_000)
    network.discover("A", "wide", "[a,>,1]")
    network.settle()

    network.discover("B", "narrow", "[a,>,2]")  # on its way to the answer at A
    network.discover("A", "other", "[a,<,50]")
    network.settle()

    assert len(network.found("narrow")) == len(network.found("other")) == 10
    assert not network.finished["narrow"].incomplete


def test_an_answer_that_has_no_room_says_so() -> None:
    network = network_of(10, result_bytes_max=20_000)

    network.discover("A", "q", "[a,>,1]")
    network.settle()

    assert len(network.found("q")) == 4
    assert network.finished["q"].incomplete == "no room for more than 4 results"
    assert network.cores["A"].tables()["bytes_max"]["results"] == 20_000  # type: ignore[index]


def test_a_continuous_request_that_has_no_room_ends_and_says_so() -> None:
    network = network_of(10, result_bytes_max=20_000)

    network.discover("A", "w", "[a,>,1]", ModelType.DYNAMIC_CONTINUOUS, lease_ns=90 * S)
    network.settle()

    assert "has no room" in network.finished["w"].incomplete
    assert "w" not in network.current
    assert not any(core.dynamic_watches.watches for core in network.cores.values())
    assert held(network.cores["A"])["results"] == 0
    assert network.cores["A"].next_due_ns() is None


def test_resources_of_all_neighbours_together_have_a_limit_in_bytes() -> None:
    core = DiscoveryCore("me", replace(DEFAULTS, resource_bytes_max=100_000))
    effects = []
    for neighbour in ("left", "right"):
        core.link_up(neighbour, NOW)
        for number in range(2):
            effects += core.receive(
                neighbour,
                Advertise(
                    adv_id="v",
                    broker=neighbour,
                    resource_id=f"r{number}",
                    model="dynamic",
                    rows=(LARGE,),
                ),
                NOW,
            )

    assert [e.neighbour for e in effects if isinstance(e, Ignored)] == ["right", "right"]
    assert len(core.advertisements) == 2
    assert 80_000 < held(core)["resources"] <= 100_000
    again = Advertise(
        adv_id="w", broker="left", resource_id="r0", model="dynamic", rows=(LARGE[:5],)
    )
    core.receive("left", again, NOW)
    core.receive("left", msgspec.structs.replace(again, adv_id="x", rows=(LARGE,)), NOW)
    core.link_down("left", NOW)
    assert held(core)["resources"] == 0

"""What discovery keeps and sends is bounded by bytes as well as by number, and somebody is told."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import msgspec
import pytest

from overlay.network import Network, S
from tocsin.errors import DiscoveryFull
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Answered, Finished, Ignored, Send
from tocsin.overlay.discovery.options import DEFAULTS, DiscoveryOptions
from tocsin.overlay.discovery.requests import ModelType, Registration, parse_request
from tocsin.overlay.region import Region
from tocsin.overlay.region_index import RegionIndex
from tocsin.wire.link.codec import FRAME_BYTES_MAX, decode, encode
from tocsin.wire.link.discovery_messages import (
    COUNT_MAX,
    Advertise,
    Bound,
    Cancel,
    Discover,
    Done,
    Result,
    Results,
)

NOW = 1_000 * S
DYNAMIC, DYNAMIC_CONTINUOUS = ModelType.DYNAMIC, ModelType.DYNAMIC_CONTINUOUS


def discover(name: str = "q", model: str = "dynamic") -> Discover:
    return Discover(
        request_id=name,
        host="left",
        region=(Bound("a", "n", 1.0, None),),
        model=model,
        issued_ns=NOW,
        shared_until_ns=NOW + 5 * S,
        expires_ns=NOW + 10 * S,
        max_age_ns=5 * S,
    )


def large(name: str, texts: int) -> Registration:
    """A resource with so many texts of 4,000 bytes."""
    region = Region({("a", "n"): (0.0, 9.0), **{(f"t{n}", "s"): "x" * 4_000 for n in range(texts)}})
    return Registration(name, DYNAMIC, region, {"a": 5})


def test_many_large_answers_fit_in_the_frames_of_a_link() -> None:
    network = Network([("A", "B"), ("B", "C")])
    for number in range(700):
        network.register_it("C", large(f"r{number}", texts=7))
    network.settle()

    for model in (DYNAMIC, DYNAMIC_CONTINUOUS):
        network.discover("A", str(model), "[a,>,1]", model)
    network.settle()

    sent = [each.message for each in network.sent(Results)]
    assert max(len(encode(message)) for message in sent) < FRAME_BYTES_MAX / 8
    assert len(network.found("dynamic")) == len(network.reported("dynamic continuous")) == 700


def test_an_answer_larger_than_a_package_goes_by_itself() -> None:
    core = DiscoveryCore("me")
    core.link_up("left", NOW)
    for number in range(3):
        core.register(large(f"r{number}", texts=255), NOW)

    effects = core.receive("left", discover(), NOW)

    packages = [e.message for e in effects if isinstance(e, Send)]
    assert [len(each.results) for each in packages if isinstance(each, Results)] == [1, 1, 1]


def test_a_request_that_has_ended_leaves_no_timer_behind() -> None:
    network = Network([("A", "B")])
    network.register("B", "r", "[a,<=,9]", {"a": 5})
    network.settle()

    for number in range(200):
        network.discover("A", f"shared {number}", "[a,>,1]")
        network.discover("A", f"normal {number}", "[a,>,2]", max_age_ns=0)
        network.discover("A", f"first {number}", "[a,>,3]", first=1)
        network.settle()
        for model in (DYNAMIC_CONTINUOUS, ModelType.STATIC_CONTINUOUS):
            network.discover("A", f"{model} {number}", "[a,>,1]", model, lease_ns=3_600 * S)
            network.cancel("A", f"{model} {number}")
        network.settle()

    for core in network.cores.values():
        assert core.tables()["timers"] == len(core.one_time.paths)
        assert core._context.timers.held < 3 * len(core.one_time.paths) + 100
    network.run_until(network.now_ns + 200 * S)
    assert [core.tables()["timers"] for core in network.cores.values()] == [0, 0]


def test_a_lease_that_is_renewed_has_one_timer() -> None:
    network = Network([("A", "B")])

    for _ in range(500):
        network.register("A", "r", "[a,<=,9]", {"a": 5}, lease_ns=86_400 * S)
        network.now_ns += S
    core = network.cores["A"]
    assert core.tables()["timers"] == 1
    assert core._context.timers.held < 100
    network.run_until(network.now_ns + 86_000 * S)
    assert len(core.resources) == 1
    network.run_until(network.now_ns + 500 * S)

    assert len(core.resources) == 0
    network.register("A", "r", "[a,<=,9]", {"a": 5}, lease_ns=10 * S)
    network.register("A", "r", "[a,<=,9]", {"a": 5})
    assert core.next_due_ns() is None


def with_neighbours(*names: str, options: DiscoveryOptions = DEFAULTS) -> DiscoveryCore:
    core = DiscoveryCore("me", options)
    for name in names:
        core.link_up(name, NOW)
    return core


def advertise(broker: str = "far", resource: str = "r", attribute: str = "a") -> Advertise:
    rows = ((Bound(attribute, "n", None, 9.0),),)
    return Advertise(
        adv_id=f"{broker}/{resource}/1",
        broker=broker,
        resource_id=resource,
        model="dynamic",
        rows=rows,
    )


@pytest.mark.parametrize("model", ["dynamic", "dynamic continuous"])
def test_what_a_neighbour_counts_is_never_more_than_the_next_one_takes(model: str) -> None:
    core = with_neighbours("left", "right", "third")
    for name in ("right", "third"):
        core.receive(name, advertise(broker=f"behind {name}"), NOW)
    (attempt,) = {e.message.attempt for e in core.receive("left", discover(model=model), NOW)}  # type: ignore[union-attr]

    most = Done(
        request_id="q", attempt=attempt, messages=COUNT_MAX, age_ns=COUNT_MAX, results=COUNT_MAX
    )
    core.receive("right", most, NOW)
    (effect,) = core.receive("third", most, NOW + S)

    assert isinstance(effect, Send)
    done = decode(encode(effect.message)[4:])
    assert isinstance(done, Done)
    assert (done.messages, done.age_ns) == (COUNT_MAX, NOW + S)
    assert done.results == 0  # none were asked for directly


def test_a_result_that_was_kept_for_ever_is_not_older_than_a_message_can_say() -> None:
    core = with_neighbours("left", "right")
    core.receive("right", advertise(), NOW)
    core.discover(parse_request("mine", DYNAMIC, "a >= 1", max_age_ns=0), NOW)
    kept = Result(
        adv_id="v",
        broker="far",
        resource_id="r",
        attributes={"a": 5},
        as_of_ns=1,
        age_ns=COUNT_MAX,
    )
    core.receive("right", Results("mine", (kept,)), NOW)
    core.receive("right", Done(request_id="mine", attempt=1), NOW)
    effects = core.receive("left", discover(), NOW + S)

    messages = [decode(encode(e.message)[4:]) for e in effects if isinstance(e, Send)]
    found = [each.results[0].age_ns for each in messages if isinstance(each, Results)]
    assert found == [COUNT_MAX]


def test_a_neighbour_that_announces_direct_results_nobody_asked_for_holds_nothing_up() -> None:
    core = with_neighbours("right")
    core.receive("right", advertise(), NOW)
    core.discover(parse_request("mine", DYNAMIC, "a > 1"), NOW)

    (finished,) = core.receive("right", Done(request_id="mine", attempt=1, results=5), NOW)

    assert isinstance(finished, Finished)
    assert finished.summary.oldest_ns >= 0


def test_a_direct_result_that_comes_twice_does_not_stand_for_one_that_is_missing() -> None:
    core = with_neighbours("right", options=replace(DEFAULTS, direct=True, reply_to="me"))
    core.receive("right", advertise(), NOW)
    core.discover(parse_request("mine", DYNAMIC, "a > 1"), NOW)
    core.receive("right", Done(request_id="mine", attempt=1, results=2), NOW)
    first, second = (
        Results(
            "mine",
            (
                Result(
                    adv_id=f"v{each}",
                    broker="far",
                    resource_id=f"r{each}",
                    attributes={"a": 5},
                    as_of_ns=1,
                ),
            ),
        )
        for each in "12"
    )

    once = core.receive_direct(first, NOW)
    twice = core.receive_direct(first, NOW)
    whole = core.receive_direct(second, NOW)

    assert [type(each) for each in once] == [Answered]
    assert not twice
    assert [type(each) for each in whole] == [Answered, Finished]


def test_an_answer_is_never_from_before_1970() -> None:
    core = with_neighbours("right")
    core.receive("right", advertise(), NOW)
    core.discover(parse_request("mine", DYNAMIC, "a > 1", max_age_ns=0), NOW)

    done = Done(request_id="mine", attempt=1, age_ns=COUNT_MAX, messages=COUNT_MAX)
    (finished,) = core.receive("right", done, NOW)

    assert isinstance(finished, Finished)
    assert finished.summary.oldest_ns == 0
    assert finished.summary.messages == COUNT_MAX


def test_a_link_that_ends_is_cleared_in_small_steps() -> None:
    options = replace(DEFAULTS, cleared_at_once_max=100)
    core = with_neighbours("left", "right", options=options)
    core.receive("right", advertise(), NOW)
    for number in range(1_000):
        core.receive("left", discover(f"w{number}", "dynamic continuous"), NOW)
        core.receive("left", discover(f"q{number}"), NOW)
        core.receive("left", advertise("behind left", f"r{number}"), NOW)
    counts, steps = [len(core.link_down("left", NOW))], 0

    while core.is_clearing:
        counts.append(len(core.clear(NOW)))
        steps += 1
        # What clients do meanwhile goes to nobody who is not there.
        effects = core.discover(parse_request(f"mine{steps}", DYNAMIC, "a > 1"), NOW)
        assert {e.neighbour for e in effects if isinstance(e, Send)} <= {"right"}

    assert max(counts) <= 100
    assert steps >= 20
    assert not core.dynamic_watches.watches
    assert [path.last_hop for path in core.one_time.paths.values()] == [""] * steps
    assert [entry.last_hop for entry in core.advertisements.entries()] == ["right"]


def test_a_request_that_is_made_while_a_link_is_cleared_ends() -> None:
    """It shares the answer of one that still waits for the link that has ended."""
    options = replace(DEFAULTS, cleared_at_once_max=1)
    core = with_neighbours("left", "right", options=options)
    core.receive("right", advertise(resource="unlike", attribute="z"), NOW)
    core.receive("right", advertise(), NOW)
    core.discover(parse_request("first", DYNAMIC, "a > 1"), NOW)
    core.link_down("right", NOW)
    assert core.is_clearing

    effects = core.discover(parse_request("second", DYNAMIC, "a > 2"), NOW)
    while core.is_clearing:
        effects += core.clear(NOW)

    ended = {e.request_id: e.summary.incomplete for e in effects if isinstance(e, Finished)}
    assert ended == dict.fromkeys(("first", "second"), "the link from me to right is down")


def test_clearing_a_link_does_not_look_at_all_that_came_by_a_second_way() -> None:
    core = DiscoveryCore("me", regions=RegionIndex)
    for name in ("left", "right", "third"):
        core.link_up(name, NOW)
    for neighbour in ("left", "right"):
        for number in range(8_000):
            name = f"w{number}"
            core.receive(neighbour, discover(name, "dynamic continuous"), NOW)

    began_s = perf_counter()
    core.link_down("left", NOW)
    while core.is_clearing:
        core.clear(NOW)

    assert perf_counter() - began_s < 5.0
    assert {watch.last_hop for watch in core.dynamic_watches.watches.values()} == {"right"}


def test_a_neighbour_and_a_broker_behind_it_have_a_share_of_continuous_requests() -> None:
    options = replace(DEFAULTS, continuous_per_neighbour_max=5, continuous_per_host_max=3)
    core = with_neighbours("left", "right", options=options)
    watch = discover(model="dynamic continuous")
    said = []

    for number in range(4):
        for host in ("a", "b"):
            named = msgspec.structs.replace(watch, request_id=f"{host}{number}", host=host)
            said += core.receive("left", named, NOW)
    others = core.receive("right", discover("other", "dynamic continuous"), NOW)

    assert len(core.dynamic_watches.watches) == 6
    refused = [e.message.incomplete for e in said if isinstance(e, Send) if e.message.incomplete]
    assert refused == [
        "too many continuous requests over one link, at me",
        "too many continuous requests of one broker, at me",
        "too many continuous requests over one link, at me",
    ]
    assert [type(e.error) for e in said if isinstance(e, Ignored)] == [DiscoveryFull] * 3
    assert [type(e.message) for e in others] == [Done]
    core.receive("left", Cancel("a0"), NOW)
    core.receive("left", msgspec.structs.replace(watch, request_id="b9", host="b"), NOW)
    assert "b9" in core.dynamic_watches


def test_a_request_is_looked_up_once_however_many_covers_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Covers that came over the same link are of no use to it (A10)."""
    core = DiscoveryCore("me", regions=RegionIndex)
    for name in ("left", "right"):
        core.link_up(name, NOW)
    core.receive("right", advertise(), NOW)
    for number in range(20):
        core.receive("left", discover(f"q{number}"), NOW)
    looked_up = []
    covering = RegionIndex.covering
    monkeypatch.setattr(
        RegionIndex,
        "covering",
        lambda self, region: looked_up.append(region) or covering(self, region),  # type: ignore[func-returns-value]
    )

    core.receive("left", discover("last"), NOW)

    assert len(looked_up) == 1
    assert core.one_time.paths["last"].is_listed

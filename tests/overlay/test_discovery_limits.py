"""What discovery keeps and sends is bounded by bytes as well as by number, and somebody is told."""

from __future__ import annotations

from overlay.network import Network, S
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Send
from tocsin.overlay.discovery.requests import ModelType, Registration
from tocsin.overlay.region import Region
from tocsin.wire.link.codec import FRAME_BYTES_MAX, encode
from tocsin.wire.link.discovery_messages import Bound, Discover, Results

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

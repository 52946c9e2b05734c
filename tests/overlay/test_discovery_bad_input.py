"""Neighbours and clients that send what makes no sense: counted, bounded, and nothing breaks."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest

from overlay.discovery_runs import OPTIONS, expected, make_plan, run
from overlay.network import MS, Network, S
from tocsin.errors import BadDiscovery, DiscoveryFull, NoSuchDiscovery, TocsinError
from tocsin.event.event import Value
from tocsin.event.value import Quantity
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Refused, Send
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.paths import new_path
from tocsin.overlay.discovery.requests import ModelType, Registration, Request, parse_request
from tocsin.overlay.region import Bound as RegionBound
from tocsin.overlay.region import Region, RegionKey
from tocsin.wire.link.discovery_messages import (
    Advertise,
    Bound,
    Cancel,
    Cover,
    CoverGone,
    Discover,
    DiscoveryMessage,
    Done,
    Result,
    Results,
    Unadvertise,
    Update,
    Window,
)

NOW = 1_000 * S


def core_with_neighbours(options: DiscoveryOptions = OPTIONS) -> DiscoveryCore:
    core = DiscoveryCore("me", options)
    for name in ("left", "right"):
        core.link_up(name, NOW)
    return core


def advertise(broker: str = "far", resource: str = "r", row: tuple[Bound, ...] = ()) -> Advertise:
    rows = (row or (Bound("a", "n", None, 9.0),),)
    return Advertise(
        adv_id=f"{broker}/{resource}/1"[-256:],
        broker=broker,
        resource_id=resource,
        model="dynamic",
        rows=rows,
    )


def discover(name: str = "q", **changes: object) -> Discover:
    asked = Discover(
        request_id=name,
        host="left",
        region=(Bound("a", "n", 1.0, None),),
        model="dynamic",
        issued_ns=NOW,
        shared_until_ns=NOW + 5 * S,
        expires_ns=NOW + 10 * S,
        max_age_ns=5 * S,
    )
    return msgspec.structs.replace(asked, **changes)


def result(resource: str = "r") -> Result:
    return Result(
        adv_id=f"far/{resource}/1",
        broker="far",
        resource_id=resource,
        attributes={"a": 5},
        as_of_ns=1,
    )


MANY = Region({(f"a{number}", "n"): (0.0, 1.0) for number in range(10_000)})


def test_ten_thousand_attributes_are_refused_in_registrations_values_and_requests() -> None:
    core = core_with_neighbours()
    core.register(Registration("ok", ModelType.DYNAMIC, Region({("a", "n"): (0.0, 9.0)})), NOW)

    refused = [
        *core.register(Registration("r", ModelType.DYNAMIC, MANY), NOW),
        *core.update("ok", {f"a{number}": 1 for number in range(10_000)}, NOW),
        *core.discover(Request("q", ModelType.DYNAMIC, MANY), NOW),
    ]

    assert [each.id for each in refused if isinstance(each, Refused)] == ["r", "ok", "q"]
    assert all(
        isinstance(each.error, BadDiscovery) for each in refused if isinstance(each, Refused)
    )


@pytest.mark.parametrize(
    ("bounds", "values", "kind"),
    [
        ({("a", "n"): (0.0, 1e300)}, {"a": 2**70}, ""),
        ({("a", "n"): (0.0, 1e300)}, {"a": Quantity(2**70, "B")}, ""),
        ({("a" * 200, "n"): (0.0, 9.0)}, {}, ""),
        ({("a", "s"): "x" * 5_000}, {}, ""),
        ({("a", "n"): (0.0, 9.0)}, {"a": 1}, "k" * 200),
    ],
    ids=["number", "quantity", "name", "text", "kind"],
)
def test_what_no_message_can_carry_is_refused_before_it_is_sent(
    bounds: dict[RegionKey, RegionBound], values: dict[str, Value], kind: str
) -> None:
    core = core_with_neighbours()

    effects = core.register(Registration("r", ModelType.DYNAMIC, Region(bounds), values, kind), NOW)

    (refused,) = effects
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, BadDiscovery)


def test_the_longest_of_everything_still_fits_in_its_message() -> None:
    core = DiscoveryCore("b" * 256)
    core.link_up("l" * 256, NOW)
    core.link_up("m" * 256, NOW)
    region = Region({(f"{number:0128}", "s"): "x" * 4_096 for number in range(256)})
    effects = core.register(
        Registration("r" * 256, ModelType.DYNAMIC, region, kind="k" * 128, address="a" * 4_096), NOW
    )
    effects += core.receive("m" * 256, advertise(broker="f" * 256, resource="r" * 256), NOW)
    effects += core.receive("l" * 256, discover("q" * 256), NOW)
    effects += core.link_down("m" * 256, NOW)

    sent = [effect.message for effect in effects if isinstance(effect, Send)]

    assert {type(message) for message in sent} == {Advertise, Discover, Unadvertise, Done}
    for message in sent:
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=DiscoveryMessage)


def test_a_message_over_a_limit_is_not_read() -> None:
    bounds = tuple(Bound(f"a{number}", "n", 0.0, 1.0) for number in range(10_000))
    encoded = msgspec.msgpack.encode(advertise(row=bounds))

    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(encoded, type=DiscoveryMessage)


@pytest.mark.parametrize(
    "row",
    [
        (Bound("a", "n", float("nan"), 1.0),),
        (Bound("a", "n", 2.0, 1.0),),
        (Bound("a", "s", 1.0, 2.0),),
        (Bound("a", "n", text="x"),),
        (Bound("a", "weight", 1.0, 2.0),),
        (Bound("a", "n", 1.0, 2.0), Bound("a", "n", 1.0, 2.0)),
    ],
)
def test_an_invalid_region_is_dropped_and_the_asker_does_not_wait(row: tuple[Bound, ...]) -> None:
    core = core_with_neighbours()

    core.receive("left", advertise(row=row), NOW)
    (answer,) = core.receive("left", discover(region=row), NOW)

    assert core.counters.dropped == {
        "advertisement with an invalid region": 1,
        "request with an invalid region": 1,
    }
    assert isinstance(answer, Send)
    assert isinstance(answer.message, Done)
    assert answer.message.incomplete


def test_messages_about_unknown_requests_are_dropped_with_their_reason() -> None:
    core = core_with_neighbours()

    for message in (
        Results("nobody", (result(),)),
        Done(request_id="nobody"),
        CoverGone("nobody", Cover("c", "me")),
        Cancel("nobody"),
        Update("far/r/1", "far", "r", result(), None),
        Unadvertise("far/r/1", "far", "r"),
    ):
        assert core.receive("left", message, NOW) == []
    core.receive("stranger", Cancel("nobody"), NOW)

    assert sum(core.counters.dropped.values()) == core.counters.received == 7


def test_a_cover_that_is_not_known_is_reported_back() -> None:
    core = core_with_neighbours()
    cover = Cover("gone", "left")

    effects = core.receive("left", discover(cover=cover), NOW)

    assert effects == [Send("left", CoverGone("q", cover, 0))]
    assert not core.one_time.paths


def test_a_neighbour_cannot_speak_for_this_broker_or_for_what_is_behind_another() -> None:
    core = core_with_neighbours()
    core.receive("right", advertise(), NOW)
    core.register(
        Registration("mine", ModelType.DYNAMIC, Region({("a", "n"): (0.0, 9.0)}), {"a": 5}), NOW
    )

    core.receive("left", advertise(broker="me", resource="mine"), NOW)
    core.receive("left", Unadvertise("far/r/1", "far", "r"), NOW)
    core.receive("left", Update("far/r/1", "far", "r", result(), None), NOW)
    core.receive("left", discover(host="me"), NOW)
    core.receive("left", advertise(), NOW)  # a second way, kept aside

    entries = {entry.message.resource_id: entry.last_hop for entry in core.advertisements.entries()}
    assert entries == {"r": "right", "mine": ""}
    assert sum(core.counters.dropped.values()) == 4


def test_results_and_end_markers_count_only_from_where_the_request_was_sent() -> None:
    core = core_with_neighbours()
    core.receive("right", advertise(), NOW)
    core.discover(parse_request("mine", ModelType.DYNAMIC, "a > 1"), NOW)

    assert core.receive("left", Results("mine", (result(),)), NOW) == []
    assert core.receive("left", Done(request_id="mine"), NOW) == []
    assert core.receive("right", Done(request_id="mine", attempt=7), NOW) == []
    answered, finished = (
        *core.receive("right", Results("mine", (result(), result())), NOW),
        *core.receive("right", Done(request_id="mine", attempt=1), NOW),
    )

    assert [each.id for each in answered.results] == ["r"]  # type: ignore[union-attr]
    assert finished.summary.found == 1  # type: ignore[union-attr]


def test_a_request_sent_twice_is_forwarded_once() -> None:
    core = core_with_neighbours()
    core.receive("right", advertise(), NOW)

    first = core.receive("left", discover(), NOW)
    again = core.receive("left", discover(), NOW)
    (refused,) = core.receive("right", discover(), NOW)

    assert len(first) == 1
    assert again == []
    assert isinstance(refused, Send)
    assert isinstance(refused.message, Done)
    assert core.counters.dropped == {"request known": 1, "request came by another way": 1}


def test_every_table_has_a_limit() -> None:
    limits = replace(
        OPTIONS, resources_max=1, advertisements_max=2, requests_max=1, continuous_max=1
    )
    core = core_with_neighbours(limits)
    one = Region({("a", "n"): (0.0, 9.0)})
    core.register(Registration("r1", ModelType.DYNAMIC, one), NOW)
    refused = core.register(Registration("r2", ModelType.DYNAMIC, one), NOW)
    for number in range(5):
        core.receive("right", advertise(resource=f"far{number}"), NOW)
        core.receive("left", advertise(resource=f"far{number}"), NOW)
    for number in range(3):
        core.receive("left", discover(f"q{number}"), NOW)
        core.receive("left", discover(f"c{number}", model="dynamic continuous"), NOW)
    refused += core.discover(Request("mine", ModelType.DYNAMIC, one), NOW)
    refused += core.discover(Request("watch", ModelType.STATIC_CONTINUOUS, one), NOW)

    errors = [each.error for each in refused if isinstance(each, Refused)]
    assert len(errors) == 3
    assert all(isinstance(error, DiscoveryFull) for error in errors)
    assert len(core.advertisements) == 2
    assert len(core.one_time.paths) == len(core.dynamic_watches.watches) == 1
    assert core.counters.dropped == {"too many advertisements": 9, "too many requests": 4}


def test_a_message_that_went_in_circles_is_dropped() -> None:
    core = core_with_neighbours()

    core.receive("left", msgspec.structs.replace(advertise(), hops=OPTIONS.hops_max), NOW)
    core.receive("left", discover(hops=OPTIONS.hops_max + 1), NOW)

    assert core.counters.dropped == {
        "advertisement came over too many links": 1,
        "request came over too many links": 1,
    }


def test_what_does_not_exist_cannot_be_cancelled_or_withdrawn() -> None:
    core = core_with_neighbours()

    (cancelled,) = core.cancel("nothing", NOW)
    (withdrawn,) = core.withdraw("nothing", NOW)

    assert isinstance(cancelled, Refused)
    assert isinstance(cancelled.error, NoSuchDiscovery)
    assert isinstance(withdrawn, Refused)
    assert isinstance(withdrawn.error, TocsinError)


@pytest.mark.parametrize(
    "message",
    [
        advertise(),
        Unadvertise("v", "b", "r"),
        discover(cover=Cover("c", "b"), attempt=2),
        Results("q", (result(),)),
        Done(request_id="q", brokers=("a", "b"), age_ns=5),
        CoverGone("q", Cover("c", "b")),
        Cancel("q"),
        Update("v", "b", "r", result(), None),
        msgspec.structs.replace(result(), windows=(Window("available", 1.0, 2.0),)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_every_message_is_read_as_it_was_written(message: DiscoveryMessage | Result) -> None:
    kind = Result if isinstance(message, Result) else DiscoveryMessage

    assert msgspec.json.decode(msgspec.json.encode(message), type=kind) == message
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=kind) == message


def random_message(random: Random) -> DiscoveryMessage:
    """One that a neighbour could send, about things that may exist."""
    name = random.choice(["q0", "q1", "q2", "q3"])
    resource = random.choice(["r", "s"])
    broker = random.choice(["far", "me", "left"])
    cover = random.choice([None, Cover(random.choice(["q0", "q1"]), random.choice(["me", "left"]))])
    low = float(random.randint(0, 3))
    found = msgspec.structs.replace(result(resource), broker=broker)
    return random.choice(
        [
            advertise(broker, resource),
            Unadvertise("x", broker, resource),
            discover(
                name,
                cover=cover,
                attempt=random.randint(0, 2),
                host=random.choice(["left", "right", "me"]),
                region=(Bound("a", "n", low, None),),
                model=random.choice(["dynamic", "dynamic", "dynamic continuous", "static", "odd"]),
                first=random.choice([0, 0, 1]),
                direct=random.random() < 0.1,
                shared_until_ns=random.choice([0, NOW, NOW + 5 * S, 2**62]),
                expires_ns=random.choice([0, NOW + 3 * S, 2**62]),
            ),
            Results(name, (found,)),
            Done(request_id=name, attempt=random.randint(0, 2), age_ns=random.choice([0, 2**62])),
            CoverGone(name, cover or Cover("q0", "me"), random.randint(0, 2)),
            Cancel(name),
            Update("x", broker, resource, found, random.choice([None, found])),
        ]
    )


def test_no_order_of_strange_messages_breaks_a_broker_or_stays_in_it() -> None:
    for seed in range(150):
        random = Random(seed)
        core = core_with_neighbours()
        now = NOW
        for _ in range(200):
            now += random.randint(0, 200) * MS
            match random.randrange(12):
                case 0:
                    core.link_down(random.choice(["left", "right"]), now)
                case 1:
                    core.link_up(random.choice(["left", "right"]), now)
                case 2:
                    name = f"mine{random.randrange(5)}"
                    core.discover(parse_request(name, ModelType.DYNAMIC, "a > 1"), now)
                case 3:
                    core.tick(now)
                case 4:
                    core.register(
                        Registration(
                            "m", ModelType.DYNAMIC, Region({("a", "n"): (0, 9)}), {"a": 5}
                        ),
                        now,
                    )
                case _:
                    core.receive(random.choice(["left", "right"]), random_message(random), now)
        core.link_down("left", now)
        core.link_down("right", now)
        core.tick(now + 60 * S)

        assert not core.one_time.paths, f"seed {seed}"
        assert not core.dynamic_watches.watches
        assert not core.tables()["SrdSubList"]
        assert core.tables()["bytes"] == {"resources": 0, "requests": 0, "results": 0}
        assert core.tables()["timers"] == 0
        assert [entry.last_hop for entry in core.advertisements.entries()] in ([], [""])


@pytest.mark.parametrize(
    ("ahead_ms", "kept_ms"),
    [(0, 11_000), (900, 11_900), (-900, 10_100), (3_600_000, 11_000), (-3_600_000, 11_000)],
)
def test_a_request_is_kept_until_its_host_says_unless_the_hosts_clock_is_far_off(
    ahead_ms: int, kept_ms: int
) -> None:
    host_ns = NOW + ahead_ms * MS
    message = discover(
        issued_ns=host_ns,
        shared_until_ns=host_ns + OPTIONS.cache_expiry_ns,
        expires_ns=host_ns + OPTIONS.timeout_ns + OPTIONS.guard_ns,
    )

    path = new_path(message, Region({}), "left", OPTIONS, NOW)

    assert path.kept_until_ns == NOW + kept_ms * MS
    assert path.shared_until_ns <= NOW + OPTIONS.cache_expiry_ns


def test_clocks_that_differ_cost_sharing_and_not_answers() -> None:
    class Skewed(DiscoveryCore):
        """A broker whose clock is hours off; which way, its name says."""

        def __init__(self, broker_id: str, options: DiscoveryOptions) -> None:
            super().__init__(broker_id, options)
            self.skew_ns = (int(broker_id[1:]) % 3 - 1) * 7_200 * S

    def skewed(name: str) -> object:
        def call(core: Skewed, *arguments: object) -> object:
            *others, now_ns = arguments
            assert isinstance(now_ns, int)
            return getattr(DiscoveryCore, name)(core, *others, now_ns + 8_000 * S + core.skew_ns)

        return call

    for name in ("register", "update", "discover", "receive", "link_up", "tick"):
        setattr(Skewed, name, skewed(name))

    def due(core: Skewed) -> int | None:
        found = DiscoveryCore.next_due_ns(core)
        return None if found is None else found - 8_000 * S - core.skew_ns

    Skewed.next_due_ns = due  # type: ignore[assignment, method-assign]
    for seed in range(40):
        plan = make_plan(seed)

        network = run(plan, seed, make_core=Skewed)

        for _, _, request in plan.requests:
            assert network.found(request.request_id) == expected(plan, request), f"seed {seed}"
            assert not network.finished[request.request_id].incomplete
        network.run_until(network.now_ns + 60 * S)
        assert not any(core.one_time.paths for core in network.cores.values())


def test_a_flood_of_messages_through_a_network_ends() -> None:
    network = Network([("A", "B"), ("B", "C"), ("A", "C")])  # a cycle that should not be
    network.register("A", "R", "[a,<=,9]", {"a": 5})
    network.settle()
    network.discover("C", "Q", "[a,>,1]")
    network.withdraw("A", "R")
    network.settle()

    assert "Q" in network.finished
    assert all(len(core.advertisements) == 0 for core in network.cores.values())

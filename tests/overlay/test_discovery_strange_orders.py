"""Messages of discovery in any order, clocks that differ, a cycle: nothing breaks or stays."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from overlay.discovery_messages import NOW, advertise, core_with_neighbours, discover, result
from overlay.discovery_runs import OPTIONS, expected, make_plan, run
from overlay.network import MS, Network, S
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.options import DiscoveryOptions
from tocsin.overlay.discovery.paths import new_path
from tocsin.overlay.discovery.requests import ModelType, Registration, parse_request
from tocsin.overlay.region import Region
from tocsin.wire.link.discovery_messages import (
    Bound,
    Cancel,
    Cover,
    CoverGone,
    DiscoveryMessage,
    Done,
    Result,
    Results,
    Unadvertise,
    Update,
    Window,
)


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

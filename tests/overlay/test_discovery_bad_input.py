"""Neighbours and clients that send what makes no sense: counted, bounded, and nothing breaks."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from overlay.discovery_messages import NOW, advertise, core_with_neighbours, discover, result
from overlay.discovery_runs import OPTIONS
from tocsin.errors import BadDiscovery, DiscoveryFull, NoSuchDiscovery, TocsinError
from tocsin.event.event import Value
from tocsin.event.value import Quantity
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Refused, Send
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
    Results,
    Unadvertise,
    Update,
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

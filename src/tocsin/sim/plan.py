"""Plan: everything that a seed decides beforehand. The rest is decided as it happens."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tocsin.broker.delivery.retry import RetryOptions
from tocsin.broker.options import BrokerOptions
from tocsin.sim.access_plan import (
    AccessPlan,
    Kind,
    add_neighbours,
    draw_access,
    draw_readers,
    has_access,
)
from tocsin.sim.faults.crashes import PlannedCrash, draw_crash
from tocsin.sim.network import Weather
from tocsin.sim.overlay_plan import OverlayPlan, draw_overlay, search

SECONDS_LONG = 10_000.0  # longer than any run
OVERLAY_SHARE = 1 / 8  # of all seeds, whose brokers are linked
SEARCH_SHARE = 1 / 2  # of those, in which much is discovered
SHARED_LOG_SHARE = 1 / 16  # of all seeds, whose brokers append to one log
OVERLAY_BROKERS = (2, 3, 3, 4)
PACES_MS = (5.0, 100.0, 400.0)  # of publishers there: links fail and return meanwhile


@dataclass(frozen=True, slots=True)
class SinkPlan:
    """How a sink behaves until it is calm: the chance of each answer that is not a plain yes."""

    trusted: bool
    poison: bool  # refuses some events for ever
    failing: float  # 500
    waiting: float  # 429, or 503 with Retry-After
    broken: float  # something answers that is not HTTP
    slow: float  # answers after the broker has stopped waiting
    leaving: float  # 410
    down_s: float  # at first nobody is there
    refusals: int  # how often it declines a handshake before it consents
    rate_per_minute: int | None


@dataclass(frozen=True, slots=True)
class PublisherPlan:
    requests: int
    events_max: int  # of one request
    in_flight_max: int  # requests in flight at a time; with one, order is promised
    pace_ms: float


@dataclass(frozen=True, slots=True)
class BrokerPlan:
    """One broker of a run, with its clients and sinks."""

    options: BrokerOptions
    disk_ms_max: float
    crashes: tuple[PlannedCrash, ...]
    sinks: tuple[SinkPlan, ...]
    publishers: tuple[PublisherPlan, ...]
    subscriptions: int
    boxes: int
    streams: int
    changes: int  # that the owners of subscriptions make
    state_changes: int  # how often services keep something, or let it go
    clock_set: float  # the chance that it shows another time after a restart
    damage: float  # the chance that a bit of a file is another at a start
    disk_full_at_ms: float | None
    sync_fails_at_ms: float | None
    box_backlog: int  # of SOAP message boxes
    box_retain_s: float
    redeliver_s: float
    soap_publishers: tuple[int, ...]  # how many messages each sends
    soap_subscribers: tuple[SinkPlan, ...]  # how their consumers behave
    soap_brokers: int  # other brokers that subscribe by SOAP, if there are any
    soap_boxes: int
    performance: tuple[int, ...]  # how many events each producer sends
    sockets: tuple[int, ...]  # how many events each publishes
    boards: tuple[int, ...]  # how many messages each client of the blackboard publishes
    access: AccessPlan | None = None  # None: everybody may do everything


@dataclass(frozen=True, slots=True)
class Plan:
    """One run."""

    weather: Weather
    brokers: tuple[BrokerPlan, ...]
    overlay: OverlayPlan | None = None
    shares_log: bool = False


def draw_plan(random: Random, seed: int) -> Plan:
    shape = Random(f"overlay {seed}")
    drawn = shape.random()
    if drawn < OVERLAY_SHARE:
        plan = draw_linked(random, shape, shape.choice(OVERLAY_BROKERS))
        asking = Random(f"searches {seed}")
        if plan.overlay is not None and asking.random() < SEARCH_SHARE:
            plan = replace(plan, overlay=search(plan.overlay, asking))
        return with_access(plan, seed) if has_access(seed, Kind.LINKED) else plan
    if drawn < OVERLAY_SHARE + SHARED_LOG_SHARE:
        plan = draw_shared(random)
        return with_access(plan, seed) if has_access(seed, Kind.SHARED) else plan
    brokers = random.choice((1, 1, 2, 3))
    plan = Plan(
        weather=_weather(random),
        brokers=tuple(_broker(random, share=1 / brokers) for _ in range(brokers)),
    )
    return with_access(plan, seed) if has_access(seed, Kind.APART) else plan


def with_access(plan: Plan, seed: int) -> Plan:
    """The same brokers, where everybody signs in. What that takes is drawn apart, so that all other
    worlds stay as they are."""
    random = Random(f"access plan {seed}")
    reading = Random(f"readers {seed}")
    access = [replace(draw_access(random), readers=draw_readers(reading)) for _ in plan.brokers]
    if plan.overlay is not None:
        hosts = [host_of(number) for number in range(len(access))]
        access = [
            add_neighbours(each, random, tuple(host for host in hosts if host != host_of(number)))
            for number, each in enumerate(access)
        ]
    brokers = zip(plan.brokers, access, strict=True)
    return replace(plan, brokers=tuple(replace(each, access=of) for each, of in brokers))


def host_of(number: int) -> str:
    """Of a broker."""
    return f"broker-{number}.example"


def draw_linked(random: Random, shape: Random, brokers: int) -> Plan:
    """Brokers that are linked, with fewer clients each. They do not push into each other: an event
    that comes under another id on that way would go round."""
    plans = tuple(_linked(random, _broker(random, share=1 / (2 * brokers))) for _ in range(brokers))
    return Plan(_weather(random), plans, draw_overlay(shape, brokers))


def draw_shared(random: Random) -> Plan:
    """Two brokers on one log in memory. Nothing is trimmed: that is for all of them to agree on.
    They do not push into each other, where every event would be a repeat."""
    first, second = (_sharing(_broker(random, share=1 / 2)) for _ in range(2))
    window = first.options.duplicates_window
    second = replace(second, options=replace(second.options, duplicates_window=window))
    return Plan(_weather(random), (first, second), shares_log=True)


def _sharing(plan: BrokerPlan) -> BrokerPlan:
    return replace(
        plan,
        options=replace(plan.options, retain_age_s=None, retain_bytes=None),
        damage=0.0,
        disk_full_at_ms=None,
        sync_fails_at_ms=None,
        soap_boxes=0,
    )


def _linked(random: Random, plan: BrokerPlan) -> BrokerPlan:
    """With no limit by which a broker may refuse or drop what another one is promised."""
    options = replace(
        plan.options, duplicates_window=100_000, backlog_age_s=SECONDS_LONG, kept_max=100_000
    )
    publishers = tuple(
        replace(
            each, requests=each.requests + random.randint(0, 6), pace_ms=random.choice(PACES_MS)
        )
        for each in plan.publishers
    )
    return replace(
        plan,
        options=options,
        publishers=publishers,
        soap_brokers=0,
        soap_boxes=0,
        performance=(),
        boards=(),
    )


def _weather(random: Random) -> Weather:
    return Weather(
        loss=random.choice((0.0, 0.02, 0.1, 0.25)),
        duplication=random.choice((0.0, 0.05, 0.2)),
        delay_ms_max=random.choice((1.0, 5.0, 40.0)),
    )


def _broker(random: Random, share: float) -> BrokerPlan:
    """`share`: how much of the work of a run is this broker's."""

    def part(most: int) -> int:
        return max(1, round(most * share))

    return BrokerPlan(
        options=_options(random),
        disk_ms_max=random.choice((0.5, 4.0, 15.0)),
        crashes=tuple(draw_crash(random) for _ in range(random.choice((0, 1, 1, 2, 2, 3)))),
        sinks=tuple(_sink(random) for _ in range(random.randint(part(2), part(4)))),
        publishers=tuple(_publisher(random, share) for _ in range(random.randint(1, part(3)))),
        subscriptions=random.randint(part(2), part(5)),
        boxes=random.randint(0, part(2)),
        streams=random.randint(0, part(2)),
        changes=random.choice((0, part(2), part(4), part(8), part(12))),
        state_changes=random.choice((0, part(6), part(20))),
        clock_set=random.choice((0.0, 0.0, 0.5)),
        damage=random.choice((0.0, 0.5)),
        disk_full_at_ms=random.uniform(0, 150) if random.random() < 0.35 else None,
        sync_fails_at_ms=random.uniform(20, 200) if random.random() < 0.35 else None,
        box_backlog=random.choice((3, 10_000, 10_000)),
        box_retain_s=random.choice((0.2, 60.0)),
        redeliver_s=random.choice((0.1, 0.5)),
        soap_publishers=tuple(random.randint(2, 6) for _ in range(random.randint(0, part(2)))),
        soap_subscribers=tuple(_sink(random) for _ in range(random.randint(0, part(2)))),
        soap_brokers=random.choice((0, 1)),
        soap_boxes=random.choice((0, 0, 1)),
        performance=tuple(random.randint(2, 5) for _ in range(random.choice((0, 0, 1)))),
        sockets=tuple(random.randint(1, 5) for _ in range(random.randint(0, part(2)))),
        boards=tuple(random.randint(1, 4) for _ in range(random.choice((0, 0, 1)))),
    )


def _publisher(random: Random, share: float) -> PublisherPlan:
    return PublisherPlan(
        requests=max(4, round(random.randint(5, 16) * share)),
        events_max=random.choice((1, 1, 4)),
        in_flight_max=random.choice((1, 1, 3)),
        pace_ms=random.choice((0.5, 5.0, 30.0)),
    )


def _sink(random: Random) -> SinkPlan:
    def sometimes(chance: float, highest: float) -> float:
        return random.uniform(0, highest) if random.random() < chance else 0.0

    return SinkPlan(
        trusted=random.random() < 0.6,
        poison=random.random() < 0.3,
        failing=sometimes(0.4, 0.5),
        waiting=sometimes(0.3, 0.4),
        broken=sometimes(0.2, 0.2),
        slow=sometimes(0.3, 0.2),
        leaving=sometimes(0.25, 0.15),
        down_s=sometimes(0.3, 4.0),
        refusals=random.choice((0, 0, 1, 3)),
        rate_per_minute=random.choice((None, None, 1_200)),
    )


def _options(random: Random) -> BrokerOptions:
    """Limits so small that a short run reaches them."""
    keeps_little = random.random() < 0.3
    return BrokerOptions(
        batch_events_max=random.choice((1, 3, 4096)),
        intake_events_max=random.choice((4, 50_000)),
        duplicates_window=random.choice((6, 20, 100_000)),
        dead_letters_max=random.choice((2, 100_000)),
        kept_max=random.choice((2, 100_000)),
        save_cursors_s=random.choice((0.005, 0.1)),
        retention_check_s=0.1 if keeps_little else 5.0,
        retain_age_s=random.choice((0.05, 0.4, None)) if keeps_little else None,
        retain_bytes=random.choice((0, 3_000, None)) if keeps_little else None,
        backlog_age_s=0.3 if random.random() < 0.1 else SECONDS_LONG,
        pull_wait_s_max=2.0,
        read_page_events=random.choice((1, 3, 1024)),
        window_events=random.choice((1, 2, 5, 1024)),
        handshake_delay_s_max=2.0,
        retry=RetryOptions(
            attempts=random.choice((2, 4, 10)),
            first_delay_s=random.choice((0.01, 0.1)),
            delay_s_max=1.0,
            retry_after_s_max=2.0,
            timeout_s=random.choice((0.1, 0.5)),
            unreachable_s_max=random.choice((1.5, SECONDS_LONG)),
        ),
    )

"""How large, how long and how patient a broker is. Every limit has its reason beside it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tocsin.broker.delivery.follower import WINDOW_EVENTS
from tocsin.broker.delivery.retry import RetryOptions

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """Set once, at the start, from the settings."""

    batch_events_max: int = 512  # of one commit: some 3 ms, so that nobody waits long for it
    batch_bytes_max: int = 8 << 20
    intake_events_max: int = 50_000  # waiting for a commit; past it publishers are asked to wait
    intake_bytes_max: int = 64 << 20
    duplicates_window: int = 100_000  # recent events whose source and id are remembered
    subscriptions_max: int = 1_000_000
    streams_max: int = 10_000
    pulls_per_box_max: int = 64
    dead_letters_max: int = 100_000  # at the limit the subscription pauses: nothing is lost
    kept_max: int = 100_000  # what one service beside the broker keeps in its log: entries,
    kept_bytes_max: int = 64 << 20  # and their bytes, which are in memory too
    save_cursors_s: float = 0.1  # after a crash, at most so much is delivered again
    retention_check_s: float = 10.0
    retain_age_s: float | None = 7 * DAY_S
    retain_bytes: int | None = 10 << 30
    backlog_age_s: float = 7 * DAY_S  # how long a subscription may hold the log back
    clock_jump_s: float = DAY_S  # past it a clock that jumped ends no lease until it is accepted
    pull_wait_s_max: float = 60.0
    read_page_events: int = 1024
    window_events: int = WINDOW_EVENTS  # waiting in memory per subscriber; the rest is in the log
    missing_after_s: float = 30.0  # a blackboard subscriber that cannot be reached is off the list
    handshake_delay_s_max: float = 3600.0
    retry: RetryOptions = field(default_factory=RetryOptions)

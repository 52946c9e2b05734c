"""When to try again: doubling, capped, jittered; sooner never, later if the sink asks."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.event.instant import NS_PER_S


@dataclass(frozen=True, slots=True)
class RetryOptions:
    """How patient delivery is. Ten answered refusals take about thirteen minutes."""

    attempts: int = 10
    first_delay_s: float = 1.0
    delay_s_max: float = 300.0
    retry_after_s_max: float = 3600.0  # a sink may ask for patience, not for oblivion
    timeout_s: float = 30.0
    unreachable_s_max: float = (
        3 * 86_400.0
    )  # then the subscription is paused, with its backlog kept


def retry_at_ns(
    options: RetryOptions, failures: int, now_ns: int, jitter: float, asked_s: float | None = None
) -> int:
    """The moment of the next attempt after `failures` in a row (at least one)."""
    assert failures >= 1
    assert 0 <= jitter < 1
    # 2**failures overflows a float long before a sink has been away for a day.
    doubled_s = options.first_delay_s * 2.0 ** min(failures - 1, 32)
    delay_s = min(doubled_s, options.delay_s_max) * (1 + jitter) / 2
    if asked_s is not None:
        delay_s = max(delay_s, min(asked_s, options.retry_after_s_max))
    return now_ns + int(delay_s * NS_PER_S)

"""What a peer does again and again is logged, more and more rarely, and nobody fills the log."""

from __future__ import annotations

from typing import Any

from services.test_limited_log import Runtime
from tocsin.services.repeated_log import AGAIN_S, REASONS_MAX, RepeatedLog


def written() -> tuple[Any, RepeatedLog]:
    runtime: Any = Runtime()
    return runtime, RepeatedLog(runtime)


def times(runtime: Any) -> list[object]:
    return [fields.get("times", 1) for _, fields in runtime.lines]


def test_of_each_reason_the_first_second_fourth_and_so_on_has_a_line_with_the_count() -> None:
    runtime, log = written()

    for number in range(100):
        log.warn("bad", peer=f"host:{number}")
    log.warn("bad", peer="another:1")
    log.warn("worse", peer="host:1")

    assert times(runtime) == [1, 2, 4, 8, 16, 32, 64, 1, 1]


def test_while_it_goes_on_there_is_a_line_every_ten_minutes() -> None:
    runtime, log = written()

    for second in range(0, 86_400, 2):
        runtime.now_s = float(second)
        log.warn("bad", peer="host:1")

    assert abs(len(runtime.lines) - 86_400 / AGAIN_S) <= 16
    assert times(runtime)[-1] > 42_000


def test_after_ten_quiet_minutes_it_is_counted_from_one_again() -> None:
    runtime, log = written()
    for _ in range(3):
        log.warn("bad", peer="host:1")

    runtime.now_s = AGAIN_S
    log.warn("bad", peer="host:1")

    assert times(runtime) == [1, 2, 1]


def test_who_comes_from_very_many_hosts_is_counted_together_past_a_limit() -> None:
    runtime, log = written()

    for number in range(REASONS_MAX + 1_000):
        log.warn("bad", peer=f"host{number}:1")
    assert len(runtime.lines) == REASONS_MAX + 10

    runtime.now_s = AGAIN_S
    log.warn("bad", peer="one-more:1")
    assert times(runtime)[-1] == 1, "the others were quiet for as long, and are forgotten"

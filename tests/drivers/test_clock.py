"""Leases and retries go by the time that really passes, whatever is done to the wall clock."""

from __future__ import annotations

import time

import pytest

from tocsin.drivers.clock import SteadyClock


@pytest.mark.parametrize("jump_s", [3600, -3600, 86_400 * 365])
def test_setting_the_wall_clock_moves_nothing_and_is_noticed(
    monkeypatch: pytest.MonkeyPatch, jump_s: int
) -> None:
    clock = SteadyClock()
    before_ns = clock.now_ns()
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + jump_s * 1_000_000_000)

    after_ns = clock.now_ns()

    assert 0 <= after_ns - before_ns < 1_000_000_000
    assert (time.time_ns() - clock.now_ns()) / 1e9 == pytest.approx(jump_s, abs=1)

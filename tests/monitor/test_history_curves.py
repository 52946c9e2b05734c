"""A history from the tables and from what came since, put together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tocsin.monitor.history.curves import added, curve_of, curve_of_row, distribution_of_row
from tocsin.monitor.history.tables import Bin, StatsRow

SECONDS = st.floats(0.0, 1e6, allow_nan=False)


def row_of(durations_s: list[float]) -> StatsRow:
    """What the pipeline would tell of these."""
    values = np.asarray(durations_s)
    numbers = np.quantile(values, (0.0, 0.1, 0.5, 0.9, 0.99, 1.0)).tolist()
    names = ("min_s", "p10_s", "p50_s", "p90_s", "p99_s", "max_s")
    if numbers[-1] - numbers[0] > 1e-6:
        counts, edges = np.histogram(values, bins=20)
    else:  # the pipeline makes one bin of what is the same, and numpy bins that are too wide
        counts, edges = np.array([len(values)]), np.array([numbers[0], numbers[-1]])
    bins = tuple(
        Bin(low, high, count)
        for low, high, count in zip(
            edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True
        )
    )
    return StatsRow(
        "w",
        "a",
        "",
        count=len(values),
        mean_s=float(values.mean()),
        bins=lambda: bins,
        **dict(zip(names, numbers, strict=True)),
    )


def test_one_row_alone_is_shown_as_it_is() -> None:
    row = row_of([1.0, 2.0, 3.0, 10.0])

    whole = distribution_of_row(row)

    assert (whole.mean_s, whole.p50_s, whole.is_exact) == (4.0, 2.5, True)
    assert (len(whole.histogram.edges), sum(whole.histogram.counts)) == (21, 4)


@pytest.mark.parametrize("seed", range(3))
def test_quantiles_of_parts_are_close_to_those_of_all(seed: int) -> None:
    dice = np.random.default_rng(seed)
    parts = [dice.lognormal(mean, 0.5, 3_000).tolist() for mean in (1.0, 2.0)]
    since = dice.lognormal(1.5, 0.5, 500).tolist()
    together = [*parts[0], *parts[1], *since]

    curves = [curve_of_row(row_of(each)) for each in parts]
    whole = added([each for each in (*curves, curve_of(since)) if each is not None])

    assert whole.mean_s == pytest.approx(np.mean(together))
    true = np.quantile(together, (0.5, 0.9, 0.99))
    assert [whole.p50_s, whole.p90_s, whole.p99_s] == pytest.approx(true.tolist(), rel=0.05)
    assert not whole.is_exact


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(SECONDS, min_size=1, max_size=9), min_size=1, max_size=4))
@example([[0.0, 2.225073858507203e-309]])
@example([[1.0], [0.0, 2.225073858507203e-309]])
@example([[1.0], [1.0, 1.0000000000000002]])
def test_no_duration_is_lost_and_quantiles_are_in_order(parts: list[list[float]]) -> None:
    curves = [curve_of_row(row_of(each)) for each in parts[1:]] + [curve_of(parts[0])]

    whole = added([each for each in curves if each is not None])

    assert sum(whole.histogram.counts) == sum(map(len, parts))
    assert len(whole.histogram.edges) == len(whole.histogram.counts) + 1
    assert whole.p50_s is not None
    assert whole.p90_s is not None
    assert whole.p99_s is not None
    assert whole.p50_s <= whole.p90_s <= whole.p99_s <= max(map(max, parts)) + 1e-6

"""The kernels agree with each other, and the table keeps every row where the kernels look."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.matching.kernel import Kernel, numba_kernel, numpy_kernel
from tocsin.matching.row_table import RowTable, Term, table_width

ATTRIBUTES = 6
CLUSTERS = 4
ROWS = 40

terms = st.tuples(
    st.integers(1, ATTRIBUTES - 1), st.integers(-3, 3).map(float), st.integers(-3, 3).map(float)
)
rows = st.lists(terms, min_size=1, max_size=4)
answers = st.lists(st.sampled_from([float("nan"), -2.0, 0.0, 2.0]), min_size=5, max_size=5)


def compiled() -> Kernel:
    kernel = numba_kernel()
    if kernel is None:
        pytest.skip("numba is not installed")
    return kernel


def holds(row: list[Term], seen: list[float]) -> bool:
    return all(lo <= seen[attribute] <= hi for attribute, lo, hi in row)


@pytest.mark.parametrize("kernel_name", ["numpy", "numba"])
@given(
    stored=st.lists(st.tuples(st.integers(0, CLUSTERS - 1), rows), max_size=ROWS),
    asked=st.sets(st.integers(0, CLUSTERS - 1)),
    values=answers,
    data=st.data(),
)
@settings(deadline=None)
def test_a_kernel_finds_the_rows_that_hold_in_the_clusters_asked(
    kernel_name: str,
    stored: list[tuple[int, list[Term]]],
    asked: set[int],
    values: list[float],
    data: st.DataObject,
) -> None:
    kernel = numpy_kernel if kernel_name == "numpy" else compiled()
    table = RowTable(4, array("q", bytes(8 * ROWS)))
    table.make_room(CLUSTERS)
    kept = dict(enumerate(stored))
    for row, (cluster, its_terms) in kept.items():
        table.put(row, cluster, its_terms)
    for row in data.draw(st.sets(st.sampled_from(range(len(stored))))) if stored else ():
        table.take(row, kept.pop(row)[0])
    seen = [0.0, *values]
    found = np.zeros(ROWS + 1, np.int64)
    found[0] = -7

    count = kernel(
        np.array(sorted(asked), np.int64),
        table.start,
        table.count,
        table.at,
        table.lo,
        table.hi,
        table.row,
        np.array(seen),
        found,
        1,
    )

    wanted = [row for row, (cluster, its) in kept.items() if cluster in asked and holds(its, seen)]
    assert sorted(found[1:count].tolist()) == wanted
    assert found[0] == -7


def test_a_row_stands_on_the_narrowest_shelf_that_takes_it() -> None:
    assert [table_width(count) for count in (1, 2, 3, 4, 5, 8, 9, 200)] == [
        2,
        2,
        4,
        4,
        8,
        8,
        16,
        256,
    ]


def test_room_that_a_cluster_leaves_is_used_by_the_next() -> None:
    table = RowTable(2, array("q", bytes(8 * 100)))
    table.make_room(2)
    row: list[Term] = [(1, 0.0, 1.0)]
    for _ in range(50):
        for number in range(100):
            table.put(number, number % 2, row)
        for number in range(100):
            table.take(number, number % 2)

    assert len(table.row) < 500

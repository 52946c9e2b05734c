"""The similarity of a set of requests (paper 001, section 5.1)."""

from __future__ import annotations

from math import isclose, sqrt

from tocsin.overlay.discovery.similarity import block_sizes, similarity
from tocsin.overlay.region import Region
from tocsin.overlay.region_text import parse_region


def block(name: str, size: int) -> list[Region]:
    """Requests of which each covers the next."""
    return [parse_region(f"[{name},>,{number}]") for number in range(size)]


def test_the_example_of_figure_5() -> None:
    requests = [
        region
        for number, size in enumerate([4, 5, 4, 3, 4, 7, 1, 1, 1])
        for region in block(f"a{number}", size)
    ]

    assert len(requests) == 30
    assert block_sizes(requests) == [3, 4, 4, 4, 5, 7]
    assert round(similarity(requests), 2) == 0.38


def test_it_is_0_without_covering_and_1_if_all_are_connected() -> None:
    assert similarity([]) == 0
    assert similarity([parse_region(f"[a,=,{number}]") for number in range(5)]) == 0
    assert similarity(block("a", 9)) == 1
    assert isclose(similarity(block("a", 4) + block("b", 4)), 1 / sqrt(2))


def test_two_requests_that_cover_a_third_are_in_one_block() -> None:
    requests = [parse_region(text) for text in ("[a,>,1]", "[b,>,1]", "[a,>,2],[b,>,2]")]

    assert block_sizes(requests) == [3]

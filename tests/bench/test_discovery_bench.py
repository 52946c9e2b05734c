"""The benchmark of discovery: brokers, a scan and ClassAds find the same resources."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from tocsin.overlay.region import RegionTable
from tocsin.overlay.region_index import RegionIndex

BENCH = Path(__file__).parents[2] / "bench"
SIZE = 300  # so that there are more than 20 of each system


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("discovery_load")


@pytest.mark.parametrize("kind", ["few", "share"])
def test_the_index_the_scan_and_class_ads_find_the_same(load: ModuleType, kind: str) -> None:
    pytest.importorskip("classad2", reason="htcondor is not installed")
    ads = importlib.import_module("discovery_ads")
    resources = load.draw_resources(SIZE)
    requests = load.REQUESTS[kind](resources, 5)
    machines = [ads.machine_ad(each) for each in resources]

    index = list(load.found_by(load.filled(resources, RegionIndex), requests))
    scan = list(load.found_by(load.filled(resources, RegionTable), requests))

    assert any(index)
    assert index == scan
    for request, found in zip(requests, index, strict=True):
        wanted, ad = ads.constraint(request), ads.request_ad(request)
        by_constraint = [n for n, each in enumerate(machines) if wanted.eval(each) is True]
        by_match = [n for n, each in enumerate(machines) if each.symmetricMatch(ad)]
        assert list(map(int, found)) == by_constraint == by_match
    for count in ads.ways_of(requests, machines).values():
        assert count() == [len(each) for each in index]


def test_few_finds_as_many_however_many_there_are(load: ModuleType) -> None:
    for size in (SIZE, 10 * SIZE):
        resources = load.draw_resources(size)
        core = load.filled(resources, RegionIndex)

        assert set(load.counts_of(core, load.selective_requests(resources, 10))) == {load.RESULTS}

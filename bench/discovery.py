"""Resource discovery at one broker and between 24: requests a second, covers, messages saved.

    python bench/discovery.py [--quick] [--json FILE]

1. Static requests at one broker with so many resources, by the index and by a scan, and the same
   resources and requests as ClassAds (`htcondor`; left out if it is not installed). `few`: 20
   resources match, however many there are. `share`: one in a hundred matches, no condition of which
   alone is met by fewer than one in ten. All must find the same.
2. The first request that covers another, among requests of which none covers another.
3. The time of a request in the simulated network of 24 brokers and at one central broker, over how
   many resources it finds: virtual time with this broker's own costs, 10 requests a second.
4. Messages that similarity forwarding saves at each similarity, in the same network.

1 and 2 are processor time; each round measures every way once, and medians are shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import discovery_ads
import report
from discovery_load import REQUESTS, SEED, counts_of, cpu_s_of, draw_resources, filled, medians
from discovery_network import beside_the_paper, messages_saved, times_over_matches
from tocsin.overlay.region import Region, RegionTable
from tocsin.overlay.region_index import RegionIndex

SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
ROUNDS = 3
SECONDS = 0.5  # of each measurement, or one pass if that takes longer
PAIRS = 100_000  # of resources and requests in a pass
REQUESTS_MIN = 3
REQUESTS_MAX = 100
TARGET = 1_000  # times as many pairs a second as ClassAds
MATCHES = ("match, request first", "match, machine first")


def static_requests(sizes: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """What each way takes for the same requests of the same resources."""
    rows = []
    for size in sizes:
        resources = draw_resources(size)
        index, scan = filled(resources, RegionIndex), filled(resources, RegionTable)
        machines = (
            [discovery_ads.machine_ad(each) for each in resources] if discovery_ads.classad2 else []
        )
        for kind, draw in REQUESTS.items():
            requests = draw(resources, min(REQUESTS_MAX, max(REQUESTS_MIN, PAIRS // size)))
            ways: dict[str, Callable[[], list[int]]] = {
                "index": lambda core=index, asked=requests: counts_of(core, asked),
                "scan": lambda core=scan, asked=requests: counts_of(core, asked),
            }
            if machines:
                ways |= discovery_ads.ways_of(requests, machines)
            rows.append({"resources": size, "requests": kind} | _measured(ways, rounds, size))
    return rows


def _measured(ways: dict[str, Callable[[], list[int]]], rounds: int, size: int) -> dict[str, Any]:
    found = {name: count() for name, count in ways.items()}  # and warm
    for name, counts in found.items():
        assert counts == found["index"], f"{name} finds {counts}, the index {found['index']}"
    asked = len(found["index"])
    taken_s = medians(
        {name: lambda work=work: cpu_s_of(work, SECONDS) for name, work in ways.items()}, rounds
    )
    return {
        "results": sum(found["index"]) / asked,
        "asked": asked,
        "us": {name: 1e6 * each / asked for name, each in taken_s.items()},
        "pairs_per_s": {name: size * asked / each for name, each in taken_s.items()},
    }


def over_class_ads(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times as many pairs the index does, for each size and kind of request."""
    found = []
    for row in rows:
        rates = row["pairs_per_s"]
        if "constraint" not in rates:
            continue
        quicker = max(rates[name] for name in MATCHES)
        found.append(
            {
                "resources": row["resources"],
                "requests": row["requests"],
                "over_match": rates["index"] / quicker,
                "over_match_request_first": rates["index"] / rates[MATCHES[0]],
                "over_constraint": rates["index"] / rates["constraint"],
            }
        )
    return found


def request(dice: Random) -> Region:
    """Three or four ranges out of 20 attributes, one of them perhaps without an end.

    With fewer, or wider ones, nearly all that is drawn is covered once 10,000 are kept.
    """
    bounds: dict[tuple[str, str], tuple[float, float]] = {}
    for number in dice.sample(range(20), dice.randint(3, 4)):
        low = dice.uniform(0, 100)
        is_open = not bounds and dice.random() < 0.5
        bounds[f"n{number}", "n"] = (low, inf if is_open else low + dice.uniform(1, 20))
    return Region(bounds)


def narrowed(dice: Random, region: Region) -> Region:
    bounds = dict(region.bounds)
    key = dice.choice(sorted(bounds))
    low, high = bounds[key]
    assert not isinstance(low, str)
    bounds[key] = (low + 0.5 * min(1.0, high - low), high)
    return Region(bounds)


def first_covers(sizes: Sequence[int], rounds: int) -> list[dict[str, Any]]:
    """Half of what is looked up is a narrowed copy of a request that is kept."""
    dice = Random(SEED + 3)
    index: RegionIndex[int] = RegionIndex()
    table: RegionTable[int] = RegionTable()
    kept: list[Region] = []
    rows = []
    for size in sizes:
        while len(kept) < size:
            region = request(dice)
            if next(index.covering(region), None) is None:
                index.add(len(kept), region)
                table.add(len(kept), region)
                kept.append(region)
        asked = [
            narrowed(dice, dice.choice(kept)) if number % 2 else request(dice)
            for number in range(max(50, 1_000_000 // size))
        ]
        covers = [next(index.covering(each), None) for each in asked]
        assert covers == [next(table.covering(each), None) for each in asked]
        taken_s = medians(
            {
                name: lambda kept=kept, asked=asked: cpu_s_of(
                    lambda: [next(kept.covering(each), None) for each in asked], SECONDS
                )
                for name, kept in (("index", index), ("scan", table))
            },
            rounds,
        )
        rows.append(
            {
                "requests": size,
                "index_us": 1e6 * taken_s["index"] / len(asked),
                "scan_us": 1e6 * taken_s["scan"] / len(asked),
                "covered": sum(each is not None for each in covers) / len(covers),
                "scan_over_index": taken_s["scan"] / taken_s["index"],
            }
        )
    return rows


def print_static(static: Sequence[dict[str, Any]], ratios: Sequence[dict[str, Any]]) -> None:
    ways = list(static[0]["us"])
    print("Static requests at one broker, microseconds of the processor for one:\n")
    report.table(
        ["resources", "requests", "results", *ways],
        [
            [row["resources"], row["requests"], row["results"], *(row["us"][way] for way in ways)]
            for row in static
        ],
    )
    print("\nMillions of resources times requests a second:\n")
    report.table(
        ["resources", "requests", *ways],
        [
            [row["resources"], row["requests"], *(row["pairs_per_s"][way] / 1e6 for way in ways)]
            for row in static
        ],
    )
    if not ratios:
        print("\nNo ClassAds beside it: htcondor is not installed.")
        return
    print(f"\nThe index over ClassAds (over the quicker match; target: {TARGET:,}):\n")
    report.table(list(ratios[0]), [list(row.values()) for row in ratios])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sizes = QUICK_SIZES if arguments.quick else SIZES
    rounds = 1 if arguments.quick else ROUNDS

    static = static_requests(sizes, rounds)
    ratios = over_class_ads(static)
    print_static(static, ratios)
    covers = first_covers(sizes, rounds)
    print("\nThe first request that covers another, microseconds of the processor:\n")
    report.table(list(covers[0]), [list(row.values()) for row in covers])
    saved = messages_saved((10, 50, 100) if arguments.quick else range(10, 101, 10))
    trend = beside_the_paper(saved)
    print("\nMessages of 200 requests, and the share that similarity forwarding saves:\n")
    report.table(list(saved[0]), [list(row.values()) for row in saved])
    print()
    report.table(list(trend[0]), [list(row.values()) for row in trend])
    times = times_over_matches((1, 30, 300) if arguments.quick else (1, 10, 30, 100, 300))
    print("\nTime of a request over how many resources it finds, virtual ms:\n")
    report.table(list(times[0]), [list(row.values()) for row in times])
    if arguments.json:
        results = {"static": static, "over_class_ads": ratios, "covers": covers}
        results |= {"saved": saved, "beside_the_paper": trend, "times": times}
        report.write("discovery", results, arguments.json)


if __name__ == "__main__":
    main()

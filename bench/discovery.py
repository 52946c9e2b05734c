"""Resource discovery at one broker and between 24: requests a second, covers, messages saved.

    python bench/discovery.py [--quick] [--json FILE]

1. Static requests at one broker with so many resources, by the index and by a scan. `few`: about 20
   resources match, however many there are. `share`: one in a hundred matches, no condition of which
   alone is met by fewer than one in ten.
2. The first request that covers another, among requests of which none covers another.
3. The time of a request in the simulated network of 24 brokers and at one central broker, over how
   many resources it finds: virtual time with this broker's own costs, 10 requests a second.
4. Messages that similarity forwarding saves at each similarity, in the same network.
5. What the routing core takes at a broker without neighbours.
6. The same resources and requests as ClassAds, matched one by one as HTCondor's negotiator does
   (`pip install htcondor`; left out if it is not installed).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import report
from tocsin.event.filter_text import parse_filter
from tocsin.overlay.discovery.core import DiscoveryCore
from tocsin.overlay.discovery.effects import Answered
from tocsin.overlay.discovery.requests import ModelType, Registration, Request
from tocsin.overlay.region import Region, Regions, RegionTable
from tocsin.overlay.region_index import RegionIndex
from tocsin.overlay.routing.links import Identity
from tocsin.overlay.routing.router import Router
from tocsin.sim.discovery.experiment import NORMAL, SIMILARITY, Setting
from tocsin.sim.discovery.figures import FULL, QUICK, Experiments
from tocsin.sim.discovery.network import MEASURED
from tocsin.sim.discovery.workload import draw_pools

SEED = 20_090_706
SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
SECONDS = 2.0
QUICK_SECONDS = 0.5
RESULTS = 20
SYSTEMS = ("Linux", "Solaris", "AIX", "Darwin", "FreeBSD")
PAIRS = 20_000  # of ads, matched for the rate
TARGET = 1_000  # times as many pairs as ClassAds

Draw = Callable[[Random, int], Region]


def resource(dice: Random) -> Region:
    """A machine as the paper describes one: what it is, and the most that it can give."""
    return Region(
        {
            ("system", "s"): dice.choice(SYSTEMS),
            ("cores", "n"): (-inf, float(dice.randint(1, 128))),
            ("memory", "n"): (-inf, dice.uniform(1, 1_000)),
            ("disk", "n"): (-inf, dice.uniform(1, 10_000)),
        }
    )


def few(dice: Random, size: int) -> Region:
    """About 20 of all resources: a fifth have the system, and of those the largest disks do."""
    share = min(1.0, len(SYSTEMS) * RESULTS / size)
    least = 10_000 * (1 - share) * dice.uniform(0.98, 1.0)
    return Region({("system", "s"): dice.choice(SYSTEMS), ("disk", "n"): (least, inf)})


def share(dice: Random, size: int) -> Region:
    """One in a hundred: a tenth has the memory, a tenth the disk."""
    memory, disk = 900 * dice.uniform(0.99, 1.01), 9_000 * dice.uniform(0.99, 1.01)
    return Region({("memory", "n"): (memory, inf), ("disk", "n"): (disk, inf)})


REQUESTS: dict[str, Draw] = {"few": few, "share": share}


def filled(size: int, regions: Callable[[], Regions[Any]]) -> DiscoveryCore:
    dice = Random(SEED)
    core = DiscoveryCore("bench", regions=regions)
    for number in range(size):
        core.register(Registration(f"r{number}", ModelType.STATIC, resource(dice)), 0)
    return core


def asked(core: DiscoveryCore, draw: Draw, size: int, seconds: float) -> tuple[float, float]:
    """Requests a second, and results of each."""
    dice = Random(SEED + 1)
    regions = [draw(dice, size) for _ in range(200)]
    found = 0
    for _ in discovered(core, regions[:3], "warm"):
        pass
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        found += sum(discovered(core, [regions[count % len(regions)]], str(count)))
        count += 1
    return count / (time.perf_counter() - begin), found / count


def discovered(core: DiscoveryCore, regions: Sequence[Region], name: str) -> Iterator[int]:
    for number, region in enumerate(regions):
        effects = core.discover(Request(f"{name}-{number}", ModelType.STATIC, region), 0)
        yield sum(len(each.results) for each in effects if isinstance(each, Answered))


def static_requests(sizes: Sequence[int], seconds: float) -> list[dict[str, Any]]:
    rows = []
    for size in sizes:
        for name, regions in (("index", RegionIndex), ("scan", RegionTable)):
            core = filled(size, regions)
            for kind, draw in REQUESTS.items():
                rate, results = asked(core, draw, size, seconds)
                rows.append(
                    {
                        "resources": size,
                        "requests": kind,
                        "by": name,
                        "per_s": rate,
                        "results": results,
                        "pairs_per_s": rate * size,
                    }
                )
    return rows


def request(dice: Random) -> Region:
    """Two to four ranges out of 20 attributes."""
    bounds: dict[tuple[str, str], tuple[float, float]] = {}
    for number in dice.sample(range(20), dice.randint(2, 4)):
        low = dice.uniform(0, 100)
        high = dice.choice((inf, low + dice.uniform(1, 40)))
        bounds[f"n{number}", "n"] = (low, high)
    return Region(bounds)


def narrowed(dice: Random, region: Region) -> Region:
    bounds = dict(region.bounds)
    key = dice.choice(sorted(bounds))
    low, high = bounds[key]
    assert not isinstance(low, str)
    bounds[key] = (low + 0.5 * min(1.0, high - low), high)
    return Region(bounds)


def first_covers(sizes: Sequence[int], seconds: float) -> list[dict[str, Any]]:
    """Half of what is looked up is a narrowed copy of a request that is kept."""
    dice = Random(SEED + 2)
    index: RegionIndex[int] = RegionIndex()
    table: RegionTable[int] = RegionTable()
    kept: list[Region] = []
    rows = []
    for size in sizes:
        while len(kept) < size:
            region = request(dice)
            if index.first_cover(region) is None:
                index.add(len(kept), region)
                table.add(len(kept), region)
                kept.append(region)
        queries = [
            narrowed(dice, dice.choice(kept)) if number % 2 else request(dice)
            for number in range(500)
        ]
        row: dict[str, Any] = {"requests": size}
        answers: dict[str, list[int | None]] = {}
        for name, regions in (("index", index), ("scan", table)):
            count, begin = 0, time.perf_counter()
            answers[name] = []
            while count < len(queries) and time.perf_counter() - begin < 4 * seconds:
                answers[name].append(regions.first_cover(queries[count]))
                count += 1
            row[f"{name}_us"] = 1e6 * (time.perf_counter() - begin) / count
        shorter = min(map(len, answers.values()))
        assert answers["index"][:shorter] == answers["scan"][:shorter]
        row["covered"] = sum(each is not None for each in answers["index"]) / len(answers["index"])
        row["scan_over_index"] = row["scan_us"] / row["index_us"]
        rows.append(row)
    return rows


def times_over_matches(matches: Sequence[int]) -> list[dict[str, Any]]:
    """p50 and p99 in ms of 200 requests that find so many resources."""
    experiments = Experiments(draw_pools(Random(1), requests=QUICK.requests), FULL, 1, None)
    ways = (("Normal", NORMAL, "path"), ("Similarity", SIMILARITY, "path"))
    rows = []
    for count in matches:
        row: dict[str, Any] = {"found": count}
        for name, algorithm, topology in (*ways, ("central", NORMAL, "central")):
            setting = Setting(
                "bench", algorithm, costs=MEASURED.name, topology=topology, matches=count
            )
            records = experiments.run(setting).records
            times = sorted((each["finished_ns"] - each["issued_ns"]) / 1e6 for each in records)
            row[f"{name}_p50_ms"] = times[len(times) // 2]
            row[f"{name}_p99_ms"] = times[len(times) * 99 // 100]
        rows.append(row)
    return rows


def without_neighbours() -> dict[str, float]:
    """What the routing core of a broker without neighbours takes.

    There is no link, so no event meets the filter of one: what is left is the tick, once a second,
    and the table of its own subscriptions.
    """
    router = Router(Identity("alone", "log", 1, "tocsin/bench"))
    wanted = parse_filter("load > 5")
    begin = time.perf_counter()
    for number in range(1_000):
        router.local_subscribe(f"s{number}", wanted, 0)
    subscribed_s = time.perf_counter() - begin
    begin = time.perf_counter()
    for number in range(1_000):
        router.tick(number)
    ticked_s = time.perf_counter() - begin
    return {
        "subscribe_us": 1e6 * subscribed_s / 1_000,
        "tick_us": 1e6 * ticked_s / 1_000,
        "share_of_a_second": ticked_s / 1_000,
    }


def messages_saved(similarities: Sequence[int]) -> list[dict[str, Any]]:
    """Of 200 requests in the network of figure 9, resources balanced."""
    experiments = Experiments(draw_pools(Random(1), requests=QUICK.requests), QUICK, 1, None)
    rows = []
    for similarity in similarities:
        normal, similar = (
            experiments.run(Setting("9", algorithm, similarity=similarity)).records
            for algorithm in (NORMAL, SIMILARITY)
        )
        row: dict[str, Any] = {"similarity": similarity}
        for column in (
            "subscription_hops",
            "publication_hops_alone",
            "publication_hops_packaged",
            "matching_operations",
        ):
            before, after = (sum(each[column] for each in part) for part in (normal, similar))
            row[column] = 1 - after / before
        rows.append(row)
    return rows


def class_ads(size: int) -> dict[str, Any] | None:
    """Pairs a second of ads of the same machines and requests."""
    try:
        import classad2
    except ImportError:
        return None
    dice = Random(SEED)
    machines = []
    for _ in range(size):
        region = resource(dice)
        ad = classad2.ClassAd({"Requirements": True})
        for (name, _), bound in region.bounds.items():
            ad[name] = bound if isinstance(bound, str) else bound[1]
        machines.append(ad)
    dice = Random(SEED + 1)
    requests = []
    for _ in range(max(1, PAIRS // size)):
        conditions = [
            f"TARGET.{name} == {bound!r}".replace("'", '"')
            if isinstance(bound, str)
            else f"TARGET.{name} >= {bound[0]!r}"
            for (name, _), bound in few(dice, size).bounds.items()
        ]
        ad = classad2.ClassAd()
        ad["Requirements"] = classad2.ExprTree(" && ".join(conditions))
        requests.append(ad)
    begin = time.perf_counter()
    matched = sum(ad.symmetricMatch(machine) for ad in requests for machine in machines)
    taken_s = time.perf_counter() - begin
    pairs = len(requests) * size
    return {"resources": size, "pairs_per_s": pairs / taken_s, "results": matched / len(requests)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sizes = QUICK_SIZES if arguments.quick else SIZES
    seconds = QUICK_SECONDS if arguments.quick else SECONDS

    static = static_requests(sizes, seconds)
    print("Static requests at one broker:\n")
    report.table(list(static[0]), [list(row.values()) for row in static])
    covers = first_covers(sizes, seconds)
    print("\nThe first request that covers another, microseconds:\n")
    report.table(list(covers[0]), [list(row.values()) for row in covers])
    saved = messages_saved((10, 50, 100) if arguments.quick else range(10, 101, 10))
    print(
        "\nShare of messages that similarity forwarding saves (the paper: more with each step):\n"
    )
    report.table(list(saved[0]), [list(row.values()) for row in saved])
    times = times_over_matches((1, 30, 300) if arguments.quick else (1, 10, 30, 100, 300))
    print("\nTime of a request over how many resources it finds, virtual ms:\n")
    report.table(list(times[0]), [list(row.values()) for row in times])
    alone = without_neighbours()
    print(
        f"\nA broker without neighbours: {alone['subscribe_us']:.1f} us for a subscription, "
        f"{alone['tick_us']:.1f} us a second for its overlay, nothing for an event."
    )
    results: dict[str, Any] = {"static": static, "covers": covers, "saved": saved}
    results |= {"times": times, "without_neighbours": alone}

    ads = class_ads(1_000)
    if ads is None:
        print("\nNo ClassAds beside it: htcondor is not installed.")
    else:
        best = max(row["pairs_per_s"] for row in static if row["by"] == "index")
        results["class_ads"] = ads
        results["pairs_over_class_ads"] = best / ads["pairs_per_s"]
        print(
            f"\nClassAds: {ads['pairs_per_s']:,.0f} resources times requests a second; "
            f"the index at {max(sizes):,} resources: {best:,.0f}, "
            f"{results['pairs_over_class_ads']:,.0f} times as many (target: {TARGET:,})."
        )
    if arguments.json:
        report.write("discovery", results, arguments.json)


if __name__ == "__main__":
    main()

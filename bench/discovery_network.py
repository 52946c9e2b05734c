"""Discovery in the simulated network of 24 brokers: its time, and what sharing saves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

from tocsin.sim.discovery.experiment import NORMAL, SIMILARITY, Setting
from tocsin.sim.discovery.figures import FULL, QUICK, Experiments
from tocsin.sim.discovery.network import MEASURED
from tocsin.sim.discovery.workload import draw_pools

# Section 6.3.1, about figures 9 to 11. Our copy of the paper has its text and not its plots.
PAPER_TREND = {
    "subscription_hops": "Normal about constant; savings increase with the similarity",
    "publication_hops": "both grow; Similarity greatly reduces them at every similarity",
    "matching_operations": "as the subscriptions, and fewer than these when similarity is high",
}


def times_over_matches(matches: Sequence[int]) -> list[dict[str, Any]]:
    """p50 and p99 in virtual ms of 200 requests that find so many resources."""
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


def messages_saved(similarities: Sequence[int]) -> list[dict[str, Any]]:
    """Of 200 requests in the network of figure 9, resources balanced. What is saved is a share."""
    experiments = Experiments(draw_pools(Random(1), requests=QUICK.requests), QUICK, 1, None)
    rows = []
    for similarity in similarities:
        normal, similar = (
            experiments.run(Setting("9", algorithm, similarity=similarity)).records
            for algorithm in (NORMAL, SIMILARITY)
        )
        row: dict[str, Any] = {"similarity": similarity}
        for name, column in (
            ("subscription_hops", "subscription_hops"),
            ("publication_hops", "publication_hops_packaged"),
            ("publication_hops_alone", "publication_hops_alone"),
            ("matching_operations", "matching_operations"),
        ):
            before, after = (sum(each[column] for each in part) for part in (normal, similar))
            row |= {f"{name}_normal": before, f"{name}_similarity": after}
            row[f"{name}_saved"] = 1 - after / before
        rows.append(row)
    return rows


def beside_the_paper(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each trend of the paper, what is saved here, and how it goes from one row to the next."""
    steps = list(pairwise(rows))

    def grows(name: str) -> str:
        return f"{sum(one[name] < other[name] for one, other in steps)} of {len(steps)} steps"

    normal = [row["subscription_hops_normal"] for row in rows]
    last = rows[-1]
    here = {
        "subscription_hops": f"Normal within {max(normal) / min(normal) - 1:.1%}; "
        f"savings grow in {grows('subscription_hops_saved')}",
        "publication_hops": f"Normal grows in {grows('publication_hops_normal')}, "
        f"Similarity in {grows('publication_hops_similarity')}",
        "matching_operations": f"savings grow in {grows('matching_operations_saved')}; at the end "
        f"{last['matching_operations_similarity']:,}, "
        f"and {last['subscription_hops_similarity']:,} subscriptions",
    }
    return [
        {
            "count": name,
            "the paper": trend,
            "saved here": f"{rows[0][name + '_saved']:.0%} to {last[name + '_saved']:.0%}",
            "here": here[name],
        }
        for name, trend in PAPER_TREND.items()
    ]

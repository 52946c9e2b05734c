"""Discovery in the simulated network of 24 brokers: its time, and what sharing saves."""

from __future__ import annotations

from collections.abc import Sequence
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
FLAT = 0.05  # "about constant": the largest is at most so much above the smallest


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
    """Each trend of the paper, what is saved here, and whether the trend is here too."""

    def series(name: str) -> list[float]:
        return [row[name] for row in rows]

    def grows(name: str) -> bool:
        return series(name) == sorted(series(name))

    def is_flat(name: str) -> bool:
        return max(series(name)) <= (1 + FLAT) * min(series(name))

    last = rows[-1]
    holds = {
        "subscription_hops": is_flat("subscription_hops_normal")
        and grows("subscription_hops_saved"),
        "publication_hops": grows("publication_hops_normal")
        and grows("publication_hops_similarity")
        and min(series("publication_hops_saved")) > 0,
        "matching_operations": grows("matching_operations_saved")
        and last["matching_operations_similarity"] < last["subscription_hops_similarity"],
    }
    return [
        {
            "count": name,
            "the paper": trend,
            "saved here": f"{rows[0][name + '_saved']:.0%} to {last[name + '_saved']:.0%}",
            "holds": "yes" if holds[name] else "no",
        }
        for name, trend in PAPER_TREND.items()
    ]

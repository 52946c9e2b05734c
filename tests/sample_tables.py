"""Tables for tests: those of a year of a site, made up with a seed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from table_files import NOW, Rows
from tocsin.tables.schemas import TABLES

START = datetime(2026, 1, 1, tzinfo=UTC)

WORKFLOWS = ("montage", "cybershake", "epigenomics", "rnaseq-nf", "sarek", "wrf-ensemble")
STEPS = (
    *("mProject", "align_reads", "sort_bam", "call_variants", "mBackground", "stage_in"),
    *("ExtractSGT", "SeismogramSynthesis", "fastqc", "collect metrics"),
)
ERRORS = (
    "cannot open /scratch/job-8812/part-3.nc: No such file or directory",
    "Killed: process 4417 used more than 16384 MiB",
    "ValueError: shape (128, 77) does not fit\n  at steps.py line 88",
    "job 77123 exceeded its limit of 240 minutes",
    "connection to 10.0.7.12 timed out after 30 s",
    "the solver did not converge after 500 iterations, residual 0.0031",
)


def year(seed: int = 1, *, runs: int = 2_000, hosts: int = 30, days: int = 300) -> dict[str, Rows]:
    """Tables as a site might have them: skewed, noisy, with gaps and one clock that is wrong."""
    made = _Made(np.random.default_rng(seed), runs, hosts, days)
    return {
        "runs": made.runs(),
        "activity_stats": made.activity_stats(),
        "failures": made.failures(),
        "evolution": made.evolution(),
        "host_usage": made.host_usage(),
        "activity_usage": made.activity_usage(),
        "cost_models": made.cost_models(),
        "activities": made.activities(),
        "estimates": made.estimates(),
        "deliveries": made.deliveries(),
        "discoveries": made.discoveries(),
        "quarantine": made.quarantine(),
        "events": made.events(),
    }


class _Made:
    def __init__(self, random: np.random.Generator, runs: int, hosts: int, days: int) -> None:
        self.random, self.run_count, self.days = random, runs, days
        self.hosts = [f"node{number:02}.cluster.example.org" for number in range(hosts)]
        self.steps = {
            name: [STEPS[(at * 3 + number) % len(STEPS)] for number in range(3 + at)]
            for at, name in enumerate(WORKFLOWS)
        }
        self.typical_s = {
            (workflow, step): float(random.lognormal(5, 1.6))
            for workflow, steps in self.steps.items()
            for step in steps
        }

    def _moment(self, spread: float = 1.0) -> datetime:
        return START + timedelta(days=float(self.random.random() * self.days * spread))

    def runs(self) -> list[dict[str, Any]]:
        skew = np.array([0.5, 0.2, 0.12, 0.09, 0.06, 0.03])
        rows = []
        for number in range(self.run_count):
            at = int(self.random.choice(len(WORKFLOWS), p=skew))
            started = self._moment()
            version = f"{1 + int((started - START).days / self.days * (1 + at % 4))}.0"
            state = str(
                self.random.choice(
                    ["completed", "failed", "aborted", "running"], p=[0.86, 0.1, 0.03, 0.01]
                )
            )
            took = float(self.random.lognormal(8 + at / 4 + 0.2 * float(version), 0.5))
            busy = took * (2 + at)
            rows.append(
                {
                    "run": f"run-{number:06}",
                    "workflow": WORKFLOWS[at],
                    "version": version,
                    "state": state,
                    "started": started,
                    "duration_s": took if state != "running" else None,
                    "busy_s": busy,
                    "wasted_s": busy * float(self.random.beta(1, 12 - 2 * at)),
                    "use_CpuSeconds": busy * 0.8,
                }
            )
        return rows

    def _durations(self, typical_s: float, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.sort(self.random.lognormal(np.log(typical_s), 0.45, count))

    def activity_stats(self) -> list[dict[str, Any]]:
        rows = []
        for (workflow, step), typical_s in self.typical_s.items():
            for version in (1, 2):
                took = self._durations(typical_s * version**0.4, int(self.random.integers(30, 900)))
                edges = np.geomspace(took[0], took[-1], 21)
                counts, _ = np.histogram(took, edges)
                count = len(took) + len(took) // 12
                ended = START + timedelta(days=self.days * version / 2)
                rows.append(
                    {
                        "workflow": workflow,
                        "activity": step,
                        "version": f"{version}.0",
                        "count": count,
                        "failed": count - len(took),
                        "runs": count // 3,
                        **dict(
                            zip(("p10_s", "p50_s", "p90_s", "p99_s"), _quantiles(took), strict=True)
                        ),
                        "mean_s": took.mean(),
                        "min_s": took[0],
                        "max_s": took[-1],
                        "histogram": [
                            {"low_s": low, "high_s": high, "count": int(n)}
                            for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True)
                        ],
                        "busy_s": float(took.sum()) * 1.1,
                        "wasted_s": float(took.sum()) * float(self.random.beta(1, 8)),
                        "first_ended": ended - timedelta(days=self.days / 2),
                        "last_ended": ended,
                    }
                )
        return rows

    def failures(self) -> list[dict[str, Any]]:
        rows = []
        pairs = list(self.typical_s)
        for number in range(self.run_count // 4):
            fault = min(int(self.random.exponential(1.6)), len(ERRORS) - 1)
            workflow, step = pairs[fault]
            ended = self._moment(0.4 + fault / 8)
            rows.append(
                {
                    "run": f"run-{number}",
                    "workflow": workflow,
                    "activity": step,
                    "fault": 1000 + fault,
                    "error": ERRORS[fault],
                    "exit_code": fault + 1,
                    "host": self.hosts[int(self.random.integers(len(self.hosts)))],
                    "ended": ended,
                    "duration_s": float(self.random.lognormal(6, 1)),
                }
            )
        return rows

    def evolution(self) -> list[dict[str, Any]]:
        rows = []
        for at, workflow in enumerate(WORKFLOWS):
            before = None
            for version in range(1, 2 + at % 4):
                p50 = float(np.exp(8 + at / 4 + 0.2 * version) * self.random.uniform(0.85, 1.3))
                rows.append(
                    {
                        "workflow": workflow,
                        "version": f"{version}.0",
                        "previous": f"{version - 1}.0" if version > 1 else None,
                        "first_seen": START
                        + timedelta(days=self.days * (version - 1) / (1 + at % 4)),
                        "runs": 100 * version,
                        "completed": 90 * version,
                        "failed": 8 * version,
                        "p50_s": p50,
                        "p90_s": p50 * 1.7,
                        "mean_s": p50 * 1.1,
                        "ratio": p50 / before if before else None,
                        "changes": ["align_reads: threads 8 to 16"] if version > 1 else [],
                        "slower": self.steps[workflow][:2] if version == 2 else [],
                        "faster": self.steps[workflow][2:] if version == 3 else [],
                        "added": ["fastqc"] if version == 2 else [],
                        "removed": [],
                    }
                )
                before = p50
        return rows

    def host_usage(self) -> pa.Table:
        hours = self.days * 24
        n = len(self.hosts) * hours
        of_host = np.repeat(np.arange(len(self.hosts)), hours)
        hour = np.tile(np.arange(hours), len(self.hosts))
        kept = self.random.random(n) < 0.6
        of_host, hour = of_host[kept], hour[kept]
        weekday = np.where((hour // 24) % 7 < 5, 1.0, 0.25)
        busy = self.random.gamma(2, 900, len(hour)) * weekday * (1 + of_host % 5)
        columns = {
            "host": pa.array(np.array(self.hosts)[of_host]),
            "hour": _hours(hour),
            "samples": pa.array(np.full(len(hour), 12)),
            "attempts": pa.array((busy // 300).astype(np.int64)),
            "busy_s": pa.array(busy),
            "mean_cpu_percent": pa.array(np.clip(busy / 80, 0, 100), mask=of_host % 3 == 0),
            "max_memory_bytes": pa.array(self.random.gamma(3, 4e9, len(hour))),
            "cpu_s": pa.array(busy * 0.8),
            "read_bytes": pa.array(busy * 3e6),
            "written_bytes": pa.array(busy * 1e6),
        }
        return _filled("host_usage", columns)

    def activity_usage(self) -> pa.Table:
        pairs = list(self.typical_s)
        hours = self.days * 24
        kept = self.random.random(len(pairs) * hours) < 0.3
        of_pair = np.repeat(np.arange(len(pairs)), hours)[kept]
        hour = np.tile(np.arange(hours), len(pairs))[kept]
        hour[0] = -24 * 365 * 12  # a clock that is years off
        growth = np.where(of_pair % 2 == 0, 0.3 + hour / hours, 1.5 - hour / hours)
        busy = self.random.gamma(1.5, 1200, len(hour)) * np.clip(growth, 0.1, None)
        columns = {
            "workflow": pa.array([pairs[at][0] for at in of_pair]),
            "activity": pa.array([pairs[at][1] for at in of_pair]),
            "hour": _hours(hour),
            "attempts": pa.array((1 + busy // 300).astype(np.int64)),
            "failed": pa.array((busy // 4000).astype(np.int64)),
            "busy_s": pa.array(busy),
            "cpu_s": pa.array(busy * 0.7),
            "max_memory_bytes": pa.array(self.random.gamma(3, 1e9, len(hour))),
            "read_bytes": pa.array(busy * 3e6),
            "written_bytes": pa.array(busy * 1e6),
        }
        return _filled("activity_usage", columns)

    def cost_models(self) -> list[dict[str, Any]]:
        return [
            {
                "workflow": workflow,
                "activity": step,
                "version": "2.0",
                "target": target,
                "count": 400,
                "intercept": typical_s * 0.2,
                "slope": typical_s / 4e9,
                "r2": 0.9,
                "rmse": typical_s * 0.2,
                "median_error": 0.13,
                "input_min": 2e8,
                "input_max": 9e9,
                "mean": typical_s,
            }
            for (workflow, step), typical_s in self.typical_s.items()
            for target in ("duration_s", "memory_bytes")
        ]

    def activities(self) -> pa.Table:
        pairs = list(self.typical_s)
        count = self.run_count * 10
        at = self.random.integers(0, len(pairs), count)
        typical_s = np.array([self.typical_s[pair] for pair in pairs])[at]
        size = self.random.uniform(2e8, 9e9, count)
        took = typical_s * (0.2 + size / 4e9) + self.random.normal(0, 0.2, count) * typical_s
        columns = {
            "run": pa.array([f"run-{number // 10:06}" for number in range(count)]),
            "workflow": pa.array([pairs[each][0] for each in at]),
            "activity": pa.array([pairs[each][1] for each in at]),
            "version": pa.array(["2.0"] * count),
            "state": pa.array(np.where(at % 11 == 0, "failed", "succeeded")),
            "duration_s": pa.array(np.abs(took)),
            "input_bytes": pa.array(size.astype(np.int64)),
        }
        return _filled("activities", columns)

    def estimates(self) -> list[dict[str, Any]]:
        rows = []
        for number in range(12):
            elapsed, still = (float(self.random.lognormal(8, 1)) for _ in range(2))
            known = number % 5 != 4
            rows.append(
                {
                    "run": f"montage-2026-11-16-{number:04}",
                    "workflow": WORKFLOWS[number % 6],
                    "version": "2.0",
                    "elapsed_s": elapsed,
                    "done": number * 3,
                    "total": 60,
                    "remaining_low_s": still * 0.7 if known else None,
                    "remaining_s": still if known else None,
                    "remaining_high_s": still * 1.6 if known else None,
                    "ends": NOW + timedelta(seconds=still) if known else None,
                    "basis": "past runs of the same version with as many activities done"
                    if known
                    else "no past run of this workflow",
                }
            )
        return rows

    def deliveries(self) -> list[dict[str, Any]]:
        rows = []
        for number in range(9):
            bad = number in (2, 5)
            rows.append(
                {
                    "subscription": f"sub-{number}",
                    "sink": f"https://hooks{number}.example.org/events/from/tocsin",
                    "protocol": "http" if number % 2 else "wse",
                    "state": "active",
                    "sink_state": "failing" if bad else "ok",
                    "delivered": 12_000 * (number + 1),
                    "dead": 412 if bad else 0,
                    "dropped": 0,
                    "behind": 88_213 if bad else number,
                    "per_hour": 131.7,
                    "failing_share": 0.31 if bad else 0.001,
                    "slow": bad,
                    "last_error": "503 Service Unavailable" if bad else None,
                    "reasons": [{"reason": "gave up after 8 attempts: 503", "count": 400}]
                    if bad
                    else [],
                }
            )
        return rows

    def discoveries(self) -> list[dict[str, Any]]:
        return [
            {
                "model": "directory",
                "request": f"[system,=,Linux],[memory,>,{number}]",
                "count": 900 // (number + 1),
                "empty": 30 * number % 70,
                "mean_found": 4.2,
                "p50_s": 0.004,
                "p90_s": 0.021,
                "max_s": 0.4,
                "mean_brokers": 2.5,
            }
            for number in range(6)
        ]

    def quarantine(self) -> list[dict[str, Any]]:
        reasons = ("data is no JSON", "no RunId", "seq twice", "time cannot be read")
        return [
            {
                "file": "a.parquet",
                "seq": number,
                "received": self._moment(),
                "source": "/n1",
                "reason": reasons[number % 7 % 4],
                "excerpt": '{"RunId": 7, "broken',
            }
            for number in range(140)
        ]

    def events(self) -> pa.Table:
        late = self.random.exponential(4, self.run_count * 20)
        return _filled("events", {"late_s": pa.array(np.where(late > 30, late * 60, late))})


def _quantiles(took: np.ndarray[Any, np.dtype[np.float64]]) -> list[float]:
    return [float(each) for each in np.quantile(took, [0.1, 0.5, 0.9, 0.99])]


def _hours(hour: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    since = int(START.timestamp()) + hour.astype(np.int64) * 3_600
    return pa.array(since * 1_000_000).cast(pa.timestamp("us", tz="UTC"))


def _filled(name: str, columns: Mapping[str, pa.Array]) -> pa.Table:
    """The table with these columns; of the others nothing is known."""
    count = len(next(iter(columns.values())))
    arrays = [
        columns[each.name].cast(each.type) if each.name in columns else pa.nulls(count, each.type)
        for each in TABLES[name]
    ]
    return pa.Table.from_arrays(arrays, schema=TABLES[name])

"""Part: the broker's metrics, read as a monitoring system reads them."""

from __future__ import annotations

from tocsin.cli.demo.context import DemoContext


def run(demo: DemoContext) -> None:
    found = values(str(demo.request("GET", "/metrics")))
    rows: list[list[object]] = [[name, f"{value:,.0f}"] for name, value in found.items()]
    demo.table(["since the last start", ""], rows)
    demo.results["figures"] = found


def values(text: str) -> dict[str, float]:
    """The metrics of a Prometheus page without their prefix; those with labels are left out."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("tocsin_") and "{" not in name:
            found[name.removeprefix("tocsin_")] = float(value)
    return found

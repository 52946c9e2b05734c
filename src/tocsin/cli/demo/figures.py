"""Scene: what the broker counted, read from its metrics as any monitoring would."""

from __future__ import annotations

from tocsin.cli.demo.stage import Stage


def play(stage: Stage) -> None:
    found = values(str(stage.ask("GET", "/metrics")))
    rows: list[list[object]] = [[name, f"{value:,.0f}"] for name, value in found.items()]
    stage.table(["since the last start", ""], rows)
    stage.results["figures"] = found


def values(text: str) -> dict[str, float]:
    """The plain figures of a Prometheus page, without prefix; those with labels are left out."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith("tocsin_") and "{" not in name:
            found[name.removeprefix("tocsin_")] = float(value)
    return found

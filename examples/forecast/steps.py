"""What the forecast consists of: each step, the steps it waits for, and its work on their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

Inputs = Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Step:
    needs: tuple[str, ...]
    work: Callable[[Inputs], object]


def read(path: Path) -> list[float]:
    numbers: list[float] = json.loads(path.read_text())
    return numbers


def assimilate(inputs: Inputs) -> list[float]:
    """The state that fits both instruments best: here, what lies between them."""
    pairs = zip(read(inputs["decode_radar"]), read(inputs["decode_stations"]), strict=True)
    return [(radar + station) / 2 for radar, station in pairs]


def forecast(inputs: Inputs) -> list[float]:
    """Six hours ahead; heat flows from cell to cell of a ring."""
    cells = read(inputs["assimilate"])
    for _ in range(6):
        cells = [
            (cells[i - 1] + 2 * cells[i] + cells[(i + 1) % len(cells)]) / 4
            for i in range(len(cells))
        ]
    return [round(cell, 2) for cell in cells]


def movie(inputs: Inputs) -> str:
    return "".join(" .:-=+*#"[min(7, int(cell / 5))] for cell in read(inputs["forecast"]))


FORECAST: Mapping[str, Step] = {
    "decode_radar": Step((), lambda _: [4.0, 12.0, 30.0, 22.0, 9.0, 3.0]),
    "decode_stations": Step((), lambda _: [6.0, 10.0, 26.0, 24.0, 11.0, 5.0]),
    "assimilate": Step(("decode_radar", "decode_stations"), assimilate),
    "forecast": Step(("assimilate",), forecast),
    "movie": Step(("forecast",), movie),
}


def due(
    steps: Mapping[str, Step], finished: Collection[str], invoked: Collection[str]
) -> list[str]:
    """The steps to start now: all that they wait for is there, and nobody has started them."""
    return [
        name
        for name, step in steps.items()
        if name not in invoked and all(need in finished for need in step.needs)
    ]

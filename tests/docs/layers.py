"""The layers of ARCHITECTURE.md, drawn from the import contracts.

python tests/docs/layers.py        writes the drawing into ARCHITECTURE.md
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
ARCHITECTURE: Final = ROOT / "ARCHITECTURE.md"
WIDTH: Final = 71  # of the drawing
DRAWING: Final = re.compile(r"(?<=<!-- layers -->\n).*?(?=<!-- end of layers -->)", re.DOTALL)
# A package from which these three are kept has no I/O, no clock and no dice.
OUTSIDE: Final = {"socket", "time", "random"}

Contract = dict[str, Any]


def contracts() -> list[Contract]:
    """Every import contract of the project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[Contract] = project["tool"]["importlinter"]["contracts"]
    return found


def layers(contract: Contract) -> list[list[str]]:
    """The packages of each layer, the topmost first."""
    return [re.findall(r"\w+", layer) for layer in contract["layers"]]


def packages() -> set[str]:
    """Every package that is in a layer right below `tocsin`."""
    return {
        package
        for contract in contracts()
        if contract["type"] == "layers" and contract["containers"] == ["tocsin"]
        for layer in layers(contract)
        for package in layer
    }


def pure() -> set[str]:
    """The modules that a contract keeps from sockets, clocks and dice."""
    return {
        module
        for contract in contracts()
        if contract["type"] == "forbidden" and set(contract["forbidden_modules"]) >= OUTSIDE
        for module in contract["source_modules"]
    }


def drawing() -> str:
    """One picture for each contract about layers."""
    pictures = [
        f"```text\n{container}: imports point down, never up and never sideways; * is pure\n"
        f"{picture(layers(contract), container)}\n```\n"
        for contract in contracts()
        if contract["type"] == "layers"
        for container in contract["containers"]
    ]
    return "\n".join(pictures)


def picture(rows: list[list[str]], container: str) -> str:
    """A box for each package, those of one layer side by side."""
    lines = []
    above: set[int] = set()
    for row in rows:
        edges = edges_of(len(row))
        lines.append(rule(above, edges))
        boxes = zip(row, edges, edges[1:], strict=False)
        cells = [cell(name, container, end - start) for name, start, end in boxes]
        lines.append("".join(cells) + "│")
        above = set(edges)
    lines.append(rule(above, []))
    return "\n".join(lines)


def edges_of(cells: int) -> list[int]:
    """Where the vertical lines of so many cells are."""
    return [round(number * (WIDTH - 1) / cells) for number in range(cells + 1)]


def cell(name: str, container: str, width: int) -> str:
    """A package in its box, without the line to the right of it."""
    mark = " *" if f"{container}.{name}" in pure() else ""
    return f"│ {name}{mark}".ljust(width)


def rule(above: set[int], below: list[int]) -> str:
    """The line between two rows of boxes."""
    ends = {True: "├┤", False: "┌┐" if below else "└┘"}[bool(above) and bool(below)]
    middle = "".join(
        {(True, True): "┼", (True, False): "┴", (False, True): "┬", (False, False): "─"}[
            (place in above, place in below)
        ]
        for place in range(1, WIDTH - 1)
    )
    return ends[0] + middle + ends[1]


if __name__ == "__main__":
    text = ARCHITECTURE.read_text()
    ARCHITECTURE.write_text(DRAWING.sub(lambda _: drawing(), text))

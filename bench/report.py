"""How every benchmark here says what it measured: a table for people, JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print plain columns: words to the left, numbers to the right, nothing where there is None."""
    cells = [list(headers), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(headers))]
    to_right = [
        all(row[column] is None or isinstance(row[column], int | float) for row in rows)
        for column in range(len(headers))
    ]
    for line in cells:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, to_right, strict=True)
        )
        print("  ".join(padded).rstrip())


def write(name: str, results: object, json_path: Path | str) -> None:
    """Keep the results, with what one must know about the machine to compare them."""
    document = {
        "benchmark": name,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "results": results,
    }
    Path(json_path).write_text(json.dumps(document, indent=2) + "\n")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)

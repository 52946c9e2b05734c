"""Synthesis: a whole archive from a plan, file by file, and the truth about it beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tocsin.archive.synth.columns import batch_of
from tocsin.archive.synth.making import Making
from tocsin.archive.synth.plan import Plan
from tocsin.archive.synth.truth import Truth
from tocsin.archive.synth.world import made
from tocsin.archive.synth.writing import write_events, write_text
from tocsin.errors.settings import BadSetting

TRUTH_NAME: Final = "_truth.json"


def synthesize(plan: Plan, directory: Path, advance: Callable[[int], None]) -> dict[str, Any]:
    """Write the archive; returns the truth, which is also in the directory. Last, so that a
    directory without it is known to be unfinished."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise BadSetting(
            f"{directory} is there already and not empty",
            remedy="Give a new directory with --out, or remove this one.",
        )
    directory.mkdir(parents=True, exist_ok=True)
    world = made(plan)
    making = Making(plan, world)
    truth = Truth()
    next_seq = 1
    for window in making.windows():
        truth.count(window.rows)
        for begin in range(0, len(window.rows), plan.files_of):
            rows = window.rows[begin : begin + plan.files_of]
            batch = batch_of(rows, next_seq, world, making.roster, plan.seed)
            write_events(pa.Table.from_batches([batch]), directory)
            next_seq += len(rows)
            advance(len(rows))
    truth.leave(making.waiting)
    told = {"plan": plan.told(), **truth.told(), "world": world.told()}
    write_text(json.dumps(told, indent=1), directory / TRUTH_NAME)
    return told

"""A run of a hundred thousand activities is told piece by piece, and never held whole."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from typing import overload

import pytest

from served import ROOT
from tocsin.monitor.provenance import RunView, crate_zip
from tocsin.wire.api.run_views import ActivityInfo, RunDetails

COUNT = 100_000
HELD_KB_MAX = 90_000  # 64,000 were measured; the smallest of the documents has 98,000


class Made(Sequence[ActivityInfo]):
    """Activities made as they are asked for, as those of a store would be."""

    def __len__(self) -> int:
        return COUNT

    @overload
    def __getitem__(self, place: int) -> ActivityInfo: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ActivityInfo]: ...
    def __getitem__(self, place: int | slice) -> ActivityInfo | Sequence[ActivityInfo]:
        assert isinstance(place, int)
        if place >= COUNT:
            raise IndexError(place)
        return ActivityInfo(
            id=f"task-{place}",
            type=f"type-{place % 20}",
            state="succeeded",
            started="2026-11-16T06:40:00.000Z",
            ended="2026-11-16T06:41:00.000Z",
            host=f"node{place % 50}",
            command="run --with " + "many words " * 10,
            inputs=(f"in/{place}.txt",),
            outputs=(f"out/{place}.txt",),
            parents=(f"task-{place // 2}",) if place else (),
        )


LONG = RunView(RunDetails(id="long", workflow="w", engine="e"), Made())


MEASURED = """
import json, resource, sys
from monitor.provenance.test_long_runs import LONG
from tocsin.monitor import provenance
def held_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = held_kb()
sizes = [len(chunk) for chunk in getattr(provenance, sys.argv[1])(LONG)]
print(json.dumps([max(sizes), sum(sizes), held_kb() - before]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("notation", ["prov_json_chunks", "prov_n_chunks", "turtle_chunks"])
def test_a_long_run_is_told_in_small_pieces(notation: str) -> None:
    # In a process of its own: how much was ever held is known of a whole process only.
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, notation],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        check=True,
    )
    largest, total, more_kb = json.loads(done.stdout)

    assert total > COUNT * 500
    assert largest < 200_000
    # What is remembered is which files there are, not what is said of them.
    assert more_kb < HELD_KB_MAX


@pytest.mark.slow
def test_the_crate_of_a_long_run_is_whole() -> None:
    with zipfile.ZipFile(io.BytesIO(crate_zip(LONG))) as archive:
        graph = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]

    assert sum(1 for entity in graph if entity["@type"] == "CreateAction") == COUNT

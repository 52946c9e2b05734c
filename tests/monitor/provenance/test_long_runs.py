"""A run of a hundred thousand activities is told piece by piece, and never held whole."""

from __future__ import annotations

import io
import json
import resource
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import overload

import pytest

from tocsin.monitor.provenance import (
    RunView,
    crate_zip,
    prov_json_chunks,
    prov_n_chunks,
    turtle_chunks,
)
from tocsin.monitor.records import ActivityRecord, RunRecord

COUNT = 100_000
HELD_KB_MAX = 200_000


class Made(Sequence[ActivityRecord]):
    """Activities made as they are asked for, as those of a store would be."""

    def __len__(self) -> int:
        return COUNT

    @overload
    def __getitem__(self, place: int) -> ActivityRecord: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ActivityRecord]: ...
    def __getitem__(self, place: int | slice) -> ActivityRecord | Sequence[ActivityRecord]:
        assert isinstance(place, int)
        if place >= COUNT:
            raise IndexError(place)
        return ActivityRecord(
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


LONG = RunView(RunRecord(id="long", workflow="w", engine="e"), Made())


@pytest.mark.slow
@pytest.mark.parametrize("notation", [prov_json_chunks, prov_n_chunks, turtle_chunks])
def test_a_long_run_is_told_in_small_pieces(
    notation: Callable[[RunView], Iterator[bytes]],
) -> None:
    held_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    sizes = [len(chunk) for chunk in notation(LONG)]

    assert sum(sizes) > COUNT * 500
    assert max(sizes) < 200_000
    # What is remembered is which files there are, not what is said of them.
    more_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held_kb
    assert more_kb < HELD_KB_MAX


@pytest.mark.slow
def test_the_crate_of_a_long_run_is_whole() -> None:
    with zipfile.ZipFile(io.BytesIO(crate_zip(LONG))) as archive:
        graph = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]

    assert sum(1 for entity in graph if entity["@type"] == "CreateAction") == COUNT

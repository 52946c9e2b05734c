"""Plans: some runs tell beforehand which tasks they will have, and which wait for which."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.archive.record import PLAN
from tocsin.synth.messages import Words, in_json
from tocsin.synth.roster import Of
from tocsin.synth.rows import At, Kind
from tocsin.synth.texts import Ints
from tocsin.synth.world import World


class Plans:
    """The plans that some messages tell, by the row of the message."""

    def __init__(self, words: Words) -> None:
        self.texts: dict[int, str] = {}
        self._tasks: dict[int, list[dict[str, Any]]] = {}
        rows, roster = words.rows, words.roster
        began = np.flatnonzero(words.kind == Kind.STARTED)
        scale = roster.of(rows[began, At.RUN], Of.PLAN_SCALE)
        for row, told in zip(began[scale > 0], scale[scale > 0], strict=True):
            tasks = _tasks(words.world, int(words.workflow[row]), int(told))
            self._tasks[int(row)] = tasks
            self.texts[int(row)] = in_json(json.dumps(tasks, separators=(",", ":")))

    def column(self, count: int, at: Ints) -> pa.Array:
        """The tasks as the archive keeps them; `at` are the places of our rows in the file."""
        if not self._tasks:
            return pa.nulls(count, PLAN)
        found: list[Any] = [None] * count
        for row, tasks in self._tasks.items():
            found[int(at[row])] = tasks
        return pa.array(found, PLAN)


def _tasks(world: World, workflow: int, scale_millionths: int) -> list[dict[str, Any]]:
    """In the order in which the activities of a run are numbered."""
    first = int(world.first_type[workflow])
    types = range(first, first + int(world.type_count[workflow]))
    ids: dict[int, list[str]] = {}
    tasks: list[dict[str, Any]] = []
    for place in types:
        width = int(world.width_of[place])
        scaled = max(round(width * scale_millionths / 1_000_000), 1)
        count = 1 if width == 1 else scaled
        name = world.types[place]
        begin = len(tasks) + 1
        ids[place] = [f"{name}-{number}" for number in range(begin, begin + count)]
        for number, task in enumerate(ids[place]):
            parents = [ids[each][number % len(ids[each])] for each in world.parents_of[place]]
            if parents:
                tasks.append({"id": task, "type": name, "parents": parents})
            else:
                size = int(world.input_of[place])
                tasks.append({"id": task, "type": name, "external_bytes": size, "parents": []})
    return tasks

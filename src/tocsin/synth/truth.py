"""Truth: what is in the archive, counted while it is generated."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np

from tocsin.synth import background
from tocsin.synth.rows import ENDS, FAILURES, USAGE, Col, Kind, Mark, RunTable
from tocsin.synth.texts import Ints
from tocsin.synth.world import VERSIONS_MAX, World

STATES: Final = {
    Kind.SUCCEEDED: "succeeded",
    **dict.fromkeys(FAILURES, "failed"),
    Kind.CANCELLED: "cancelled",
    Kind.SKIPPED: "skipped",
    Kind.CACHED: "cached",
}
RUN_STATES: Final = {
    Kind.COMPLETED: "completed",
    Kind.TERMINATED: "failed",
    Kind.ABORTED: "aborted",
}


class Truth:
    """Counts the rows of the archive."""

    def __init__(self, world: World, runs: RunTable) -> None:
        self._world = world
        self._run_table = runs
        self._ended = np.zeros((len(world.types), VERSIONS_MAX), np.int64)
        self._failed = np.zeros_like(self._ended)
        self._runs = np.zeros(len(world.workflows), np.int64)
        self._usage = np.zeros(USAGE.stop - USAGE.start, np.float64)
        self._kinds = np.zeros(len(Kind), np.int64)  # without duplicates
        self._rows = self._duplicates = self._late = 0

    def count(self, rows: Ints) -> None:
        is_duplicate = _is_marked(rows, Mark.DUPLICATE)
        self._rows += len(rows)
        self._duplicates += int(is_duplicate.sum())
        self._late += int(_is_marked(rows, Mark.LATE).sum())
        once = rows[~is_duplicate]
        kind, run = once[:, Col.KIND], once[:, Col.RUN]
        self._kinds += np.bincount(kind, minlength=len(Kind))
        ended = once[np.isin(kind, ENDS)]
        self._usage += ended[:, USAGE].sum(axis=0, dtype=np.float64)
        self._ended += self._by_activity(ended)
        self._failed += self._by_activity(ended[np.isin(ended[:, Col.KIND], FAILURES)])
        self._run_table.is_in_archive[run[~np.isin(kind, list(background.TYPES))]] = True
        workflow = self._run_table.of(run[kind == Kind.STARTED], RunTable.WORKFLOW)
        self._runs += np.bincount(workflow, minlength=len(self._runs))

    def _by_activity(self, rows: Ints) -> Ints:
        version = self._run_table.of(rows[:, Col.RUN], RunTable.VERSION)
        cells = rows[:, Col.TYPE] * VERSIONS_MAX + version
        return np.bincount(cells, minlength=self._ended.size).reshape(self._ended.shape)

    def _total(self, *kinds: Kind) -> int:
        return int(self._kinds[list(kinds)].sum())

    def to_dict(self, left_out: Ints) -> dict[str, Any]:
        """`left_out`: rows that would have been received after the end of the archive."""
        states: Counter[str] = Counter()
        for kind, state in STATES.items():
            states[state] += self._total(kind)
        runs = {state: self._total(kind) for kind, state in RUN_STATES.items()}
        seen = int(self._run_table.is_in_archive.sum())
        inputs, outputs, cpu, _, read, written = self._usage.tolist()
        return {
            "events": self._rows,
            "events_once": self._total(*Kind),
            "duplicates": self._duplicates,
            "late": self._late,
            "unrelated": self._total(*background.TYPES),
            "by_kind": {kind.name.lower(): self._total(kind) for kind in Kind},
            "runs": {"seen": seen, **runs, "open": seen - sum(runs.values())},
            "attempts": {**states, **self._open_attempts(left_out)},
            "failures": self._total(*FAILURES),
            "runs_by_workflow": dict(zip(self._world.workflows, self._runs.tolist(), strict=True)),
            # Over all attempts that ended.
            "totals": {
                "input_bytes": inputs,
                "output_bytes": outputs,
                "cpu_seconds": cpu / 100,
                "read_bytes": read,
                "written_bytes": written,
            },
            "attempts_by_activity": self._activities(),
        }

    def _activities(self) -> list[dict[str, Any]]:
        """How many attempts of each activity and version ended, and how many of these failed."""
        world = self._world
        return [
            {
                "workflow": world.workflows[workflow],
                "activity": world.types[place],
                "version": version,
                "ended": int(self._ended[place, number]),
                "failed": int(self._failed[place, number]),
            }
            for place, workflow in enumerate(world.workflow_of.tolist())
            for number, version in enumerate(world.versions[workflow])
        ]

    def _open_attempts(self, left_out: Ints) -> dict[str, int]:
        """Attempts without an end in the archive: those with a start, and those only queued.

        Differences of the counts of events, corrected by the few events that were left out while a
        later one of the same attempt was not.
        """
        rows = left_out[~_is_marked(left_out, Mark.DUPLICATE)]
        kind = rows[:, Col.KIND]
        late_ends = _attempts(rows[np.isin(kind, ENDS)])
        late_starts = rows[kind == Kind.EXECUTING]
        has_end = _is_marked(late_starts, Mark.HAS_END)
        ending, lost = _attempts(late_starts[has_end]), _attempts(late_starts[~has_end])
        only_ended = len(ending - late_ends)
        # An attempt of a lost run has no end: of it, only the start can be in the archive.
        not_started = lost | (ending & late_ends)
        not_queued = len(_attempts(rows[kind == Kind.QUEUED]) - not_started)
        queued, started = self._total(Kind.QUEUED), self._total(Kind.EXECUTING)
        return {
            "running": started - self._total(*ENDS) + only_ended,
            "queued": queued - started - only_ended + not_queued,
        }


def _is_marked(rows: Ints, mark: Mark) -> Any:
    return (rows[:, Col.MARKS] & mark) != 0


def _attempts(rows: Ints) -> set[tuple[int, ...]]:
    return set(map(tuple, rows[:, [Col.RUN, Col.ACTIVITY, Col.ATTEMPT]].tolist()))

"""Truth: what is in the archive, counted while it is made."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tocsin.synth.messages import ENDS
from tocsin.synth.roster import Of, Roster
from tocsin.synth.rows import FAILURES, IN_CONCEPTS, OF_RUNS, UNRELATED, At, Kind, Mark
from tocsin.synth.texts import Ints
from tocsin.synth.world import VERSIONS_MAX, World

USES: Final = 6  # figures of an end that are amounts: see `runs`
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
    """Counts rows that are in the archive, and takes into account those that came too late."""

    def __init__(self, world: World, roster: Roster) -> None:
        self._world = world
        self._roster = roster
        self._ended = np.zeros((len(world.types), VERSIONS_MAX), np.int64)
        self._failed = np.zeros_like(self._ended)
        self._runs = np.zeros(len(world.workflows), np.int64)
        self._use = np.zeros(USES, np.float64)
        self._kinds = np.zeros(len(Kind), np.int64)  # each event once
        self._rows = 0
        self._duplicates = 0
        self._late = 0
        self._seen = np.zeros(1_024, np.bool_)  # runs of which the archive has an event
        self._waiting: Ints | None = None

    def count(self, rows: Ints) -> None:
        """These are in the archive."""
        is_again = (rows[:, At.MARKS] & Mark.DUPLICATE) != 0
        self._rows += len(rows)
        self._duplicates += int(is_again.sum())
        self._late += int(((rows[:, At.MARKS] & Mark.LATE) != 0).sum())
        once = rows[~is_again]
        self._kinds += np.bincount(once[:, At.KIND], minlength=len(Kind))
        ended = once[np.isin(once[:, At.KIND], ENDS)]
        self._use += ended[:, At.FIGURES : At.FIGURES + USES].sum(axis=0, dtype=np.float64)
        self._ended += self._by_activity(ended)
        self._failed += self._by_activity(ended[np.isin(ended[:, At.KIND], FAILURES)])
        self._see(once[np.isin(once[:, At.KIND], IN_CONCEPTS), At.RUN])
        began = once[once[:, At.KIND] == Kind.STARTED, At.RUN]
        workflow = self._roster.of(began, Of.WORKFLOW)
        self._runs += np.bincount(workflow, minlength=len(self._runs))

    def _see(self, runs: Ints) -> None:
        while self._roster.count > len(self._seen):
            self._seen = np.concatenate([self._seen, np.zeros_like(self._seen)])
        self._seen[runs] = True

    def _by_activity(self, rows: Ints) -> Ints:
        version = self._roster.of(rows[:, At.RUN], Of.VERSION)
        cells = rows[:, At.TYPE] * VERSIONS_MAX + version
        return np.bincount(cells, minlength=self._ended.size).reshape(self._ended.shape)

    def leave(self, waiting: Ints) -> None:
        """These would have come after the end."""
        self._waiting = waiting[(waiting[:, At.MARKS] & Mark.DUPLICATE) == 0]

    def told(self) -> dict[str, Any]:
        assert self._waiting is not None, "the truth is known when all is made"
        by_kind = {kind.name.lower(): int(self._kinds[kind]) for kind in Kind}
        states: dict[str, int] = {}
        for kind, state in STATES.items():
            states[state] = states.get(state, 0) + int(self._kinds[kind])
        states |= self._open_attempts()
        runs = {state: int(self._kinds[kind]) for kind, state in RUN_STATES.items()}
        seen = int(self._seen.sum())
        return {
            "events": self._rows,
            "events_once": int(self._kinds.sum()),
            "duplicates": self._duplicates,
            "late": self._late,
            "unrelated": sum(int(self._kinds[kind]) for kind in UNRELATED),
            "by_kind": by_kind,
            "runs": {"seen": seen, **runs, "open": seen - sum(runs.values())},
            "attempts": states,
            "failures": sum(int(self._kinds[kind]) for kind in FAILURES),
            "runs_by_workflow": dict(zip(self._world.workflows, self._runs.tolist(), strict=True)),
            "totals": self._totals(),
            "attempts_by_activity": self._told_activities(),
        }

    def _totals(self) -> dict[str, float]:
        """Over all attempts that ended."""
        inputs, outputs, cpu, _, read, written = self._use.tolist()
        return {
            "input_bytes": inputs,
            "output_bytes": outputs,
            "cpu_seconds": cpu / 100,
            "read_bytes": read,
            "written_bytes": written,
        }

    def _told_activities(self) -> list[dict[str, Any]]:
        """How many attempts of each activity and version ran to an end, and how many failed."""
        world = self._world
        return [
            {
                "workflow": world.workflows[workflow],
                "activity": world.types[place],
                "version": world.versions[workflow][version],
                "ended": int(self._ended[place, version]),
                "failed": int(self._failed[place, version]),
            }
            for place, workflow in enumerate(world.workflow_of.tolist())
            for version in range(len(world.versions[workflow]))
        ]

    def _open_attempts(self) -> dict[str, int]:
        """Attempts without an end in the archive: those with a start, and those that only wait.

        Counted as events that came, corrected by the few that came too late for the archive while
        a later one of the same attempt did not.
        """
        assert self._waiting is not None
        waiting = self._waiting
        kind = waiting[:, At.KIND]
        late_ends = _keys(waiting[np.isin(kind, ENDS)])
        late_starts = waiting[kind == Kind.EXECUTING]
        ending = (late_starts[:, At.MARKS] & Mark.HAS_END) != 0
        only_ended = len(_keys(late_starts[ending]) - late_ends)
        # Of those that are lost an end never comes, so that only their start can be there.
        still_to_start = _keys(late_starts[~ending]) | (_keys(late_starts[ending]) & late_ends)
        unqueued = len(_keys(waiting[kind == Kind.QUEUED]) - still_to_start)
        queued, started = int(self._kinds[Kind.QUEUED]), int(self._kinds[Kind.EXECUTING])
        ended = sum(int(self._kinds[each]) for each in ENDS)
        return {
            "running": started - ended + only_ended,
            "queued": queued - started - only_ended + unqueued,
        }


def _keys(rows: Ints) -> set[tuple[int, ...]]:
    return set(map(tuple, rows[:, [At.RUN, At.ACTIVITY, At.ATTEMPT]].tolist()))


assert set(RUN_STATES) <= set(OF_RUNS)

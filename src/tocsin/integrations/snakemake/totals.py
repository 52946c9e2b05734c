"""How many jobs there will be, and which: sent when known, and again when there are more."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tocsin.client.tracking.run import plan_pieces
from tocsin.integrations.files import Files
from tocsin.integrations.message_builder import LIST_ITEMS_MAX, MessageBuilder, Pairs
from tocsin.integrations.snakemake.numbers import NUMBERS_MAX, numbers_in, plain
from tocsin.integrations.snakemake.plan import PlannedJob
from tocsin.wire.blackboard.messages import Message

SIZES_MAX = 100_000  # of external files remembered: jobs share their references
HELD_MAX = 1_000  # jobs of a rule whose numbers are sent as soon as one differs


@dataclass(slots=True)
class _Late:
    """Jobs of a rule whose numbers no plan had: the first one's, and who had the same."""

    first: dict[str, float]
    differ: bool
    ids: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Totals:
    """The plan as far as it was sent. Totals come late, and grow at checkpoints."""

    plan: dict[str, PlannedJob] = field(default_factory=dict)
    sizes: dict[str, int | None] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    late: dict[str, _Late] = field(default_factory=dict)
    total: int | None = None
    sent: int = 0

    def planned(
        self, builder: MessageBuilder, files: Files, at_s: float, jobs: Sequence[PlannedJob]
    ) -> list[Message]:
        """The jobs that are new or have other parents, in pieces; the rest was sent before."""
        fresh = [job for job in jobs if self.plan.get(job.id) != job]
        if not fresh and len(jobs) == self.total:
            return []
        self.plan = {job.id: job for job in jobs}
        self.total = len(jobs)
        counts = json.dumps(Counter(job.rule for job in jobs))
        pieces = plan_pieces(self._task(job, files) for job in fresh)
        known = {"PlannedActivities": str(self.total), "PlannedCounts": counts}
        return [
            self._message(builder, at_s, {**known, "ActivityPlan": piece}) for piece in pieces
        ] or [self._message(builder, at_s, known)]

    def below(self, ids: Iterable[str]) -> set[str]:
        """All that was to run after one of these."""
        children: dict[str, list[str]] = {}
        for job in self.plan.values():
            for parent in job.parents:
                children.setdefault(parent, []).append(job.id)
        found: set[str] = set()
        waiting = list(ids)
        while waiting:
            new = [id for id in children.get(waiting.pop(), ()) if id not in found]
            found.update(new)
            waiting.extend(new)
        return found

    def counted(
        self, builder: MessageBuilder, at_s: float, stats: Mapping[str, object]
    ) -> list[Message]:
        """The counts of jobs for each rule, where there is no plan."""
        counts = {str(rule): n for rule, n in stats.items() if rule != "total" and _count(n)}
        total = sum(n for n in counts.values() if isinstance(n, int))
        if total == self.total:
            return []
        self.total = total
        pairs = {"PlannedActivities": str(total), "PlannedCounts": json.dumps(counts)}
        return [self._message(builder, at_s, pairs)]

    def grown(self, builder: MessageBuilder, at_s: float, total: int) -> list[Message]:
        if total == self.total:
            return []
        self.total = total
        return [self._message(builder, at_s, {"PlannedActivities": str(total)})]

    def numbers_of(self, id: str, rule: str, command: object) -> str | None:
        """Tasks of a plan with numbers that the plan had not, as a job begins with this command.

        Where the plan has none of a rule, nothing is sent until one of its jobs differs from those
        before it; then theirs are sent, too.
        """
        now = numbers_in(command)
        planned = self.plan.get(id)
        if not now or self.total is None:
            return None
        if planned is not None and planned.numbers is not None:
            other = {n: now[n] for n, value in planned.numbers if now.get(n, value) != value}
            return _numbers_text(rule, {id: other}) if other else None
        if rule not in self.late:
            self.late[rule] = _Late(now, any(job.numbers for job in self._of(rule)))
        late = self.late[rule]
        if not late.differ and now == late.first:
            late.ids += [id] if len(late.ids) < HELD_MAX else []
            return None
        before = dict.fromkeys(late.ids, late.first)
        late.differ, late.ids = True, []
        return _numbers_text(rule, {**before, id: now})

    def _of(self, rule: str) -> Iterator[PlannedJob]:
        return (job for job in self.plan.values() if job.rule == rule)

    def _message(self, builder: MessageBuilder, at_s: float, pairs: Pairs) -> Message:
        self.sent += 1
        is_plan = self.sent == 1 and "ActivityPlan" in pairs
        concept = "ActivityPlanned" if is_plan else "WorkflowChanged"
        given = self.given if self.sent == 1 else {}
        return builder.of_run(concept, at_s, {**given, **pairs}, mark=str(self.sent))

    def _task(self, job: PlannedJob, files: Files) -> dict[str, object]:
        sizes = [self._size(path, files) for path in job.external[:LIST_ITEMS_MAX]]
        task: dict[str, object] = {
            "id": job.id,
            "type": job.rule,
            "parents": list(job.parents),
            "external_bytes": sum(size for size in sizes if size is not None),
        }
        if job.numbers:
            task["numbers"] = plain(job.numbers)
        return {**task, "checkpoint": True} if job.checkpoint else task

    def _size(self, path: str, files: Files) -> int | None:
        if path not in self.sizes:
            if len(self.sizes) >= SIZES_MAX:
                return None
            self.sizes[path] = files.size(path)
        return self.sizes[path]


def _numbers_text(rule: str, numbers: Mapping[str, Mapping[str, float]]) -> str:
    return json.dumps(
        [
            {"id": id, "type": rule, "numbers": plain(tuple(each.items())[:NUMBERS_MAX])}
            for id, each in numbers.items()
        ]
    )


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

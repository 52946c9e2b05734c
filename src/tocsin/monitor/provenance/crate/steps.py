"""The steps of a workflow as its run showed them, in an order in which they can be done."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin.monitor.provenance.files import RunFiles
from tocsin.monitor.provenance.view import RunView


@dataclass(frozen=True, slots=True)
class Step:
    """What activities of one type and version do. No position if the steps go round in a circle."""

    type: str
    version: str
    position: int | None


_Key = tuple[str, str]


def step_order(view: RunView, files: RunFiles) -> list[Step]:
    """Every step, after all whose results it needs."""
    needs = _needs(view, files)
    order: dict[_Key, int] = {}
    waiting = {step: set(before) for step, before in needs.items()}
    needed_by: dict[_Key, list[_Key]] = {}
    for step, before in needs.items():
        for other in before:
            needed_by.setdefault(other, []).append(step)
    ready = [step for step, before in waiting.items() if not before]
    while ready:
        step = ready.pop(0)
        order[step] = len(order)
        for later in needed_by.get(step, ()):
            waiting[later].discard(step)
            if not waiting[later]:
                ready.append(later)
    is_circle = len(order) < len(needs)
    listed = list(needs) if is_circle else list(order)
    return [Step(*step, None if is_circle else order[step]) for step in listed]


def _needs(view: RunView, files: RunFiles) -> dict[_Key, set[_Key]]:
    """Which steps each step waits for: those of its parents, and those that make what it reads."""
    step_of = {each.id: (each.type, each.version) for each in view.activities}
    maker = {path: step_of[each.id] for each in view.activities for path in files.outputs(each)}
    needs: dict[_Key, set[_Key]] = {step: set() for step in step_of.values()}
    for activity in view.activities:
        mine = needs[step_of[activity.id]]
        mine.update(step_of[parent] for parent in activity.parents if parent in step_of)
        mine.update(maker[path] for path in activity.inputs if path in maker)
    for step, before in needs.items():
        before.discard(step)
    return needs

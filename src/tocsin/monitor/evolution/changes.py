"""What changed between two versions of a workflow, one Change for each thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from tocsin.monitor.evolution.bindings import Rebinding, rebindings
from tocsin.monitor.evolution.definition import Activity, Binding, Definition

Told = str | dict[str, object] | None
"""How a thing was or is; None where it was not or is not."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change, by the concept of the ontology that names it.

    `activity` is None for what belongs to the workflow as a whole. `what` says which part.
    """

    concept: str
    activity: str | None
    what: str
    was: Told
    now: Told


def compare(was: Definition | None, now: Definition) -> list[Change]:
    """Everything that changed, removals first; without an earlier version all is added.

    What an activity that came or went is bound to is told with the activity, not beside it.
    """
    if was is None:
        return [_added(activity) for activity in now.activities]
    renamed = _renamed(was, now)
    old = {renamed.get(each.name, each.name): _renamed_in(each, renamed) for each in was.activities}
    new = {each.name: each for each in now.activities}
    back = {now_name: was_name for was_name, now_name in renamed.items()}
    changes = [_removed(activity) for name, activity in old.items() if name not in new]
    for name, activity in new.items():
        if name not in old:
            changes.append(_added(activity))
            continue
        if name in back:
            changes.append(Change("ActivityReplaced", name, "name", back[name], name))
        changes.extend(_between(old[name], activity))
    changes.extend(_whole(was, now, renamed))
    return changes


def _whole(was: Definition, now: Definition, renamed: Mapping[str, str]) -> Iterable[Change]:
    """What belongs to no activity."""
    yield from _bound(None, "output", _sources_in(was.outputs, renamed), now.outputs)
    yield from _texts("ParameterChanged", None, was.parameters, now.parameters)
    logic = dict(was.logic)
    if logic.get("target") in renamed:
        logic["target"] = renamed[logic["target"]]
    yield from _texts("LogicChanged", None, logic, now.logic)
    if was.language != now.language:
        yield Change("LogicChanged", None, "language", was.language, now.language)


def _between(was: Activity, now: Activity) -> Iterable[Change]:
    if was.does != now.does:
        parts = [
            part for part in {**was.does, **now.does} if was.does.get(part) != now.does.get(part)
        ]
        yield Change(
            "ActivityReplaced",
            now.name,
            ", ".join(parts),
            {part: was.does.get(part) for part in parts},
            {part: now.does.get(part) for part in parts},
        )
    yield from _bound(now.name, "input", was.inputs, now.inputs)
    yield from _bound(now.name, "output", was.outputs, now.outputs)
    yield from _texts("ParameterChanged", now.name, was.parameters, now.parameters)
    yield from _texts("LogicChanged", now.name, was.logic, now.logic)


def _bound(
    activity: str | None, side: str, was: tuple[Binding, ...], now: tuple[Binding, ...]
) -> Iterable[Change]:
    """Changes of what the ports of one side are bound to."""
    found, moved = rebindings(was, now)
    for each in found:
        port = (each.now or each.was or Binding("")).port
        yield Change(
            _concept(each), activity, f"{side} {port}".rstrip(), _told(each.was), _told(each.now)
        )
    if moved:
        yield Change("LogicChanged", activity, f"order of {side}s", _in_order(was), _in_order(now))


def _concept(rebinding: Rebinding) -> str:
    if rebinding.was is None:
        return "BindingAdded"
    return "BindingRemoved" if rebinding.now is None else "BindingChanged"


def _told(binding: Binding | None) -> Told:
    if binding is None:
        return None
    told: dict[str, object] = {"value": binding.value} if binding.value else {}
    if binding.sources:
        told["from"] = ["/".join(filter(None, source)) for source in binding.sources]
    return told


def _in_order(bindings: tuple[Binding, ...]) -> Told:
    return ", ".join(binding.value for binding in bindings if not binding.port)


def _texts(
    concept: str, activity: str | None, was: Mapping[str, str], now: Mapping[str, str]
) -> Iterable[Change]:
    for what in {**was, **now}:
        if was.get(what) != now.get(what):
            yield Change(concept, activity, what, was.get(what), now.get(what))


def _added(activity: Activity) -> Change:
    return Change("ActivityAdded", activity.name, "activity", None, _summary(activity))


def _removed(activity: Activity) -> Change:
    return Change("ActivityRemoved", activity.name, "activity", _summary(activity), None)


def _summary(activity: Activity) -> dict[str, object]:
    """An activity without its name and without what it has none of."""
    summary: dict[str, object] = {
        "does": activity.does,
        "inputs": [{"port": each.port, **_fields(each)} for each in activity.inputs],
        "outputs": [{"port": each.port, **_fields(each)} for each in activity.outputs],
        "parameters": activity.parameters,
        "logic": activity.logic,
    }
    return {name: value for name, value in summary.items() if value}


def _fields(binding: Binding) -> dict[str, object]:
    told = _told(binding)
    assert isinstance(told, dict)
    return told


def _renamed(was: Definition, now: Definition) -> dict[str, str]:
    """Old names to new ones, of activities that differ in nothing else.

    What they read from may have been renamed with them, so sources are left out of the comparison.
    """
    old_names = {activity.name for activity in was.activities}
    new_names = {activity.name for activity in now.activities}
    came: dict[str, list[str]] = {}
    for activity in now.activities:
        if activity.name not in old_names:
            came.setdefault(_body(activity), []).append(activity.name)
    renamed: dict[str, str] = {}
    for activity in was.activities:
        same = came.get(_body(activity)) if activity.name not in new_names else None
        if same:
            renamed[activity.name] = same.pop(0)
    return renamed


def _body(activity: Activity) -> str:
    """All of an activity but its name and where its inputs come from, to compare by."""
    plain = tuple(Binding(each.port, each.value) for each in activity.inputs)
    parts = asdict(replace(activity, name="", inputs=plain))
    return repr(
        [sorted(part.items()) if isinstance(part, dict) else part for part in parts.values()]
    )


def _renamed_in(activity: Activity, renamed: Mapping[str, str]) -> Activity:
    """The activity as it would be if it had always had today's names."""
    return replace(
        activity,
        name=renamed.get(activity.name, activity.name),
        inputs=_sources_in(activity.inputs, renamed),
    )


def _sources_in(bindings: tuple[Binding, ...], renamed: Mapping[str, str]) -> tuple[Binding, ...]:
    return tuple(
        replace(
            each,
            sources=tuple((renamed.get(name, name), port) for name, port in each.sources),
        )
        for each in bindings
    )

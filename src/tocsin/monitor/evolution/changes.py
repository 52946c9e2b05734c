"""What changed between two versions of a workflow, one Change for each thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from tocsin.monitor.evolution.definition import Activity, Binding, Definition

ChangeValue = str | dict[str, object] | None
"""How a thing was or is; None where it was not or is not."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change, by the concept of the ontology that names it.

    `activity` is None for what belongs to the workflow as a whole. `what` says which part.
    """

    concept: str
    activity: str | None
    what: str
    was: ChangeValue
    now: ChangeValue


def compare(was: Definition | None, now: Definition) -> list[Change]:
    """Everything that changed, removals first; without an earlier version all is added.

    What an activity that came or went is bound to is written with the activity, not beside it.
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
            _concept(each),
            activity,
            f"{side} {port}".rstrip(),
            _binding_value(each.was),
            _binding_value(each.now),
        )
    if moved:
        yield Change("LogicChanged", activity, f"order of {side}s", _in_order(was), _in_order(now))


def _concept(rebinding: Rebinding) -> str:
    if rebinding.was is None:
        return "BindingAdded"
    return "BindingRemoved" if rebinding.now is None else "BindingChanged"


def _binding_value(binding: Binding | None) -> ChangeValue:
    if binding is None:
        return None
    bound: dict[str, object] = {"value": binding.value} if binding.value else {}
    if binding.sources:
        bound["from"] = ["/".join(filter(None, source)) for source in binding.sources]
    return bound


def _in_order(bindings: tuple[Binding, ...]) -> ChangeValue:
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
    bound = _binding_value(binding)
    assert isinstance(bound, dict)
    return bound


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


def brief(value: object) -> str | None:
    """How a thing was or is: a text, a binding, or all that an activity was made of."""
    if isinstance(value, dict):
        if "from" in value or "value" in value:
            sources = ", ".join(map(str, value.get("from", ())))
            text = str(value.get("value", ""))
            return f"{text} from {sources}".strip() if sources else text
        parts = value.get("does") or value
        if not isinstance(parts, dict):
            return str(parts)
        return "; ".join(_part(part) for part in parts.values() if part)
    return value if value is None else str(value)


def _part(part: object) -> str:
    listed = part if isinstance(part, list) else [part]
    return ", ".join(brief(each) or "" for each in listed)


@dataclass(frozen=True, slots=True)
class Rebinding:
    """A binding as it was and as it is; None where it was not, or is not any more."""

    was: Binding | None
    now: Binding | None


def rebindings(was: Iterable[Binding], now: Iterable[Binding]) -> tuple[list[Rebinding], bool]:
    """What was bound again, and whether nameless ports that stayed have changed places."""
    old, new = list(was), list(now)
    old_named = {each.port: each for each in old if each.port}
    new_named = {each.port: each for each in new if each.port}
    found = [
        Rebinding(old_named.get(port), new_named.get(port))
        for port in {**old_named, **new_named}
        if old_named.get(port) != new_named.get(port)
    ]
    old_plain = [each for each in old if not each.port]
    new_plain = [each for each in new if not each.port]
    found += _nameless(old_plain, new_plain)
    kept_old, kept_new = _kept(old_plain, new_plain), _kept(new_plain, old_plain)
    return found, kept_old != kept_new


def _nameless(old: list[Binding], new: list[Binding]) -> list[Rebinding]:
    """Those that are the same are paired wherever they stand, the rest in the order they have.

    So an input put before the others is one that was added, not a change of all behind it.
    """
    gone, came = _without(old, new), _without(new, old)
    # The same file from another activity is the same binding, rebound; so it is paired first.
    by_value: dict[str, list[Binding]] = {}
    for each in came:
        by_value.setdefault(each.value, []).append(each)
    found: list[Rebinding] = []
    rest: list[Binding] = []
    for each in gone:
        same = by_value.get(each.value)
        if same:
            found.append(Rebinding(each, same.pop(0)))
        else:
            rest.append(each)
    paired = Counter(each.now for each in found)
    left: list[Binding] = []
    for each in came:
        if paired[each]:
            paired[each] -= 1
        else:
            left.append(each)
    both = min(len(rest), len(left))
    found += [Rebinding(each, left[place]) for place, each in enumerate(rest[:both])]
    found += [Rebinding(each, None) for each in rest[both:]]
    found += [Rebinding(None, each) for each in left[both:]]
    return found


def _without(bindings: list[Binding], others: list[Binding]) -> list[Binding]:
    """Those that the others do not have, each counted as often as it is there."""
    spare = Counter(others)
    left: list[Binding] = []
    for each in bindings:
        if spare[each]:
            spare[each] -= 1
        else:
            left.append(each)
    return left


def _kept(bindings: list[Binding], others: list[Binding]) -> list[Binding]:
    """Those that both have, in the order of the first."""
    spare = Counter(others)
    kept: list[Binding] = []
    for each in bindings:
        if spare[each]:
            spare[each] -= 1
            kept.append(each)
    return kept

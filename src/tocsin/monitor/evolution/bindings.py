"""Which bindings of one side of an activity came, went and changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tocsin.monitor.evolution.definition import Binding


@dataclass(frozen=True, slots=True)
class Rebinding:
    """A binding as it was and as it is; None where it was not, or is not any more."""

    was: Binding | None
    now: Binding | None


def rebindings(was: Iterable[Binding], now: Iterable[Binding]) -> tuple[list[Rebinding], bool]:
    """What was bound anew, and whether nameless ports that stayed have changed places."""
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

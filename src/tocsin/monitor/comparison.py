"""What differs between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.wire.api.run_views import (
    DifferenceInfo,
    FileChangeInfo,
    RunDetails,
    SideInfo,
    TypeCompared,
    ValuesInfo,
)


def differences(a: RunDetails, b: RunDetails) -> list[DifferenceInfo]:
    """What two runs do not have in common, by name."""
    names = (
        *("workflow", "version", "engine", "engine_version", "user", "host", "state"),
        *("duration_s", "error", "command", "working_directory"),
    )
    found = [
        DifferenceInfo(what=name, a=getattr(a, name), b=getattr(b, name))
        for name in names
        if getattr(a, name) != getattr(b, name)
    ]
    for name in sorted(a.resources.keys() | b.resources.keys()):
        one, other = a.resources.get(name), b.resources.get(name)
        if one != other:
            found.append(DifferenceInfo(what=name, a=one, b=other))
    return found


def differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, ValuesInfo]:
    """The parameters that are not the same, each with both values."""
    return {
        name: ValuesInfo(a=a.get(name), b=b.get(name))
        for name in sorted(a.keys() | b.keys())
        if a.get(name) != b.get(name) or (name in a) != (name in b)
    }


def changed_files(a: RunDetails, b: RunDetails) -> list[FileChangeInfo]:
    """The files of the definition that were added, removed or changed."""
    old = {each.path: each.sha256 or each.text for each in a.files}
    new = {each.path: each.sha256 or each.text for each in b.files}
    found: list[FileChangeInfo] = []
    for path in sorted(old.keys() | new.keys()):
        if path not in old:
            found.append(FileChangeInfo(path=path, change="added"))
        elif path not in new:
            found.append(FileChangeInfo(path=path, change="removed"))
        elif old[path] != new[path]:
            found.append(FileChangeInfo(path=path, change="changed"))
    return found


def type_compared(kind: str, a: SideInfo | None, b: SideInfo | None) -> TypeCompared:
    """A type of activity in both runs, and how their mean durations compare."""
    mean_a = None if a is None else a.mean_s
    mean_b = None if b is None else b.mean_s
    ratio = round(mean_b / mean_a, 4) if mean_a and mean_b is not None else None
    return TypeCompared(type=kind, a=a, b=b, ratio=ratio)

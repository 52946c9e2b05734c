"""Definition: a workflow as its author wrote it, in one shape for every language."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

TEXT_CHARS_MAX = 2_000  # of one command, expression or value; a longer one goes by its digest

Source = tuple[str, str]
"""An activity and its port; the activity is empty for an input of the workflow itself."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What one port is bound to: a file, an expression, or the ports of other activities.

    A port without a name is distinguished from its neighbours by its value and its place.
    """

    port: str
    value: str = ""
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Activity:
    """One unit of work: a rule or a step. Each mapping is from a short word to a text."""

    name: str
    does: dict[str, str] = field(default_factory=dict)  # command, script, tool, container
    inputs: tuple[Binding, ...] = ()
    outputs: tuple[Binding, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    logic: dict[str, str] = field(default_factory=dict)  # scatter, when, checkpoint, retries


@dataclass(frozen=True, slots=True)
class Definition:
    """A whole workflow: its activities by unique names, and what belongs to none of them."""

    language: str
    activities: tuple[Activity, ...] = ()
    outputs: tuple[Binding, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    logic: dict[str, str] = field(default_factory=dict)


def short(text: str) -> str:
    """The text, or its beginning and a digest of all of it: equal exactly when the texts are."""
    if len(text) <= TEXT_CHARS_MAX:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:TEXT_CHARS_MAX]}... ({len(text)} characters, sha256 {digest})"


def with_unique_names(activities: Iterable[Activity]) -> tuple[Activity, ...]:
    """Two of one name, as in the branches of a condition, become `name` and `name (2)`."""
    taken: set[str] = set()
    numbers: dict[str, int] = {}  # where to go on looking, so that many of one name cost no more
    unique: list[Activity] = []
    for activity in activities:
        name = activity.name
        while name in taken:
            number = numbers[activity.name] = numbers.get(activity.name, 1) + 1
            name = f"{activity.name} ({number})"
        taken.add(name)
        unique.append(activity if name == activity.name else replace(activity, name=name))
    return tuple(unique)

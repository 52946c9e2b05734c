"""Evolution: what is told when a version of a workflow appears, in the words of `tocsin wf`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.event.event import Event
from tocsin.monitor.times import NS_PER_US, format_ns
from tocsin.ontology import built_in
from tocsin.synth.world import USERS, World
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event

US_PER_MS = 1_000


@dataclass(frozen=True, slots=True)
class Told:
    """One event of a workflow's evolution, and when it is received."""

    received_us: int
    concept: str
    event: Event


def told(world: World) -> list[Told]:
    """All of them, in order. The first version of each workflow is older than the archive."""
    found = [
        each
        for workflow, versions in enumerate(world.versions)
        for number in range(1, len(versions))
        for each in _version(world, workflow, number)
    ]
    return sorted(found, key=lambda each: each.received_us)


def _version(world: World, workflow: int, number: int) -> Iterator[Told]:
    at_us = int(world.version_at_ms[workflow, number]) * US_PER_MS
    time = format_ns(at_us * NS_PER_US)
    name, versions = world.workflows[workflow], world.versions[workflow]
    identity = {"WorkflowName": name, "WorkflowVersion": versions[number]}
    identity["PreviousVersion"] = versions[number - 1]
    identity |= {"UserName": USERS[workflow % len(USERS)], "Host": world.hosts[0]}
    pairs = [*_changes(world, workflow, number), ("VersionSaved", _saved(world, workflow, number))]
    for place, (concept, others) in enumerate(pairs, 1):
        message = Message(
            {concept: time, **identity, **others},
            id=f"{number + 1}/{versions[number]}/{place}/{concept}",
            source=f"/workflows/{name}",
            time=time,
        )
        event = to_event(message, id="", source="", vocabulary=built_in())
        yield Told(at_us + place, concept, event)


def _changes(world: World, workflow: int, number: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Activities whose law another version has, as the change of a parameter."""
    for place in _types(world, workflow):
        was, now = (_precision(world, place, each) for each in (number - 1, number))
        if was != now:
            detail = {"what": "parameter precision", "was": was, "is": now}
            yield (
                "ParameterChanged",
                {"ActivityType": world.types[place], "ChangeDetail": _json(detail)},
            )


def _saved(world: World, workflow: int, number: int) -> dict[str, str]:
    versions = world.versions[workflow]
    activities = [
        {
            "name": world.types[place],
            "does": {"command": f"run-{world.types[place]}"},
            "parameters": {"precision": _precision(world, place, number)},
        }
        for place in _types(world, workflow)
    ]
    definition = {"language": "synthetic", "activities": activities}
    text = _json(definition)
    file = {"path": "workflow.json", "sha256": hashlib.sha256(text.encode()).hexdigest()}
    detail = {
        "what": "version",
        "was": versions[number - 1],
        "is": versions[number],
        "number": number + 1,
        "definition": definition,
    }
    return {"WorkflowFile": _json([{**file, "text": text}]), "ChangeDetail": _json(detail)}


def _precision(world: World, place: int, version: int) -> str:
    """A text that differs exactly when the law does."""
    laws = world.laws
    return f"{laws.base_s[place, version]:.6g},{laws.slope_s[place, version]:.6g}"


def _types(world: World, workflow: int) -> range:
    first = int(world.first_type[workflow])
    return range(first, first + int(world.type_count[workflow]))


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))

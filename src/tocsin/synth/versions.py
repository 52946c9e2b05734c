"""Versions: the events published when a new version of a workflow appears, as `tocsin wf` does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass

from tocsin.event.event import Event
from tocsin.monitor.times import NS_PER_US, shown
from tocsin.ontology import built_in
from tocsin.synth.rows import US_PER_MS
from tocsin.synth.world import USERS, World
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.blackboard.normal import to_event


@dataclass(frozen=True, slots=True)
class VersionEvent:
    received_us: int
    concept: str
    event: Event


def version_events(world: World) -> list[VersionEvent]:
    """All of them, in order. The first version of each workflow is older than the archive."""
    events = [
        event
        for workflow, versions in enumerate(world.versions)
        for number in range(1, len(versions))
        for event in _events_of(world, workflow, number)
    ]
    return sorted(events, key=lambda each: each.received_us)


def _events_of(world: World, workflow: int, number: int) -> Iterator[VersionEvent]:
    at_us = int(world.version_at_ms[workflow, number]) * US_PER_MS
    time = shown(at_us * NS_PER_US)
    name, (was, version) = (
        world.workflows[workflow],
        world.versions[workflow][number - 1 : number + 1],
    )
    fields = {
        "WorkflowName": name,
        "WorkflowVersion": version,
        "PreviousVersion": was,
        "UserName": USERS[workflow % len(USERS)],
        "Host": world.hosts[0],
    }
    saved = ("VersionSaved", _saved(world, workflow, number))
    for place, (concept, details) in enumerate([*_changes(world, workflow, number), saved], 1):
        message = Message(
            {concept: time, **fields, **details},
            id=f"{number + 1}/{version}/{place}/{concept}",
            source=f"/workflows/{name}",
            time=time,
        )
        event = to_event(message, id="", source="", vocabulary=built_in())
        yield VersionEvent(at_us + place, concept, event)


def _changes(world: World, workflow: int, number: int) -> Iterator[tuple[str, dict[str, str]]]:
    """An activity with another law in this version has another value of a parameter."""
    for place in world.types_of(workflow):
        was, now = (_precision(world, place, each) for each in (number - 1, number))
        if was != now:
            detail = _json({"what": "parameter precision", "was": was, "is": now})
            yield "ParameterChanged", {"ActivityType": world.types[place], "ChangeDetail": detail}


def _saved(world: World, workflow: int, number: int) -> dict[str, str]:
    was, version = world.versions[workflow][number - 1 : number + 1]
    activities = [
        {
            "name": world.types[place],
            "does": {"command": f"run-{world.types[place]}"},
            "parameters": {"precision": _precision(world, place, number)},
        }
        for place in world.types_of(workflow)
    ]
    definition = {"language": "synthetic", "activities": activities}
    text = _json(definition)
    digest = hashlib.sha256(text.encode()).hexdigest()
    detail = {"what": "version", "was": was, "is": version, "number": number + 1}
    return {
        "WorkflowFile": _json([{"path": "workflow.json", "sha256": digest, "text": text}]),
        "ChangeDetail": _json({**detail, "definition": definition}),
    }


def _precision(world: World, place: int, version: int) -> str:
    """A text that differs exactly when the law does."""
    laws = world.laws
    return f"{laws.base_s[place, version]:.6g},{laws.slope_s[place, version]:.6g}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))

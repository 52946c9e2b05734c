"""What a crate says of the run: who did what, with which files, and how it went.

An OrganizeAction is the engine's work, a ControlAction an activity, a CreateAction each attempt at
it. What was skipped, or taken from a cache, did not take place and has no action.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tocsin.monitor.provenance.crate.languages import LANGUAGES
from tocsin.monitor.provenance.crate.plan import CratePlan, Entity, known, reference
from tocsin.monitor.provenance.crate.workflow import source_id, tool_id
from tocsin.monitor.provenance.files import first_entity
from tocsin.monitor.provenance.names import Name, attempt_name, bb, local, run_name, step_name
from tocsin.monitor.provenance.run_statements import DERIVATIONS_MAX, clean
from tocsin.monitor.provenance.view import attempts, interval, ran
from tocsin.ontology import in_use
from tocsin.wire.api.run_views import ActivityInfo

_FAILED: Final = "http://schema.org/FailedActionStatus"
_STATUS: Final[Mapping[str, str]] = {
    "succeeded": "http://schema.org/CompletedActionStatus",
    "completed": "http://schema.org/CompletedActionStatus",
    "running": "http://schema.org/ActiveActionStatus",
    "held": "http://schema.org/ActiveActionStatus",
    "queued": "http://schema.org/ActiveActionStatus",
    "idle": "http://schema.org/ActiveActionStatus",
    "suspended": "http://schema.org/ActiveActionStatus",
    "created": "http://schema.org/PotentialActionStatus",
}
# Every other state is written as a failure, as a status that is left out is taken for success.
_WHY: Final[Mapping[str, str]] = {
    "lost": "Its end was not reported.",
    "cancelled": "It was cancelled.",
    "aborted": "It was aborted.",
    "retrying": "This attempt failed and was to be made again.",
}
_UNITS: Final = "http://qudt.org/vocab/unit/"
_ENGINE_RUN: Final = "#engine-run"


def action_entities(plan: CratePlan) -> Iterator[Entity]:
    """Every action, who took part in it, and every file it was about."""
    yield from _agents(plan)
    if plan.main is not None:
        if plan.ran:  # an OrganizeAction must have a ControlAction
            yield _organised(plan)
        yield _whole(plan, plan.main)
    for activity in plan.view.activities:
        yield from _activity(plan, activity)
    yield from _files(plan)


def control_id(activity_id: str) -> str:
    return f"#control-{local(activity_id)}"


def _agents(plan: CratePlan) -> Iterator[Entity]:
    run = plan.view.run
    if run.user:
        user = plan.iri(Name("user", local(run.user)))
        yield {"@id": user, "@type": "Person", "name": clean(run.user)}
    urls = {language.name.casefold(): language.url for language in LANGUAGES}
    yield known(
        {
            "@id": plan.iri(Name("engine", local(run.engine))),
            "@type": "SoftwareApplication",
            "name": clean(run.engine) or "unknown",
            "softwareVersion": clean(run.engine_version),
            "url": urls.get(run.engine.casefold()),
        }
    )


def _user(plan: CratePlan) -> Entity | None:
    user = plan.view.run.user
    return reference(plan.iri(Name("user", local(user)))) if user else None


def _organised(plan: CratePlan) -> Entity:
    run = plan.view.run
    controls = [
        reference(control_id(activity.id))
        for activity in plan.view.activities
        if any(ran(attempt) for attempt in attempts(activity))
    ]
    started, ended = interval(run.started, run.ended)
    return known(
        {
            "@id": _ENGINE_RUN,
            "@type": "OrganizeAction",
            "name": clean(f"Run of {run.engine or 'the engine'} {run.engine_version}".strip()),
            "instrument": reference(plan.iri(Name("engine", local(run.engine)))),
            "agent": _user(plan),
            "startTime": started,
            "endTime": ended,
            "object": controls,  # nothing else: the profile takes only ControlActions
            "result": reference(plan.iri(run_name(run.id))),
            **_outcome(run.state, run.error, run.exit_code),
        }
    )


def _whole(plan: CratePlan, main: int) -> Entity:
    run = plan.view.run
    started, ended = interval(run.started, run.ended)
    parameters = [Name("parameter", local(name)) for name in run.parameters]
    inputs = [first_entity(path) for path in plan.files.external]
    action = plan.iri(run_name(run.id))
    return known(
        {
            "@id": action,
            "@type": "CreateAction",
            "name": clean(f"Run {run.id} of {run.workflow or 'the workflow'}"),
            "description": clean(run.command or ""),
            "instrument": reference(source_id(plan, main)),
            "agent": _user(plan),
            "location": clean(run.host),
            "startTime": started,
            "endTime": ended,
            "object": [reference(plan.iri(name)) for name in (*parameters, *inputs)],
            "result": [reference(plan.iri(_last(plan, path))) for path in plan.files.results],
            **_outcome(run.state, run.error, run.exit_code),
        }
    )


def _last(plan: CratePlan, path: str) -> Name:
    versions = plan.files.rewritten.get(path)
    return versions[-1].entity if versions else first_entity(path)


def _outcome(state: str, error: str | None, exit_code: int | None) -> Entity:
    status = _STATUS.get(state, _FAILED)
    if status != _FAILED:
        return {"actionStatus": status}
    why = clean(error or "") or _WHY.get(state, "It failed.")
    code = "" if exit_code is None else f" (exit code {exit_code})"
    return {"actionStatus": status, "error": f"{why}{code}"}


def _activity(plan: CratePlan, activity: ActivityInfo) -> Iterator[Entity]:
    took_place = [attempt for attempt in attempts(activity) if ran(attempt)]
    if not took_place:
        return
    names = [attempt_name(activity.id, attempt.attempt) for attempt in took_place]
    last = took_place[-1]
    if plan.main is not None:
        yield {
            "@id": control_id(activity.id),
            "@type": "ControlAction",
            "name": clean(f"Have {activity.id} done"),
            "instrument": reference(plan.iri(step_name(activity.type, activity.version))),
            "object": [reference(plan.iri(name)) for name in names],
            **_outcome(last.state, last.error, last.exit_code),
        }
    for attempt, name in zip(took_place, names, strict=True):
        yield _attempt(plan, activity, attempt, name)
        yield from _usage(plan.iri(name), attempt.resources)


def _attempt(plan: CratePlan, activity: ActivityInfo, attempt: ActivityInfo, name: Name) -> Entity:
    started, ended = interval(attempt.started, attempt.ended)
    read = [plan.files.entity_read(path, attempt, name) for path in dict.fromkeys(attempt.inputs)]
    outputs = plan.files.outputs(attempt) if attempt.state == "succeeded" else []
    again = f", attempt {attempt.attempt}" if attempt.attempt > 1 else ""
    action = plan.iri(name)
    return known(
        {
            "@id": action,
            "@type": "CreateAction",
            "name": clean(f"{activity.type or 'activity'}: {activity.id}{again}"),
            "description": clean(attempt.command or ""),
            "instrument": reference(tool_id(activity.type, activity.version)),
            "agent": _user(plan),
            "location": clean(attempt.host or ""),
            "startTime": started,
            "endTime": ended,
            "object": [reference(plan.iri(entity)) for entity in read],
            "result": [
                reference(plan.iri(plan.files.entity_written(path, name))) for path in outputs
            ],
            "containerImage": clean(attempt.container or ""),
            "resourceUsage": [reference(_usage_id(action, each)) for each in attempt.resources],
            **_outcome(attempt.state, attempt.error, attempt.exit_code),
        }
    )


def _usage_id(action: str, concept: str) -> str:
    return f"{action}:{local(concept)}"


def _usage(action: str, resources: Mapping[str, float]) -> Iterator[Entity]:
    concepts = in_use().concepts
    for name, value in resources.items():
        concept = concepts.get(name)
        unit = concept.unit if concept is not None else ""
        yield known(
            {
                "@id": _usage_id(action, name),
                "@type": "PropertyValue",
                "name": clean(name),
                "propertyID": concept.iri if concept else f"urn:blackboard:wf#{bb(name).local}",
                "unitCode": unit if ":" in unit else f"{_UNITS}{unit}" if unit else None,
                "value": str(value),
            }
        )


def _files(plan: CratePlan) -> Iterator[Entity]:
    """Every file that an action read or made. The crate names them; it does not carry them."""
    based: dict[str, list[Entity]] = {}
    for activity in plan.view.activities:
        if activity.state != "cached":
            continue
        sources = [reference(plan.iri(first_entity(path))) for path in activity.inputs]
        outputs = plan.files.outputs(activity)
        if len(sources) * len(outputs) > DERIVATIONS_MAX:
            collection = plan.iri(Name("inputs", local(activity.id)))
            yield {"@id": collection, "@type": "Collection", "hasPart": sources}
            sources = [reference(collection)]
        based.update(dict.fromkeys(outputs, sources))
    parts: dict[Name, list[Entity]] = {}
    for directory, file in plan.files.contained(plan.view):
        parts.setdefault(directory, []).append(reference(plan.iri(file)))
    for path, name in plan.files.entities():
        size = None if path in plan.files.rewritten else plan.files.sizes[path]
        yield known(
            {
                "@id": plan.iri(name),
                "@type": "Dataset" if plan.files.is_directory(path) else "File",
                "name": clean(path) or "unnamed",
                "alternateName": clean(path),
                "contentSize": None if size is None else str(size),
                "isBasedOn": based.get(path),
                "hasPart": parts.get(name),
            }
        )

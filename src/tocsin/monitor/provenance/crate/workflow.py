"""What a crate says of the workflow itself: its files, steps, tools and parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from tocsin.monitor.provenance.crate.missing import missing, summary
from tocsin.monitor.provenance.crate.plan import (
    METADATA,
    PARAMETERS,
    README,
    CratePlan,
    Entity,
    known,
    reference,
)
from tocsin.monitor.provenance.crate.steps import Step, step_order
from tocsin.monitor.provenance.lineage import lineage
from tocsin.monitor.provenance.names import Name, local, run_name, step_name, workflow_name
from tocsin.monitor.provenance.run_statements import clean
from tocsin.monitor.provenance.view import attempts, moment, ran
from tocsin.wire.api.run_views import FileInfo

_CRATE: Final = "https://w3id.org/ro/crate/1.1"
_WORKFLOW_PROFILE: Final = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
_RUN_PROFILES: Final = {
    "process": "Process Run Crate",
    "workflow": "Workflow Run Crate",
    "provenance": "Provenance Run Crate",
}
_VERSION: Final = "0.5"
_LANGUAGE_UNKNOWN: Final = "#language"
_ABOUT: Final = "What a workflow run did, as its engine reported it to a Tocsin broker."


def described(plan: CratePlan) -> Iterator[Entity]:
    """The crate, its profiles, and the workflow; without a workflow's file, only its tools."""
    steps = step_order(plan.view, plan.files)
    yield _descriptor(plan)
    yield _root(plan)
    yield from _profiles(plan)
    yield {"@id": README, "@type": "File", "name": "How to read this crate and run it again"}
    if plan.view.run.parameters:
        yield {
            "@id": PARAMETERS,
            "@type": "File",
            "name": "Parameters of the run",
            "encodingFormat": "application/json",
        }
    for number, source in enumerate(plan.sources):
        if number != plan.main:
            yield _source(plan, number, source)
    if plan.main is not None:
        yield _main(plan, plan.main, steps)
        yield _language(plan)
        yield from _parameters(plan)
        yield from _earlier(plan)
        for step in steps:
            yield known(
                {
                    "@id": plan.iri(step_name(step.type, step.version)),
                    "@type": "HowToStep",
                    "name": clean(step.type),
                    "position": None if step.position is None else str(step.position),
                    "workExample": reference(tool_id(step.type, step.version)),
                }
            )
    for step in steps:
        yield _tool(step)


def source_id(plan: CratePlan, number: int) -> str:
    """A file that the crate carries is named by its place, any other by its IRI."""
    source = plan.sources[number]
    if source.text is None:
        return plan.iri(Name("source", local(source.path)))
    return quote(plan.layout.places[number])


def tool_id(activity_type: str, version: str) -> str:
    return f"#tool-{step_name(activity_type, version).local}"


def parameter_id(parameter: str) -> str:
    return f"#parameter-{local(parameter)}"


def _profile_ids(plan: CratePlan) -> list[str]:
    # Provenance Run Crate demands a step that was executed.
    count = 1 if plan.main is None else 3 if plan.ran else 2
    kinds = list(_RUN_PROFILES)[:count]
    run_profiles = [f"https://w3id.org/ro/wfrun/{kind}/{_VERSION}" for kind in kinds]
    return run_profiles if plan.main is None else [*run_profiles, _WORKFLOW_PROFILE]


def _descriptor(plan: CratePlan) -> Entity:
    profiles = [_CRATE] if plan.main is None else [_CRATE, _WORKFLOW_PROFILE]
    return {
        "@id": METADATA,
        "@type": "CreativeWork",
        "about": reference("./"),
        "conformsTo": [reference(profile) for profile in profiles],
    }


def _profiles(plan: CratePlan) -> Iterator[Entity]:
    for profile in _profile_ids(plan):
        *_, kind, version = profile.split("/")
        name = _RUN_PROFILES.get(kind, "Workflow RO-Crate")
        yield {"@id": profile, "@type": "CreativeWork", "name": name, "version": version}


def _root(plan: CratePlan) -> Entity:
    run = plan.view.run
    parts = [README, *([PARAMETERS] if run.parameters else [])]
    parts += [source_id(plan, number) for number in range(len(plan.sources))]
    parts += [plan.iri(name) for _, name in plan.files.entities()]
    times = (plan.view.exported, run.ended, run.last_event, run.started)
    whole = plan.iri(run_name(run.id))
    if plan.main is not None:
        mentions = [whole]
    else:
        mentions = [
            plan.iri(Name("activity", f"{local(activity.id)}.{attempt.attempt}"))
            for activity in plan.view.activities
            for attempt in attempts(activity)
            if ran(attempt)
        ]
    return known(
        {
            "@id": "./",
            "@type": "Dataset",
            "conformsTo": [reference(profile) for profile in _profile_ids(plan)],
            "name": clean(f"Run {run.id} of {run.workflow or 'a workflow'}"),
            "description": " ".join([_ABOUT, *summary(missing(plan))]),
            "datePublished": next((text for time in times if (text := moment(time))), None),
            "license": "The license of the workflow is not known.",
            "identifier": whole,
            "hasPart": [reference(part) for part in parts],
            "mainEntity": None if plan.main is None else reference(source_id(plan, plan.main)),
            "mentions": [reference(action) for action in mentions],
        }
    )


def _source(plan: CratePlan, number: int, source: FileInfo) -> Entity:
    text = source.text
    return known(
        {
            "@id": source_id(plan, number),
            "@type": "File",
            "name": clean(source.path),
            "alternateName": clean(source.path),
            "sha256": clean(source.sha256),
            "contentSize": None if text is None else str(len(clean(text).encode())),
            "description": "Not in the crate: its text was not sent." if text is None else None,
        }
    )


def _main(plan: CratePlan, number: int, steps: list[Step]) -> Entity:
    run = plan.view.run
    # A tool that is a part of the workflow must be one that an action used.
    used = [step for step in steps if (step.type, step.version) in plan.ran]
    tools = [reference(tool_id(step.type, step.version)) for step in used]
    older = [plan.iri(workflow_name(*pair.older)) for pair in lineage(plan.view)][:1]
    again = f"Run it again, in {plan.layout.working_directory}: {plan.command}"
    return {
        **_source(plan, number, plan.sources[number]),
        **known(
            {
                "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"],
                "name": clean(run.workflow or plan.sources[number].path),
                "version": clean(run.version),
                "description": again if plan.command else None,
                "programmingLanguage": reference(
                    plan.language.id if plan.language else _LANGUAGE_UNKNOWN
                ),
                "hasPart": tools,
                "step": [reference(plan.iri(step_name(step.type, step.version))) for step in steps],
                "input": [reference(parameter_id(name)) for name in run.parameters],
                "isBasedOn": [reference(version) for version in older],
            }
        ),
    }


def _language(plan: CratePlan) -> Entity:
    if plan.language is None:
        name = plan.view.run.engine or "unknown"
        return {"@id": _LANGUAGE_UNKNOWN, "@type": "ComputerLanguage", "name": clean(name)}
    language = plan.language
    return {
        "@id": language.id,
        "@type": "ComputerLanguage",
        "name": language.name,
        "identifier": reference(language.url),
        "url": reference(language.url),
    }


def _earlier(plan: CratePlan) -> Iterator[Entity]:
    """The versions that led to this one, each based on the one before."""
    pairs = list(lineage(plan.view))
    for place, pair in enumerate(pairs):
        before = pairs[place + 1].older if place + 1 < len(pairs) else None
        workflow, version = pair.older
        yield known(
            {
                "@id": plan.iri(workflow_name(workflow, version)),
                "@type": "SoftwareSourceCode",
                "name": clean(workflow),
                "version": clean(version),
                "isBasedOn": reference(plan.iri(workflow_name(*before))) if before else None,
            }
        )


def _tool(step: Step) -> Entity:
    return known(
        {
            "@id": tool_id(step.type, step.version),
            "@type": "SoftwareApplication",
            "name": clean(step.type) or "unnamed",
            "softwareVersion": clean(step.version),
        }
    )


def _parameters(plan: CratePlan) -> Iterator[Entity]:
    for name, value in plan.view.run.parameters.items():
        kind, written, is_list = _parameter(value)
        yield known(
            {
                "@id": parameter_id(name),
                "@type": "FormalParameter",
                "additionalType": kind,
                "name": clean(name),
                "multipleValues": "True" if is_list else None,
            }
        )
        yield {
            "@id": plan.iri(Name("parameter", local(name))),
            "@type": "PropertyValue",
            "exampleOfWork": reference(parameter_id(name)),
            "name": clean(name),
            "value": written,
        }


def _parameter(value: object) -> tuple[str, object, bool]:
    """Its type in the words of schema.org, its value as text, and whether it is a list."""
    if isinstance(value, list | tuple) and value:
        each = [_parameter(item) for item in value]
        kinds = {kind for kind, _, _ in each}
        if len(kinds) == 1 and kinds <= set(_SCALARS.values()):
            return kinds.pop(), [written for _, written, _ in each], True
    kind = _SCALARS.get(type(value), "PropertyValue" if isinstance(value, dict) else "Text")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return kind, clean(text), False


_SCALARS: Final[dict[type, str]] = {bool: "Boolean", int: "Integer", float: "Float", str: "Text"}

"""A run as statements of PROV: what was planned, who did it, what took place, with what.

Only what took place is an activity. A step that was skipped, taken from a cache or not come to is
an entity, the plan to do it; a result from a cache is derived from its inputs, and nobody here made
it. No time is invented. Statements of one keyword come together, as PROV-JSON needs them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from tocsin.monitor.provenance.files import RunFiles, run_files
from tocsin.monitor.provenance.lineage import lineage
from tocsin.monitor.provenance.names import (
    Name,
    attempt_name,
    bb,
    local,
    run_name,
    step_name,
    workflow_name,
)
from tocsin.monitor.provenance.statements import (
    ACTIVITY,
    AGENT,
    ASSOCIATED,
    DELEGATED,
    DERIVED,
    ENTITY,
    GENERATED,
    INFORMED,
    LABEL,
    MEMBER,
    REVISED,
    STARTED,
    TYPE,
    USED,
    VALUE,
    Attributes,
    Statement,
    Value,
    relation,
)
from tocsin.monitor.provenance.view import RunView, attempts, interval, moment, ran, ran_attempts
from tocsin.wire.api.run_views import ActivityInfo, RunDetails

# Past this many pairs of a cached output and an input, the inputs are written as one collection.
DERIVATIONS_MAX: Final = 64

_STATE: Final = Name("tocsin", "state")
_PLAN: Final = (TYPE, Name("prov", "Plan"))
_COLLECTION: Final = (TYPE, Name("prov", "Collection"))
_EVENTS: Final[Mapping[str, str]] = {
    "planned": "ActivityPlanned",
    "queued": "ActivityQueued",
    "held": "ActivityHeld",
    "running": "ActivityExecuting",
    "retrying": "ActivityRetrying",
    "succeeded": "ActivitySucceeded",
    "failed": "ActivityFailed",
    "cancelled": "ActivityCancelled",
    "skipped": "ActivitySkipped",
    "cached": "ActivityCached",
}


def statements(view: RunView) -> Iterator[Statement]:
    """The whole run, in one order for every notation."""
    files = run_files(view)
    yield from _agents(view)
    yield from _plans(view)
    yield from _data(view, files)
    yield from _unrun(view)
    yield from _activities(view)
    yield from _delegations(view.run)
    yield from _associations(view)
    yield from _starts(view)
    yield from _informed(view)
    yield from _usages(view, files)
    yield from _generations(view, files)
    yield from _derivations(view, files)
    yield from _members(view, files)


def clean(text: str) -> str:
    """The text without lone surrogates, which UTF-8 cannot carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _attributes(pairs: Mapping[str, Value | None]) -> Attributes:
    """Those of the attributes that are known, under their concepts."""
    return tuple(
        (bb(concept), clean(value) if isinstance(value, str) else value)
        for concept, value in pairs.items()
        if value is not None and value != ""
    )


def _measured(resources: Mapping[str, float]) -> Attributes:
    return tuple((bb(concept), _number(value)) for concept, value in resources.items())


def _number(value: float) -> Value:
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    return int(value) if value == int(value) else float(value)


# Agents ---------------------------------------------------------------------------------------


def _agents(view: RunView) -> Iterator[Statement]:
    run = view.run
    if run.engine:
        label = f"{run.engine} {run.engine_version}".strip()
        yield _agent("engine", run.engine, label, Name("prov", "SoftwareAgent"))
    if run.user:
        yield _agent("user", run.user, run.user, Name("prov", "Person"))
    hosts = {run.host: None} if run.host else {}
    for _, attempt in ran_attempts(view):
        if attempt.host:
            hosts[attempt.host] = None
    for host in hosts:
        yield _agent("host", host, host, bb("Host"))


def _agent(prefix: str, text: str, label: str, kind: Name) -> Statement:
    types: Attributes = ((TYPE, kind),)
    if prefix == "engine":
        types += ((TYPE, Name("wfprov", "WorkflowEngine")),)
    return Statement(AGENT, Name(prefix, local(text)), (), (*types, (LABEL, clean(label))))


def _delegations(run: RunDetails) -> Iterator[Statement]:
    if run.engine and run.user:
        yield relation(DELEGATED, Name("engine", local(run.engine)), Name("user", local(run.user)))


def _associations(view: RunView) -> Iterator[Statement]:
    run, name = view.run, run_name(view.run.id)
    engine = Name("engine", local(run.engine)) if run.engine else None
    yield relation(ASSOCIATED, name, engine, workflow_name(run.workflow, run.version))
    if run.user:
        yield relation(ASSOCIATED, name, Name("user", local(run.user)))
    if run.host:
        yield relation(ASSOCIATED, name, Name("host", local(run.host)))
    for activity, attempt in ran_attempts(view):
        this = attempt_name(activity.id, attempt.attempt)
        yield relation(ASSOCIATED, this, engine, step_name(activity.type, activity.version))
        if attempt.host:
            yield relation(ASSOCIATED, this, Name("host", local(attempt.host)))


# Plans and data ---------------------------------------------------------------------------------


def _plans(view: RunView) -> Iterator[Statement]:
    run = view.run
    steps = dict.fromkeys((each.type, each.version) for each in view.activities)
    sub_processes = tuple(
        (Name("wfdesc", "hasSubProcess"), step_name(kind, version)) for kind, version in steps
    )
    label = f"{run.workflow or 'workflow'} {run.version}".strip()
    collection = (_COLLECTION,) if run.files else ()
    types: Attributes = (_PLAN, (TYPE, Name("wfdesc", "Workflow")), *collection)
    attributes = _attributes({"WorkflowName": run.workflow, "WorkflowVersion": run.version})
    this = workflow_name(run.workflow, run.version)
    yield Statement(ENTITY, this, (), (*types, (LABEL, clean(label)), *attributes, *sub_processes))
    ancestors = dict.fromkeys(pair.older for pair in lineage(view))
    ancestors.pop((run.workflow, run.version), None)
    for workflow, version in ancestors:
        attributes = _attributes({"WorkflowName": workflow, "WorkflowVersion": version})
        name = workflow_name(workflow, version)
        yield Statement(ENTITY, name, (), (_PLAN, (TYPE, Name("wfdesc", "Workflow")), *attributes))
    for kind, version in steps:
        attributes = _attributes({"ActivityType": kind, "ActivityVersion": version})
        types = (_PLAN, (TYPE, Name("wfdesc", "Process")))
        yield Statement(ENTITY, step_name(kind, version), (), (*types, *attributes))


def _data(view: RunView, files: RunFiles) -> Iterator[Statement]:
    artifact = (TYPE, Name("wfprov", "Artifact"))
    for source in {each.path: each for each in view.run.files}.values():
        attributes: Attributes = ((LABEL, clean(source.path)),)
        attributes += ((Name("tocsin", "sha256"), clean(source.sha256)),) if source.sha256 else ()
        if source.text is not None:
            size = len(clean(source.text).encode())
            attributes += ((Name("tocsin", "bytes"), size),)
        types: Attributes = ((TYPE, bb("WorkflowFile")),)
        yield Statement(ENTITY, Name("source", local(source.path)), (), (*types, *attributes))
    for parameter, value in view.run.parameters.items():
        attributes = ((LABEL, clean(parameter)), (VALUE, parameter_value(value)))
        types = (artifact, (TYPE, bb("Parameters")))
        yield Statement(ENTITY, Name("parameter", local(parameter)), (), (*types, *attributes))
    for path, name in files.entities():
        size_known = files.sizes[path] if path not in files.rewritten else None
        attributes = ((LABEL, clean(path)),)
        attributes += ((Name("tocsin", "bytes"), size_known),) if size_known is not None else ()
        types = (artifact, _COLLECTION) if files.is_directory(path) else (artifact,)
        yield Statement(ENTITY, name, (), (*types, *attributes))
    for activity in view.activities:
        if _many_derivations(activity, files):
            yield Statement(ENTITY, _collection(activity), (), (_COLLECTION,))


def parameter_value(value: object) -> Value:
    """A number or text as it is; anything else as JSON."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return clean(json.dumps(value, ensure_ascii=False))


def _unrun(view: RunView) -> Iterator[Statement]:
    """Activities of which no attempt took place."""
    for activity in view.activities:
        if any(ran(attempt) for attempt in attempts(activity)):
            continue
        attributes = _attributes(
            {
                "ActivityId": activity.id,
                "ActivityType": activity.type,
                # When it was known to be cached, or skipped: a moment, nothing that took time.
                "EventTime": activity.ended,
                "ErrorMessage": activity.error,
            }
        )
        types: Attributes = (_PLAN, (TYPE, bb(_EVENTS.get(activity.state, "ActivityPlanned"))))
        state: Attributes = ((_STATE, activity.state),)
        yield Statement(
            ENTITY, Name("unrun", local(activity.id)), (), (*types, *attributes, *state)
        )


# Activities -------------------------------------------------------------------------------------


def _activities(view: RunView) -> Iterator[Statement]:
    run = view.run
    attributes = _attributes(
        {
            "RunId": run.id,
            "ErrorMessage": run.error,
            "ExitCode": run.exit_code,
            "CommandLine": run.command,
            "EngineVersion": run.engine_version,
            "WorkingDirectory": run.working_directory,
        }
    )
    types: Attributes = ((TYPE, Name("wfprov", "WorkflowRun")),)
    state: Attributes = ((_STATE, run.state),)
    when = interval(run.started, run.ended)
    rest = (*types, *attributes, *state, *_backwards(run.ended, when), *_measured(run.resources))
    yield Statement(ACTIVITY, run_name(run.id), when, rest)
    if run.parent and run.parent != run.id:
        yield Statement(ACTIVITY, run_name(run.parent), (None, None), types)
    for activity, attempt in ran_attempts(view):
        when = interval(attempt.started, attempt.ended)
        name = attempt_name(activity.id, attempt.attempt)
        yield Statement(ACTIVITY, name, when, _of_attempt(activity, attempt, when))


def _of_attempt(
    activity: ActivityInfo, attempt: ActivityInfo, when: tuple[str | None, str | None]
) -> Attributes:
    types: Attributes = ((TYPE, Name("wfprov", "ProcessRun")),)
    if attempt.state in _EVENTS:
        types += ((TYPE, bb(_EVENTS[attempt.state])),)
    attributes = _attributes(
        {
            "ActivityId": activity.id,
            "ActivityType": activity.type,
            "Attempt": attempt.attempt,
            "ExitCode": attempt.exit_code,
            "ErrorMessage": attempt.error,
            "CommandLine": attempt.command,
            "LogFile": attempt.log_file,
            "EngineJobId": attempt.job,
            "InputBytes": attempt.input_bytes,
            "OutputBytes": attempt.output_bytes,
        }
    )
    label: Attributes = ((LABEL, clean(activity.type or activity.id)),)
    state: Attributes = ((_STATE, attempt.state),)
    rest = (*attributes, *state, *_backwards(attempt.ended, when), *_measured(attempt.resources))
    # A reader may keep one of each, so what was reported twice is written once.
    return tuple(dict.fromkeys((*types, *label, *rest)))


def _backwards(ended: str | None, when: tuple[str | None, str | None]) -> Attributes:
    """An end that cannot be one is written as what was reported."""
    return _attributes({"EndTime": ended}) if when[1] is None else ()


def _starts(view: RunView) -> Iterator[Statement]:
    run = run_name(view.run.id)
    if view.run.parent and view.run.parent != view.run.id:
        parent = run_name(view.run.parent)
        yield relation(STARTED, run, None, parent, moment(view.run.started))
    for activity, attempt in ran_attempts(view):
        this = attempt_name(activity.id, attempt.attempt)
        yield relation(STARTED, this, None, run, moment(attempt.started))


def _informed(view: RunView) -> Iterator[Statement]:
    """Who waited for whom: an activity for those before it, an attempt for the one that failed."""
    last = {activity.id: attempt.attempt for activity, attempt in ran_attempts(view)}
    for activity in view.activities:
        before: Name | None = None
        for attempt in attempts(activity):
            if not ran(attempt):
                continue
            this = attempt_name(activity.id, attempt.attempt)
            if before is not None and before != this:
                yield relation(INFORMED, this, before)
            before = this
            for parent in dict.fromkeys(activity.parents):
                if parent in last and parent != activity.id:
                    yield relation(INFORMED, this, attempt_name(parent, last[parent]))


# Data -------------------------------------------------------------------------------------------


def _usages(view: RunView, files: RunFiles) -> Iterator[Statement]:
    run = run_name(view.run.id)
    for parameter in view.run.parameters:
        yield relation(USED, run, Name("parameter", local(parameter)))
    for activity, attempt in ran_attempts(view):
        this = attempt_name(activity.id, attempt.attempt)
        for path in dict.fromkeys(attempt.inputs):
            yield relation(USED, this, files.entity_read(path, attempt, this))


def _generations(view: RunView, files: RunFiles) -> Iterator[Statement]:
    for activity, attempt in ran_attempts(view):
        if attempt.state != "succeeded":
            continue
        this = attempt_name(activity.id, attempt.attempt)
        for path in files.outputs(attempt):
            yield relation(GENERATED, files.entity_written(path, this), this)


def _derivations(view: RunView, files: RunFiles) -> Iterator[Statement]:
    revision: Attributes = ((TYPE, Name("prov", "Revision")),)
    for pair in lineage(view):
        newer, older = workflow_name(*pair.newer), workflow_name(*pair.older)
        if pair.is_fork:
            yield relation(DERIVED, newer, older)
        else:
            yield relation(REVISED, newer, older, attributes=revision)
    for versions in files.rewritten.values():
        for older_file, newer_file in pairwise(versions):
            yield relation(REVISED, newer_file.entity, older_file.entity, attributes=revision)
    for activity in view.activities:
        if activity.state != "cached":
            continue
        outputs = [Name("file", local(path)) for path in files.outputs(activity)]
        if _many_derivations(activity, files):
            yield from (relation(DERIVED, output, _collection(activity)) for output in outputs)
            continue
        for path in dict.fromkeys(activity.inputs):
            source = Name("file", local(path))
            yield from (relation(DERIVED, output, source) for output in outputs if output != source)


def _members(view: RunView, files: RunFiles) -> Iterator[Statement]:
    plan = workflow_name(view.run.workflow, view.run.version)
    for path in dict.fromkeys(each.path for each in view.run.files):
        yield relation(MEMBER, plan, Name("source", local(path)))
    for directory, file in files.contained(view):
        yield relation(MEMBER, directory, file)
    for activity in view.activities:
        if _many_derivations(activity, files):
            for path in dict.fromkeys(activity.inputs):
                yield relation(MEMBER, _collection(activity), Name("file", local(path)))


def _many_derivations(activity: ActivityInfo, files: RunFiles) -> bool:
    if activity.state != "cached":
        return False
    return len(activity.inputs) * len(files.outputs(activity)) > DERIVATIONS_MAX


def _collection(activity: ActivityInfo) -> Name:
    return Name("inputs", local(activity.id))

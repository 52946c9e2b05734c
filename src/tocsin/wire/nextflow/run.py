"""A run as Nextflow's metadata describe it, at its start and at its end."""

from __future__ import annotations

from tocsin.wire.engines.checked_values import (
    filled,
    member,
    moment,
    name,
    object_json,
    tail,
    text,
    whole,
)

_COMMIT_CHARS = 12


def workflow_name(workflow: object) -> str:
    """The project, which stays the same where the script is called main.nf as all others are."""
    named = (
        name(member(workflow, "projectName"))
        or name(member(workflow, "manifest", "name"))
        or name(member(workflow, "scriptName"))
    )
    if named is None and (script := name(member(workflow, "scriptFile"))) is not None:
        named = script.rpartition("/")[2]
    return named or ""


def started_pairs(metadata: object, sent: str) -> tuple[dict[str, str], str]:
    """The pairs of the start but the run's id, and the time."""
    time = moment(member(metadata, "workflow", "start")) or sent
    return filled({"WorkflowStarted": time, **_about(metadata)}), time


def ended_pairs(metadata: object, sent: str) -> tuple[str, dict[str, str], str]:
    """How it ended, the pairs of the end but the run's id, and the time."""
    workflow = member(metadata, "workflow")
    time = moment(member(workflow, "complete")) or sent
    message = tail(member(workflow, "errorMessage"))
    report = tail(member(workflow, "errorReport"))
    code = whole(member(workflow, "exitStatus"))
    succeeded = _succeeded(metadata, code, message)
    if succeeded:
        concept = "WorkflowCompleted"
    elif message is not None and message.startswith("SIG"):
        concept = "WorkflowAborted"  # the error is the signal that a person or a system sent
    else:
        concept = "WorkflowTerminated"
    pairs = {concept: time, **_about(metadata)}
    # Who succeeded also has an exit status, of nothing in particular.
    if not succeeded:
        pairs |= {
            "ExitCode": None if code is None else str(code),
            "ErrorMessage": message,
            "ErrorTrace": report,
        }
    return concept, filled(pairs), time


def _succeeded(metadata: object, code: int | None, message: str | None) -> bool:
    for place in (("workflow", "success"), ("success",)):
        if isinstance(value := member(metadata, *place), bool):
            return value
    return code == 0 if code is not None else message is None


def _about(metadata: object) -> dict[str, str | None]:
    workflow = member(metadata, "workflow")
    engine = member(workflow, "nextflow")
    parameters = member(metadata, "parameters") or member(metadata, "params")
    return {
        "WorkflowName": workflow_name(workflow),
        "WorkflowVersion": _version(workflow),
        "EngineName": "nextflow",
        "EngineVersion": name(member(engine, "version")) or name(engine),
        "UserName": name(member(workflow, "userName")),
        "CommandLine": text(member(workflow, "commandLine")),
        "WorkingDirectory": text(member(workflow, "launchDir")),
        "Container": text(member(workflow, "container")),
        "Parameters": object_json(parameters),
    }


def _version(workflow: object) -> str | None:
    """The commit, with the branch or tag that led to it; else the checksum of the script."""
    commit = name(member(workflow, "commitId"))
    if commit is None:
        return name(member(workflow, "scriptId"))
    revision = name(member(workflow, "revision"))
    short = commit[:_COMMIT_CHARS]
    return short if revision is None else name(f"{revision}@{short}")

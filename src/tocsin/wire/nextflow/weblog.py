"""One post of the weblog, as the messages that it stands for.

Nextflow posts each event once and does not try again, so any of them may be missing. A later one
therefore says all that is known by then: a task's end also says when it was submitted and began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.errors import BadRequest
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.engines.checked_values import filled, member, moment, name, read_json, text
from tocsin.wire.nextflow.names import Names
from tocsin.wire.nextflow.run import ended_pairs, started_pairs, workflow_name
from tocsin.wire.nextflow.task import Task, read_task, task_pairs

TASK_EVENTS = frozenset({"process_submitted", "process_started", "process_completed"})
_SESSION_CHARS = 8


def read_weblog(body: bytes, names: Names, received: str) -> list[Message]:
    """The messages; none if the event is of a kind that is not known.

    `received` is when it came in, for what has no time that can be read. BadRequest if it is no
    JSON object, or names no run.
    """
    post = read_json(body)
    run = run_id(post)
    if run is None:
        raise BadRequest(
            "the message names no run (runName, runId)",
            remedy="Send what Nextflow's -with-weblog sends.",
        )
    sent = moment(member(post, "utcTime")) or received
    kind = text(post.get("event")) or ""
    if kind == "started":
        return [_started(run, post, sent, names)]
    if kind == "completed":
        return [_ended(run, post, sent, names)]
    task = read_task(post.get("trace"), closed=kind in ("process_completed", "error"))
    if kind == "error":
        return _error(run, task, sent, names)
    if kind in TASK_EVENTS and task is not None:
        return [_task(run, task, sent, names)]
    return []


def run_id(post: object) -> str | None:
    """Who ran. `-resume` keeps the runId, which is the session's, so the run's name goes first."""
    run = name(member(post, "runName"))
    session = name(member(post, "runId"))
    if run is None or session is None:
        return run or session
    return name(f"{run}-{session[:_SESSION_CHARS]}")


def _message(run: str, what: str, pairs: dict[str, str], time: str) -> Message:
    return Message(pairs, id=f"{run}/{what}", source="/nextflow", time=time)


def _started(run: str, post: Mapping[str, Any], sent: str, names: Names) -> Message:
    workflow = member(post, "metadata", "workflow")
    names.started(run, workflow_name(workflow))
    pairs, time = started_pairs(post.get("metadata"), sent)
    return _message(run, "WorkflowStarted", {**pairs, "RunId": run}, time)


def _ended(run: str, post: Mapping[str, Any], sent: str, names: Names) -> Message:
    concept, pairs, time = ended_pairs(post.get("metadata"), sent)
    if not pairs.get("WorkflowName") and (workflow := names.workflow(run)):
        pairs["WorkflowName"] = workflow
    return _message(run, concept, {**pairs, "RunId": run}, time)


def _task(run: str, task: Task, sent: str, names: Names) -> Message:
    activity = names.activity(run, task.id, task.name, task.attempt)
    concept, pairs, time = task_pairs(task, sent)
    if concept == "ActivityRetrying" and task.id is not None:  # without one no retry is found
        names.will_retry(run, activity, task.name, task.attempt)
    whose = filled(
        {
            "RunId": run,
            "WorkflowName": names.workflow(run),
            "ActivityId": activity,
            "Attempt": str(task.attempt),
            "ReceivedTime": sent,  # when Nextflow sent it, by the clock of Nextflow's host
        }
    )
    # The task's own number makes the id: with it two tasks are never taken for one.
    number = activity if task.id is None else f"{activity}/{task.id}"
    return _message(run, f"{number}/{task.attempt}/{concept}", {**pairs, **whose}, time)


def _error(run: str, task: Task | None, sent: str, names: Names) -> list[Message]:
    """The run will end by a failure; Nextflow says of which task, unless it is its own."""
    messages: list[Message] = []
    fault = {"WorkflowException": sent, "RunId": run, "WorkflowName": names.workflow(run)}
    if task is not None:
        messages.append(_task(run, task, sent, names))
        pairs = messages[0].pairs
        wanted = ("ExitCode", "CommandLine", "WorkingDirectory")
        fault |= {concept: pairs[concept] for concept in wanted if concept in pairs}
        fault["ErrorMessage"] = f"the task {pairs['ActivityId']} failed"
    messages.append(_message(run, "WorkflowException", filled(fault), sent))
    return messages

"""One OpenLineage event, as the messages that it stands for. Nothing is remembered in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tocsin.errors import BadRequest, TooLarge
from tocsin.wire.blackboard.messages import Message
from tocsin.wire.engines.checked_values import filled, member, moment, name, object_json, read_json
from tocsin.wire.openlineage.facets import (
    airflow_try,
    command_pairs,
    dataset_pairs,
    engine_pairs,
    error_pairs,
    left_out,
    planned_tasks,
    upstream,
    version_of,
)
from tocsin.wire.openlineage.run_tree import RunTreeNode, node_of

BATCH_MAX: Final = 10_000
SOURCE: Final = "/openlineage"

RUN_CONCEPTS: Final[Mapping[str, str]] = {
    "START": "WorkflowStarted",
    "RUNNING": "WorkflowHeartbeat",
    "COMPLETE": "WorkflowCompleted",
    "ABORT": "WorkflowAborted",
    "FAIL": "WorkflowTerminated",
}
ACTIVITY_CONCEPTS: Final[Mapping[str, str]] = {
    "START": "ActivityExecuting",
    "COMPLETE": "ActivitySucceeded",
    "ABORT": "ActivityCancelled",
    "FAIL": "ActivityFailed",
}
SAYS_MORE: Final = frozenset({"RUNNING", "OTHER"})  # may come many times, and add to what is known


def read_event(body: bytes, received: str) -> list[Message]:
    """The messages; none if the event is about no run, or of a type that is not known.

    `received` is when it came in, for what has no time that can be read. BadRequest if it is no
    JSON object.
    """
    event = read_json(body)
    if not isinstance(event, dict):
        raise _no_event()
    return messages_of(event, received)


def read_batch(body: bytes, received: str) -> list[list[Message] | None]:
    """The messages of each event of the array, in order; None for what is no event at all."""
    events = read_json(body)
    if isinstance(events, dict):
        events = events.get("events")
    if not isinstance(events, list):
        raise _no_event()
    if len(events) > BATCH_MAX:
        raise TooLarge(
            f"the batch has {len(events)} events",
            remedy=f"Send at most {BATCH_MAX} at a time.",
        )
    return [messages_of(each, received) if isinstance(each, dict) else None for each in events]


def messages_of(event: Mapping[str, Any], received: str) -> list[Message]:
    """The messages of one event."""
    kind = event.get("eventType")
    kind = kind.upper() if isinstance(kind, str) else "OTHER"
    node = node_of(event)
    if node is None or not (kind in RUN_CONCEPTS or kind in SAYS_MORE):
        return []
    time = moment(event.get("eventTime")) or received
    messages: list[Message] = []
    if node.is_run:
        messages += _of_run(event, kind, node, time)
    if node.activity is not None:
        messages += _of_activity(event, kind, node, node.activity, time)
    return messages


def _of_run(event: Mapping[str, Any], kind: str, node: RunTreeNode, time: str) -> list[Message]:
    facets, job_facets = member(event, "run", "facets"), member(event, "job", "facets")
    dag_run = member(facets, "airflowDagRun", "dagRun")
    began = member(dag_run, "start_date")
    concept = RUN_CONCEPTS.get(kind)
    pairs = filled(
        {
            **({} if concept is None else {concept: time}),
            "RunId": node.run,
            "WorkflowName": node.workflow,
            "ParentRun": node.parent_run,
            "WorkflowVersion": version_of(job_facets),
            **engine_pairs(event),
            "UserName": name(member(dag_run, "triggering_user_name")),
            "Parameters": object_json(member(dag_run, "conf")),
            # Airflow repeats it in every event, so a start that was lost is known by the end.
            **({} if kind == "START" else {"WorkflowStarted": moment(began)}),
            "PlannedActivities": planned_tasks(job_facets),
            **error_pairs(facets),
        }
    )
    if node.activity is None:
        pairs |= filled({**dataset_pairs(event), **command_pairs(facets, job_facets)})
    messages = [_message(f"{node.run}/run/{_what(kind, concept, time)}", pairs, time)]
    for task, skipped in left_out(facets):
        about = {
            skipped: time,
            "RunId": node.run,
            "WorkflowName": node.workflow,
            "ActivityId": task,
            "ActivityType": task,
        }
        messages.append(_message(f"{node.run}/{task}/1/{skipped}", filled(about), time))
    return messages


def _of_activity(
    event: Mapping[str, Any], kind: str, node: RunTreeNode, activity: str, time: str
) -> list[Message]:
    facets, job_facets = member(event, "run", "facets"), member(event, "job", "facets")
    concept = ACTIVITY_CONCEPTS.get(kind)
    attempt, retries = airflow_try(facets)
    if concept == "ActivityFailed" and retries is not None and (attempt or 1) <= retries:
        concept = "ActivityRetrying"
    pairs = filled(
        {
            **({} if concept is None else {concept: time}),
            "RunId": node.run,
            "WorkflowName": node.workflow,
            "ActivityId": activity,
            "ActivityType": node.type,
            "Attempt": None if attempt is None else str(attempt),
            "ParentRun": node.parent_run,
            "ActivityVersion": version_of(job_facets),
            **engine_pairs(event),
            "EngineJobId": name(member(event, "run", "runId")),
            "ParentActivity": upstream(facets),
            **dataset_pairs(event),
            **command_pairs(facets, job_facets),
            **error_pairs(facets),
        }
    )
    what = f"{node.run}/{activity}/{attempt or 1}/{_what(kind, concept, time)}"
    return [_message(what, pairs, time)]


def _what(kind: str, concept: str | None, time: str) -> str:
    """The last part of an id: what may come more than once is distinguished by its time."""
    return f"{kind}/{time}" if kind in SAYS_MORE or concept is None else concept


def _message(id: str, pairs: dict[str, str], time: str) -> Message:
    return Message(pairs, id=id, source=SOURCE, time=time)


def _no_event() -> BadRequest:
    return BadRequest(
        "this is not an OpenLineage event",
        remedy="Send one JSON object with eventType, eventTime, run and job; "
        "arrays of them go to /api/v1/lineage/batch.",
    )

"""The part about workflow runs of the description of the API."""

from __future__ import annotations

import msgspec

from tocsin.wire.api.estimate_request import EstimateAsked
from tocsin.wire.api.file_views import FILE_VIEWS
from tocsin.wire.api.history_views import HISTORIES_SHOWN
from tocsin.wire.api.openapi_parts import (
    ID,
    REFERENCE,
    Json,
    in_path,
    operation,
    query,
    refer,
    text,
    whole,
)
from tocsin.wire.api.run_views import RUN_VIEWS

RUNS_SHOWN = (*RUN_VIEWS, *HISTORIES_SHOWN, *FILE_VIEWS)

_RUN_STATES = (
    *("created", "running", "idle", "suspended"),
    *("completed", "failed", "aborted", "lost"),
)
_ACTIVITY_STATES = (
    *("planned", "queued", "held", "running", "retrying", "succeeded"),
    *("failed", "cancelled", "skipped", "cached", "lost"),
)
_FORMATS = {
    "prov-json": "application/json",
    "prov-n": "text/provenance-notation",
    "turtle": "text/turtle",
    "crate": "application/zip",
}
_PAGES = (
    query("limit", "how many at most", whole(1, 1000)),
    query("after", "`next` of the last response", text()),
)


def runs_asked() -> Json:
    """The schemas of what is sent."""
    _, schemas = msgspec.json.schema_components([EstimateAsked], ref_template=REFERENCE)
    return dict(schemas)


def runs_paths() -> Json:
    return {**_run_paths(), **_detail_paths(), **_past_paths(), **_estimate_paths()}


def _run_paths() -> Json:
    wanted = [
        query("state", "in which state", {"enum": list(_RUN_STATES)}),
        query("workflow", "of which workflow", text()),
        query("engine", "run by which engine", text()),
    ]
    of_activities = [
        ID,
        query("state", "in which state", {"enum": list(_ACTIVITY_STATES)}),
        query("type", "of which type", text()),
        *_PAGES,
    ]
    return {
        "/runs": {
            "get": operation("List runs", {200: "RunsPage"}, parameters=[*wanted, *_PAGES]),
        },
        "/runs/{id}": {
            "get": operation("Show a run", {200: "WholeRunShown"}, parameters=[ID]),
        },
        "/runs/{id}/activities": {
            "get": operation(
                "List the activities of a run", {200: "ActivitiesPage"}, parameters=of_activities
            ),
        },
    }


def _detail_paths() -> Json:
    last = query("last", "how many at most", whole(1, 10_000))
    before = query("last", "events before each failure", whole(0, 50))
    one = [query("activity", "of this activity only", text())]
    return {
        "/runs/{id}/events": {
            "get": operation(
                "The last events of a run", {200: "MessagesShown"}, parameters=[ID, last, *one]
            ),
        },
        "/runs/{id}/failures": {
            "get": operation(
                "Why a run failed, and what came before",
                {200: "FailuresShown"},
                parameters=[ID, before],
            ),
        },
        "/runs/{id}/estimate": {
            "get": operation(
                "Estimate the time left of a run", {200: "EstimateShown"}, parameters=[ID]
            ),
        },
        "/runs/{id}/hints": {
            "get": operation(
                "Hints: which activities could run in parallel",
                {200: "HintsShown"},
                parameters=[ID],
            ),
        },
        "/runs/{id}/changes": {
            "get": operation(
                "What changed since the run before", {200: "ChangesShown"}, parameters=[ID]
            ),
        },
        "/runs/{id}/compare/{other}": {
            "get": operation(
                "Compare two runs",
                {200: "Comparison"},
                parameters=[ID, in_path("other", "the id of the run to compare with")],
            ),
        },
        "/runs/{id}/provenance": {"get": _provenance()},
    }


def _past_paths() -> Json:
    of_type = [
        in_path("type", "a type of activities, as in /activities"),
        query("workflow", "in this workflow only", text()),
        query("version", "of this version only", text()),
    ]
    name: Json = in_path("name", "the name of the workflow")
    of_name = [
        {
            **query("name", "a path, the end of one, or a pattern with *, ? and [...]", text()),
            "required": True,
        },
        query("role", "written (output) or read (input)", {"enum": ["output", "input"]}),
        query("depth", "how many steps of lineage to show for the first", whole(0, 20)),
        *_PAGES,
    ]
    return {
        "/files": {
            "get": operation(
                "Which runs wrote or read a file", {200: "FilesFound"}, parameters=of_name
            ),
        },
        "/activities": {
            "get": operation(
                "List activity types",
                {200: "TypesShown"},
                parameters=[query("workflow", "in this workflow only", text())],
            ),
        },
        "/activities/{type}": {
            "get": operation(
                "Statistics of one activity type", {200: "HistoryShown"}, parameters=of_type
            ),
        },
        "/workflows/{name}/versions": {
            "get": operation(
                "The recorded versions of a workflow",
                {200: "VersionsShown"},
                parameters=[name, *_PAGES],
            ),
        },
        "/workflows/{name}/changes": {
            "get": operation(
                "The recorded changes of a workflow",
                {200: "WorkflowChangesShown"},
                parameters=[name, query("version", "that led to this version", text())],
            ),
        },
    }


def _estimate_paths() -> Json:
    return {
        "/workflows/{name}/estimate": {
            "get": operation(
                "Estimate how long the next run would take",
                {200: "EstimateShown"},
                parameters=[in_path("name", "the name of the workflow")],
            ),
        },
        "/estimates": {
            "post": operation(
                "Estimate how long a run of these tasks would take",
                {200: "EstimateShown"},
                body={"application/json": refer("EstimateAsked")},
            ),
        },
    }


def _provenance() -> Json:
    wanted = query("format", "in which form", {"enum": list(_FORMATS)})
    found = operation("A run's provenance", {}, parameters=[ID, wanted])
    found["responses"]["200"] = {
        "description": "done",
        "content": {media_type: {} for media_type in _FORMATS.values()},
    }
    return found

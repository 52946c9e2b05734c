"""What can be asked about workflow runs, their activities, files and estimates."""

from __future__ import annotations

from typing import Final

from tocsin.wire.api.estimate_request import EstimateRequest
from tocsin.wire.api.file_views import FilesFound
from tocsin.wire.api.history_views import EstimateInfo, HistoryInfo
from tocsin.wire.api.openapi.operation import (
    JSON,
    PAGE,
    Media,
    json_body,
    one_of,
    operation,
    query,
    whole,
)
from tocsin.wire.api.run_views import (
    ACTIVITY_STATES,
    RUN_STATES,
    ActivitiesPage,
    Comparison,
    FailureList,
    HintList,
    MessageList,
    RunChanges,
    RunDetails,
    RunsPage,
    TypeList,
    VersionList,
    WorkflowChanges,
)

_PROVENANCE = {
    "prov-json": JSON,
    "prov-n": "text/provenance-notation",
    "turtle": "text/turtle",
    "crate": "application/zip",
}
_WORKFLOW = query("workflow", "in this workflow only")

RUN_OPERATIONS: Final = (
    operation(
        "GET /runs",
        "List runs",
        RunsPage,
        query("state", "in which state", one_of(RUN_STATES)),
        query("workflow", "of which workflow"),
        query("engine", "run by which engine"),
        *PAGE,
    ),
    operation("GET /runs/{id}", "Show a run", RunDetails),
    operation(
        "GET /runs/{id}/activities",
        "List the activities of a run",
        ActivitiesPage,
        query("state", "in which state", one_of(ACTIVITY_STATES)),
        query("type", "of which type"),
        *PAGE,
    ),
    operation(
        "GET /runs/{id}/events",
        "The last events of a run",
        MessageList,
        query("last", "how many at most", whole(1, 10_000)),
        query("activity", "of this activity only"),
    ),
    operation(
        "GET /runs/{id}/failures",
        "Why a run failed, and what came before",
        FailureList,
        query("last", "events before each failure", whole(0, 50)),
    ),
    operation("GET /runs/{id}/estimate", "Estimate the time left of a run", EstimateInfo),
    operation("GET /runs/{id}/hints", "Hints: which activities could run in parallel", HintList),
    operation("GET /runs/{id}/changes", "What changed since the run before", RunChanges),
    operation("GET /runs/{id}/compare/{other}", "Compare two runs", Comparison),
    operation(
        "GET /runs/{id}/provenance",
        "A run's provenance",
        Media(tuple(_PROVENANCE.values())),
        query("format", "in which form", one_of(_PROVENANCE)),
    ),
    operation(
        "GET /files",
        "Which runs wrote or read a file",
        FilesFound,
        {
            **query("name", "a path, the end of one, or a pattern with *, ? and [...]"),
            "required": True,
        },
        query("role", "written (output) or read (input)", one_of(("output", "input"))),
        query("depth", "how many steps of lineage to show for the first", whole(0, 20)),
        *PAGE,
    ),
    operation("GET /activities", "List activity types", TypeList, _WORKFLOW),
    operation(
        "GET /activities/{type}",
        "Statistics of one activity type",
        HistoryInfo,
        *(_WORKFLOW, query("version", "of this version only")),
    ),
    operation(
        "GET /workflows/{name}/versions",
        "The recorded versions of a workflow",
        VersionList,
        *PAGE,
    ),
    operation(
        "GET /workflows/{name}/changes",
        "The recorded changes of a workflow",
        WorkflowChanges,
        query("version", "that led to this version"),
    ),
    operation(
        "GET /workflows/{name}/estimate",
        "Estimate how long the next run would take",
        EstimateInfo,
    ),
    operation(
        "POST /estimates",
        "Estimate how long a run of these tasks would take",
        EstimateInfo,
        body=json_body(EstimateRequest),
    ),
)

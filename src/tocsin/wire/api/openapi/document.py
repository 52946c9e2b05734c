"""The API described as OpenAPI 3.1, from the operations and the types that they answer with."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from tocsin import __version__
from tocsin.wire.api import arrow
from tocsin.wire.api.estimate_request import EstimateRequest
from tocsin.wire.api.openapi.access_operations import ACCESS_OPERATIONS, ACCESS_REQUESTS
from tocsin.wire.api.openapi.broker_operations import BROKER_OPERATIONS
from tocsin.wire.api.openapi.grant_operations import GRANT_OPERATIONS, GRANT_REQUESTS
from tocsin.wire.api.openapi.operation import (
    REFERENCE,
    TEXT,
    Answer,
    Json,
    Media,
    Operation,
    ref,
    whole,
)
from tocsin.wire.api.openapi.requests import FILTERS, REQUESTS
from tocsin.wire.api.openapi.resource_operations import RESOURCE_OPERATIONS, RESOURCE_REQUESTS
from tocsin.wire.api.openapi.run_operations import RUN_OPERATIONS
from tocsin.wire.api.openapi.topic_operations import TOPIC_OPERATIONS, TOPIC_REQUESTS
from tocsin.wire.api.problem import MEDIA_TYPE, Problem
from tocsin.wire.api.views import CloudEvent
from tocsin.wire.blackboard.messages import Message

_PATH_PARAMETERS = {
    "id": "its id, as the list or the answer to its creation has it",
    "other": "the id of the run to compare with",
    "type": "a type of activities, as in /activities",
    "name": "the name of the workflow",
    "code": "a code such as T104",
}
_ARROW_HEADERS = {
    arrow.FIRST: "the first event after `after` that is there; what is between is gone",
    arrow.NEXT: "the event through which the answer goes: pass it as `after` to go on",
    arrow.HEAD: "the last event there is",
}


def description() -> Json:
    """The document at /openapi.json."""
    operations = (
        *BROKER_OPERATIONS,
        *ACCESS_OPERATIONS,
        *RESOURCE_OPERATIONS,
        *RUN_OPERATIONS,
        *TOPIC_OPERATIONS,
        *GRANT_OPERATIONS,
    )
    paths: Json = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method] = _described(each)
    _add_arrow(paths["/events"]["get"]["responses"]["200"])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tocsin",
            "version": __version__,
            "summary": "A durable event-notification broker that speaks CloudEvents.",
            "description": "Publish and read events, subscribe sinks, pull from message boxes, "
            "watch workflow runs. Errors are RFC 9457 problems with a code and a remedy.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "this broker"}],
        "paths": paths,
        "components": {"schemas": _schemas(operations), "responses": {"Problem": _PROBLEM}},
    }


def _described(operation: Operation) -> Json:
    responses: Json = {"default": {"$ref": "#/components/responses/Problem"}}
    for status, answer in operation.answers.items():
        responses[str(status)] = _response(status, answer)
    # Made from the method and the path: stable, and read by generators.
    words = re.findall(r"[A-Za-z0-9]+", operation.path.replace("{", "by_")) or ["page"]
    described: Json = {
        "summary": operation.summary,
        "operationId": "_".join([operation.method, *words]),
        "responses": responses,
    }
    in_path = [_path_parameter(name) for name in re.findall(r"{(\w+)}", operation.path)]
    if in_path or operation.parameters:
        described["parameters"] = [*in_path, *operation.parameters]
    if operation.body is not None:
        content = {media_type: {"schema": schema} for media_type, schema in operation.body.items()}
        described["requestBody"] = {"content": content}
    return described


def _response(status: int, answer: Answer) -> Json:
    is_endless = status == 101 or answer == Media(("text/event-stream",))
    response: Json = {"description": "events follow" if is_endless else "done"}
    if isinstance(answer, Media):
        response["content"] = {media_type: {} for media_type in answer.types}
    elif answer is not None:
        response["content"] = {"application/json": {"schema": ref(answer)}}
    return response


def _path_parameter(name: str) -> Json:
    words = _PATH_PARAMETERS[name]
    return {"name": name, "in": "path", "required": True, "schema": TEXT, "description": words}


def _add_arrow(response: Json) -> None:
    response["content"][arrow.MEDIA_TYPE] = {}
    response["headers"] = {
        name: {"description": f"in Arrow: {words}", "schema": whole(0)}
        for name, words in _ARROW_HEADERS.items()
    }


_PROBLEM: Json = {
    "description": "an error, as RFC 9457 problem details",
    "content": {MEDIA_TYPE: {"schema": ref(Problem)}},
}


# These have defaults for who makes one in Python; as answers they have every member.
_NEVER_LEFT_OUT: Final = (
    *("AnomalyInfo", "CountsInfo", "FileInfo", "RunInfo", "RunDetails", "ActivityInfo"),
    "FailureInfo",
)


def _schemas(operations: tuple[Operation, ...]) -> Json:
    answered = [answer for each in operations for answer in each.answers.values()]
    types = {answer for answer in answered if isinstance(answer, type)}
    types |= {CloudEvent, Message, EstimateRequest, Problem}
    by_name = sorted(types, key=lambda each: each.__name__)
    _, schemas = msgspec.json.schema_components(by_name, ref_template=REFERENCE)
    # What the types have as raw JSON.
    for name in ("EventsPage", "MessagesPulled"):
        schemas[name]["properties"]["events"] = {"type": "array", "items": ref(CloudEvent)}
    schemas["DeadLetterInfo"]["properties"]["event"] = ref(CloudEvent)
    for name in ("SubscriptionInfo", "BoxInfo"):
        schemas[name]["properties"]["filters"] = FILTERS
    schemas["CloudEvent"]["properties"]["data"] = {}
    for name in _NEVER_LEFT_OUT:
        schemas[name]["required"] = list(schemas[name]["properties"])
        for member in schemas[name]["properties"].values():
            member.pop("default", None)
    return {
        **schemas,
        **REQUESTS,
        **RESOURCE_REQUESTS,
        **ACCESS_REQUESTS,
        **TOPIC_REQUESTS,
        **GRANT_REQUESTS,
    }

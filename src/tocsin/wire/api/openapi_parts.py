"""Pieces that the description of the API is put together from."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"


def operation(
    summary: str,
    answers: dict[int, str | None],
    *,
    parameters: list[Json] | None = None,
    body: dict[str, Json] | None = None,
) -> Json:
    """A method at an address: what it does, takes and answers with."""
    responses: Json = {"default": {"$ref": "#/components/responses/Problem"}}
    for status, schema in answers.items():
        response: Json = {"description": "done"}
        if schema is not None:
            response["content"] = {"application/json": {"schema": refer(schema)}}
        responses[str(status)] = response
    found: Json = {"summary": summary, "responses": responses}
    if parameters:
        found["parameters"] = parameters
    if body:
        content = {media_type: {"schema": schema} for media_type, schema in body.items()}
        found["requestBody"] = {"content": content}
    return found


def plain(summary: str, media_type: str, parameters: list[Json] | None = None) -> Json:
    """A method whose answer is no JSON of ours."""
    found = operation(summary, {}, parameters=parameters)
    found["responses"]["200"] = {"description": "done", "content": {media_type: {}}}
    return found


def query(name: str, words: str, schema: Json) -> Json:
    """A parameter in the query."""
    return {"name": name, "in": "query", "description": words, "schema": schema}


def refer(name: str) -> Json:
    """A schema by its name."""
    return {"$ref": REFERENCE.format(name=name)}


def text() -> Json:
    return {"type": "string"}


def whole(least: int, most: int | None = None) -> Json:
    return {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most})}


def seconds(most: float) -> Json:
    return {"type": "number", "minimum": 0, "maximum": most}


def in_path(name: str, words: str) -> Json:
    """A parameter that is part of the path."""
    given: Json = {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    return {**given, "description": words}


ID: Json = in_path("id", "its id, as the list or the answer to its creation has it")


def object_of(properties: Json, required: tuple[str, ...] = ()) -> Json:
    """A JSON object with these members and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }

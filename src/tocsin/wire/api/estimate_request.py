"""`POST /estimates`: the tasks of a run that is not started yet."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tocsin.errors import BadRequest
from tocsin.wire import strict_json

TASKS_MAX = 20_000
COUNT_MAX = 1_000_000

_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
_Count = Annotated[int, msgspec.Meta(ge=1, le=COUNT_MAX)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class TaskRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task; `external_bytes` is input that no other task produces, `input_bytes` all of it."""

    id: _Name
    type: _Name
    parents: list[_Name] = []
    external_bytes: _Bytes | None = None
    input_bytes: _Bytes | None = None


class EstimateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run as it is planned. Without tasks, one like the latest run of the workflow."""

    workflow: _Name
    version: Annotated[str, msgspec.Meta(max_length=512)] = ""
    cores: _Count = 1
    machines: _Count = 1
    tasks: Annotated[list[TaskRequest], msgspec.Meta(max_length=TASKS_MAX)] = []


_decode = msgspec.json.Decoder(EstimateRequest).decode


def read_estimate_request(body: bytes) -> EstimateRequest:
    """What the body asks for; BadRequest names what is wrong with it."""
    try:
        asked = _decode(body)
        strict_json.check(body)
    except (
        msgspec.DecodeError,
        strict_json.Ambiguous,
        UnicodeDecodeError,
        RecursionError,
    ) as error:
        raise BadRequest(
            f"the body cannot be read: {error or 'it nests too deeply'}",
            remedy='Send {"workflow": "...", "cores": 4, "tasks": [{"id": "a", "type": "align", '
            '"parents": [], "external_bytes": 1000}]}.',
        ) from None
    names = {task.id for task in asked.tasks}
    if len(names) < len(asked.tasks):
        raise BadRequest("two tasks have the same id", remedy="Give each task an id of its own.")
    for task in asked.tasks:
        missing = next((each for each in task.parents if each not in names), None)
        if missing is not None:
            raise BadRequest(
                f"task {task.id[:80]!r} waits for {missing[:80]!r}, which is not among the tasks",
                remedy="List every task that another one waits for.",
            )
    return asked

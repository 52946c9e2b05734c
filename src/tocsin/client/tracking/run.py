"""Run: who the messages of a workflow run are about, and the messages themselves. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tocsin.event.instant import rfc3339
from tocsin.wire.blackboard.messages import Message

TEXT_CHARS_MAX = 4_096
PLAN_TASKS_MAX = 2_000  # in one message
PLAN_CHARS_MAX = 256 << 10  # likewise; an event has a megabyte at most
PARENTS_MAX = 1_000  # of a task with so many that it would be longer than that

Pairs = dict[str, str]
Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Run:
    """`whole` is sent when a run is created or started, `brief` with everything else.

    `origin` sets apart two runs that were given one id: it is part of their messages' ids.
    """

    run_id: str
    name: str
    version: str = ""
    engine: str = ""
    engine_version: str = ""
    user: str = ""
    host: str = ""
    parent_run: str = ""
    origin: str = ""
    brief: Pairs = field(init=False)
    key: str = field(init=False)

    def __post_init__(self) -> None:
        key = f"{self.run_id}@{self.origin}" if self.origin else self.run_id
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "brief", {"RunId": self.run_id, "WorkflowName": self.name})

    @property
    def whole(self) -> Pairs:
        named = {
            **self.brief,
            "WorkflowVersion": self.version,
            "EngineName": self.engine,
            "EngineVersion": self.engine_version,
            "UserName": self.user,
            "Host": self.host,
            "ParentRun": self.parent_run,
        }
        return {concept: value for concept, value in named.items() if value}


class Step(NamedTuple):
    """One try of one activity. A tuple, because ten thousand may be made in a second."""

    activity_id: str
    activity_type: str
    attempt: int = 1
    version: str = ""
    parents: tuple[str, ...] = ()


def workflow_message(
    run: Run, concept: str, at_ns: int, *, number: str = "", whole: bool = False, pairs: Pairs
) -> Message:
    """An event of the whole run; `number` sets apart what may happen more than once."""
    moment = rfc3339(at_ns)
    about = run.whole if whole else run.brief
    identifier = f"{run.key}//{concept}" + (f"/{number}" if number else "")
    return Message({concept: moment, **about, **pairs}, id=identifier, time=moment)


def activity_message(
    run: Run, step: Step, events: Mapping[str, int], *, number: str = "", pairs: Pairs
) -> Message:
    """Events of an activity, each with its moment; the first is what the message is about."""
    all_pairs: Pairs = {concept: rfc3339(at_ns) for concept, at_ns in events.items()}
    lead, moment = next(iter(all_pairs.items()))
    all_pairs.update(run.brief)
    all_pairs["ActivityId"] = step.activity_id
    all_pairs["ActivityType"] = step.activity_type
    if step.attempt != 1:
        all_pairs["Attempt"] = str(step.attempt)
    if step.version:
        all_pairs["ActivityVersion"] = step.version
    all_pairs.update(pairs)
    identifier = f"{run.key}/{step.activity_id}/{step.attempt}/{lead}"
    return Message(all_pairs, id=f"{identifier}/{number}" if number else identifier, time=moment)


def sample_message(
    run: Run, step: Step | None, at_ns: int, *, number: str, event: str = "", pairs: Pairs
) -> Message:
    """Values of resources at a moment, with the event that asked for them, if one did."""
    moment = rfc3339(at_ns)
    all_pairs: Pairs = {event or "EventTime": moment, **run.brief}
    who = ""
    if step is not None:
        who = all_pairs["ActivityId"] = step.activity_id
        all_pairs["ActivityType"] = step.activity_type
        if step.attempt != 1:
            all_pairs["Attempt"] = str(step.attempt)
    all_pairs.update(pairs)
    return Message(all_pairs, id=f"{run.key}/{who}/sample/{number}", time=moment)


def value_text(value: Value) -> str | None:
    """As messages have it: numbers plain and decimal; None for what is no value."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return None
    text = format(value, ".9f").rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def list_text(items: Iterable[object]) -> str:
    """A list as one value."""
    return json.dumps([str(item) for item in items], ensure_ascii=False)


def head_of(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[: TEXT_CHARS_MAX - 2]} …"


def tail_of(text: str) -> str:
    """The end of a long text, which is where a log or a trace says what went wrong."""
    return text if len(text) <= TEXT_CHARS_MAX else f"… {text[2 - TEXT_CHARS_MAX :]}"


def plan_chunks(tasks: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """The tasks that are known ahead, as the values of as many messages as they need."""
    return plan_pieces(map(_planned, tasks))


def plan_pieces(tasks: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """A plan as texts that each fit a message. Of a task with too many parents some are sent."""
    piece: list[str] = []
    size = 0
    for task in tasks:
        text = _compact(task)
        if len(text) > PLAN_CHARS_MAX:
            text = _compact({**task, "parents": _some(task.get("parents"))})
        if piece and (len(piece) >= PLAN_TASKS_MAX or size + len(text) > PLAN_CHARS_MAX):
            yield f"[{','.join(piece)}]"
            piece, size = [], 0
        piece.append(text)
        size += len(text)
    if piece:
        yield f"[{','.join(piece)}]"


def _compact(task: Mapping[str, object]) -> str:
    return json.dumps(task, ensure_ascii=False, separators=(",", ":"))


def _some(parents: object) -> list[object]:
    return list(parents)[:PARENTS_MAX] if isinstance(parents, Iterable) else []


def _planned(task: Mapping[str, object]) -> dict[str, object]:
    parents = task.get("parents") or ()
    assert isinstance(parents, Iterable)
    planned: dict[str, object] = {
        "id": str(task["id"]),
        "type": str(task.get("type") or task["id"]),
        "parents": [str(parent) for parent in parents],
    }
    if task.get("external_bytes") is not None:
        planned["external_bytes"] = task["external_bytes"]
    return planned

"""Messages about versions of a workflow: one for each change, and at last the version itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from tocsin.errors.services import BadWorkflowFile
from tocsin.integrations.workflow_files.sources import SourceFile
from tocsin.integrations.workflow_files.workflow import ReadWorkflow
from tocsin.monitor.evolution.changes import Change, compare
from tocsin.monitor.evolution.definition import Definition
from tocsin.wire.blackboard.messages import Message

TEXT_BYTES_MAX = 64 << 10  # of a file whose text is sent
MESSAGE_BYTES_MAX = 900_000  # a broker takes events of a mebibyte; quotes in quotes grow
DETAIL_CHARS_MAX = 60_000  # of one change

_to_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class SavedVersion:
    """A version that was recorded; they are counted, so that going back to one is news again."""

    workflow: str
    version: str
    number: int
    definition: Definition


@dataclass(frozen=True, slots=True)
class Occasion:
    """When, by whom and where a version is recorded."""

    time: str
    user: str
    host: str


def version_messages(
    workflow: ReadWorkflow, last: SavedVersion | None, occasion: Occasion
) -> tuple[list[Change], list[Message]]:
    """What changed since the last version, and the messages that say so.

    A last version of another name is what this one was forked from. VersionSaved comes last: who
    sees it has all that changed before it.
    """
    changes = compare(last.definition if last else None, workflow.definition)
    forked = last is not None and last.workflow != workflow.name
    number = 1 if last is None or forked else last.number + 1
    identity = {"WorkflowName": workflow.name, "WorkflowVersion": workflow.version}
    if last is not None:
        identity["PreviousVersion"] = last.version
    identity |= {"UserName": occasion.user, "Host": occasion.host}

    def message(place: int, concept: str, pairs: dict[str, str]) -> Message:
        return Message(
            {concept: occasion.time, **identity, **pairs},
            id=f"{number}/{workflow.version}/{place}/{concept}",
            source=f"/workflows/{quote(workflow.name, safe='')}",
            time=occasion.time,
        )

    messages: list[Message] = []
    if last is not None and forked:
        detail = _detail(Change("VersionForked", None, "name", last.workflow, workflow.name))
        messages.append(message(0, "VersionForked", {"ChangeDetail": detail}))
    for place, change in enumerate(changes, 1):
        pairs = {} if change.activity is None else {"ActivityType": change.activity}
        messages.append(message(place, change.concept, {**pairs, "ChangeDetail": _detail(change)}))
    messages.append(message(len(changes) + 1, "VersionSaved", _saved(workflow, last, number)))
    return changes, messages


def _detail(change: Change) -> str:
    text = _json({"what": change.what, "was": change.was, "is": change.now})
    if len(text) <= DETAIL_CHARS_MAX:
        return text
    cut = {"what": change.what, "was": _cut(change.was), "is": _cut(change.now)}
    return _json(cut)


def _cut(value: object) -> object:
    text = value if isinstance(value, str) else _json(value)
    return value if len(text) < DETAIL_CHARS_MAX // 3 else text[: DETAIL_CHARS_MAX // 3] + "..."


def _saved(workflow: ReadWorkflow, last: SavedVersion | None, number: int) -> dict[str, str]:
    """The version with its files and with the definition that the next one is compared with."""
    detail = _json(
        {
            "what": "version",
            "was": last.version if last else None,
            "is": workflow.version,
            "number": number,
            "definition": msgspec.to_builtins(workflow.definition),
        }
    )
    room = MESSAGE_BYTES_MAX - len(_to_json(detail))
    listed = list(_files(workflow.files, room))
    pairs = {"WorkflowFile": _json(listed), "ChangeDetail": detail}
    if len(_to_json(pairs)) > MESSAGE_BYTES_MAX:
        raise BadWorkflowFile(
            f"{workflow.name} is too large to be recorded: {len(workflow.definition.activities)} "
            f"activities in {len(workflow.files)} files",
            remedy="Record its parts.",
        )
    return pairs


def _files(files: Sequence[SourceFile], room: int) -> Iterator[dict[str, str | None]]:
    """Each file with its text, as long as there is room for it."""
    for file in files:
        text = file.text
        size = len(_to_json(_json(text))) if text is not None else 0
        if size > room or (text is not None and len(text.encode()) > TEXT_BYTES_MAX):
            text = None
        else:
            room -= size
        yield {"path": file.path, "sha256": file.sha256, "text": text}


def saved_of(pairs: dict[str, str]) -> SavedVersion | None:
    """The version that a VersionSaved message is about; None if it was none of ours."""
    try:
        detail = json.loads(pairs["ChangeDetail"])
        return SavedVersion(
            pairs["WorkflowName"],
            pairs["WorkflowVersion"],
            int(detail["number"]),
            msgspec.convert(detail["definition"], Definition),
        )
    except (KeyError, TypeError, ValueError, RecursionError):  # also msgspec's own
        return None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""`tocsin wf record`: what changed in a workflow file since it was last recorded, published."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime

from tocsin.cli.render import plural, say, show_json, table
from tocsin.cli.rest import Rest
from tocsin.client.blackboard.http_link import HttpLink
from tocsin.errors import NoSuchRun
from tocsin.integrations.workflow_files.last_version import last_saved
from tocsin.integrations.workflow_files.version_messages import (
    Occasion,
    SavedVersion,
    version_messages,
)
from tocsin.integrations.workflow_files.workflow import ReadWorkflow, read_workflow
from tocsin.monitor.evolution.changes import Change, brief
from tocsin.wire.blackboard.messages import Message

BATCH_MAX = 1_000  # messages in one request
BATCH_BYTES_MAX = 4 << 20

Clock = Callable[[], datetime]


def record(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Compare with the last recorded version and publish what is different."""
    root, ancestor = getattr(arguments, "root", None), getattr(arguments, "forked_from", None)
    dry = getattr(arguments, "dry_run", False)
    workflow = read_workflow(arguments.file, name=arguments.workflow, root=root)
    last = _last(rest, workflow, ancestor)
    if last is not None and (last.workflow, last.version) == (workflow.name, workflow.version):
        return _unchanged(workflow, as_json=arguments.json)
    changes, messages = version_messages(workflow, last, _occasion(clock()))
    if not dry:
        # Not filtered by interest: the history of a workflow is read later.
        _publish(HttpLink(rest.address), messages)
    if arguments.json:
        for message in messages:
            show_json(_opened(message.pairs))
    else:
        _print(workflow, last, changes, dry=dry)
    return 0


def _last(rest: Rest, workflow: ReadWorkflow, ancestor: str | None) -> SavedVersion | None:
    found = last_saved(rest, workflow.name, version=workflow.version)
    if ancestor is None or (found is not None and found.workflow == workflow.name):
        return found
    forked = last_saved(rest, ancestor)
    if forked is None:
        raise NoSuchRun(
            f"no version of {ancestor!r} is recorded",
            remedy="Record it first, or leave out --forked-from.",
        )
    return forked


def _occasion(now: datetime) -> Occasion:
    import getpass
    import socket

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = ""
    time = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Occasion(time, user, socket.gethostname())


def _publish(link: HttpLink, messages: list[Message]) -> None:
    """In batches. VersionSaved is in the last, so a broken record is repeated as a whole."""
    with link:
        batch: list[Message] = []
        size = 0
        for message in messages:
            bytes_of = sum(map(len, message.pairs.values()))
            if batch and (len(batch) >= BATCH_MAX or size + bytes_of > BATCH_BYTES_MAX):
                link.publish(batch)
                batch, size = [], 0
            batch.append(message)
            size += bytes_of
        link.publish(batch)


def _unchanged(workflow: ReadWorkflow, *, as_json: bool) -> int:
    if not as_json:
        say(f"{workflow.name} is unchanged since version {workflow.version}: nothing to record")
    return 0


def _opened(pairs: dict[str, str]) -> dict[str, object]:
    """The pairs with JSON in texts opened; not the definition, which is for the next comparison."""
    shown: dict[str, object] = dict(pairs)
    detail = json.loads(pairs["ChangeDetail"])
    detail.pop("definition", None)
    shown["ChangeDetail"] = detail
    if "WorkflowFile" in pairs:
        shown["WorkflowFile"] = [
            {"path": file["path"], "sha256": file["sha256"]}
            for file in json.loads(pairs["WorkflowFile"])
        ]
    return shown


def _print(
    workflow: ReadWorkflow, last: SavedVersion | None, changes: list[Change], *, dry: bool
) -> None:
    if changes:
        rows = [
            (each.concept, each.activity, each.what, brief(each.was), brief(each.now))
            for each in changes
        ]
        table(("change", "activity", "what", "was", "is"), rows)
    if last is None:
        version = f"first version {workflow.version}"
    elif last.workflow != workflow.name:
        version = f"version {workflow.version}, forked from {last.workflow} {last.version}"
    else:
        version = f"version {workflow.version} after {last.version}"
    summary = plural(len(changes), "change") if changes else "no change of what it does"
    say(f"{workflow.name}: {version}, {summary}" + ("; nothing was recorded" if dry else ""))

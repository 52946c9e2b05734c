"""Which version of a workflow was recorded last: asked of the broker, so from any machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from tocsin.client.requests import query
from tocsin.client.transport.connection import Connection
from tocsin.errors import BrokerRefused
from tocsin.event.filter import All, AnyOf, Operator, Predicate
from tocsin.event.filter_format import format_filter
from tocsin.integrations.workflow_files.version_messages import SavedVersion, saved_of

CALLS_MAX = 100_000  # of pages of the log; past this somebody answers without end
FORK_CALLS_MAX = 50  # a million events: who was forked from long ago is named by hand
PAGE_MAX = 100
NO_MONITOR = (404, 409)


def last_saved(connection: Connection, workflow: str, *, version: str = "") -> SavedVersion | None:
    """The last version under this name; if there is none, one of this content under another.

    The broker's monitor knows at once. Without one the log is read, which takes as long as it is.
    """
    try:
        last = _asked(connection, workflow)
        calls_max = FORK_CALLS_MAX
    except BrokerRefused as error:
        if error.status not in NO_MONITOR:
            raise
        last, calls_max = None, CALLS_MAX
    return last or _in_the_log(connection, workflow, version, calls_max)


def _asked(connection: Connection, workflow: str) -> SavedVersion | None:
    target = f"/workflows/{quote(workflow, safe='')}/versions"
    answer: Any = connection.request("GET", target).value()
    found = (saved_of(each["pairs"]) for each in answer["versions"])  # the latest first
    return next((each for each in found if each is not None), None)


def _in_the_log(
    connection: Connection, workflow: str, version: str, calls_max: int
) -> SavedVersion | None:
    last: SavedVersion | None = None
    alike: SavedVersion | None = None
    for pairs in _saved_pairs(connection, workflow, version, calls_max):
        found = saved_of(pairs)
        if found is not None and found.workflow == workflow:
            last = found
        elif found is not None and found.version == version:
            alike = alike or found  # the first that had it is where it comes from
    return last or alike


def _saved_pairs(
    connection: Connection, workflow: str, version: str, calls_max: int
) -> Iterator[dict[str, str]]:
    """What every VersionSaved in the log says that is of this name or of this content."""
    of_name = Predicate("WorkflowName", Operator.EQ, workflow)
    of_content = Predicate("WorkflowVersion", Operator.EQ, version)
    either = AnyOf((of_name, of_content)) if version else of_name
    wanted = All((Predicate("type", Operator.EQ, "bb.VersionSaved"), either))
    after, text = 0, format_filter(wanted)
    for _ in range(calls_max):
        target = "/events" + query(filter=text, after=after, limit=PAGE_MAX)
        page: Any = connection.request("GET", target).value()
        yield from (event["data"] for event in page["events"] if _is_pairs(event.get("data")))
        if page["next"] <= after:
            return
        after = page["next"]


def _is_pairs(data: object) -> bool:
    return isinstance(data, dict) and all(isinstance(value, str) for value in data.values())

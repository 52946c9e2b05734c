"""`tocsin wf files`: which run wrote a file, what it was made from, and what was made from it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from itertools import islice
from typing import Any

from tocsin.cli.format import Clock, at, size
from tocsin.cli.render import plural, safe, say, show_json
from tocsin.cli.rest import Rest
from tocsin.cli.tables import heading, show_lines, table
from tocsin.cli.wf.runs import paint_states

NOT_FOUND = 1
STATE_COLUMN = 4


def files(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """The runs that wrote files of a name, the latest first; exit code 1 if there is none."""
    role = "input" if arguments.readers else "output"
    wanted = {"name": arguments.name, "role": role}
    first = rest.get("/files", **wanted, limit=1, depth=arguments.depth)
    found = list(islice(rest.pages("/files", "files", **wanted), arguments.limit))
    lineage = first["lineage"]
    if arguments.json:
        for each in found:
            show_json(each)
        if lineage is not None and found:
            show_json({"lineage_of": found[0]["path"], "run": found[0]["run"], **lineage})
        return 0 if found else NOT_FOUND
    if not found:
        did = "read" if arguments.readers else "wrote"
        say(f"no known run {did} a file called {arguments.name}")
        return NOT_FOUND
    _show(found, clock)
    cut_off = len(found) == arguments.limit
    say(f"the latest {len(found):,}; --limit shows more" if cut_off else plural(len(found), "file"))
    if lineage is not None:
        _show_lineage(found[0], lineage)
    return 0


def _show(found: list[dict[str, Any]], clock: Clock) -> None:
    now = clock()
    rows = [
        (
            each["path"],
            each["run"],
            each["workflow"],
            _activity(each),
            each["state"],
            at(each["time"], now),
            "-" if each["size"] is None else size(each["size"]),
        )
        for each in found
    ]
    headers = ("file", "run", "workflow", "activity", "state", "when", "size")
    table(headers, rows, soft=frozenset({0, 1}), paint=paint_states(STATE_COLUMN))


def _show_lineage(file: Mapping[str, Any], lineage: Mapping[str, Any]) -> None:
    for title, steps, verb in (
        (f"what {file['path']} was made from", lineage["up"], "written by"),
        ("what was made from it", lineage["down"], "read by"),
    ):
        if not steps:
            continue
        heading(safe(title))
        for each in steps:
            show_lines(["  " * each["depth"] + safe(f"{each['file']}, {_by(each, verb)}")])
    if lineage["more"]:
        say("\nthere is more; --depth goes further")


def _by(step: Mapping[str, Any], verb: str) -> str:
    if step["run"] is None:
        return "not written by any known run"
    state = "" if step["state"] == "succeeded" else f" ({step['state']})"
    return f"{verb} {_activity(step)} of {step['run']}{state}"


def _activity(each: Mapping[str, Any]) -> str:
    kind, name = each.get("type") or "", each["activity"]
    return name if kind in ("", name) else f"{kind} {name}"

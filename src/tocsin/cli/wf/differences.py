"""`tocsin wf compare`, `changes` and `hints`: what differs, what changed, what could be faster."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tocsin.cli.format import ENDED, Clock, at, duration_text, measured, spaced
from tocsin.cli.render import plural, say, show_json
from tocsin.cli.rest import Rest, item
from tocsin.cli.tables import field_lines, heading, screen_width, show_lines, table
from tocsin.cli.wf.run_queries import Run, find_run, part, run_with_id
from tocsin.cli.wf.runs import PAGE_WIDTH_MAX
from tocsin.monitor.evolution.changes import brief

VERSION_CHARS = 12
SAME_WITHIN = 0.05  # a ratio closer to one is chance


def compare(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Two runs side by side."""
    a, b = find_run(rest, arguments.a), find_run(rest, arguments.b)
    found = rest.get(item("runs", a["id"]) + item("compare", b["id"]))
    if arguments.json:
        show_json(found)
        return 0
    rows = list(_differences(found))
    show_lines(field_lines([("A", str(a["id"])), ("B", str(b["id"]))], width=screen_width()))
    if rows:
        heading("differences")
        table(("what", "A", "B"), rows, soft=frozenset({1, 2}))
    else:
        say("the runs differ only in their activities' times")
    _print_durations(found.get("activities") or [])
    _print_faults("new failures", found.get("new_failures") or [])
    _print_faults("failures that are gone", found.get("gone_failures") or [])
    return 0


def _differences(found: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    for each in found.get("differences") or ():
        name = str(each["what"])
        yield _called(name), _shown(name, each.get("a")), _shown(name, each.get("b"))
    yield from _parameters(found)
    for file in found.get("files") or ():
        change = str(file.get("change"))
        was, now = {"added": ("-", "added"), "removed": ("there", "removed")}.get(
            change, ("-", change)
        )
        yield f"file {file.get('path')}", was, now


def _parameters(found: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    for name, both in (found.get("parameters") or {}).items():
        yield f"parameter {name}", _text(both.get("a")), _text(both.get("b"))


def _called(name: str) -> str:
    return "duration" if name == "duration_s" else spaced(name.replace("_", " "))


def _shown(name: str, value: object) -> object:
    if value is None:
        return None
    if name == "duration_s" and isinstance(value, int | float):
        return duration_text(value)
    if name == "version":
        return str(value)[:VERSION_CHARS]
    return measured(name, value) if name[:1].isupper() else value


def _text(value: object) -> str | None:
    """A value of any kind on one line."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _print_durations(activities: Sequence[Mapping[str, Any]]) -> None:
    if not activities:
        return
    rows = []
    for each in activities:
        a, b = each.get("a") or {}, each.get("b") or {}
        counts = (a.get("count") or 0, b.get("count") or 0)
        failed = (a.get("failed") or 0, b.get("failed") or 0)
        means = (duration_text(a.get("mean_s")), duration_text(b.get("mean_s")))
        rows.append((each.get("type"), *counts, *failed, *means, _times(each.get("ratio"))))
    heading("activities")
    headers = ("type", "A", "B", "failed A", "failed B", "mean A", "mean B", "B takes")
    table(headers, rows, right=frozenset(range(1, 7)))


def _times(ratio: float | None) -> str:
    """A ratio as text."""
    if ratio is None:
        return "-"
    if abs(ratio - 1) < SAME_WITHIN:
        return "as long"
    return f"{ratio:.3g} times as long"


def _print_faults(title: str, faults: Sequence[Mapping[str, Any]]) -> None:
    if not faults:
        return
    heading(title)
    rows = [
        (each.get("type"), each.get("activity"), each.get("exit_code"), each.get("error"))
        for each in faults
    ]
    table(("type", "activity", "exit code", "error"), rows)


def changes(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """What changed in a workflow: before a run, or in all of its recorded versions."""
    run, versions = _run_or_versions(rest, arguments.name)
    if run is None:
        return _print_versions(rest, arguments, versions, clock())
    found = part(rest, run, "changes")
    if arguments.json:
        show_json(found)
        return 0
    _print_changes(found)
    return 0


def _run_or_versions(rest: Rest, name: str | None) -> tuple[Run | None, list[dict[str, Any]]]:
    """The run of this name; or the recorded versions of the workflow of this name."""
    if name is None:
        return find_run(rest, None), []
    run = run_with_id(rest, name)
    if run is not None:
        return run, []
    versions = list(rest.pages(f"{item('workflows', name)}/versions", "versions"))
    return (None, versions) if versions else (find_run(rest, name), [])


def _print_changes(found: Mapping[str, Any]) -> None:
    before = found.get("previous_run")
    pairs = [
        ("run", str(found.get("run"))),
        ("workflow", found.get("workflow")),
        ("version", found.get("version")),
        ("run before", before),
        ("its version", found.get("previous_version")),
    ]
    show_lines(field_lines(pairs, width=screen_width()))
    rows = [change_row(each.get("pairs") or {}) for each in found.get("changes") or ()]
    if rows:
        heading("recorded changes")
        table(("change", "activity", "what", "was", "is"), rows)
    others = [
        *_parameters(found),
        *((f"file {file.get('path')}", None, file.get("change")) for file in found["files"]),
    ]
    if others:
        heading("since the run before")
        table(("what", "was", "is"), others)
    if not rows and not others:
        say(
            "it is the first known run of this workflow"
            if before is None
            else f"nothing that is known of has changed since {before}"
        )


def change_row(pairs: Mapping[str, str]) -> tuple[object, ...]:
    """A recorded change: which, of what, how it was and how it is."""
    from tocsin.ontology import built_in

    kinds = built_in().below("EvolutionEvent")
    concept = next((name for name in pairs if name in kinds), "-")
    try:
        detail = json.loads(pairs.get("ChangeDetail", "{}"))
    except (ValueError, RecursionError):
        detail = {}
    if not isinstance(detail, dict):
        detail = {}
    was, now = brief(detail.get("was")), brief(detail.get("is"))
    return concept, pairs.get("ActivityType"), detail.get("what"), was, now


def _print_versions(
    rest: Rest, arguments: Namespace, versions: list[dict[str, Any]], now: datetime
) -> int:
    if arguments.json:
        for version in versions:
            show_json({"workflow": arguments.name, **version})
        return 0
    rows: list[tuple[object, ...]] = [
        (
            str(each.get("version"))[:VERSION_CHARS],
            str(each.get("previous") or "-")[:VERSION_CHARS],
            at(each.get("time"), now),
            each.get("changes"),
            (each.get("pairs") or {}).get("UserName"),
        )
        for each in versions
    ]
    table(("version", "after", "recorded", "changes", "by"), rows, right=frozenset({3}))
    changed = rest.get(f"{item('workflows', arguments.name)}/changes")["changes"]
    if changed:
        heading("changes, the latest last")
        rows = []
        for pairs in (each.get("pairs") or {} for each in changed):
            version = pairs.get("WorkflowVersion", "")[:VERSION_CHARS]
            rows.append((version, *change_row(pairs)))
        table(("version", "change", "activity", "what", "was", "is"), rows)
    say(plural(len(versions), "version"))
    return 0


def hints(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """What ran one after the other without need."""
    run = find_run(rest, arguments.run)
    answer = part(rest, run, "hints")
    found = answer["hints"]
    if arguments.json:
        for each in found:
            show_json({"run": run["id"], **each})
        return 0
    if not found:
        say(_why_no_hints(run, answer.get("reason")))
        return 0
    pairs = [(duration_text(each["saves_s"]), str(each["why"])) for each in found]
    show_lines(field_lines(pairs, width=min(screen_width(), PAGE_WIDTH_MAX)))
    say("the time before each is what it would save")
    return 0


def _why_no_hints(run: Run, reason: str | None) -> str:
    if reason:
        return f"no hints for {run['id']}: {reason}"
    if run["state"] in ENDED:
        return f"nothing in {run['id']} waited without need"
    return f"no hints yet: {run['id']} is still running"

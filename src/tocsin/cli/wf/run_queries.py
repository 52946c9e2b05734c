"""Queries to the monitor of a broker: find a run, its time left, its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tocsin.cli.rest import Rest, item
from tocsin.errors import BadSetting, BrokerRefused, NoSuchRun

NOT_THERE = 404
MATCHES_SHOWN_MAX = 3  # named when a beginning fits several runs
NAMES_MAX = 20_000  # searched for a similar one
TYPES_MAX = 1_000  # of a run; the broker lists no more

HOW_TO_REPORT_RUNS = (
    "Run a workflow that reports to this broker: `snakemake --logger tocsin`, or in Python "
    "`from tocsin.client.tracking import Workflow`; docs/workflows.md has the others."
)

Run = dict[str, Any]


def latest(rest: Rest, **wanted: object) -> Run | None:
    """The run that started last."""
    found = rest.get("/runs", limit=1, **wanted)["runs"]
    return found[0] if found else None


def find_run(rest: Rest, name: str | None) -> Run:
    """The run of this id; the latest of this workflow; the run whose id has this prefix.

    Without a name the latest run of all.
    """
    if name is None:
        run = latest(rest)
        if run is None:
            raise NoSuchRun("there are no runs yet", remedy=HOW_TO_REPORT_RUNS)
        return _get_run(rest, str(run["id"]))
    found = run_with_id(rest, name)
    if found is not None:
        return found
    run = latest(rest, workflow=name)
    return _get_run(rest, str(run["id"]) if run is not None else _id_with_prefix(rest, name))


def run_with_id(rest: Rest, name: str) -> Run | None:
    """The run of just this id, if there is one."""
    try:
        return _get_run(rest, name)
    except BrokerRefused as error:
        if error.status != NOT_THERE:
            raise
        return None


def _get_run(rest: Rest, name: str) -> Run:
    run: Run = rest.get(item("runs", name))
    return run


def _id_with_prefix(rest: Rest, beginning: str) -> str:
    """The one id with this prefix."""
    ids = [str(run["id"]) for run in rest.pages("/runs", "runs")]
    matching = [each for each in ids if each.startswith(beginning)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        named = ", ".join(matching[:MATCHES_SHOWN_MAX])
        raise BadSetting(
            f"{len(matching)} runs begin with {beginning!r}: {named}"
            + (" and more" if len(matching) > MATCHES_SHOWN_MAX else ""),
            remedy="Give more of the id.",
        )
    if not ids:
        raise NoSuchRun("there are no runs yet", remedy=HOW_TO_REPORT_RUNS)
    raise NoSuchRun(
        f"there is no run and no workflow with the name {beginning!r}",
        remedy=_nearest(beginning, ids),
    )


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known[:NAMES_MAX], n=MATCHES_SHOWN_MAX, cutoff=0.5)
    return f"Did you mean {' or '.join(near)}?" if near else "`tocsin wf ls` lists the runs."


def estimate_of(rest: Rest, run: Mapping[str, Any]) -> dict[str, Any]:
    """The time left of a run; where there is none, only `reason`."""
    try:
        found: dict[str, Any] = rest.get(f"{item('runs', str(run['id']))}/estimate")
    except BrokerRefused as error:
        return {"reason": error.problem}
    return found


def part(rest: Rest, run: Mapping[str, Any], name: str, **parameters: object) -> Any:
    """A sub-resource of a run."""
    return rest.get(f"{item('runs', str(run['id']))}/{name}", **parameters)


def activities(rest: Rest, run: Mapping[str, Any], **wanted: object) -> Iterator[dict[str, Any]]:
    """The activities of a run, by name."""
    return rest.pages(f"{item('runs', str(run['id']))}/activities", "activities", **wanted)


def by_type(run: Mapping[str, Any]) -> dict[str, Counter[str]]:
    """How many activities of each type are in which state."""
    return {name or "-": Counter(states) for name, states in (run.get("types") or {}).items()}

"""`tocsin wf eta`: the time left of a run, or how long one would take that has not begun."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tocsin.cli.format import ENDED, Clock, basis, duration_text, table_origin
from tocsin.cli.render import say, show_json
from tocsin.cli.rest import Rest, item
from tocsin.cli.tables import field_lines, screen_width, show_lines
from tocsin.cli.wf.run_queries import find_run, part
from tocsin.cli.wf.runs import PAGE_WIDTH_MAX, left_text, paint_state, progress_text, state_text
from tocsin.errors import BadSetting

PLAN_BYTES_MAX = 64 << 20
PLAN_REMEDY = (
    'Give an object with "tasks": [{"id", "type", "parents", "external_bytes"}], and '
    '"workflow" or --workflow.'
)


def eta(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Say how long it will take."""
    if arguments.plan is not None:
        if arguments.run is not None:
            raise BadSetting(
                "a run and --plan cannot be used together", remedy="Leave one of them out."
            )
        asked = _plan(arguments.plan, arguments.workflow)
        return _print_total(rest.post("/estimates", asked), arguments)
    if arguments.workflow is not None:
        if arguments.run is not None:
            raise BadSetting(
                "a run and --workflow cannot be used together", remedy="Leave one of them out."
            )
        found = rest.get(f"{item('workflows', arguments.workflow)}/estimate")
        return _print_total(found, arguments)
    return _of_run(rest, arguments, clock())


def _of_run(rest: Rest, arguments: Namespace, now: datetime) -> int:
    run = find_run(rest, arguments.run)
    over = run["state"] in ENDED
    estimate = {"remaining_s": 0.0} if over else part(rest, run, "estimate")
    if arguments.json:
        show_json({"run": run["id"], "state": run["state"], **estimate})
        return 0
    lines: list[tuple[str, str | None]] = [
        ("run", str(run["id"])),
        ("state", state_text(run, now)),
        ("progress", progress_text(run)),
    ]
    if over:
        say("it is over; `tocsin wf history` shows how long its activities take")
    else:
        lines += [("time left", left_text(estimate, now)), *_why(estimate)]
    show_lines(field_lines(lines, width=min(screen_width(), PAGE_WIDTH_MAX), paint=paint_state))
    return 0


def _why(estimate: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    yield (
        "in all",
        duration_text(estimate["total_s"]) if estimate.get("total_s") is not None else None,
    )
    yield "why", estimate.get("reason")
    yield "based on", basis(estimate)
    yield "tables", table_origin(estimate)


def _print_total(estimate: dict[str, Any], arguments: Namespace) -> int:
    """An estimate for a run that has not begun: what is left is all of it."""
    if arguments.json:
        show_json(estimate)
        return 0
    total = duration_text(estimate.get("total_s"))
    if estimate.get("low_s") is not None and estimate.get("high_s") is not None:
        total += (
            f" (80%: {duration_text(estimate['low_s'])} to {duration_text(estimate['high_s'])})"
        )
    lines = [("takes", total), *list(_why(estimate))[1:]]
    show_lines(field_lines(lines, width=min(screen_width(), PAGE_WIDTH_MAX)))
    return 0


def _plan(name: str, workflow: str | None) -> dict[str, Any]:
    try:
        if name == "-":
            text = sys.stdin.buffer.read(PLAN_BYTES_MAX + 1)
        else:
            with open(name, "rb") as file:
                text = file.read(PLAN_BYTES_MAX + 1)
    except OSError as error:
        raise BadSetting(f"cannot read {name}: {error.strerror}", remedy=PLAN_REMEDY) from None
    if len(text) > PLAN_BYTES_MAX:
        raise BadSetting(f"{name} is over {PLAN_BYTES_MAX} bytes", remedy=PLAN_REMEDY)
    try:
        plan = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSetting(f"{name} is not valid JSON: {error}", remedy=PLAN_REMEDY) from None
    if isinstance(plan, list):
        plan = {"tasks": plan}
    if not isinstance(plan, dict) or not isinstance(plan.get("tasks"), list):
        raise BadSetting(f"{name} has no list of tasks", remedy=PLAN_REMEDY)
    if workflow is not None:
        plan["workflow"] = workflow
    if not plan.get("workflow"):
        raise BadSetting(f"{name} names no workflow", remedy=PLAN_REMEDY)
    return plan

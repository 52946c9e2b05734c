"""`tocsin wf ls` and `show`: which runs there are, and how one of them is doing."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from tocsin.cli.format import (
    COLOURS,
    ENDED,
    Clock,
    at,
    bar,
    basis,
    counted,
    duration_text,
    instant,
    left,
    measured,
    percent,
    progress,
    spaced,
    states,
    table_origin,
)
from tocsin.cli.render import colour, plural, say, show_json
from tocsin.cli.rest import Rest
from tocsin.cli.tables import field_lines, heading, screen_width, show_lines, table
from tocsin.cli.wf.run_queries import (
    HOW_TO_REPORT_RUNS,
    TYPES_MAX,
    Run,
    by_type,
    estimate_of,
    find_run,
    part,
)
from tocsin.errors import BrokerRefused

ESTIMATES_MAX = 20  # of a list; each is a request
SHOWN_MAX = 10  # anomalies, alerts, hints: the rest is counted
PAGE_WIDTH_MAX = 100
STATE_COLUMN = 2
NARROW = 110  # columns; below, an interval has no room in a list


def ls(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """The latest runs, one a line."""
    now = clock()
    wanted = {name: getattr(arguments, name) for name in ("state", "workflow", "engine")}
    found = list(islice(rest.pages("/runs", "runs", **wanted), arguments.limit))
    left_by_run = _times_left(rest, found)
    if arguments.json:
        for run in found:
            show_json({**run, "estimate": left_by_run.get(run["id"])})
        return 0
    if not found:
        narrowed = any(wanted.values())
        say("no such runs; `tocsin wf ls` shows all" if narrowed else _no_runs())
        return 0
    narrow = screen_width() < NARROW
    rows = [
        (
            run["id"],
            run.get("workflow"),
            run["state"],
            progress(run),
            at(run.get("started"), now),
            duration_text(run.get("duration_s")),
            left(left_by_run.get(run["id"]), brief=narrow),
        )
        for run in found
    ]
    headers = ("run", "workflow", "state", "progress", "started", "duration", "time left")
    # Half an id still names a run.
    table(headers, rows, soft=frozenset({0, 1}), paint=paint_states(STATE_COLUMN))
    cut_off = len(found) == arguments.limit
    say(f"the latest {len(found):,}; --limit shows more" if cut_off else plural(len(found), "run"))
    return 0


def _no_runs() -> str:
    return f"no runs yet. {HOW_TO_REPORT_RUNS}"


def _times_left(rest: Rest, runs: Iterable[Run]) -> dict[str, dict[str, Any]]:
    going = [run for run in runs if run["state"] not in ENDED and run["state"] != "lost"]
    return {run["id"]: estimate_of(rest, run) for run in going[:ESTIMATES_MAX]}


def paint_states(column: int) -> Any:
    """Colours for the column where the state of a run or an activity stands."""

    def paint(place: int, text: str) -> str:
        return colour(text, COLOURS[text]) if place == column and text in COLOURS else text

    return paint


def paint_state(name: str, text: str) -> str:
    """Colours the first word of a line about a state."""
    word = text.partition(" ")[0].rstrip(",")
    if name != "state" or word not in COLOURS:
        return text
    return colour(word, COLOURS[word]) + text.removeprefix(word)


def show(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Everything about one run."""
    run = find_run(rest, arguments.run)
    estimate = None if run["state"] in ENDED else estimate_of(rest, run)
    types = by_type(run)
    hints = _hints(rest, run)
    if arguments.json:
        show_json({**run, "estimate": estimate, "hints": hints})
        return 0
    width = min(screen_width(), PAGE_WIDTH_MAX)
    show_lines(field_lines(head(run, estimate, clock()), width=width, paint=paint_state))
    _show_types(types, run.get("plan") or {})
    _show_list("anomalies", _anomalies(run), width)
    _show_list("alerts", [alert_text(alert) for alert in run.get("alerts") or ()], width)
    _show_list("hints", [str(hint["why"]) for hint in hints], width)
    if (run.get("activities") or {}).get("failed"):
        say(f"\nwhy it failed: tocsin wf failures {run['id']}")
    return 0


def _hints(rest: Rest, run: Run) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = part(rest, run, "hints").get("hints") or []
    except BrokerRefused:  # a run too large for hints, or without a plan is shown without
        return []
    return found


def head(
    run: Run, estimate: Mapping[str, Any] | None, now: datetime
) -> Iterator[tuple[str, str | None]]:
    """A run in a few lines: what it is, how far, how long."""
    yield "run", str(run["id"])
    yield "workflow", what_ran(run)
    yield "same id", _same_id(run.get("reused"))
    yield "part of", run.get("parent")
    yield "state", state_text(run, now)
    yield "progress", progress_text(run)
    if estimate is not None:
        yield "time left", left_text(estimate, now)
        yield "why", estimate.get("reason") if estimate.get("remaining_s") is not None else None
        yield "", basis(estimate) if estimate.get("remaining_s") is not None else None
        yield "", table_origin(estimate) if estimate.get("remaining_s") is not None else None
    yield (
        "resources",
        ", ".join(
            f"{spaced(name)} {measured(name, value)}"
            for name, value in sorted((run.get("resources") or {}).items())
        ),
    )
    yield "parameters", _parameters(run.get("parameters"))
    yield "error", run.get("error")


def _same_id(reused: Mapping[str, Any] | None) -> str | None:
    """Which of the runs with one id it is, where there are several."""
    if reused is None:
        return None
    text = f"number {reused['number']:,} of {reused['of']:,} runs with the id {reused['id']}"
    return text if reused["number"] == reused["of"] else f"{text}; the last is {reused['last']}"


def _parameters(parameters: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name}={value}" for name, value in (parameters or {}).items())


def what_ran(run: Run) -> str:
    """The workflow, its version, the engine, and who ran it where."""
    text = str(run.get("workflow") or "a workflow without a name")
    if run.get("version"):
        text += f", version {run['version'][:12]}"
    engine = " ".join(filter(None, (run.get("engine"), run.get("engine_version"))))
    who = " on ".join(filter(None, (run.get("user"), run.get("host"))))
    return text + (f"; {engine}" if engine else "") + (f"; {who}" if who else "")


def state_text(run: Run, now: datetime) -> str:
    """What state it is in, since when or for how long."""
    state = str(run["state"])
    text = state
    last_event = instant(run.get("last_event"))
    if state == "lost" and last_event is not None:
        silent_s = max(0.0, (now - last_event).total_seconds())
        text += f", no event for {duration_text(silent_s)}"
    elif run.get("duration_s") is not None:
        text += f" {'after' if state in ENDED else 'for'} {duration_text(run['duration_s'])}"
    if run.get("started"):
        text += f", started {at(run['started'], now)}"
    if run.get("ended"):
        text += f", ended {at(run['ended'], now)}"
    elif run.get("last_event"):
        text += f", last event {at(run['last_event'], now)}"
    return text


def progress_text(run: Run) -> str:
    """How far it is, as a bar and in numbers."""
    others = states({**(run.get("activities") or {}), "retried": run.get("retried")})
    text = counted(run, named=True) + (f"; {others}" if others else "")
    if run.get("progress") is None:
        return text
    return f"{bar(run['progress'])} {percent(run['progress'])}  {text}"


def left_text(estimate: Mapping[str, Any], now: datetime) -> str:
    """The time left with its interval, and when that will be; or why it is not known."""
    if estimate.get("remaining_s") is None:
        return f"not known: {estimate.get('reason') or 'too few events so far'}"
    text = duration_text(estimate["remaining_s"])
    if estimate.get("low_s") is not None and estimate.get("high_s") is not None:
        text += f" (80%: {duration_text(estimate['low_s'])} to {duration_text(estimate['high_s'])})"
    return text + (f", ends about {at(estimate['eta'], now)}" if estimate.get("eta") else "")


def _show_types(types: Mapping[str, Counter[str]], plan: Mapping[str, int]) -> None:
    if not types and not plan:
        return
    ends = ("succeeded", "cached")
    named = ("running", "failed")
    rows = []
    for name in sorted({*types, *plan}):
        count = types.get(name, Counter())
        known = sum(count.values())
        others = {s: n for s, n in sorted(count.items()) if s not in (*ends, *named)}
        rest = max(0, int(plan.get(name) or 0) - known)
        if rest:
            others["to come"] = rest
        rows.append(
            (
                name,
                max(known, int(plan.get(name) or 0)),
                sum(count[end] for end in ends),
                *(count[state] for state in named),
                ", ".join(f"{n:,} {state}" for state, n in others.items()),
            )
        )
    heading("activities")
    table(("type", "all", "done", *named, "others"), rows, right=frozenset(range(1, 5)))
    if len(types) >= TYPES_MAX:
        say(f"only the first {TYPES_MAX:,} types are shown")


def _anomalies(run: Run) -> list[str]:
    lines = []
    for each in run.get("anomaly_list") or ():
        where = f" ({each['activity']})" if each.get("activity") else ""
        lines.append(f"{each.get('kind')}{where}: {each.get('detail')}")
    return lines


def alert_text(alert: Mapping[str, Any]) -> str:
    """An alert as a sentence: which activity, what about it, and the reason."""
    name, kind = alert.get("activity") or "", alert.get("type") or ""
    about = " ".join(filter(None, (kind if kind != name else "", name)))
    return f"{about or 'the run'} is {alert.get('kind')}. {alert.get('why') or ''}".strip()


def _show_list(title: str, sentences: list[str], width: int) -> None:
    if not sentences:
        return
    heading(title)
    show_lines(field_lines((("-", sentence) for sentence in sentences[:SHOWN_MAX]), width=width))
    if len(sentences) > SHOWN_MAX:
        say(f"... {len(sentences) - SHOWN_MAX:,} more; use --json for all of them")

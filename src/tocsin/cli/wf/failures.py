"""`tocsin wf failures`: why it failed, whether that is new, and what happened just before."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from tocsin.cli.format import Clock, at, duration_text, excerpt, measured, spaced
from tocsin.cli.render import colour, plural, safe, say, show_json
from tocsin.cli.rest import Rest
from tocsin.cli.tables import cell, field_lines, screen_width, show_lines, truncate, wrapped
from tocsin.cli.wf.run_queries import Run, find_run, latest, part

FAILURES_SHOWN = 20
LOG_LINES = 20
TRACE_LINES = 20
COMMAND_LINES = 10
TEXT_WIDTH_MAX = 100
TRACE_CHARS_AROUND = 150  # `RuleException: ... in file ..., line 20:`
INDENT = "    "


def failures(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """Each activity that failed."""
    run = find_run(rest, arguments.run)
    answer = part(rest, run, "failures", last=arguments.last)
    found, own = answer["failures"], answer.get("run") or {}
    if arguments.json:
        for each in found:
            show_json({"run": run["id"], **each})
        if own.get("error"):
            show_json({"run": run["id"], **own})
        return 0
    width, now = min(screen_width(), TEXT_WIDTH_MAX), clock()
    blocks = [list(failure_lines(each, now, width)) for each in found[:FAILURES_SHOWN]]
    if own.get("error") or own.get("trace"):
        blocks.append(list(run_lines(own, now, width, alone=not found)))
    if not blocks:
        _say_nothing_failed(rest, run)
        return 0
    for number, lines in enumerate(blocks):
        show_lines(["", *lines] if number else lines)
    if len(found) > FAILURES_SHOWN:
        say(f"... {len(found) - FAILURES_SHOWN:,} more; use --json for all of them")
    tries = "1 failed attempt" if len(found) == 1 else f"{len(found):,} failed attempts"
    say(f"\nrun {run['id']}, {run['state']}: {tries}")
    return 0


def run_lines(own: Mapping[str, Any], now: datetime, width: int, *, alone: bool) -> Iterator[str]:
    """The failure of the run itself; with the events before it, if no activity has them."""
    yield colour(truncate(safe(f"the run {own.get('id')}, {own.get('state')}"), width), "1;31")
    pairs = [("error", own.get("error")), ("exit code", _exit_text(own.get("exit_code")))]
    yield from ("  " + line for line in field_lines(pairs, width=width - 2))
    yield from _block("trace", own.get("trace"), TRACE_LINES, width)
    yield from _block("log", own.get("log"), LOG_LINES, width)
    if alone:
        yield from _before(own.get("before") or [], now, width)


def _say_nothing_failed(rest: Rest, run: Run) -> None:
    say(f"no activity of {run['id']} has failed; it is {run['state']}")
    other = latest(rest, state="failed")
    if other is not None and other["id"] != run["id"]:
        say(f"the last run that failed: tocsin wf failures {other['id']}")


def failure_lines(failure: Mapping[str, Any], now: datetime, width: int) -> Iterator[str]:
    """One failure, the answer first."""
    yield colour(truncate(safe(_title(failure, now)), width), "1;31")
    seen = int(failure.get("seen_before") or 0)
    resources = failure.get("resources") or {}
    pairs = [
        ("recovered", "a later attempt succeeded" if failure.get("recovered") else None),
        ("error", failure.get("error")),
        ("exit code", _exit_text(failure.get("exit_code"))),
        ("seen", f"{plural(seen, 'time')} before" if seen else "never before"),
        ("resources", ", ".join(f"{spaced(k)} {measured(k, v)}" for k, v in resources.items())),
        ("log file", _listed(failure.get("log_file"))),
    ]
    yield from ("  " + line for line in field_lines(pairs, width=width - 2))
    yield from _block("log", failure.get("log"), LOG_LINES, width)
    yield from _block("command", failure.get("command"), COMMAND_LINES, width)
    if adds_detail(failure.get("trace"), failure.get("error")):
        yield from _block("trace", failure.get("trace"), TRACE_LINES, width)
    yield from _before(failure.get("before") or [], now, width)


def adds_detail(trace: str | None, error: str | None) -> bool:
    """False for a trace that is the error once more with a line or two around it."""
    if not trace or not error:
        return bool(trace)
    whole, known = " ".join(trace.split()), " ".join(error.split())
    return known not in whole or len(whole) - len(known) > TRACE_CHARS_AROUND


def _listed(text: str | None) -> str | None:
    """Several files come as a JSON array."""
    if not text or not text.startswith("["):
        return text
    try:
        return ", ".join(map(str, json.loads(text)))
    except (ValueError, RecursionError):
        return text


def _before(events: list[dict[str, Any]], now: datetime, width: int) -> Iterator[str]:
    if events:
        yield "  before"
        yield from (truncate(f"{INDENT}{event_text(event, now)}", width) for event in events)


def _title(failure: Mapping[str, Any], now: datetime) -> str:
    name = str(failure["id"])
    kind = failure.get("type")
    text = f"{kind} {name}" if kind and kind != name else name
    if int(failure.get("attempt") or 1) > 1:
        text += f", attempt {failure['attempt']}"
    text += f", failed {at(failure['ended'], now)}" if failure.get("ended") else ", failed"
    if failure.get("duration_s") is not None:
        text += f" after {duration_text(failure['duration_s'])}"
    text += f" on {failure['host']}" if failure.get("host") else ""
    return text + (", and was tried again" if failure.get("state") == "retrying" else "")


def _exit_text(code: int | None) -> str | None:
    """An exit code; past 128 it is a signal, and 137 mostly means that memory ran out."""
    if code is None:
        return None
    import signal

    number = code - 128 if 128 < code < 160 else -code if -32 < code < 0 else 0
    try:
        name = signal.Signals(number).name
    except ValueError:
        return str(code)
    hint = ": often too little memory" if name == "SIGKILL" else ""
    return f"{code} ({name}{hint})"


def _block(title: str, text: str | None, lines_max: int, width: int) -> Iterator[str]:
    if not text or not text.strip():
        return
    yield f"  {title}"
    for line in excerpt(text, lines_max):
        for piece in wrapped(safe(line.expandtabs()), width - len(INDENT)):
            yield f"{INDENT}{piece}"


def event_text(event: Mapping[str, Any], now: datetime) -> str:
    """A message of a run in one line: when, what, and to which activity."""
    pairs: Mapping[str, str] = event.get("pairs") or {}
    happened = [name for name in pairs if name in _events()]
    name, kind = pairs.get("ActivityId", ""), pairs.get("ActivityType", "")
    about = [kind, name] if kind != name else [name]
    values = [f"{spaced(n)} {measured(n, v)}" for n, v in pairs.items() if n in _resources()]
    if not happened:  # a sample, or something that only its sender understands
        happened = [", ".join(values or pairs)]
    text = " ".join(filter(None, (*happened, *about)))
    detail = (
        pairs.get("EventName")
        or pairs.get("ErrorMessage")
        or pairs.get("EventData")
        or pairs.get("ActivityProgress")
    )
    moment = at(event.get("time"), now, to_the_second=True)
    return cell(f"{moment:<8}  {text}{': ' + detail if detail else ''}")


@cache
def _events() -> frozenset[str]:
    from tocsin.ontology import built_in

    return built_in().below("Event")


@cache
def _resources() -> frozenset[str]:
    from tocsin.ontology import built_in

    return built_in().below("Resource")

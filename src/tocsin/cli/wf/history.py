"""`tocsin wf history`: how an activity went in the past, in numbers and as a histogram."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from tocsin.cli.format import Clock, at, duration_text, size, table_origin
from tocsin.cli.render import plural, say, show_json
from tocsin.cli.rest import Rest, item
from tocsin.cli.tables import field_lines, heading, screen_width, show_lines, table
from tocsin.cli.wf.run_queries import HOW_TO_REPORT_RUNS
from tocsin.cli.wf.runs import paint_states

BAR_CELLS_MAX = 40
RECENT_SHOWN = 10
VERSIONS_SHOWN = 5
VERSION_CHARS = 12
MODELS_LOOKED_AT = 25  # five targets for each of as many versions as are listed
DIGITS_MAX = 6  # after the point; the broker rounds to microseconds
# Eighths of a cell, so that one in a thousand still shows.
_PARTS = " ▏▎▍▌▋▊▉"


def history(rest: Rest, arguments: Namespace, clock: Clock) -> int:
    """The past of one activity, or a table of all."""
    if arguments.activity is None:
        return _all(rest, arguments)
    found = rest.get(
        item("activities", arguments.activity),
        workflow=arguments.workflow,
        version=arguments.version,
    )
    if arguments.json:
        show_json(found)
        return 0
    show_lines(field_lines(_numbers(arguments.activity, found), width=screen_width()))
    histogram = found.get("histogram") or {}
    if histogram.get("counts"):
        heading("how long it took")
        show_lines(histogram_lines(histogram["edges"], histogram["counts"], screen_width()))
    _print_recent(found.get("recent") or [], clock())
    return 0


def _numbers(name: str, found: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    yield "activity", name
    yield "ended", _ended(found)
    if found.get("mean_s") is not None:
        yield "mean", duration_text(found["mean_s"])
        yield "median", duration_text(found.get("p50_s"))
        yield "90% within", duration_text(found.get("p90_s"))
        yield "99% within", duration_text(found.get("p99_s"))
    versions = [str(each)[:VERSION_CHARS] for each in found.get("versions") or () if each]
    more = len(versions) - VERSIONS_SHOWN
    listed = ", ".join(versions[:VERSIONS_SHOWN])
    yield "versions", listed + (f" and {more:,} more" if more > 0 else "")
    yield "tables", table_origin(found)
    since, learned = found.get("since"), found.get("learned") or {}
    has_window = learned.get("since") or learned.get("until")
    label = "outside of them" if has_window else "since then"
    yield label, None if since is None else _ended(since)
    for model in (found.get("cost_models") or ())[:MODELS_LOOKED_AT]:
        yield from _cost(model)


def _ended(part: Mapping[str, Any]) -> str:
    count, failed = int(part.get("count") or 0), int(part.get("failed") or 0)
    return plural(count, "time") + (f", {failed:,} failed" if failed else "")


def _cost(model: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """How its time follows its input, where that is known."""
    slope, intercept = model.get("slope"), model.get("intercept")
    if model.get("target") != "duration_s" or slope is None or intercept is None:
        return
    per_gb = slope * 1e9
    base, more = duration_text(abs(intercept)), duration_text(abs(per_gb))
    text = f"{base} {'+' if per_gb >= 0 else '-'} {more} a GB"
    if intercept < 0:
        text = f"-{text}"
    if model.get("median_error") is not None:
        text += f", usually off by {model['median_error']:.0%}"
    least, most = model.get("input_min"), model.get("input_max")
    if least is not None and most is not None:
        text += f" (seen: {size(least)} to {size(most)})"
    version = str(model.get("version") or "")[:VERSION_CHARS]
    yield f"cost {version}".rstrip(), text


def histogram_lines(edges: Sequence[float], counts: Sequence[int], width: int) -> Iterator[str]:
    """A bar for each span of time; the longest one is as wide as there is room."""
    texts = edge_texts(edges)
    spans = [low if low == high else f"{low} to {high}" for low, high in pairwise(texts)]
    spans = spans[: len(counts)] + ["longer"] * (len(counts) - len(spans))
    column = max(map(len, spans), default=0)
    digits = max(len(f"{count:,}") for count in counts)
    room = max(5, min(BAR_CELLS_MAX, width - column - digits - 4))
    most = max(counts) or 1
    for span, count in zip(spans, counts, strict=True):
        yield f"{span:>{column}}  {count:>{digits},}  {_bar(count / most * room)}".rstrip()


def edge_texts(edges: Sequence[float]) -> list[str]:
    """The edges with just enough digits to differ."""
    texts = [duration_text(edge) for edge in edges]
    for digits in range(1, DIGITS_MAX + 1):
        if len(set(texts)) == len(set(edges)):
            break
        texts = [f"{edge:.{digits}f}s" for edge in edges]
    return texts


def _bar(cells: float) -> str:
    whole, eighths = divmod(round(cells * 8), 8)
    if not whole and not eighths and cells > 0:
        eighths = 1
    return "█" * whole + _PARTS[eighths].strip()


def _print_recent(recent: Sequence[Mapping[str, Any]], now: datetime) -> None:
    if not recent:
        return
    heading("recently")
    rows = [
        (
            each.get("run"),
            each.get("id"),
            each.get("state"),
            at(each.get("started"), now),
            duration_text(each.get("duration_s")),
            each.get("host"),
        )
        for each in recent[:RECENT_SHOWN]
    ]
    headers = ("run", "activity", "state", "started", "duration", "host")
    table(headers, rows, paint=paint_states(2))


def _all(rest: Rest, arguments: Namespace) -> int:
    found = rest.get("/activities", workflow=arguments.workflow)["activities"]
    if arguments.json:
        for each in found:
            show_json(each)
        return 0
    if not found:
        say(f"no activity has ended yet. {HOW_TO_REPORT_RUNS}")
        return 0
    rows = [
        tuple(each.get(name) for name in ("type", "workflow", "runs", "activities", "failed"))
        for each in found
    ]
    headers = ("type", "workflow", "runs", "activities", "failed attempts")
    table(headers, rows, right=frozenset({2, 3, 4}))
    say("more about one: tocsin wf history TYPE")
    return 0

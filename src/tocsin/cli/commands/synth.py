"""`tocsin synth`: an archive of as many events as wanted, from a seed."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from datetime import date
from pathlib import Path

from tocsin.cli.parser import Parser, add_json

SUMMARY = "Make an archive of as many events as wanted, from a seed"
EXAMPLES = """
  tocsin synth --events 1M --out made               a million events, in Parquet
  tocsin synth --events 10M --seed 7 --out made --json
  tocsin synth --events 50k --days 2 --broken 0 --duplicates 0.05 --out made
  tocsin synth --events 50k --broken-files --out made    also files that readers must refuse
"""

_LONG = ("world", "by_kind", "runs_by_workflow", "attempts_by_activity")  # to be read in the file
_TIMES = {"k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--events", metavar="N", type=_count, required=True, help="how many: 50000, 50k, 10M"
    )
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="the random seed (0)")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="the directory to create"
    )
    for name, share, help in (
        ("broken", 0.001, "share of events that are invalid"),
        ("duplicates", 0.01, "share of events that come twice"),
        ("late", 0.001, "share of events received minutes to hours after they happened"),
    ):
        parser.add_argument(
            f"--{name}", metavar="SHARE", type=float, default=share, help=f"{help} ({share})"
        )
    parser.add_argument(
        "--broken-files",
        action="store_true",
        help="let some of the broken records make their whole file a damaged one (no broker "
        "writes such files)",
    )
    parser.add_argument(
        "--files-of",
        metavar="ROWS",
        type=_count,
        default=500_000,
        help="rows in one file, at most (500k)",
    )
    parser.add_argument(
        "--start",
        metavar="DATE",
        type=_date,
        default=date(2026, 1, 1),
        help="the first day (2026-01-01)",
    )
    parser.add_argument(
        "--days",
        metavar="N",
        type=int,
        help="spread over N days (one for each 100k events, 7 to 365)",
    )
    add_json(parser)


def run(arguments: Namespace) -> int:
    from time import perf_counter

    from tocsin.cli.progress import Progress
    from tocsin.cli.render import fields, say, show_json
    from tocsin.synth.archive import TRUTH_NAME, synthesize
    from tocsin.synth.plan import Plan

    plan = Plan(
        events=arguments.events,
        seed=arguments.seed,
        broken=arguments.broken,
        duplicates=arguments.duplicates,
        late=arguments.late,
        broken_files=arguments.broken_files,
        files_of=arguments.files_of,
        start=arguments.start,
        days=arguments.days,
    )
    began = perf_counter()
    with Progress("events", plan.events) as progress:
        truth = synthesize(plan, arguments.out, progress.advance)
    seconds = perf_counter() - began
    summary = {name: value for name, value in truth.items() if name not in _LONG}
    summary["seconds"] = round(seconds, 2)
    if arguments.json:
        show_json({"directory": str(arguments.out), **summary})
    else:
        fields((name, _text(value)) for name, value in summary.items() if name != "plan")
        say(f"{arguments.out}: {plan.events / seconds:,.0f} events a second; see {TRUTH_NAME}")
    return 0


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count:,}" for name, count in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def _count(text: str) -> int:
    times = _TIMES.get(text[-1:].lower(), 1)
    digits = text[:-1] if times > 1 else text
    try:
        return int(float(digits) * times)
    except (ValueError, OverflowError):
        raise ArgumentTypeError("needs a number such as 50000, 50k or 10M") from None


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError("needs a date such as 2026-01-31") from None

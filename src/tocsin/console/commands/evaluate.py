"""`tocsin evaluate`: how good estimates and alerts are, on runs that have ended."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.console.parser import Parser, add_actions, add_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tocsin.monitor.estimate.evaluation import Application, Scores
    from tocsin.monitor.estimate.recorded import Recorded

SUMMARY = "Measure estimates of time left, and alerts, on recorded runs"
EXAMPLES = """
  tocsin evaluate eta runs.jsonl.gz                 our estimates beside simple ones
  tocsin evaluate eta runs.jsonl.gz --json
"""


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    eta = actions.add_parser("eta", examples=EXAMPLES, help="estimates of a run's total time")
    eta.add_argument("file", metavar="FILE", help="runs, one JSON object a line, may be gzipped")
    add_json(eta)


def run(arguments: Namespace) -> int:
    from tocsin.console.runs_file import read_runs

    return _eta(arguments, read_runs(Path(arguments.file)))


def _eta(arguments: Namespace, runs: Mapping[str, list[Recorded]]) -> int:
    from tocsin.console.progress import Progress
    from tocsin.console.render import say, show_json
    from tocsin.errors import BadRunsFile
    from tocsin.monitor.estimate.evaluation import RUNS_MIN, as_report, evaluate

    enough = {name: found for name, found in sorted(runs.items()) if len(found) >= RUNS_MIN}
    if not enough:
        raise BadRunsFile(
            f"{arguments.file} has no application with {RUNS_MIN} runs",
            remedy=f"Give a file with at least {RUNS_MIN} runs of one application.",
        )
    applications: dict[str, Application] = {}
    total = 2 * sum(len(found) for found in enough.values())
    before = 0
    with Progress("runs", total) as progress:
        for name, found in enough.items():
            start = before

            def told(done: int, start: int = start) -> None:
                progress.reach(start + done, total)

            applications[name] = evaluate([recorded.run for recorded in found], told)
            before += 2 * len(found)
    if arguments.json:
        show_json(as_report(applications))
        return 0
    few = len(runs) - len(enough)
    if few:
        say(f"{few} applications with fewer than {RUNS_MIN} runs are left out")
    _show(applications)
    return 0


def _show(applications: Mapping[str, Application]) -> None:
    from tocsin.console.render import show
    from tocsin.monitor.estimate.evaluation import BASELINES, median_of

    median = median_of(list(applications.values()))
    for title, ours, theirs in (
        ("each run estimated from all others", "run_out", "run_out_baselines"),
        ("each run estimated from runs of other sizes", "size_out", "size_out_baselines"),
    ):
        show(f"\nError of the estimated total, median (mean) over runs; {title}\n")
        headers = ["application", "runs", "at", "ours", "80 % holds", "high/low"]
        rows = []
        named = {**applications, "MEDIAN": median}
        for name, application in named.items():
            scores: Scores = getattr(application, ours)
            for stage, score in scores.items():
                others = getattr(application, theirs)
                rows.append(
                    [
                        name,
                        application.runs,
                        f"{stage:.0%}",
                        _errors(score.mdape, score.mape),
                        "" if score.coverage is None else f"{score.coverage:.0%}",
                        "" if score.ratio is None else f"{score.ratio:.2f}",
                        *(
                            _errors(others[base][stage].mdape, others[base][stage].mape)
                            for base in BASELINES
                        ),
                    ]
                )
        _table([*headers, *(name.replace("_", " ") for name in BASELINES)], rows)


def _table(headers: list[str], rows: list[list[object]]) -> None:
    from tocsin.console.render import table

    last = None
    shown: list[list[object]] = []
    for row in rows:
        again = row[0] == last
        last = row[0]
        shown.append([" " if again else row[0], " " if again else row[1], *row[2:]])
    table(headers, shown)


def _errors(median: float, mean: float) -> str:
    return f"{_percent(median)} ({_percent(mean)})"


def _percent(fraction: float) -> str:
    return f"{fraction:.1%}" if fraction < 9.995 else "> 999 %"

"""`tocsin evaluate`: how good estimates and alerts are, and what resource discovery costs."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.cli.parser import Parser, add_actions, add_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from tocsin.monitor.evaluation.alerts import Alerts
    from tocsin.monitor.evaluation.estimates import Application, Case, Scores

    Found = TypeVar("Found")

SUMMARY = "Measure estimates of time left, alerts, and resource discovery"
EXAMPLES = """
  tocsin evaluate eta runs.jsonl.gz                 our estimates beside simple ones
  tocsin evaluate eta runs.jsonl.gz --json
  tocsin evaluate eta runs.jsonl.gz --least 8       applications with 8 runs too
  tocsin evaluate eta logs/*.jsonl --least 8        recorded logs of Snakemake, one file a run
  tocsin evaluate alerts runs.jsonl.gz              false alarms of "slower than usual"
  tocsin evaluate discovery --quick                 resource discovery in 24 simulated brokers
"""

RUNS_LEAST = 3


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    eta = actions.add_parser("eta", examples=EXAMPLES, help="estimates of a run's total time")
    alerts = actions.add_parser(
        "alerts", examples=_ALERT_EXAMPLES, help='false and true alarms of "slower than usual"'
    )
    for each in (eta, alerts):
        each.add_argument(
            "files",
            nargs="+",
            metavar="FILE",
            help="runs, one JSON object a line, or the log records of one run of Snakemake; "
            "plain or gzipped",
        )
        each.add_argument(
            "--least",
            metavar="N",
            type=int,
            help="leave out applications with fewer runs (eta 10, alerts 4)",
        )
        add_json(each)
    _add_discovery(
        actions.add_parser(
            "discovery",
            examples=_DISCOVERY_EXAMPLES,
            help="what finding resources costs (paper 001)",
        )
    )


def _add_discovery(parser: Parser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", default="out/discovery", help="where files go (out/discovery)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="decides everything (1)")
    parser.add_argument(
        "--quick", action="store_true", help="fewer and smaller workloads, or smaller overlays"
    )
    parser.add_argument(
        "--hosts",
        metavar="CSV",
        nargs="+",
        default=[],
        help="also a workload of these readings of hosts: a column named value, every 5 minutes",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--scale",
        action="store_true",
        help="instead: what overlays of 24, 100 and 1,000 brokers cost",
    )
    instead.add_argument(
        "--processes",
        action="store_true",
        help="instead: 24 brokers as processes over TCP; their times, and the same counts",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=int,
        default=1,
        help="with --scale: so many sizes at a time (1)",
    )
    parser.add_argument(
        "--summary",
        choices=("auto", "spark", "python"),
        default="auto",
        help="who summarises the records: Spark where it is installed (auto)",
    )
    add_json(parser)


_ALERT_EXAMPLES = """
  tocsin evaluate alerts runs.jsonl.gz
  tocsin evaluate alerts runs.jsonl.gz --json
"""


_DISCOVERY_EXAMPLES = """
  tocsin evaluate discovery                         figures 7 to 14 of the paper; half an hour
  tocsin evaluate discovery --quick --out /tmp/d    fewer and smaller workloads; two minutes
  tocsin evaluate discovery --hosts readings/*.csv  one more workload, of real hosts
  tocsin evaluate discovery --scale                 up to 1,000 brokers; 7 GB, hours
  tocsin evaluate discovery --processes             24 real brokers and their times; two minutes
"""


def run(arguments: Namespace) -> int:
    if arguments.action == "discovery":
        from tocsin.cli.evaluate.discovery.command import evaluate_discovery

        return evaluate_discovery(arguments)
    return _eta(arguments) if arguments.action == "eta" else _alerts(arguments)


def _eta(arguments: Namespace) -> int:
    from tocsin.cli.render import show_json
    from tocsin.monitor.evaluation.estimates import RUNS_MIN, as_report, evaluate_cases

    applications = _each(arguments.files, _least(arguments, RUNS_MIN), 2, evaluate_cases)
    if arguments.json:
        show_json(as_report(applications))
    else:
        _show_eta(applications)
    return 0


def _alerts(arguments: Namespace) -> int:
    from tocsin.cli.render import show_json
    from tocsin.monitor.evaluation.alerts import RUNS_NEEDED, as_report, evaluate_alerts

    def measure(cases: Sequence[Case], advance: Callable[[int], None]) -> Alerts:
        return evaluate_alerts([case.run for case in cases], advance)

    applications = _each(arguments.files, _least(arguments, RUNS_NEEDED), 1, measure)
    if arguments.json:
        show_json(as_report(applications))
    else:
        _show_alerts(applications)
    return 0


def _least(arguments: Namespace, default: int) -> int:
    from tocsin.errors import BadSetting

    least: int | None = arguments.least
    if least is not None and least < RUNS_LEAST:
        raise BadSetting(
            f"--least is {least}", remedy=f"Give {RUNS_LEAST} or more: a run needs others."
        )
    return default if least is None else least


def _each(
    files: Sequence[str],
    runs_min: int,
    passes: int,
    measure: Callable[[Sequence[Case], Callable[[int], None]], Found],
) -> dict[str, Found]:
    """What is measured for each application of the files that has enough runs."""
    from tocsin.cli.evaluate.runs_file import read_cases
    from tocsin.cli.progress import Progress
    from tocsin.cli.render import plural, say
    from tocsin.errors import BadRunsFile

    everything, unfinished = read_cases([Path(file) for file in files])
    if unfinished:
        say(f"{plural(unfinished, 'log')} of a run that did not complete left out")
    enough = {name: runs for name, runs in sorted(everything.items()) if len(runs) >= runs_min}
    if not enough:
        raise BadRunsFile(
            f"{', '.join(files[:3])} has no application with {runs_min} runs",
            remedy=f"Give files with {runs_min} runs of one application, or a smaller --least.",
        )
    if few := len(everything) - len(enough):
        say(f"{plural(few, 'application')} with fewer than {runs_min} runs left out")
    total = passes * sum(len(runs) for runs in enough.values())
    found = {}
    before = 0
    with Progress("runs", total) as progress:
        for name, runs in enough.items():

            def advance(done: int, start: int = before) -> None:
                progress.reach(start + done, total)

            found[name] = measure(runs, advance)
            before += passes * len(runs)
    return found


def _show_eta(applications: Mapping[str, Application]) -> None:
    from tocsin.cli.render import show
    from tocsin.monitor.evaluation.estimates import median_of

    named = {**applications, "MEDIAN": median_of(list(applications.values()))}
    show("Error of the estimated total: median (mean) over runs.\n")
    show("Each run estimated from all others:\n")
    _eta_table([(n, a.runs, a.run_out, a.run_out_baselines) for n, a in named.items()])
    show("\nEach run estimated from runs of other sizes alone:\n")
    _eta_table([(n, a.runs, a.size_out, a.size_out_baselines) for n, a in named.items()])


def _eta_table(found: Sequence[tuple[str, int, Scores, Mapping[str, Scores]]]) -> None:
    from tocsin.cli.render import table
    from tocsin.monitor.evaluation.estimates import BASELINES

    rows: list[list[object]] = []
    for name, runs, ours, theirs in found:
        for number, (point, score) in enumerate(ours.items()):
            holds = "" if score.coverage is None else f"{score.coverage:.0%}"
            ratio = "" if score.ratio is None else f"{score.ratio:.2f}"
            base = [
                _errors(theirs[each][point].mdape, theirs[each][point].mape) for each in BASELINES
            ]
            label = (" ", " ") if number else (name, runs)
            rows.append(
                [*label, f"{point:.0%}", _errors(score.mdape, score.mape), holds, ratio, *base]
            )
    headers = ["application", "runs", "at", "ours", "80 % holds", "high/low"]
    table([*headers, *(name.replace("_", " ") for name in BASELINES)], rows)


def _show_alerts(applications: Mapping[str, Alerts]) -> None:
    from tocsin.cli.render import show, table
    from tocsin.monitor.alerts.limits import FALSE_ALARM_RATE
    from tocsin.monitor.evaluation.alerts import TIMES, as_report

    report = as_report(applications)
    rows = []
    shown = {**{name: each.as_dict() for name, each in applications.items()}, "ALL": report["all"]}
    for name, each in shown.items():
        assert isinstance(each, dict)
        found = [each["detected"][str(times)] for times in TIMES]
        shares = [_percent(share) if share is not None else "" for share in found]
        alarms = each["false_alarms"]
        rows.append(
            [
                name,
                each["runs"],
                f"{each['activities']:,}",
                f"{each['judged']:,}",
                _percent(alarms, 2) if alarms is not None else "",
                *shares,
            ]
        )
    show(f"Activities judged by other runs; at most {FALSE_ALARM_RATE:.0%} false alarms stated.\n")
    headers = ["application", "runs", "activities", "judged", "false alarms"]
    table([*headers, *(f"found at {times}x" for times in TIMES)], rows)


def _errors(median: float, mean: float) -> str:
    return f"{_percent(median)} ({_percent(mean)})"


def _percent(fraction: float, digits: int = 1) -> str:
    return f"{fraction:.{digits}%}" if fraction < 9.995 else "> 999 %"

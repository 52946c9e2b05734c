"""`tocsin wf`: workflow runs: what runs, why did it fail, how long does it take."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from tocsin.cli.parser import Parser, add_actions, add_broker, add_json, add_sign_in

SUMMARY = "Watch workflow runs: state, time left, failures, history, provenance"
EXAMPLES = """
  tocsin wf ls                                      what runs and what ran
  tocsin wf show                                    the latest run; the start of an id is enough
  tocsin wf watch                                   follow it to its end
  tocsin wf failures                                why it failed, and what came before
  tocsin wf eta --workflow variant-calling          how long one more would take
"""

_LS = """
  tocsin wf ls
  tocsin wf ls --state running
  tocsin wf ls --workflow variant-calling --limit 100 --json | jq -r .id
"""
_SHOW = """
  tocsin wf show
  tocsin wf show 7f3a
"""
_WATCH = """
  tocsin wf watch                                   updates in place; a line a change in a pipe
  tocsin wf watch --next                            the next run, whichever it is
  tocsin wf watch 7f3a --json | jq -c '[.state, .progress, .estimate.remaining_s]'
  tocsin wf watch 7f3a && mail -s done me@example.org < report.txt
"""
_ETA = """
  tocsin wf eta                                     the time left of the latest run
  tocsin wf eta --workflow variant-calling          before it starts, as it was run last
  tocsin wf eta --plan plan.json --json             before it starts, for these tasks
"""
_FAILURES = """
  tocsin wf failures
  tocsin wf failures 7f3a --last 50
"""
_HISTORY = """
  tocsin wf history                                 every activity
  tocsin wf history align --workflow variant-calling
"""
_COMPARE = """
  tocsin wf compare 7f3a 91bc
"""
_CHANGES = """
  tocsin wf changes 7f3a                            since the run before it
  tocsin wf changes variant-calling                 every recorded version of the workflow
"""
_HINTS = """
  tocsin wf hints 7f3a
"""
_PROVENANCE = """
  tocsin wf provenance 7f3a > run.json
  tocsin wf provenance 7f3a --format crate -o run.crate.zip
"""
_FILES = """
  tocsin wf files results/plot.png                  who wrote it, from what, and who read it
  tocsin wf files '*.bam' --limit 100 --depth 0     by a wildcard, without the lineage
  tocsin wf files raw.csv --readers                 who read it
"""
_SEND = """
  tocsin wf send                                    what this user's runs left behind
  tocsin wf send /scratch/spool --broker http://head:8400
"""
_RECORD = """
  tocsin wf record Snakefile
  tocsin wf record pipeline.cwl --workflow variant-calling --dry-run
"""

_LOG = """
  tocsin wf log events.jsonl                        every message, from now on
  tocsin wf log problems.db --concepts ActivityProblem,RunId,ErrorMessage --all
"""

RUNS_SHOWN = 20
FILES_SHOWN = 20
LINEAGE_DEPTH = 3
LINEAGE_DEPTH_MAX = 20
EVENTS_SHOWN = 10
INTERVAL_S = 1.0
FORMATS = ("prov-json", "prov-n", "turtle", "crate")

# Where each action is done; only that module is loaded.
_MODULES = {
    "ls": "runs",
    "show": "runs",
    "watch": "watch",
    "eta": "estimates",
    "failures": "failures",
    "history": "history",
    "compare": "differences",
    "changes": "differences",
    "hints": "differences",
    "files": "files",
    "provenance": "provenance",
    "send": "send",
    "record": "record",
    "log": "log",
}


def add_arguments(parser: Parser) -> None:
    actions = add_actions(parser)
    _add_ls(actions.add_parser("ls", examples=_LS, help="list runs, the latest first"))
    show = actions.add_parser("show", examples=_SHOW, help="show one run in detail")
    _add_run(show)
    add_broker(show)
    _add_watch(actions.add_parser("watch", examples=_WATCH, help="follow a run to its end"))
    _add_eta(
        actions.add_parser(
            "eta", examples=_ETA, help="estimate the time left, or the time a run would take"
        )
    )
    _add_failures(
        actions.add_parser(
            "failures", examples=_FAILURES, help="why a run failed, and the events before"
        )
    )
    _add_history(
        actions.add_parser(
            "history", examples=_HISTORY, help="past durations and failures of an activity"
        )
    )
    compare = actions.add_parser("compare", examples=_COMPARE, help="what differs between two runs")
    compare.add_argument("a", metavar="A", help="a run, or the beginning of its id")
    compare.add_argument("b", metavar="B", help="another one")
    add_broker(compare)
    changes = actions.add_parser("changes", examples=_CHANGES, help="what changed in the workflow")
    changes.add_argument(
        "name", metavar="NAME", nargs="?", help="a run, or a workflow (the latest run)"
    )
    add_broker(changes)
    hints = actions.add_parser("hints", examples=_HINTS, help="what could have run in parallel")
    _add_run(hints)
    add_broker(hints)
    _add_files(actions.add_parser("files", examples=_FILES, help="which run produced this file"))
    _add_provenance(
        actions.add_parser("provenance", examples=_PROVENANCE, help="W3C PROV, or an RO-Crate")
    )
    send = actions.add_parser(
        "send", examples=_SEND, help="send the events that runs spooled while there was no broker"
    )
    send.add_argument("spool", metavar="SPOOL", nargs="?", help="the directory (the user's own)")
    send.add_argument(
        "--broker",
        metavar="URL",
        help="send all of it to this broker (TOCSIN_BROKER, or else each file to its run's own)",
    )
    add_sign_in(send)
    add_json(send)
    _add_record(
        actions.add_parser("record", examples=_RECORD, help="record a version of a workflow file")
    )
    _add_log(actions.add_parser("log", examples=_LOG, help="write messages to a file or database"))


def _add_run(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        help="a run id or its beginning, or a workflow for its latest run (the latest run)",
    )


def _count(text: str) -> int:
    """A whole number, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("needs a whole number, 1 or more")
    return int(text)


def _add_ls(parser: ArgumentParser) -> None:
    from tocsin.wire.api.run_views import RUN_STATES

    parser.add_argument("--state", choices=RUN_STATES, help="only those in this state")
    parser.add_argument("--workflow", metavar="NAME", help="only those of this workflow")
    parser.add_argument("--engine", metavar="NAME", help="only those of this engine")
    parser.add_argument(
        "--limit", metavar="N", type=_count, default=RUNS_SHOWN, help=f"at most N ({RUNS_SHOWN})"
    )
    add_broker(parser)


def _add_watch(parser: ArgumentParser) -> None:
    from tocsin.cli.durations import seconds

    _add_run(parser)
    parser.add_argument("--next", action="store_true", help="wait for the next run to start")
    parser.add_argument(
        "--interval",
        metavar="1s",
        type=seconds,
        default=INTERVAL_S,
        help=f"how often to look ({INTERVAL_S:g}s)",
    )
    parser.add_argument("-W", "--timeout", metavar="10m", type=seconds, help="stop after this time")
    add_broker(parser)


def _add_eta(parser: ArgumentParser) -> None:
    _add_run(parser)
    parser.add_argument("--workflow", metavar="NAME", help="one more run of this workflow")
    parser.add_argument(
        "--plan", metavar="FILE", help="a run of these tasks, as JSON; - is standard input"
    )
    add_broker(parser)


def _add_failures(parser: ArgumentParser) -> None:
    _add_run(parser)
    parser.add_argument(
        "--last",
        metavar="N",
        type=_count,
        default=EVENTS_SHOWN,
        help=f"how many events before each failure ({EVENTS_SHOWN})",
    )
    add_broker(parser)


def _add_history(parser: ArgumentParser) -> None:
    parser.add_argument("activity", metavar="ACTIVITY", nargs="?", help="its type (all of them)")
    parser.add_argument("--workflow", metavar="NAME", help="only in this workflow")
    parser.add_argument("--version", metavar="V", help="only in this version of the activity")
    add_broker(parser)


def _add_files(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="a path, the end of one, or a pattern as '*.bam'"
    )
    parser.add_argument("--readers", action="store_true", help="who read it, not who wrote it")
    parser.add_argument(
        "--depth",
        metavar="N",
        type=_depth,
        default=LINEAGE_DEPTH,
        help=f"steps of lineage, up and down, of the latest file: 0 to 20 ({LINEAGE_DEPTH})",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_count,
        default=FILES_SHOWN,
        help=f"at most N files ({FILES_SHOWN})",
    )
    add_broker(parser)


def _depth(text: str) -> int:
    if not text.isdecimal() or int(text) > LINEAGE_DEPTH_MAX:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 to {LINEAGE_DEPTH_MAX}")
    return int(text)


def _add_provenance(parser: ArgumentParser) -> None:
    _add_run(parser)
    parser.add_argument(
        "--format", choices=FORMATS, default="prov-json", help="how it is written (prov-json)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where it goes (standard output)")
    add_broker(parser)


def _add_record(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a Snakefile, or a CWL file")
    parser.add_argument(
        "--workflow", metavar="NAME", help="its name (that of its directory or file)"
    )
    parser.add_argument(
        "--forked-from", metavar="NAME", help="the workflow that this one was made from"
    )
    parser.add_argument(
        "--root", metavar="DIR", help="where all of its files are (the directory of FILE)"
    )
    parser.add_argument("--dry-run", action="store_true", help="show what changed, record nothing")
    add_broker(parser)


def _add_log(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="JSON lines; SQLite if it ends in .db")
    parser.add_argument(
        "--concepts",
        metavar="A,B",
        default="Concept",
        help="only these concepts and what they subsume (all)",
    )
    parser.add_argument(
        "--all", action="store_true", help="begin with the oldest; an existing file is continued"
    )
    parser.add_argument("-n", "--count", metavar="N", type=_count, help="stop after N messages")
    add_broker(parser)


def run(arguments: Namespace) -> int:
    from datetime import UTC, datetime
    from importlib import import_module

    from tocsin.cli.rest import Rest

    def clock() -> datetime:
        return datetime.now(UTC)

    action = getattr(import_module(f"tocsin.cli.wf.{_MODULES[arguments.action]}"), arguments.action)
    with Rest(arguments.broker) as rest:
        code: int = action(rest, arguments, clock)
    return code

"""`tocsin run`: any command, reported as a workflow run and otherwise unchanged."""

from __future__ import annotations

from argparse import REMAINDER, ArgumentTypeError, Namespace

from tocsin.cli.parser import Parser, add_sign_in

SUMMARY = "Run a command and report its start, output, resources and exit code"
EXAMPLES = """
  tocsin run -- ./simulate.sh 42                    started, resources, end of output, exit code
  tocsin run --workflow climate --activity merge --input a.nc --output b.nc -- cdo merge a.nc b.nc
  srun tocsin run --workflow fit --parameter seed=7 -- ./fit --seed 7        in a job script
  tocsin run --workflow nightly -- bash steps.sh    `tocsin run` inside of it are its activities
"""
USAGE_EXIT = 2


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--workflow", metavar="W", help="the workflow's name (the command's)")
    parser.add_argument("--activity", metavar="A", help="the kind of step (the command's name)")
    parser.add_argument("--run", metavar="ID", help="the id of the run (a new one)")
    parser.add_argument(
        "--part-of",
        metavar="ID",
        help="an activity of this run, which others start and end (TOCSIN_RUN_ID)",
    )
    parser.add_argument(
        "--input", metavar="FILE", action="append", default=[], help="a file that it reads"
    )
    parser.add_argument(
        "--output", metavar="FILE", action="append", default=[], help="a file that it writes"
    )
    parser.add_argument(
        "--parameter",
        metavar="K=V",
        action="append",
        type=_parameter,
        default=[],
        help="a parameter of the run",
    )
    parser.add_argument(
        "--attempt", metavar="N", type=_attempt, default=1, help="which attempt it is (1)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing on standard error")
    parser.add_argument(
        "--json",
        action="store_true",
        help="at the end, one line of JSON on standard error; standard output is the command's",
    )
    parser.add_argument(
        "--broker",
        metavar="URL",
        help="the broker (TOCSIN_BROKER, or else http://127.0.0.1:8400)",
    )
    add_sign_in(parser)
    parser.add_argument("command", metavar="COMMAND", nargs=REMAINDER, help="after --")


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError("must be NAME=VALUE")
    return name, value


def _attempt(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError("must be a whole number, 1 or more")
    return int(text)


def run(arguments: Namespace) -> int:
    command = arguments.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        import sys

        print(
            "tocsin run: no command is given. Put it after --, as in `tocsin run -- make`.",
            file=sys.stderr,
        )
        return USAGE_EXIT
    from tocsin.cli.run.command import run_command

    return run_command(arguments, command)

"""`tocsin run`: the command is started first; reporting is set up while it runs."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from tocsin.integrations.command.child import Child, Ended, exit_like

if TYPE_CHECKING:
    from tocsin.integrations.command.reporter import RunReporter

SAMPLE_S: Final = 5.0
FIRST_SAMPLE_S: Final = 0.5
RUN_VARIABLE: Final = "TOCSIN_RUN_ID"


def run_command(arguments: Namespace, command: list[str]) -> int:
    """Run it. Returns its exit code, or ends by the signal that ended it."""
    run_id = _run_id(arguments, command)
    environment = {**os.environ, RUN_VARIABLE: run_id}
    child = Child(command, environment)
    reporter = None
    try:
        reporter = _begin(arguments, command, run_id, child)
    except Exception as error:  # the command runs in any case
        _say(arguments, f"it cannot be reported: {error}")
    ended = _follow(child, reporter)
    if ended.problem:
        print(f"tocsin run: {ended.problem}", file=sys.stderr)
    if not child.output.finish():
        _say(
            arguments, "a process that it left behind holds its output open, and is not waited for"
        )
    is_reported = _report_end(arguments, reporter, child, ended)
    if arguments.json:
        seconds = (ended.at_ns - child.started_ns) / 1e9
        _print(_json(run_id, ended, seconds, is_reported=is_reported))
    return exit_like(ended)


def _json(run_id: str, ended: Ended, seconds: float, *, is_reported: bool) -> str:
    import json

    return json.dumps(
        {
            "run": run_id,
            "exit_code": ended.exit_code,
            "signal": ended.signal,
            "duration_s": round(seconds, 3),
            "reported": is_reported,
        }
    )


def _run_id(arguments: Namespace, command: list[str]) -> str:
    """The run that it is, or is part of: made here, to be put into the command's environment."""
    given = arguments.run or arguments.part_of or os.environ.get(RUN_VARIABLE)
    if given:
        return str(given)
    import time

    name = arguments.workflow or os.path.basename(command[0]) or "command"
    plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in name)
    return f"{plain}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(3).hex()}"


def _begin(arguments: Namespace, command: list[str], run_id: str, child: Child) -> RunReporter:
    import logging

    from tocsin.integrations.command.jobs import job_of
    from tocsin.integrations.command.reporter import RunReporter, Wrapped, name_of

    logging.getLogger("tocsin.tracking").setLevel(logging.CRITICAL)  # problems are printed below
    inherited = "" if arguments.run else os.environ.get(RUN_VARIABLE, "")
    name = name_of(command)
    wrapped = Wrapped(
        command=tuple(command),
        workflow=arguments.workflow or os.environ.get("TOCSIN_WORKFLOW") or name,
        activity=arguments.activity or name,
        run_id=run_id,
        part_of=arguments.part_of or inherited,
        inputs=tuple(arguments.input),
        outputs=tuple(arguments.output),
        parameters=dict(arguments.parameter),
        job=job_of(os.environ),
        attempt=arguments.attempt,
    )
    reporter = RunReporter(wrapped, arguments.broker)
    reporter.started(child.started_ns)
    return reporter


def _follow(child: Child, reporter: RunReporter | None) -> Ended:
    """Wait for its end, and report its resource use from time to time."""
    if child.ended is not None:
        return child.ended
    from tocsin.integrations.command.process_usage import ProcessUsage

    child.use = use = ProcessUsage()

    def look() -> None:
        with suppress(Exception):  # a process may end while it is looked at
            assert child.pid is not None
            sample = use.sample(child.pid)
            if reporter is not None:
                reporter.used(sample)

    return child.wait((FIRST_SAMPLE_S, SAMPLE_S), look)


def _report_end(
    arguments: Namespace, reporter: RunReporter | None, child: Child, ended: Ended
) -> bool:
    """True if the broker received everything."""
    if reporter is None:
        return False
    used = {} if child.use is None else child.use.total(ended.used)
    reporter.ended(ended, used, child.output.tail())
    reporter.close()
    counts = reporter.outbox.counts
    if counts.spooled or counts.dropped:
        _say(
            arguments,
            "the broker could not be reached; the events of this run are spooled in "
            f"{reporter.outbox.spool} and sent by the next run, or by `tocsin wf send`",
        )
    return not (counts.spooled or counts.dropped)


def _say(arguments: Namespace, text: str) -> None:
    if not (arguments.quiet or arguments.json):
        _print(f"tocsin run: {text}")


def _print(line: str) -> None:
    with suppress(OSError):
        print(line, file=sys.stderr)

"""RunReporter: reports a command: its start, what it uses, and how it ended."""

from __future__ import annotations

import json
import os
import shlex
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from tocsin.client.event_json import default_source
from tocsin.client.tracking import message_builders
from tocsin.client.tracking.files import user_name, working_directory
from tocsin.client.tracking.outbox import Outbox
from tocsin.client.tracking.run import (
    Pairs,
    Run,
    Step,
    head_of,
    tail_of,
    value_text,
)
from tocsin.client.tracking.workflow import new_run_id
from tocsin.integrations.command.child import Ended

ENGINE: Final = "command"
HEARTBEAT_S: Final = 30.0
DRAIN_S: Final = (
    2.0  # at the end, for a broker that is slow; one that is not there is not waited for
)
OUT_OF_MEMORY: Final = 137
ABORTING: Final = frozenset({2, 3, 15})  # signals by which a person or a batch system ends things


@dataclass(frozen=True, slots=True)
class Wrapped:
    """A command, and what it is to be known as."""

    command: tuple[str, ...]
    workflow: str
    activity: str
    run_id: str = ""
    part_of: str = ""
    """A run whose start and end others report; the command becomes an activity of it."""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    parameters: Mapping[str, str] | None = None
    job: str = ""
    attempt: int = 1


class RunReporter:
    """Puts into an outbox what happens. Nothing here raises or waits."""

    def __init__(self, wrapped: Wrapped, broker: str | None, spool: Path | None = None) -> None:
        self.wrapped = wrapped
        self.run = Run(
            wrapped.part_of or wrapped.run_id or new_run_id(wrapped.workflow),
            wrapped.workflow,
            engine="" if wrapped.part_of else ENGINE,
            user=user_name(),
            host=socket.gethostname(),
            origin=os.urandom(4).hex(),
        )
        own = f"{wrapped.activity}.{os.getpid()}" if wrapped.part_of else wrapped.activity
        self.step = Step(own, wrapped.activity, wrapped.attempt)
        source = f"{default_source(ENGINE)}/{self.run.run_id}"
        self.outbox = Outbox(broker, source=source, spool=spool, drain_s=DRAIN_S)
        self._produced = message_builders.ProducedFiles()
        self._numbers = count(1)
        self._beat_s = time.monotonic()

    def started(self, at_ns: int) -> None:
        """It began at that time."""
        wrapped, command = self.wrapped, shlex.join(self.wrapped.command)
        if not wrapped.part_of:
            pairs = {
                "WorkingDirectory": working_directory(),
                "CommandLine": head_of(command),
                "HeartbeatSeconds": value_text(HEARTBEAT_S) or "0",
                "PlannedActivities": "1",
            }
            if wrapped.parameters:
                pairs["Parameters"] = json.dumps(dict(wrapped.parameters), ensure_ascii=False)
            self._report_run("WorkflowStarted", at_ns, pairs, whole=True)
        self.outbox.put_later(
            message_builders.activity_started,
            self.run,
            self.step,
            at_ns,
            at_ns,
            wrapped.inputs,
            wrapped.outputs,
            command,
            self._produced,
        )
        if wrapped.job:
            self.used({"EngineJobId": wrapped.job})

    def used(self, sample: Mapping[str, float | str]) -> None:
        """What it uses now."""
        pairs = {name: text for name, value in sample.items() if (text := value_text(value))}
        number = f"{os.getpid()}.{next(self._numbers)}"
        at_ns = time.time_ns()
        self.outbox.put_later(
            message_builders.sample, self.run, self.step, at_ns, number, "", pairs
        )
        if not self.wrapped.part_of and time.monotonic() - self._beat_s >= HEARTBEAT_S:
            self._beat_s = time.monotonic()
            self._report_run("WorkflowHeartbeat", at_ns, {}, number=number)

    def ended(self, ended: Ended, used: Mapping[str, float], tail: str) -> None:
        """It is over."""
        pairs: Pairs = {"ExitCode": str(ended.exit_code)}
        pairs |= {name: text for name, value in used.items() if (text := value_text(value))}
        if tail:
            pairs["LogTail"] = tail_of(tail)
        error = _error_of(ended)
        if error:
            pairs["ErrorMessage"] = head_of(error)
        self.outbox.put_later(
            message_builders.activity_ended,
            self.run,
            self.step,
            _activity_ending(ended),
            ended.at_ns,
            pairs,
            None,
            self.wrapped.outputs,
            self._produced,
        )
        if not self.wrapped.part_of:
            about = {"ExitCode": str(ended.exit_code)} | ({"ErrorMessage": error} if error else {})
            self._report_run(_run_ending(ended), ended.at_ns, about)

    def close(self) -> None:
        """Send what is left, for a bounded time; what cannot be sent is kept on disk."""
        self.outbox.close()

    def _report_run(
        self, concept: str, at_ns: int, pairs: Pairs, *, whole: bool = False, number: str = ""
    ) -> None:
        given = {name: value for name, value in pairs.items() if value}
        self.outbox.put_later(
            message_builders.run_event, self.run, concept, at_ns, number, whole, given
        )


def _error_of(ended: Ended) -> str:
    if ended.problem:
        return ended.problem
    if ended.signal is not None:
        return f"ended by signal {ended.signal} ({_signal_name(ended.signal)})"
    return f"exit code {ended.exit_code}" if ended.exit_code else ""


def _signal_name(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return "a signal without a name"


def _activity_ending(ended: Ended) -> str:
    if ended.exit_code == OUT_OF_MEMORY:
        return "ActivityOutOfMemory"
    if ended.signal in ABORTING:
        return "ActivityCancelled"
    return "ActivityFailed" if ended.exit_code else "ActivitySucceeded"


def _run_ending(ended: Ended) -> str:
    if ended.signal in ABORTING:
        return "WorkflowAborted"
    return "WorkflowTerminated" if ended.exit_code else "WorkflowCompleted"


def name_of(command: Sequence[str]) -> str:
    """What a command is called if nobody says: its file's name; of an interpreter, its script's."""
    first = os.path.basename(command[0]) or command[0]
    if first.rstrip("0123456789.") in ("python", "bash", "sh", "perl", "ruby", "Rscript", "node"):
        script = next((each for each in command[1:] if not each.startswith("-")), "")
        if script and not any(each == "-c" for each in command[1:2]):
            return os.path.basename(script)
    return first

"""The hook in Snakemake's process. It watches its log, and never raises into it nor holds it up."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, Unpack

from tocsin.client.tracking.heartbeat import HEARTBEAT_S, Heartbeat
from tocsin.client.tracking.outbox import Outbox
from tocsin.credentials.sign_in import SignIn
from tocsin.integrations.files import DiskFiles, tails_of
from tocsin.integrations.snakemake.log_text import paths_in
from tocsin.integrations.snakemake.numbers import NumbersOfJobs
from tocsin.integrations.snakemake.plan import facts_of, jobs_of, touches, workflow_that_logs
from tocsin.integrations.snakemake.records import ENGINE, SnakemakeRun
from tocsin.wire.blackboard.messages import Message

SNAKEMAKE_LOGGER = "snakemake.logging"


class Sink(Protocol):
    """Where messages go; the outbox, or a list in a test."""

    def put(self, message: Message) -> None: ...

    def close(self) -> None: ...


class RecordFilter(logging.Filter):
    """Adds to a few records what only the logging thread can see: the workflow and its jobs.

    A filter of Snakemake's logger runs in the thread that logs, where the workflow holds still.
    The handler runs in another, later, when the plan may be changing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.workflow: Any | None = None
        self.size = (0, 0)
        self.numbers = NumbersOfJobs()

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            self._annotate(record, str(getattr(record, "event", None) or "").lower())
        except Exception:  # of whatever kind: Snakemake's own log must go on
            record.tocsin_incomplete = True
        return True

    def _annotate(self, record: logging.LogRecord, event: str) -> None:
        if event == "workflow_started":
            self.workflow, self.size = workflow_that_logs(), (0, 0)
            self.numbers = NumbersOfJobs()
            if self.workflow is not None:
                record.tocsin_facts = facts_of(self.workflow)
        elif event in ("run_info", "job_started") and self.workflow is not None:
            dag = self.workflow.dag
            size = len(dag), len(getattr(dag, "_jobid", ()))
            if size != self.size:
                self.size = size
                record.tocsin_planned = jobs_of(self.workflow, self.numbers)
                record.tocsin_touches = touches(self.workflow)
        elif event == "job_error":  # another attempt removes its log as it begins
            paths = paths_in(getattr(record, "log", None))
            record.tocsin_log_tails = tails_of(DiskFiles("."), paths)


class SnakemakeHook:
    """Reports one Snakemake process to a broker. Every method may be called by any thread.

    A child that was forked off has a copy, and closes it when it ends: it has nothing to report.
    """

    def __init__(
        self,
        broker: str | None = None,
        *,
        name: str | None = None,
        run_id: str | None = None,
        spool: Path | None = None,
        sink: Sink | None = None,
        heartbeat_s: float = HEARTBEAT_S,
        clock: Callable[[], float] = time.time,
        **sign_in: Unpack[SignIn],
    ) -> None:
        self.faults = 0
        self._process = os.getpid()
        self._clock = clock
        self._lock = threading.Lock()
        self._run = SnakemakeRun(DiskFiles, name, run_id, heartbeat_s)
        self._sink = sink or Outbox(broker, source=f"/engines/{ENGINE}", spool=spool, **sign_in)
        self._heartbeat = Heartbeat(self._beat, heartbeat_s)
        self._filter = RecordFilter()
        self._open = True

    def watch(self) -> None:
        """From here on, records carry what the workflow knows and does not log."""
        logging.getLogger(SNAKEMAKE_LOGGER).addFilter(self._filter)
        self._heartbeat.start()

    def handle(self, record: logging.LogRecord) -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            if not self._open:
                return
            try:
                self._put(self._run.handle(record.__dict__))
            except Exception as fault:  # one that escapes would end Snakemake's listener for good
                self._note(fault)

    def close(self) -> None:
        """Report the end, and wait for the broker no longer than the outbox may."""
        if os.getpid() != self._process:
            return
        raised = sys.exc_info()[1]
        with self._lock:
            if not self._open:
                return
            self._open = False
            self._heartbeat.stop()
            logging.getLogger(SNAKEMAKE_LOGGER).removeFilter(self._filter)
            self._filter.workflow = None
            try:
                self._put(self._run.closed(self._clock(), raised=raised))
            except Exception as fault:
                self._note(fault)
        self._sink.close()

    def _beat(self) -> None:
        with self._lock:
            if self._open:
                self._put(self._run.heartbeat(self._clock()))

    def _put(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._sink.put(message)

    def _note(self, fault: Exception) -> None:
        """Printed once, where people look, and not through the log that we are part of."""
        self.faults += 1
        if self.faults == 1:
            print(f"tocsin: a log record could not be sent: {fault!r}", file=sys.stderr)

"""Parsl's monitoring, sent to the blackboard: `Config(monitoring=TocsinMonitoring())`."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from parsl.logconfigs.base import LogConfig
from parsl.monitoring.monitoring import MonitoringHub
from parsl.multiprocessing import SpawnQueue

from tocsin.client.tracking.heartbeat import HEARTBEAT_S, Heartbeat
from tocsin.client.tracking.outbox import Outbox
from tocsin.integrations.files import DiskFiles, main_script
from tocsin.integrations.parsl_records import ENGINE, ParslRun
from tocsin.wire.blackboard.messages import Message

READER_END_S = 5.0  # for what is still in the queue when Parsl is done


class TocsinMonitoring(MonitoringHub):
    """A monitoring hub without a database, unless one is wanted as well.

    Parsl's own arguments mean what they mean there; `database` keeps Parsl's database too, where
    `logging_endpoint` says. Nothing here raises into Parsl or waits for the broker. There is no
    argument for a token itself: Parsl writes its configuration into its log.
    """

    def __init__(
        self,
        broker: str | None = None,
        *,
        spool: str | None = None,
        token_file: str | None = None,
        client_certificate: str | None = None,
        client_key: str | None = None,
        database: bool = False,
        workflow_name: str | None = None,
        workflow_version: str | None = None,
        logging_endpoint: str | None = None,
        monitoring_debug: bool = False,
        resource_monitoring_enabled: bool = True,
        resource_monitoring_interval: float = 30,
    ) -> None:
        if database:
            super().__init__(
                workflow_name=workflow_name,
                workflow_version=workflow_version,
                logging_endpoint=logging_endpoint,
                monitoring_debug=monitoring_debug,
                resource_monitoring_enabled=resource_monitoring_enabled,
                resource_monitoring_interval=resource_monitoring_interval,
            )
        # Without a database Parsl's constructor is left out: it asks for SQLAlchemy.
        self.workflow_name = workflow_name
        self.workflow_version = workflow_version
        self.logging_endpoint = logging_endpoint
        self.monitoring_debug = monitoring_debug
        self.resource_monitoring_enabled = resource_monitoring_enabled
        self.resource_monitoring_interval = resource_monitoring_interval
        self.broker = broker
        self.spool = spool
        self.token_file = token_file
        self.client_certificate = client_certificate
        self.client_key = client_key
        self.database = database
        self.monitoring_hub_active = False

    def start(
        self, dfk_run_dir: str, config_run_dir: str | os.PathLike[str], log_config: LogConfig | None
    ) -> None:
        self._to_database: Queue[Any] | None = None
        if self.database:
            super().start(dfk_run_dir, config_run_dir, log_config)
            self._to_database = self.resource_msgs
        self.monitoring_hub_active = True
        self._process = os.getpid()
        messages: Queue[Any] = SpawnQueue()
        self.resource_msgs = messages
        self._lock = threading.Lock()
        self._faults = 0
        self._run = ParslRun(
            DiskFiles(os.getcwd()),
            script=main_script(),
            heartbeat_s=HEARTBEAT_S,
            workers_tell=self.resource_monitoring_enabled,
        )
        spool = Path(self.spool) if self.spool else None
        self._outbox = Outbox(
            self.broker,
            source=f"/engines/{ENGINE}",
            spool=spool,
            token_file=self.token_file,
            client_certificate=self.client_certificate,
            client_key=self.client_key,
        )
        self._reader = threading.Thread(target=self._read, name="tocsin-parsl", daemon=True)
        self._reader.start()
        self._heartbeat = Heartbeat(self._beat)
        self._heartbeat.start()

    def close(self) -> None:
        """Report the end; wait for what is queued, and for the broker, only so long."""
        if not self.monitoring_hub_active or os.getpid() != self._process:
            return  # a child that was forked off has only a copy
        self.monitoring_hub_active = False
        raised = sys.exc_info()[1] or _left_unhandled()
        self._heartbeat.stop()
        messages: Queue[Any] = self.resource_msgs
        messages.put(None)
        self._reader.join(READER_END_S)
        with self._lock:
            self._put(self._run.closed(time.time(), raised=raised))
        self._outbox.close()
        messages.close()
        messages.cancel_join_thread()
        if self._to_database is not None:
            self.resource_msgs, self.monitoring_hub_active = self._to_database, True
            super().close()

    def _read(self) -> None:
        queue, database = self.resource_msgs, self._to_database
        while True:
            try:
                tagged = queue.get()
            except (EOFError, OSError, ValueError):
                return  # the queue was closed under it
            except Exception as fault:  # a message that cannot be unpickled here
                self._note(fault)
                continue
            if tagged is None:
                return
            if database is not None:
                database.put(tagged)
            try:
                self._handle(tagged)
            except Exception as fault:  # whatever Parsl may say one day, the rest is sent
                self._note(fault)

    def _handle(self, tagged: Any) -> None:
        kind, payload = tagged[0], tagged[1]
        with self._lock:
            self._put(self._run.handle(str(getattr(kind, "name", kind)), payload, time.time()))

    def _beat(self) -> None:
        with self._lock:
            self._put(self._run.heartbeat(time.time()))

    def _put(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._outbox.put(message)

    def _note(self, fault: Exception) -> None:
        self._faults += 1
        if self._faults == 1:
            print(f"tocsin: a monitoring message could not be sent: {fault!r}", file=sys.stderr)


def _left_unhandled() -> BaseException | None:
    """The exception that ended the program, when Parsl cleans up after it.

    To a person at a prompt it is only the last one, whatever has happened since.
    """
    return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)

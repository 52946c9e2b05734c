"""Dask's scheduler plugin: `client.register_plugin(TocsinPlugin("nightly"))`."""

from __future__ import annotations

import asyncio
import getpass
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.metadata import version as package_version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import SchedulerPlugin

from tocsin.client.tracking.heartbeat import HEARTBEAT_S
from tocsin.client.tracking.outbox import Outbox
from tocsin.integrations.dask_records import ENGINE, DaskRuns, GraphTask, Per
from tocsin.integrations.files import DiskFiles, main_script, script_facts
from tocsin.integrations.message_builder import Pairs
from tocsin.wire.blackboard.messages import Message

if TYPE_CHECKING:
    from distributed.scheduler import Scheduler, TaskState

TICK_S = 0.5


class TocsinPlugin(SchedulerPlugin):
    """Reports to a broker what the scheduler does. It is sent to the scheduler, and opens there.

    Its hooks run in the scheduler's own thread: none of them raises, waits or looks at a disk. On
    a scheduler that others use too, `client` (its `id`) leaves them out, and lets each have a
    plugin of their own, which goes when they go.
    """

    idempotent = True

    def __init__(
        self,
        workflow: str = ENGINE,
        *,
        broker: str | None = None,
        run_id: str | None = None,
        per: Per = "session",
        version: str | None = None,
        client: str | None = None,
        spool: str | None = None,
        token_file: str | None = None,
        client_certificate: str | None = None,
        client_key: str | None = None,
    ) -> None:
        self.name = f"tocsin-{client}" if client else "tocsin"
        self.workflow = workflow
        self.broker = broker
        self.run_id = run_id
        self.per: Per = per
        self.client = client
        self.spool = spool
        # Names of files at the scheduler: a token itself would travel there in clear.
        self.token_file = token_file
        self.client_certificate = client_certificate
        self.client_key = client_key
        # Here is where the program is known, and who runs it; the scheduler may be far away.
        script, made = script_facts(main_script(), DiskFiles("."))
        self.about = {
            "WorkflowVersion": version or made,
            "WorkflowFile": script,
            "UserName": _user(),
        }
        self.faults = 0
        self._scheduler: Scheduler | None = None

    def __getstate__(self) -> dict[str, object]:
        """Only what was asked for travels to the scheduler."""
        names = (
            "name",
            "workflow",
            "broker",
            "run_id",
            "per",
            "client",
            "spool",
            "token_file",
            "client_certificate",
            "client_key",
            "about",
            "faults",
        )
        return {**{name: getattr(self, name) for name in names}, "_scheduler": None}

    async def start(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        engine = {"EngineVersion": package_version("distributed"), "Host": platform.node()}
        about = {**engine, **self.about}
        self._runs = DaskRuns(self.workflow, self.run_id, self.per, HEARTBEAT_S, about)
        spool = Path(self.spool) if self.spool else None
        self._outbox = Outbox(
            self.broker,
            source=f"/engines/{ENGINE}",
            spool=spool,
            token_file=self.token_file,
            client_certificate=self.client_certificate,
            client_key=self.client_key,
        )
        self._ticking = asyncio.create_task(self._tick())

    async def close(self) -> None:
        """Report the end. The scheduler's loop goes on meanwhile, and not for long."""
        if self._scheduler is None:
            return
        self._ticking.cancel()
        self._send(lambda: self._runs.closed(time.time()))
        self._scheduler = None
        await asyncio.to_thread(self._outbox.close)

    def update_graph(
        self, scheduler: Scheduler, *, client: str, tasks: Iterable[Any], **kwargs: Any
    ) -> None:
        if self.client not in (None, client):
            return
        self._send(
            lambda: self._runs.graph(
                str(client), self._graph_tasks(scheduler, tasks), time.time(), _given(scheduler)
            )
        )

    def _graph_tasks(self, scheduler: Scheduler, keys: Iterable[Any]) -> Iterable[GraphTask]:
        for key in keys:
            task = scheduler.tasks.get(key)
            if task is not None:
                parents = tuple(str(parent.key) for parent in task.dependencies)
                is_done = task.state == "memory"
                yield GraphTask(str(key), str(task.prefix.name), parents, is_done)

    def transition(
        self, key: Any, start: Any, finish: Any, *args: Any, stimulus_id: str, **kwargs: Any
    ) -> None:
        self._send(
            lambda: self._runs.transition(
                str(key),
                start,
                finish,
                time.time(),
                self._details(key, finish, stimulus_id, kwargs),
            )
        )

    def _details(
        self, key: Any, finish: str, stimulus_id: str, kwargs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        if finish != "processing" or self._scheduler is None:
            return {**kwargs, "stimulus_id": stimulus_id}
        task: TaskState = self._scheduler.tasks[key]
        worker = task.processing_on
        return {
            "worker": worker.address if worker is not None else None,
            "input_bytes": sum(parent.nbytes for parent in task.dependencies if parent.nbytes > 0),
        }

    def add_worker(self, scheduler: Scheduler, worker: str) -> None:
        state = scheduler.workers.get(worker)
        cores = {"CpuCores": str(state.nthreads)} if state is not None else {}
        self._send(lambda: self._runs.worker(worker, time.time(), is_here=True, pairs=cores))

    def remove_worker(
        self, scheduler: Scheduler, worker: str, *, stimulus_id: str, **kwargs: Any
    ) -> None:
        self._send(lambda: self._runs.worker(worker, time.time(), is_here=False, pairs={}))

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        self._send(lambda: self._runs.client_gone(str(client), time.time()))
        if client == self.client:
            self._leaving = asyncio.ensure_future(self._leave(scheduler))

    async def _leave(self, scheduler: Scheduler) -> None:
        with suppress(ValueError):  # somebody else has taken it out
            scheduler.remove_plugin(self.name)
        await self.close()

    async def _tick(self) -> None:
        """What nobody says by itself: new plans, tasks that run for long, idleness, life."""
        beaten_at = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            self._send(lambda: self._runs.plans(time.time()))
            self._send(self._executing)
            self._send(lambda: self._runs.idle(time.time()))
            if time.monotonic() - beaten_at >= HEARTBEAT_S:
                beaten_at = time.monotonic()
                self._send(lambda: self._runs.heartbeat(time.time()))

    def _executing(self) -> list[Message]:
        """Workers say with each heartbeat what they compute, and since how many seconds."""
        assert self._scheduler is not None
        return [
            message
            for worker in self._scheduler.workers.values()
            for task, for_s in worker.executing.items()
            for message in self._runs.executing(
                str(task.key), worker.last_seen - for_s, worker.address
            )
        ]

    def _send(self, make: Callable[[], Iterable[Message]]) -> None:
        if self._scheduler is None:
            return
        try:
            for message in make():
                self._outbox.put(message)
        except Exception as fault:  # the scheduler goes on, whatever we did not understand
            self.faults += 1
            if self.faults == 1:
                print(f"tocsin: an event could not be sent: {fault!r}", file=sys.stderr)


def _given(scheduler: Scheduler) -> Pairs:
    cores = sum(worker.nthreads for worker in scheduler.workers.values())
    machines = {worker.host for worker in scheduler.workers.values()}
    return {"PlannedCores": str(cores), "PlannedMachines": str(len(machines))} if cores else {}


def _user() -> str | None:
    with suppress(Exception):  # of many kinds: a container's user may have no name
        return getpass.getuser()
    return None

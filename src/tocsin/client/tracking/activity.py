"""Activity: one step of a workflow while it runs, and what is reported about it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any, Protocol, Self

from tocsin.client.tracking import message_builders
from tocsin.client.tracking.faults import ending_of, fault_pairs
from tocsin.client.tracking.log_once import never_raises
from tocsin.client.tracking.message_builders import ProducedFiles
from tocsin.client.tracking.monitors.process import Snapshot
from tocsin.client.tracking.monitors.scheduler import MonitorScheduler
from tocsin.client.tracking.outbox import Build
from tocsin.client.tracking.run import (
    Pairs,
    Run,
    Step,
    Value,
    head_of,
    tail_of,
    value_text,
)


class Tracked(Protocol):
    """The run that an activity is part of."""

    run: Run
    monitors: MonitorScheduler
    produced: ProducedFiles

    def put(self, build: Build, /, *arguments: object) -> None:
        """Send soon what `build` returns."""

    def next_number(self) -> str:
        """What sets apart things that happen more than once."""

    def send_sample(self, step: Step | None, event: str, pairs: Pairs) -> None:
        """Send values of resources."""


class Activity:
    """Made by `Workflow.activity`. As a context it is executing inside, and succeeded, failed or
    cancelled after; what is raised inside goes on. All methods may be called without it too.
    """

    __slots__ = (
        "_ended",
        "_process",
        "_will_be_retried",
        "_workflow",
        "before",
        "command",
        "created_ns",
        "inputs",
        "outputs",
        "runners",
        "started_ns",
        "step",
    )

    def __init__(
        self,
        workflow: Tracked,
        step: Step,
        *,
        inputs: tuple[object, ...] = (),
        outputs: tuple[object, ...] = (),
        command: str = "",
        will_be_retried: bool = False,
    ) -> None:
        self._workflow = workflow
        self.step = step
        self.inputs = inputs
        self.outputs = outputs
        self.command = command
        self.created_ns = time.time_ns()
        self.started_ns = 0
        # What the monitors read when it began, and those that go on; see `monitors.scheduler`.
        self.before: Snapshot | None = None
        self.runners: tuple[Any, ...] = ()
        self._will_be_retried = will_be_retried
        self._ended = False
        self._process = os.getpid()

    @property
    def id(self) -> str:
        return self.step.activity_id

    def __enter__(self) -> Self:
        self.executing()
        return self

    def __exit__(self, kind: object, error: BaseException | None, *_: object) -> None:
        # A forked child that comes out of the same block ends itself, not the activity.
        if self._ended or os.getpid() != self._process:
            return
        if error is None:
            self._end("ActivitySucceeded", None)
        elif self._will_be_retried and isinstance(error, Exception):
            self.retrying(error)
        else:
            self.failed(error)

    # The six events of the paper.

    @never_raises
    def initialized(self, concept: str = "ActivityInitialized") -> None:
        """It is known and waits; `concept` may be ActivityQueued, ActivitySubmitted or Held."""
        self._send(concept)

    @never_raises
    def executing(self) -> None:
        """It runs from now on."""
        self.started_ns = at_ns = time.time_ns()
        self._workflow.monitors.begin(self)
        self._workflow.put(
            message_builders.activity_started,
            self._workflow.run,
            self.step,
            at_ns,
            self.created_ns,
            self.inputs,
            self.outputs,
            self.command,
            self._workflow.produced,
        )

    @never_raises
    def faulting(self, error: BaseException | str) -> None:
        """Something went wrong, and how it ends is open."""
        self._send("ActivityFaulting", fault_pairs(error), repeated=True)

    def canceling(self) -> None:
        """It was asked to stop."""
        self._send("ActivityCanceling")

    def compensating(self) -> None:
        """It undoes what it did."""
        self._send("ActivityCompensating")

    def closed(self) -> None:
        """It is over; `succeeded`, `failed` and the others say more."""
        self._end("ActivityClosed", None)

    # How it ended.

    def succeeded(self) -> None:
        self._end("ActivitySucceeded", None)

    @never_raises
    def failed(
        self, error: BaseException | str, *, exit_code: int | None = None, log: str = ""
    ) -> None:
        """For the last try; `retrying` is for those before."""
        concept = "ActivityFailed" if isinstance(error, str) else ending_of(error)
        self._end(concept, _diagnosed(error, exit_code, log))

    @never_raises
    def retrying(
        self, error: BaseException | str, *, exit_code: int | None = None, log: str = ""
    ) -> None:
        """This try failed, and another one follows."""
        self._end("ActivityRetrying", _diagnosed(error, exit_code, log))

    def cancelled(self) -> None:
        self._end("ActivityCancelled", None)

    def skipped(self, reason: str = "") -> None:
        """It did not run, because of a condition or of what failed before it."""
        self._end("ActivitySkipped", {"ErrorMessage": head_of(reason)} if reason else None)

    def cached(self) -> None:
        """It did not run, because its result was there already."""
        self._end("ActivityCached", None)

    # What happens inside it.

    @never_raises
    def event(self, name: str, **data: object) -> None:
        """Something of your own."""
        self._send_user_event("UserEvent", {"EventName": head_of(name), **data_pairs(data)})

    @never_raises
    def milestone(self, name: str, **data: object) -> None:
        """A point on the way that people know by its name."""
        self._send_user_event("UserMilestone", {"EventName": head_of(name), **data_pairs(data)})

    @never_raises
    def progress(self, fraction: float) -> None:
        """How much is done, from 0 to 1."""
        text = value_text(min(max(float(fraction), 0.0), 1.0))
        if text is not None:
            self._send_user_event("UserProgress", {"ProgressFraction": text})

    @never_raises
    def measure(self, concept: str) -> None:
        """Have a resource measured now (paper 004, 3.2), if somebody asked for it."""
        self._workflow.monitors.measure(self, concept)

    @never_raises
    def report(self, **resources: Value) -> None:
        """Send values that you measured yourself, by their concepts: `report(GpuPercent=93)`."""
        pairs = {name: text for name, value in resources.items() if (text := value_text(value))}
        self._workflow.send_sample(self.step, "", pairs)

    @never_raises
    def _send(self, concept: str, pairs: Pairs | None = None, *, repeated: bool = False) -> None:
        workflow = self._workflow
        number = workflow.next_number() if repeated else ""
        workflow.put(
            message_builders.activity_event,
            workflow.run,
            self.step,
            concept,
            time.time_ns(),
            number,
            pairs,
        )

    def _send_user_event(self, concept: str, pairs: Pairs) -> None:
        self._send(concept, pairs, repeated=True)

    @never_raises
    def _end(self, concept: str, pairs: Pairs | None) -> None:
        self._ended = True
        workflow = self._workflow
        at_ns = time.time_ns()
        read = workflow.monitors.end(self) if self.started_ns else None
        workflow.put(
            message_builders.activity_ended,
            workflow.run,
            self.step,
            concept,
            at_ns,
            pairs,
            read,
            self.outputs,
            workflow.produced,
        )


class Try(Activity):
    """One of several; `went_wrong` if another has to follow."""

    __slots__ = ("went_wrong",)

    def __init__(self, workflow: Tracked, step: Step, **given: Any) -> None:
        super().__init__(workflow, step, **given)
        self.went_wrong = False

    def __exit__(  # type: ignore[override]  # it keeps to itself what will be tried again
        self, kind: object, error: BaseException | None, *rest: object
    ) -> bool:
        super().__exit__(kind, error, *rest)
        self.went_wrong = isinstance(error, Exception)
        return self.went_wrong and self._will_be_retried


def attempts(
    workflow: Tracked, step: Step, *, tries: int, pause_s: float, **given: Any
) -> Iterator[Try]:
    """One try after the other, until one goes well; `given` is what each activity takes."""
    for attempt in range(1, max(tries, 1) + 1):
        step = step._replace(attempt=attempt)
        each = Try(workflow, step, will_be_retried=attempt < tries, **given)
        yield each
        if not each.went_wrong:
            return
        if pause_s > 0:
            time.sleep(pause_s)


def _diagnosed(error: BaseException | str, exit_code: int | None, log: str) -> Pairs:
    pairs = fault_pairs(error)
    if exit_code is not None:
        pairs["ExitCode"] = str(exit_code)
    if log:
        pairs["LogTail"] = tail_of(log)
    return pairs


def data_pairs(data: dict[str, object]) -> Pairs:
    """What a program adds to an event of its own."""
    if not data:
        return {}
    return {"EventData": head_of(json.dumps(data, default=str, ensure_ascii=False))}

"""The tries of one activity: each that fails is told, and only the last one's error goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType

from tocsin.client.tracking.activity import Activity, Tracked
from tocsin.client.tracking.run import Step


class Try(Activity):
    """One of several; `went_wrong` if another has to follow."""

    __slots__ = ("_is_last", "went_wrong")

    def __init__(
        self,
        workflow: Tracked,
        step: Step,
        *,
        inputs: tuple[object, ...],
        outputs: tuple[object, ...],
        command: str,
        is_last: bool,
    ) -> None:
        super().__init__(
            workflow,
            step,
            inputs=inputs,
            outputs=outputs,
            command=command,
            will_be_retried=not is_last,
        )
        self._is_last = is_last
        self.went_wrong = False

    def __exit__(  # type: ignore[override]  # it keeps to itself what will be tried again
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        super().__exit__(kind, error, trace)
        self.went_wrong = isinstance(error, Exception)
        return self.went_wrong and not self._is_last


def tried(
    workflow: Tracked,
    step: Step,
    *,
    tries: int,
    pause_s: float,
    inputs: tuple[object, ...],
    outputs: tuple[object, ...],
    command: str,
) -> Iterator[Try]:
    """One try after the other, until one goes well."""
    for attempt in range(1, max(tries, 1) + 1):
        each = Try(
            workflow,
            step._replace(attempt=attempt),
            inputs=inputs,
            outputs=outputs,
            command=command,
            is_last=attempt >= tries,
        )
        yield each
        if not each.went_wrong:
            return
        if pause_s > 0:
            time.sleep(pause_s)

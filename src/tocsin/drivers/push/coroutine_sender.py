"""CoroutineSender: a sender that is one coroutine, for sinks that need no more."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from tocsin.broker.delivery.address import SinkAddress
from tocsin.broker.delivery.outcome import Failed, Outcome
from tocsin.broker.effects import Push
from tocsin.drivers.push.sender import Done, PushContext
from tocsin.errors import TocsinError


class CoroutineSender(ABC):
    """Awaits `deliver` for each push. What it raises is a failed attempt, and is tried again."""

    def __init__(self, context: PushContext, number: int, url: str, sink: SinkAddress) -> None:
        self.context = context
        self.number = number
        self.address = url
        self.sink = sink
        self.used_at_s = self.deadline_s = 0.0
        self._done: Done | None = None
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def deliver(self, push: Push) -> Outcome:
        """Send the events: `Answered(200)` if they were taken, else what went wrong."""

    @property
    def is_busy(self) -> bool:
        return self._done is not None

    @property
    def is_open(self) -> bool:
        return self._done is not None

    @property
    def is_idle(self) -> bool:
        return False

    def push(self, push: Push, done: Done) -> None:
        self._done = done
        self.deadline_s = self.context.loop.time() + push.timeout_s
        self._task = self.context.loop.create_task(self._run(push))

    async def _run(self, push: Push) -> None:
        outcome: Outcome
        try:
            outcome = await self.deliver(push)
        except (TocsinError, OSError) as error:
            outcome = Failed(str(error))
        except Exception as error:
            # A bug, but a lane that is never answered would wait for ever.
            self.context.note("error", "a sink failed", sink=self.address, error=repr(error))
            outcome = Failed(f"sending failed: {error!r}", reachable=True)
        self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(self.number, outcome)

    def expire(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._finish(Failed("no answer of the sink in time"))

    def close_subscription(self, subscription_id: str) -> None:  # noqa: B027
        """There is nothing to say about it."""

    def drain(self) -> None:  # noqa: B027
        """There is no order to close in."""

    def close(self) -> None:
        self._done = None
        if self._task is not None:
            self._task.cancel()

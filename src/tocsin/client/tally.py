"""What became of many events: how many are stored, and which were refused."""

from __future__ import annotations

from tocsin.client.batching import Batch, Stored
from tocsin.errors import SomeFailed, TocsinError

FAILURES_KEPT_MAX = 100


class Tally:
    """How many events were stored, and the first of those that were not."""

    def __init__(self) -> None:
        self.accepted = 0
        self.failed = 0
        self.failures: list[tuple[int, TocsinError]] = []

    def settle(self, batch: Batch, result: Stored | TocsinError) -> None:
        """Count what became of a batch."""
        if isinstance(result, Stored):
            self.accepted += result.accepted
            return
        self.failed += len(batch.events)
        if len(self.failures) < FAILURES_KEPT_MAX:
            self.failures.append((batch.numbers[0], result))

    def raise_failures(self) -> None:
        """Raises SomeFailed if something failed since the last time."""
        if not self.failed:
            return
        number, first = self.failures[0]
        failed, self.failed, self.failures = self.failed, 0, []
        raise SomeFailed(
            f"the broker refused {failed} of the events; the first, number {number}: "
            f"{first.problem}",
            remedy=first.remedy,
        )

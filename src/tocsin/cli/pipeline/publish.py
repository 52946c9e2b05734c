"""`--publish`: the target that tables are copied to, and its report."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from tocsin.cli.render import say
from tocsin.errors.pipeline import PublicationFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tocsin.pipeline.job import Job


class TablePublisher:
    """A place to which editions are sent, or none."""

    def __init__(self, spark: SparkSession, job: Job, place: str | None) -> None:
        self._spark = spark
        self._tables = job.tables
        self._place = place if place is None or "://" in place else os.path.abspath(place)
        self._failed: PublicationFailed | None = None
        if self._place is not None:
            from tocsin.pipeline.publish.copy import check_target

            check_target(spark, self._place)

    def send_held(self) -> bool:
        """Send the edition that stands, while no other pipeline makes one."""
        from tocsin.pipeline.state import State

        if self._place is None:
            return False
        with State(self._tables).held():
            return self._send()

    def send_or_report(self) -> None:
        """The same for a stream: what fails is tried again with the next edition."""
        if self._place is None:
            return
        try:
            self._send()
            self._failed = None
        except PublicationFailed as failed:
            self._failed = failed
            print(failed, file=sys.stderr, flush=True)

    def require_sent(self) -> None:
        """Raises PublicationFailed if the last edition is not there."""
        if self._failed is not None:
            raise self._failed

    def report(self, sent: bool) -> dict[str, Any]:
        return {} if self._place is None else {"published": {"to": self._shown(), "new": sent}}

    def say(self, sent: bool) -> None:
        if self._place is not None:
            say(f"copied to {self._shown()}" if sent else f"{self._shown()} has it already")

    def _shown(self) -> str:
        from tocsin.pipeline.locations import shown

        return shown(self._place or "")

    def _send(self) -> bool:
        from tocsin.pipeline.publish.copy import send

        assert self._place is not None
        return send(self._spark, self._tables, self._place)

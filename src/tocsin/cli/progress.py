"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Any, Final, Self

LINE_EVERY_S: Final = 10.0  # a log should show progress, but not every step


class Progress:
    """Counts what is done. The library of the bar is loaded only if there is a terminal."""

    def __init__(self, title: str, total: int | None = None, *, quiet: bool = False) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._begun_s = self._printed_s = monotonic()

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
            self._bar = Bar(
                *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
            )
            self._bar.start()
            self._task = self._bar.add_task(self._title, total=self._total)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int = 1) -> None:
        """So many more are done."""
        self._done += count
        if self._bar is not None:
            self._bar.advance(self._task, count)
        else:
            self._print_if_due()

    def reach(self, done: int, total: int) -> None:
        """So many of so many are done."""
        self._done, self._total = done, total
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
        else:
            self._print_if_due()

    def name(self, title: str) -> None:
        """Set the title."""
        self._title = title
        if self._bar is not None:
            self._bar.update(self._task, description=title)

    def step(self, title: str) -> None:
        """Name what begins now, as one of the steps; without a terminal it gets a line at once."""
        self._done += 1
        self.name(title)
        if self._bar is not None:
            self._bar.advance(self._task)
        elif not self._quiet:
            self._print(title)

    def _print_if_due(self) -> None:
        if not self._quiet and monotonic() - self._printed_s >= LINE_EVERY_S:
            of = "" if self._total is None else f" of {self._total:,}"
            self._print(f"{self._title}: {self._done:,}{of}")

    def _print(self, text: str) -> None:
        self._printed_s = monotonic()
        # In one write, since steps of several threads may begin together.
        sys.stderr.write(f"{self._printed_s - self._begun_s:7.1f} s  {text}\n")
        sys.stderr.flush()

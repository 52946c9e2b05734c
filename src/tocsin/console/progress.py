"""A progress bar on a terminal; nothing at all elsewhere."""

from __future__ import annotations

import sys
from typing import Any, Self


class Progress:
    """Counts what is done. The library behind it is loaded only if there is somebody to look."""

    def __init__(self, title: str, total: int | None = None, *, quiet: bool = False) -> None:
        self._title = title
        self._total = total
        self._quiet = quiet or not sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        if not self._quiet:
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
        if self._bar is not None:
            self._bar.advance(self._task, count)

    def reach(self, done: int, total: int) -> None:
        """So many of so many are done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)

    def name(self, title: str) -> None:
        """Say what is being done."""
        if self._bar is not None:
            self._bar.update(self._task, description=title)

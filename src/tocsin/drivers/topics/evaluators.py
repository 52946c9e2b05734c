"""Evaluators: processes for XPath and XQuery, kept while they behave and replaced when not."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from tocsin.drivers.topics.evaluator_process import EvaluatorProcess, Stopped
from tocsin.drivers.topics.frames import Language, Refused, Task
from tocsin.errors import BadTopicQuery, Busy, TopicQueryTooCostly, XQueryMissing
from tocsin.topics.queries.plan import XmlQuery, XPathQuery

AT_ONCE_MAX: Final = 2  # each may use a processor and, for XQuery, 500 MB
KILLED_AFTER_S: Final = 2.0  # after the time that a task has: one document takes under 1 ms
BUDGET_NS_MIN: Final = 100_000_000  # also for a search whose time went by while a process started
# Then it is replaced by a new one, whatever a query left behind in it.
TASKS_MAX: Final[dict[Language, int]] = {"xpath": 1_000, "xquery": 50}


class Evaluators:
    """Called from several threads. At most `at_once_max` evaluate at a time; more are refused."""

    def __init__(
        self,
        *,
        at_once_max: int = AT_ONCE_MAX,
        killed_after_s: float = KILLED_AFTER_S,
        on_stopped: Callable[[Language, str], None] = lambda language, why: None,
    ) -> None:
        self._places = threading.BoundedSemaphore(at_once_max)
        self._lock = threading.Lock()
        self._idle: dict[Language, list[EvaluatorProcess]] = {"xpath": [], "xquery": []}
        self._working: set[EvaluatorProcess] = set()
        self._killed_after_s = killed_after_s
        self._on_stopped = on_stopped
        self._is_closed = False
        self.stopped = 0
        """Processes that took too long, or ended before they answered."""

    def __call__(self, wanted: XmlQuery, documents: Sequence[bytes], until_ns: int) -> list[bool]:
        """Whether each document is found; fewer if the monotonic clock has reached `until_ns`."""
        language: Language = "xpath" if isinstance(wanted, XPathQuery) else "xquery"
        if language == "xquery" and importlib.util.find_spec("saxonche") is None:
            raise XQueryMissing(
                "this node evaluates no XQuery: the package saxonche is not installed",
                remedy="Install it with: pip install 'tocsin[xquery]'. Or ask in XPath.",
            )
        if not self._places.acquire(blocking=False):
            raise Busy(
                "as many queries in XPath and XQuery are evaluated as may be at once",
                remedy="Try again in a second.",
            )
        try:
            return self._evaluate(language, wanted, documents, until_ns)
        finally:
            self._places.release()

    def close(self) -> None:
        """End them all. Those who wait for one get TopicQueryTooCostly."""
        with self._lock:
            self._is_closed = True
            processes = [*self._working, *self._idle["xpath"], *self._idle["xquery"]]
            self._idle = {"xpath": [], "xquery": []}
        for process in processes:
            process.end()

    def pids(self) -> list[int]:
        with self._lock:
            idle = [*self._idle["xpath"], *self._idle["xquery"]]
            return [process.pid for process in (*self._working, *idle)]

    def _evaluate(
        self, language: Language, wanted: XmlQuery, documents: Sequence[bytes], until_ns: int
    ) -> list[bool]:
        process = self._take(language)
        try:
            budget_ns = max(BUDGET_NS_MIN, until_ns - time.monotonic_ns())
            namespaces = wanted.namespaces if isinstance(wanted, XPathQuery) else ()
            task = Task(wanted.expression, namespaces, tuple(documents), budget_ns)
            answer = process.ask(task, budget_ns / 1e9 + self._killed_after_s)
        except Stopped as why:
            self._give_up(process, language, str(why))
            raise TopicQueryTooCostly(
                f"the process that evaluated the query was stopped: {why}",
                remedy="Write a simpler expression.",
            ) from None
        except BaseException:
            self._give_up(process, language, "it was interrupted")
            raise
        self._put_back(process, language)
        if isinstance(answer, Refused):
            raise BadTopicQuery(
                f"the query cannot be evaluated: {answer.problem}",
                remedy="Write an XPath 1.0 expression, or an XQuery 3.1 query.",
            )
        return list(answer.found)

    def _take(self, language: Language) -> EvaluatorProcess:
        with self._lock:
            process = self._idle[language].pop() if self._idle[language] else None
        try:
            process = process or EvaluatorProcess(language)
        except (OSError, Stopped) as why:
            raise Busy(
                f"no process can be started to evaluate the query: {why}",
                remedy="Try again later; an operator finds the cause in the machine's log.",
            ) from None
        with self._lock:
            self._working.add(process)
            is_closed = self._is_closed
        if is_closed:
            self._give_up(process, language, "the catalog is closed")
            raise Busy("the catalog of topics is closed", remedy="Try again later.")
        return process

    def _put_back(self, process: EvaluatorProcess, language: Language) -> None:
        with self._lock:
            self._working.discard(process)
            is_kept = not self._is_closed and process.tasks < TASKS_MAX[language]
            if is_kept:
                self._idle[language].append(process)
        if not is_kept:
            process.end()

    def _give_up(self, process: EvaluatorProcess, language: Language, why: str) -> None:
        with self._lock:
            self._working.discard(process)
            self.stopped += not self._is_closed
        process.end()
        self._on_stopped(language, why)

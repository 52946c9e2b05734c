"""MessageBuilder: the messages of every engine's adapter: times, lists, limits, repeatable ids."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from tocsin.event import instant
from tocsin.wire.blackboard.messages import Message

TEXT_CHARS_MAX = 4_096  # of a command, an error, a log's end
LIST_ITEMS_MAX = 1_000  # of files or parents in one message
ID_CHARS_MAX = 256  # of an activity's name inside a message's id

# A shell says 128 and the number of the signal. SIGKILL is what the kernel leaves of a process
# that takes too much memory; SIGINT is a person's.
_BY_EXIT_CODE: Mapping[int | None, str] = {137: "ActivityOutOfMemory", 130: "ActivityCancelled"}

Pairs = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class MessageBuilder:
    """Builds the messages of one run.

    An id is made of what the message is about, never of when it was made: whoever reports the same
    thing twice makes the same id, and the broker stores it once. When the run began is part of
    its name there: people give one run id to two runs, and both are stored.
    """

    engine: str
    run: str
    workflow: str
    began_s: float = 0.0

    @property
    def source(self) -> str:
        return source_of(self.engine, self.run)

    @property
    def name(self) -> str:
        """What the ids of this run's messages begin with."""
        return f"{self.run}@{round(self.began_s * 1_000)}"

    def of_run(self, concept: str, at_s: float, pairs: Pairs, *, mark: str = "") -> Message:
        """Something about the whole run; `mark` distinguishes what may happen more than once."""
        return self._message(concept, at_s, {}, pairs, (concept, mark))

    def of_activity(
        self,
        concept: str,
        at_s: float,
        pairs: Pairs,
        *,
        activity: str,
        kind: str = "",
        attempt: int = 1,
        mark: str = "",
    ) -> Message:
        """Something about one attempt of an activity."""
        about = {"ActivityId": activity, "ActivityType": kind, "Attempt": str(attempt)}
        return self._message(
            concept, at_s, about, pairs, (_short(activity), attempt, concept, mark)
        )

    def sample(
        self, at_s: float, pairs: Pairs, *, activity: str, kind: str = "", attempt: int = 1
    ) -> Message:
        """What an activity uses at an instant. No event: the time is only the message's own."""
        about = {"ActivityId": activity, "ActivityType": kind, "Attempt": str(attempt)}
        given = {name: value for name, value in (*about.items(), *pairs.items()) if value}
        return Message(
            {"RunId": self.run, "WorkflowName": self.workflow, **given},
            id=f"{self.name}/{_short(activity)}/{attempt}/sample/{round(at_s * 1_000)}",
            source=self.source,
            time=rfc3339(at_s),
        )

    def _message(
        self, concept: str, at_s: float, about: Pairs, pairs: Pairs, name: tuple[object, ...]
    ) -> Message:
        time = rfc3339(at_s)
        given = {key: value for key, value in (*about.items(), *pairs.items()) if value}
        lead = {"RunId": self.run, "WorkflowName": self.workflow, concept: time}
        parts = (self.name, *(part for part in name if part != ""))
        return Message({**lead, **given}, "/".join(map(str, parts)), self.source, time)


def rfc3339(at_s: float) -> str:
    """In UTC, to the millisecond. A time that no calendar has is the epoch."""
    try:
        at_ns = int(at_s * 1_000_000) * instant.NS_PER_US
        return instant.rfc3339(at_ns if at_ns < instant.CALENDAR_END_NS else 0)
    except (OverflowError, ValueError):
        return instant.rfc3339(0)


@lru_cache(maxsize=256)
def source_of(engine: str, run: str) -> str:
    return f"/engines/{engine}/{quote(run, safe='')}"


def beginning(text: object) -> str | None:
    """The beginning of a command."""
    return str(text)[:TEXT_CHARS_MAX] if text else None


def end(text: object) -> str | None:
    """The end of a log or a trace."""
    return str(text)[-TEXT_CHARS_MAX:] if text else None


def array(items: Iterable[object]) -> str | None:
    """A list as text; None if it is empty."""
    listed = [str(item) for item in items][:LIST_ITEMS_MAX]
    return json.dumps(listed, ensure_ascii=False) if listed else None


def number(value: object) -> str | None:
    """As plain decimals; None for what is no number, or less than nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value < float("inf"):
        return None
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")


def content_hash(*texts: str) -> str:
    """A short name for exactly these texts."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:16]


def failure_concept(exit_code: int | None) -> str:
    """The most specific concept for an attempt that failed."""
    return _BY_EXIT_CODE.get(exit_code, "ActivityFailed")


def _short(activity: str) -> str:
    if len(activity) <= ID_CHARS_MAX:
        return activity
    return f"{activity[: ID_CHARS_MAX - 17]}~{content_hash(activity)}"

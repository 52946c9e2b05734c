"""The numbers that the commands of jobs name: a count, a length, a seed.

Those that differ between the jobs of a rule are sent with the plan. What they mean nobody knows
here; the monitor finds out from past runs which of them say how long a job takes.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

COMMAND_CHARS_MAX = 16 << 10  # of a command that are read
READ_MAX = 64  # numbers of one command
NUMBERS_MAX = 8  # of one job that are sent
NAME_CHARS_MAX = 32
VALUE_MAX = 1e15

# So many jobs, and seconds in all plans of a run: the numbers of the others are sent when they
# begin, as Snakemake logs their commands then.
JOBS_MAX = 20_000
SPENT_S_MAX = 1.0

UNKNOWN = "<TBD>"  # what Snakemake writes for what depends on a file that is not there yet

# No part of a word, of a path, of a version or date, and no variable of the shell.
_NUMBER = re.compile(
    r"(?<![\w./$])(?<!\w-)(\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,2})?)(?![\w./]|-\w)"
)
_WORD = re.compile(r"[\w@-]+$")
_DIGITS = re.compile(r"\d+")
_BETWEEN = " \t\r\n=:,;([{<\"'`-"

Numbers = tuple[tuple[str, float], ...]

# What Snakemake keeps of a job once it was asked for, and is to find again as it was.
_CACHED = ("_resources", "_log")


def numbers_in(command: object) -> dict[str, float]:
    """The numbers of a command by the word before each, as `range` in "range(5)"; in order.

    A word that has several is followed by their place: "seq 1 9" has `seq` and `seq 2`.
    """
    found: dict[str, float] = {}
    if not isinstance(command, str):
        return found
    text = command[:COMMAND_CHARS_MAX]
    seen: Counter[str] = Counter()
    word, end = "", 0
    for match in _NUMBER.finditer(text):
        before = _WORD.search(text[end : match.start()].rstrip(_BETWEEN))
        if before is not None:
            word = _DIGITS.sub("#", before[0])[-NAME_CHARS_MAX:]
        end = match.end()
        seen[word] += 1
        if 0 <= (value := float(match[1])) <= VALUE_MAX:
            found[f"{word} {seen[word]}" if seen[word] > 1 else word] = value
        if len(found) >= READ_MAX:
            break
    return found


def differing(jobs: Sequence[tuple[str, Mapping[str, float] | None]]) -> list[Numbers | None]:
    """Of each job, given as its rule and its numbers, those that other jobs of its rule have too,
    and not all the same. None for a job whose numbers are not known."""
    values: dict[tuple[str, str], set[float]] = {}
    for rule, numbers in jobs:
        for name, value in (numbers or {}).items():
            values.setdefault((rule, name), set()).add(value)
    names_of: dict[str, list[str]] = {}
    for (rule, name), different in values.items():
        names = names_of.setdefault(rule, [])
        if len(different) > 1 and len(names) < NUMBERS_MAX:
            names.append(name)
    return [
        None
        if numbers is None
        else tuple((name, numbers[name]) for name in names_of.get(rule, ()) if name in numbers)
        for rule, numbers in jobs
    ]


@dataclass(slots=True)
class NumbersOfJobs:
    """The numbers of the jobs of one run, each job looked at once and within limits.

    Functions that give a rule its parameters may be slow, or not be meant to be called once more.
    Snakemake calls them before it logs the plan, and keeps what they say; we only look at that.
    """

    clock: Callable[[], float] = time.monotonic
    found: dict[str, dict[str, float] | None] = field(default_factory=dict)
    spent_s: float = 0.0

    def of(self, id: str, job: Any) -> Mapping[str, float] | None:
        """None if they are not known yet, or there is no time left to ask."""
        if id not in self.found:
            if getattr(job, "_params", None) is None:
                return None
            if self.spent_s >= SPENT_S_MAX or len(self.found) >= JOBS_MAX:
                return None
            began_s = self.clock()
            self.found[id] = _asked(job)
            self.spent_s += self.clock() - began_s
        return self.found[id]


def _asked(job: Any) -> dict[str, float] | None:
    """The numbers in a job's command; without a command, those of its parameters.

    Snakemake formats a command when it is asked for it, with threads and resources, for which it
    may call functions of the workflow. What those raise they will raise again when the job runs.
    """
    try:
        with _as_it_was(job):
            if job.rule.shellcmd:
                command = str(job.shellcmd)
                return None if UNKNOWN in command else numbers_in(command)
            return _numbers_among(dict(job.params.items()))
    except (Exception, SystemExit):
        return None


@contextlib.contextmanager
def _as_it_was(job: Any) -> Iterator[None]:
    """Afterwards the job has forgotten what it was asked for."""
    kept = {name: getattr(job, name) for name in _CACHED if hasattr(job, name)}
    try:
        yield
    finally:
        for name, value in kept.items():
            setattr(job, name, value)


def _numbers_among(parameters: Mapping[str, object]) -> dict[str, float]:
    return {
        str(name)[:NAME_CHARS_MAX]: float(value)
        for name, value in list(parameters.items())[:READ_MAX]
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 <= value <= VALUE_MAX
    }


def plain(numbers: Numbers) -> dict[str, float | int]:
    """For JSON: whole numbers as such."""
    return {name: int(value) if value.is_integer() else value for name, value in numbers}

"""What a crate lacks to be run again: listed in its README, its description and by the command."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from itertools import islice
from typing import Final

from tocsin.monitor.command_files import is_program, named_files
from tocsin.monitor.provenance.crate.plan import CratePlan
from tocsin.monitor.provenance.run_statements import clean

LISTED_MAX: Final = 20  # of each kind; the README says when there are more
_HEADING: Final = "The crate alone is not enough to run it again:"


def missing(plan: CratePlan) -> list[str]:
    """One line a reason; empty if nothing is known to be missing."""
    found: list[str] = []
    if plan.main is None:
        found.append("the workflow's files: nobody sent them")
    elif plan.command is None:
        found.append(f"the command: the language of {plan.main_place} is not known")
    for lines in (_texts(plan), _programs(plan), _data(plan)):
        listed = list(islice(lines, LISTED_MAX + 1))
        found += listed[:LISTED_MAX]
        found += ["and more of these"] if len(listed) > LISTED_MAX else []
    return found


def missing_lines(found: list[str]) -> list[str]:
    """As the README has them."""
    return ["", _HEADING, "", *(f"- {reason}" for reason in found)] if found else []


def missing_in(readme: str) -> list[str]:
    """What `missing_lines` wrote, read back."""
    _, _, rest = readme.partition(f"\n{_HEADING}\n")
    return [line[2:] for line in rest.splitlines() if line.startswith("- ")]


def summary(found: list[str]) -> list[str]:
    """For the crate's description: a sentence, or none."""
    if not found:
        return []
    return [f"It cannot be run again from this crate alone. Missing: {'; '.join(found[:3])}."]


def one_line(text: str) -> str:
    """The text on one line, with nothing that a terminal would obey."""
    return clean("".join(char if char.isprintable() else " " for char in text))


def _texts(plan: CratePlan) -> Iterator[str]:
    for source in plan.sources:
        if source.text is None:
            yield f"{one_line(source.path)}: a file of the workflow whose text was not sent"


def _programs(plan: CratePlan) -> Iterator[str]:
    """Programs that a step's command calls. One command a step: its jobs differ in their data."""
    seen: set[tuple[str, str]] = set()
    listed: set[str] = set()
    # Also those without a text: each is listed above, with its own reason.
    sources = [posixpath.normpath(source.path) for source in plan.sources]
    for activity in plan.view.activities:
        step = (activity.type, activity.version)
        if step in seen or not activity.command:
            continue
        seen.add(step)
        for path in named_files(activity.command):
            if path in listed or not is_program(path) or path in plan.files.sizes:
                continue
            listed.add(path)
            if not any(_same(path, source) for source in sources):
                yield f"{one_line(path)}: called by the step {one_line(activity.type)}, not sent"


def _same(named: str, source: str) -> bool:
    """A command may name it from another directory than the one that its path is given from."""
    return named == source or named.endswith(f"/{source}") or source.endswith(f"/{named}")


def _data(plan: CratePlan) -> Iterator[str]:
    carried = {posixpath.normpath(source.path) for source in plan.sources}
    for path in plan.files.external:
        if posixpath.normpath(path) not in carried:
            yield f"{one_line(path)}: read by the run; a crate carries no data"

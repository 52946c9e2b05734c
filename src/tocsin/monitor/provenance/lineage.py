"""Which versions of a workflow led to the one that ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tocsin.monitor.provenance.view import RunView, WorkflowVersion

VERSIONS_MAX: Final = 10_000  # a history longer than this is cut at its far end

Versioned = tuple[str, str]
"""A workflow's name and its version."""


@dataclass(frozen=True, slots=True)
class Succession:
    """A version and the one that it was made from; a fork has another name."""

    newer: Versioned
    older: Versioned

    @property
    def is_fork(self) -> bool:
        return self.newer[0] != self.older[0]


def lineage(view: RunView) -> Iterator[Succession]:
    """From the version that ran back to the first one known; a circle is left where it closes."""
    known: dict[Versioned, WorkflowVersion] = {
        (each.workflow, each.version): each for each in view.versions
    }
    newer = (view.run.workflow, view.run.version)
    seen = {newer}
    while newer in known and len(seen) <= VERSIONS_MAX:
        version = known[newer]
        if version.previous is None:
            return
        older = (version.previous_workflow or version.workflow, version.previous)
        if older in seen:
            return
        yield Succession(newer, older)
        seen.add(older)
        newer = older

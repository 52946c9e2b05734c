"""What a crate carries, where, and how to run it again: worked out once, before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tocsin.monitor.provenance.crate.languages import Language, command, language_of, main_file
from tocsin.monitor.provenance.crate.layout import Layout, layout
from tocsin.monitor.provenance.files import RunFiles, run_files
from tocsin.monitor.provenance.names import Name, prefixes
from tocsin.monitor.provenance.run_statements import clean
from tocsin.monitor.provenance.view import RunView, ran_attempts
from tocsin.wire.api.run_views import FileInfo

METADATA: Final = "ro-crate-metadata.json"
README: Final = "README.md"
PARAMETERS: Final = "parameters.json"

Entity = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CratePlan:
    """The parts of one crate. Without a file that is the workflow, `main` is None.

    `ran` are the steps, by type and version, of which an activity took place.
    """

    view: RunView
    files: RunFiles
    sources: tuple[FileInfo, ...]
    layout: Layout
    main: int | None
    language: Language | None
    command: str | None
    prefixes: Mapping[str, str]
    ran: frozenset[tuple[str, str]]

    @property
    def main_place(self) -> str | None:
        return None if self.main is None else self.layout.places[self.main]

    def iri(self, name: Name) -> str:
        return self.prefixes[name.prefix] + name.local


def crate_plan(view: RunView) -> CratePlan:
    """Decide where everything goes."""
    run = view.run
    sources = tuple({file.path: file for file in run.files}.values())
    main = main_file(sources)
    places = Layout((), "")
    language, command_line = None, None
    if sources:
        paths = [clean(file.path) for file in sources]
        places = layout(paths, main or 0, run.working_directory)
    if main is not None:
        language = language_of(sources[main].path)
    if main is not None and language is not None:
        here = places.working_directory
        up = "../" * (here.count("/") + 1)
        parameters = f"{up}{PARAMETERS}" if run.parameters else None
        command_line = command(language, places.places[main].removeprefix(f"{here}/"), parameters)
    known = prefixes(run.id, run.workflow)
    ran = frozenset((activity.type, activity.version) for activity, _ in ran_attempts(view))
    return CratePlan(
        view, run_files(view), sources, places, main, language, command_line, known, ran
    )


def reference(identifier: str) -> Entity:
    return {"@id": identifier}


def known(entity: Entity) -> Entity:
    """The entity without what is unknown."""
    return {name: value for name, value in entity.items() if value not in (None, "", [], {})}

"""A workflow file and all that belongs to it, as one version."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tocsin.integrations.snakemake.log_text import version_of, workflow_home, workflow_name
from tocsin.integrations.workflow_files.cwl import read_cwl
from tocsin.integrations.workflow_files.snakefile import read_snakefile
from tocsin.integrations.workflow_files.sources import SourceFile, Sources
from tocsin.monitor.evolution.definition import Definition

_CWL_ENDINGS = (".cwl", ".json", ".yml", ".yaml")
_NO_NAMES = ("main", "workflow", "packed")


@dataclass(frozen=True, slots=True)
class ReadWorkflow:
    """What was read: the definition, the files it came from, and the version they make."""

    name: str
    version: str
    definition: Definition
    files: tuple[SourceFile, ...]


def read_workflow(
    file: str | Path, *, name: str | None = None, root: str | Path | None = None
) -> ReadWorkflow:
    """Read a Snakefile or a CWL file; BadWorkflowFile says what is wrong with it."""
    # Where it is named, and not where a link of that name leads: text is published, and whoever
    # made the link may have meant any file of ours.
    named = Path(os.path.realpath(Path(file).parent)) / Path(file).name
    sources = Sources(Path(root) if root is not None else _home(named))
    path = sources.place(str(named), named)
    cwl = path.suffix.lower() in _CWL_ENDINGS
    definition = read_cwl(path, sources) if cwl else read_snakefile(path, sources)
    # As an engine's plugin does it, so that a run names the version that was recorded.
    version = version_of((file.path, file.sha256) for file in sources.files)
    assert version is not None  # there is a file
    return ReadWorkflow(name or _name(path, cwl=cwl), version, definition, sources.files)


def _name(path: Path, *, cwl: bool) -> str:
    """What a workflow is called if nobody says: as its runs are, or as its file."""
    if not cwl:
        return workflow_name(str(path))
    return _home(path).name if path.stem in _NO_NAMES else path.stem


def _home(path: Path) -> Path:
    return Path(workflow_home(str(path)))

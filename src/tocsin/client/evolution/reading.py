"""A workflow file and all that belongs to it, as one version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tocsin.client.engines.snakemake_words import workflow_name
from tocsin.client.engines.telling import content_hash
from tocsin.client.evolution.cwl import read_cwl
from tocsin.client.evolution.snakefile import read_snakefile
from tocsin.client.evolution.sources import SourceFile, Sources
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
    path = Path(file).resolve()
    sources = Sources(Path(root) if root is not None else _home(path))
    path = sources.place(str(path), path)
    cwl = path.suffix.lower() in _CWL_ENDINGS
    definition = read_cwl(path, sources) if cwl else read_snakefile(path, sources)
    return ReadWorkflow(
        name or _name(path, cwl=cwl), version_of(sources.files), definition, sources.files
    )


def version_of(files: Iterable[SourceFile]) -> str:
    """A short name for exactly these files: the same on every machine, and that of a run."""
    return content_hash(*(file.sha256 for file in files))


def _name(path: Path, *, cwl: bool) -> str:
    """What a workflow is called if nobody says: as its runs are, or as its file."""
    if not cwl:
        return workflow_name(str(path))
    return _home(path).name if path.stem in _NO_NAMES else path.stem


def _home(path: Path) -> Path:
    """The directory of a workflow; by Snakemake's custom its file may be below, in workflow/."""
    return path.parent.parent if path.parent.name == "workflow" else path.parent

"""A workflow file and all that belongs to it, as one version."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tocsin.client.evolution.cwl import read_cwl
from tocsin.client.evolution.snakefile import read_snakefile
from tocsin.client.evolution.sources import SourceFile, Sources
from tocsin.monitor.evolution.definition import Definition

VERSION_DIGITS = 16  # of a SHA-256: enough to tell versions apart, and to read aloud

_CWL_ENDINGS = (".cwl", ".json", ".yml", ".yaml")


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
        name or workflow_name(path), version_of(sources.files), definition, sources.files
    )


def version_of(files: tuple[SourceFile, ...]) -> str:
    """The digest of all files with their names: the same on every machine."""
    whole = "".join(f"{file.sha256}  {file.path}\n" for file in files)
    return hashlib.sha256(whole.encode()).hexdigest()[:VERSION_DIGITS]


def workflow_name(path: Path) -> str:
    """What a workflow is called if nobody says: as its directory, or as a file with a name."""
    if path.name in ("Snakefile", "main.cwl", "workflow.cwl"):
        return _home(path).name or path.stem
    return path.stem


def _home(path: Path) -> Path:
    """The directory of a workflow; by Snakemake's custom its file may be below, in workflow/."""
    return path.parent.parent if path.parent.name == "workflow" else path.parent

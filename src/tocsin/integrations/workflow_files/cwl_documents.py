"""CWL documents and the processes in them: found by file and by `#name`, each file read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from tocsin.errors.services import BadWorkflowFile
from tocsin.integrations.workflow_files.sources import Sources
from tocsin.integrations.workflow_files.yaml_text import Tree, read_tree

CLASSES = ("Workflow", "CommandLineTool", "ExpressionTool", "Operation")

Mapping = dict[str, Tree]


@dataclass(frozen=True, slots=True)
class Process:
    """A workflow or a tool, and the file that it stands in. Its key is unique."""

    key: tuple[Path, str]
    path: Path
    body: Mapping

    @property
    def kind(self) -> str:
        return text_of(self.body, "class")

    @property
    def name(self) -> str:
        """What it calls itself, or what its file is called."""
        return plain_id(text_of(self.body, "id")) or self.path.stem


class Documents:
    """The documents of one workflow."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._trees: dict[Path, Tree] = {}

    def main(self, path: Path) -> Process:
        """The process that a file is about."""
        processes = self._processes(path)
        if "" in processes:
            return processes[""]
        if "main" in processes:
            return processes["main"]
        run = {target for each in processes.values() for target in _targets(each)}
        for name, process in processes.items():
            if process.kind == "Workflow" and name not in run:
                return process
        return next(iter(processes.values()))

    def referred(self, reference: str, by: Process) -> Process | None:
        """The process that a `run:` names; None for one on another machine."""
        file, _, name = reference.partition("#")
        if "://" in file:
            if not file.startswith("file://"):
                return None
            file = file.removeprefix("file://")
        path = self._sources.place(unquote(file), by.path) if file else by.path
        if not name:
            return self.main(path)
        found = self._processes(path).get(name)
        if found is None:
            raise BadWorkflowFile(
                f"{path.name} has no process #{name}, which {by.name} runs",
                remedy="Correct the `run:`, or the id.",
            )
        return found

    def inline(self, body: Mapping, by: Process, step: str) -> Process:
        """A process that is written where it is run."""
        return Process((by.path, f"{by.key[1]}/{step}"), by.path, body)

    def _processes(self, path: Path) -> dict[str, Process]:
        """Those of a file by their names in it; a file that is one process has it under ''."""
        tree = self._trees.get(path)
        if tree is None:
            tree = self._trees[path] = read_tree(self._sources.read(path), path.name)
        graph = tree.get("$graph") if isinstance(tree, dict) else None
        bodies = graph if isinstance(graph, list) else [tree]
        found: dict[str, Process] = {}
        for body in bodies:
            if not isinstance(body, dict) or text_of(body, "class") not in CLASSES:
                continue
            name = plain_id(text_of(body, "id")) if isinstance(graph, list) else ""
            found[name] = Process((path, name), path, body)
        if not found:
            raise BadWorkflowFile(
                f"{path.name} is not CWL: it has no class of {', '.join(CLASSES)}",
                remedy="Name a CWL workflow or tool.",
            )
        return found


def _targets(process: Process) -> Iterator[str]:
    """The names in its own file of what a process runs."""
    for _, step in members(process.body.get("steps")):
        run = step.get("run")
        if isinstance(run, str) and run.startswith("#"):
            yield run[1:]


def members(value: Tree | None, plain: str = "") -> Iterator[tuple[str, Mapping]]:
    """What CWL writes as a mapping by name or as a list of things with an id.

    A thing that is no mapping is what the member `plain` would say of it.
    """
    if isinstance(value, dict):
        for name, each in value.items():
            yield plain_id(name), each if isinstance(each, dict) else {plain: each}
    elif isinstance(value, list):
        for each in value:
            if isinstance(each, dict):
                yield plain_id(text_of(each, "id")), each
            elif isinstance(each, str):
                yield plain_id(each), {}


def plain_id(identifier: str) -> str:
    """`#main` and `file.cwl#main` as `main`: what packing adds says nothing."""
    return identifier.rpartition("#")[2]


def text_of(body: Mapping, name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def texts_of(value: Tree | None) -> list[str]:
    """One text or a list of them, as a list."""
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []

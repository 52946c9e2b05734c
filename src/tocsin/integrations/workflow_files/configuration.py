"""The file of parameters that a Snakefile names: each setting by its dotted name."""

from __future__ import annotations

from pathlib import Path

from tocsin.integrations.workflow_files.sources import Sources
from tocsin.integrations.workflow_files.yaml_text import Tree, canonical, read_tree
from tocsin.monitor.evolution.definition import short

SETTINGS_MAX = 1_000  # more are a table, and go by one text


def configured(name: str, beside: Path, sources: Sources) -> dict[str, str]:
    """What a file of parameters sets; nothing if it is not there, as one given at the start."""
    # Snakemake looks from where it is started, which is the root by custom.
    for origin in (sources.root / "Snakefile", beside):
        path = sources.place(name, origin)
        if path.is_file():
            tree = read_tree(sources.read(path), name)
            found = _flat(tree, "config")
            return found if len(found) <= SETTINGS_MAX else {"config": short(canonical(tree))}
    return {}


def _flat(tree: Tree, name: str) -> dict[str, str]:
    if not isinstance(tree, dict):
        return {name: short(canonical(tree))}
    found: dict[str, str] = {}
    for member, value in tree.items():
        found.update(_flat(value, f"{name}.{member}"))
    return found

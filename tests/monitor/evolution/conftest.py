"""Snakefiles that a test writes, as they are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tocsin.integrations.workflow_files.workflow import read_workflow
from tocsin.monitor.evolution.definition import Definition

Read = Callable[..., Definition]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes the files of a workflow and reads them; the first text is the Snakefile's."""

    def read(text: str, **others: str) -> Definition:
        (tmp_path / "Snakefile").write_text(text)
        for name, other in others.items():
            path = tmp_path / name.replace("__", "/").replace("_smk", ".smk").replace("_py", ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(other)
        return read_workflow(tmp_path / "Snakefile").definition

    return read

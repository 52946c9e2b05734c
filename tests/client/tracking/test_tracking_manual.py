"""Every block of Python in the manual of tracking runs, with a broker and without one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from served import ROOT, Served

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "tracking.md").read_text(), re.DOTALL)


def run(block: str, directory: Path, broker: str) -> None:
    here = {"TOCSIN_BROKER": broker, "XDG_STATE_HOME": str(directory)}
    done = subprocess.run(
        [sys.executable, "-c", block],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **here},
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_tracking_manual_runs(broker: Served, tmp_path: Path, number: int) -> None:
    run(BLOCKS[number], tmp_path, broker.url)


def test_its_first_block_runs_without_a_broker_too(tmp_path: Path) -> None:
    run(BLOCKS[0], tmp_path, "http://127.0.0.1:9")

    assert list(tmp_path.rglob("*.spool"))


def test_the_tracking_manual_has_blocks() -> None:
    assert len(BLOCKS) >= 5

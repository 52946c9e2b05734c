"""Every block of Python in the client's manual runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "client.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_manual_runs(broker, number: int) -> None:
    broker.publish({"topic": "lead/manual", "data": {"load5": 9}})

    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[number]],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOCSIN_BROKER": broker.url},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr


def test_the_manual_has_blocks() -> None:
    assert len(BLOCKS) >= 5

"""Every block of Python in the manual of the Web-services clients runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANUAL = (ROOT / "docs" / "web-services-client.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", MANUAL, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_web_services_manual_runs_and_leaves_nothing(broker, number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKS[number]],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "TOCSIN_BROKER": broker.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "sweep" in done.stdout or "load5" in done.stdout
    assert not broker.call("GET", "/subscriptions")[1]["subscriptions"]


def test_the_web_services_manual_has_blocks() -> None:
    assert len(BLOCKS) >= 4

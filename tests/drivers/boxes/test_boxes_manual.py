"""What docs/boxes.md shows is what happens."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from drivers.boxes.box_process import BoxServed
from served import ROOT

MANUAL = (ROOT / "docs" / "boxes.md").read_text()


@pytest.mark.skipif(shutil.which("curl") is None, reason="without curl there is nothing to try")
def test_the_example_by_hand_makes_fills_empties_and_destroys_a_box(outside: BoxServed) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", MANUAL, re.S)
    script = block.partition("&\n")[2].replace("127.0.0.1:8400", outside.address)

    shown = subprocess.run(
        ["bash", "-euc", script], capture_output=True, text=True, check=True, timeout=60
    ).stdout

    assert "<msgbox:status>true</msgbox:status>" in shown
    assert "<msgbox:messages><hello>box</hello></msgbox:messages>" in shown
    assert shown.count("<msgbox:status>true") == 2

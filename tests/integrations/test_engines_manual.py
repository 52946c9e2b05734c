"""What the manual of the engines shows can be done as it is shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from served import ROOT

PAGES = ROOT / "docs" / "engines"


@pytest.mark.parametrize(("page", "engine"), [("parsl", "parsl"), ("dask", "distributed")])
def test_the_lines_to_copy_run(page: str, engine: str, tmp_path: Path) -> None:
    pytest.importorskip(engine)
    [block] = re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(), re.S)
    small = block.replace("Client()", "Client(processes=False, dashboard_address=None)")
    ended = "\nclient.close()\n" if page == "dask" else ""
    program = tmp_path / "program.py"
    program.write_text(small + ended)

    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "TOCSIN_BROKER": "127.0.0.1:9"},
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr


def test_the_page_on_snakemake_names_every_option_of_the_plugin() -> None:
    pytest.importorskip("snakemake")
    from snakemake_logger_plugin_tocsin import LogHandlerSettings

    page = (PAGES / "snakemake.md").read_text()

    for name in LogHandlerSettings.__dataclass_fields__:
        assert f"--logger-tocsin-{name.replace('_', '-')} " in page


def test_a_snakemake_that_wants_another_logger_pays_nothing_for_ours() -> None:
    pytest.importorskip("snakemake")
    code = "import sys, snakemake_logger_plugin_tocsin; print('tocsin' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert done.stdout == "False\n"

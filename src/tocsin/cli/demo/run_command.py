"""Part: any command can report its run, and a file leads to the run that wrote it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tocsin.cli.demo.context import DemoContext
from tocsin.errors import SomeFailed

EXIT_CODE = 3
SCRIPT = "sort raw.txt > sorted.txt; echo 'line 2: no such station' >&2; exit 3"


def run(demo: DemoContext) -> None:
    demo.print(f"$ tocsin run --workflow demo-sort --output sorted.txt -- sh -c {SCRIPT!r}")
    with tempfile.TemporaryDirectory(prefix="tocsin-demo-run-") as directory:
        Path(directory, "raw.txt").write_text("b\na\n")
        files = ("--input", "raw.txt", "--output", "sorted.txt")
        command = [sys.executable, "-m", "tocsin", "run", "--workflow", "demo-sort"]
        done = subprocess.run(
            [*command, "--run", "demo-sort", *files, "--", "sh", "-c", SCRIPT],
            cwd=directory,
            env={**os.environ, "TOCSIN_BROKER": demo.url, "XDG_STATE_HOME": directory},
            stderr=subprocess.PIPE,
            check=False,
        )
    [failure] = demo.request("GET", "/runs/demo-sort/failures")["failures"]
    [file] = demo.request("GET", "/files?name=sorted.txt")["files"]
    demo.results["command"] = {"exit_code": failure["exit_code"], "file": file["run"]}
    if done.returncode != EXIT_CODE or failure["exit_code"] != EXIT_CODE:
        raise SomeFailed(
            "the exit code of the command was not passed on",
            remedy="Run `tocsin run -- sh -c 'exit 3'` by hand, and read its output.",
        )
    demo.print(
        f"Its exit code {done.returncode} came through. `tocsin wf failures` shows why: "
        f"{failure['log'].strip()}\n"
        f"`tocsin wf files sorted.txt`: written by {file['activity']} of {file['run']}, "
        f"{file['size']} bytes."
    )

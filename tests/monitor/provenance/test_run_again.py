"""A workflow really runs, and runs again from nothing but its crate."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

from tocsin.monitor.provenance import RunView, crate_zip
from tocsin.monitor.records import ActivityRecord, RunRecord, WorkflowFile

SNAKEFILE = """\
include: "rules/join.smk"

rule all:
    default_target: True
    input: "letter.txt"

rule greet:
    output: "parts/{name}.txt"
    run:
        with open(output[0], "w") as out:
            print(config["greeting"], wildcards.name, file=out)
"""
JOIN = """\
rule join:
    input: expand("parts/{name}.txt", name=config["names"])
    output: "letter.txt"
    shell: "cat {input} > {output}"
"""
PARAMETERS = {"greeting": "Grüß “Gott”, it's", "names": ["ann", "bob"]}
LETTER = "Grüß “Gott”, it's ann\nGrüß “Gott”, it's bob\n"


def shell(line: str, directory: Path) -> None:
    """As a person would type it."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        # The engine keeps a cache at home, and a home is not ours to write to.
        "XDG_CACHE_HOME": str(directory.parent / "cache"),
    }
    done = subprocess.run(
        ["bash", "-c", line], cwd=directory, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def recorded(directory: Path) -> RunView:
    """What an engine's messages would have told of the run in that directory."""
    files = [directory / "Snakefile", directory / "rules" / "join.smk"]
    greet = [
        ActivityRecord(id=name, type="greet", state="succeeded", outputs=(f"parts/{name}.txt",))
        for name in ("ann", "bob")
    ]
    join = ActivityRecord(
        id="join",
        type="join",
        state="succeeded",
        inputs=("parts/ann.txt", "parts/bob.txt"),
        outputs=("letter.txt",),
        parents=("ann", "bob"),
    )
    run = RunRecord(
        id="letter-1",
        workflow="letter",
        engine="snakemake",
        state="completed",
        working_directory=str(directory),
        parameters=json.loads((directory / "config.json").read_text()),
        files=tuple(
            WorkflowFile(str(path), sha256(path.read_bytes()).hexdigest(), path.read_text())
            for path in files
        ),
    )
    return RunView(run, (*greet, join))


def commands(readme: str) -> str:
    [block] = re.findall(r"```console\n(.*?)```", readme, re.S)
    return "\n".join(line.removeprefix("$ ") for line in block.splitlines())


def test_a_snakemake_run_is_run_again_from_its_crate(tmp_path: Path) -> None:
    first = tmp_path / "first"
    (first / "rules").mkdir(parents=True)
    (first / "Snakefile").write_text(SNAKEFILE)
    (first / "rules" / "join.smk").write_text(JOIN)
    (first / "config.json").write_text(json.dumps(PARAMETERS))
    shell("snakemake --cores 1 --configfile config.json", first)
    assert (first / "letter.txt").read_text() == LETTER

    crate = tmp_path / "crate"
    with zipfile.ZipFile(io.BytesIO(crate_zip(recorded(first)))) as archive:
        archive.extractall(crate)
    shell(f"set -e\n{commands((crate / 'README.md').read_text())}", crate)

    again = crate / "workflow"
    for made in ("letter.txt", "parts/ann.txt", "parts/bob.txt"):
        assert (again / made).read_bytes() == (first / made).read_bytes()

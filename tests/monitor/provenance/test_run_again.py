"""A workflow runs, tells a broker of it, and runs again from nothing but the broker's crate."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from rocrate.rocrate import ROCrate

from served import Served, served
from tocsin.monitor.provenance.crate.missing import missing_in

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
    shell: "sh tools/join.sh {input} > {output}; python {workflow.basedir}/tools/try.py {output}"
"""
JOIN_PROGRAM = 'echo Dear all; cat "$@"\n'
CHECK_PROGRAM = "import sys\nassert open(sys.argv[1]).read()\n"
PARAMETERS = {"greeting": "Grüß “Gott”, it's", "names": ["ann", "bob"]}
LETTER = "Dear all\nGrüß “Gott”, it's ann\nGrüß “Gott”, it's bob\n"


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


def commands(readme: str) -> str:
    [block] = re.findall(r"```console\n(.*?)```", readme, re.S)
    return "\n".join(line.removeprefix("$ ") for line in block.splitlines())


def crate_of_the_only_run(broker: Served) -> bytes:
    status, answer = broker.call("GET", "/runs")
    assert status == 200
    [run] = answer["runs"]
    assert run["state"] == "completed", run
    with urlopen(f"{broker.url}/runs/{quote(run['id'])}/provenance?format=crate") as crate:
        archive: bytes = crate.read()
    return archive


def test_a_snakemake_run_is_run_again_from_its_crate(tmp_path: Path) -> None:
    first = tmp_path / "first"
    (first / "rules").mkdir(parents=True)
    (first / "Snakefile").write_text(SNAKEFILE)
    (first / "rules" / "join.smk").write_text(JOIN)
    (first / "tools").mkdir()
    (first / "tools" / "join.sh").write_text(JOIN_PROGRAM)
    (first / "tools" / "try.py").write_text(CHECK_PROGRAM)
    (first / "config.json").write_text(json.dumps(PARAMETERS))
    with served() as broker:
        reported = f"--logger tocsin --logger-tocsin-broker {broker.address}"
        reported += f" --logger-tocsin-spool {tmp_path / 'spool'}"
        shell(f"snakemake --cores 1 --configfile config.json {reported}", first)
        archive = crate_of_the_only_run(broker)
    assert (first / "letter.txt").read_text() == LETTER

    crate = tmp_path / "crate"
    with zipfile.ZipFile(io.BytesIO(archive)) as packed:
        packed.extractall(crate)
    assert missing_in((crate / "README.md").read_text()) == []
    shell(f"set -e\n{commands((crate / 'README.md').read_text())}", crate)

    again = crate / "workflow"
    for made in ("letter.txt", "parts/ann.txt", "parts/bob.txt"):
        assert (again / made).read_bytes() == (first / made).read_bytes()
    run = ROCrate(crate).root_dataset["mentions"][0]
    assert [file["name"] for file in run["result"]] == ["letter.txt"]
    assert {each["name"] for each in run["object"]} == {"greeting", "names"}

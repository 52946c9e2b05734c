"""A small workflow with everything that is hard: a checkpoint, retries, a script, a benchmark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

RUN_S = 120.0

SNAKEFILE = """
configfile: "config.yaml"

rule all:
    input: "report.txt", "scripted.txt"

rule sort:
    input: "in/{s}.txt"
    output: "d/{s}.sorted"
    log: "logs/{s}.log"
    benchmark: "bench/{s}.tsv"
    resources: mem_mb=100
    shell: "sort {input} > {output} 2> {log}"

checkpoint split:
    input: expand("d/{s}.sorted", s=config["samples"])
    output: directory("parts")
    shell: "mkdir -p parts; head -3 {input[0]} > parts/1.p; head -3 {input[1]} > parts/2.p"

rule flaky:
    input: "parts/{i}.p"
    output: "cnt/{i}.c"
    log: "logs/flaky{i}.log"
    retries: 1
    shell: "if [ -e tried{wildcards.i} ]; then wc -l < {input} > {output};"
           " else touch tried{wildcards.i}; echo no luck > {log}; exit 3; fi"

def parts(wildcards):
    found = glob_wildcards(checkpoints.split.get().output[0] + "/{i}.p").i
    return expand("cnt/{i}.c", i=found)

rule report:
    input: parts
    output: "report.txt"
    shell: "while [ -e hold ]; do sleep 0.05; done; cat {input} > {output}"

rule scripted:
    output: "scripted.txt"
    script: "count.py"

rule fails:
    output: "never.txt"
    log: "logs/fails.log"
    shell: "echo disk quota exceeded > {log}; exit 7"

rule after_fails:
    input: "never.txt"
    output: "after.txt"
    shell: "touch {output}"

rule forgets:
    output: "forgotten.txt"
    shell: "true"

rule writes:
    output: pipe("numbers")
    shell: "echo 1 > {output}"

rule reads:
    input: "numbers"
    output: "piped.txt"
    shell: "cat {input} > {output}"

rule waits:
    output: "waited.txt"
    shell: "touch waiting; sleep 60"
"""


def lay_out(directory: Path) -> Path:
    """The workflow in a fresh directory."""
    (directory / "in").mkdir(parents=True)
    (directory / "in" / "a.txt").write_text("".join(f"{n}\n" for n in range(500)))
    (directory / "in" / "b.txt").write_text("3\n2\n1\n")
    (directory / "config.yaml").write_text("samples: [a, b]\n")
    (directory / "count.py").write_text('open(snakemake.output[0], "w").write("3")\n')
    (directory / "Snakefile").write_text(SNAKEFILE)
    return directory


def command(broker: str, *arguments: str) -> list[str]:
    return [
        *(sys.executable, "-m", "snakemake", "--cores", "2", "--latency-wait", "0"),
        *("--logger", "tocsin", "--logger-tocsin-broker", broker, "--logger-tocsin-spool", "spool"),
        *arguments,
    ]


def start(directory: Path, broker: str, *arguments: str) -> subprocess.Popen[str]:
    """In a session of its own, so that a signal reaches its jobs as from a terminal."""
    return subprocess.Popen(
        command(broker, *arguments),
        cwd=directory,
        env={**os.environ, "XDG_CACHE_HOME": str(directory / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(directory: Path, broker: str, *arguments: str) -> tuple[int, str]:
    """The exit code, and what it said."""
    process = start(directory, broker, *arguments)
    _, said = process.communicate(timeout=RUN_S)
    return process.returncode, said


def own_record(directory: Path) -> tuple[set[tuple[str, str]], Sequence[str]]:
    """What Snakemake's own log says was finished, as job and rule, and what it tried again."""
    [log] = (directory / ".snakemake" / "log").iterdir()
    text = log.read_text()
    finished = re.findall(r"^Finished jobid: (\d+) \(Rule: (\w+)\)$", text, re.MULTILINE)
    return set(finished), re.findall(r"^Trying to restart job (\d+)\.$", text, re.MULTILINE)

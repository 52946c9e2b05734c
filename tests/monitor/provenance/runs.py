"""Runs to tell the provenance of: an ordinary one, and one by somebody who means harm."""

from __future__ import annotations

from tocsin.monitor.provenance import RunView, WorkflowVersion
from tocsin.wire.api.run_views import ActivityInfo, FileInfo, RunDetails

SNAKEFILE = 'rule all:\n    input: "report.txt"\n'


def at(second: int) -> str:
    return f"2026-11-16T06:40:{second:02}.000Z"


def ordinary_run() -> RunView:
    """split, then two counts, the second at its second try, a cached plot, a skipped mail."""
    failed = ActivityInfo(
        id="count_b",
        type="count",
        attempt=1,
        state="retrying",
        started=at(5),
        ended=at(6),
        host="node1",
        exit_code=137,
        error="Killed",
        inputs=("parts/b.txt",),
        outputs=("counts/b.txt",),
    )
    activities = (
        ActivityInfo(
            id="split",
            type="split",
            state="succeeded",
            started=at(1),
            ended=at(3),
            host="node1",
            exit_code=0,
            command="split -n 2 genome.fa",
            inputs=("genome.fa",),
            outputs=("parts/a.txt", "parts/b.txt"),
            input_bytes=3_000_000_000,
            resources={"CpuSeconds": 1.5, "MemoryPeak": 2_097_152.0},
        ),
        ActivityInfo(
            id="count_a",
            type="count",
            state="succeeded",
            started=at(3),
            ended=at(5),
            host="node2",
            inputs=("parts/a.txt",),
            outputs=("counts/a.txt",),
            parents=("split",),
        ),
        ActivityInfo(
            id="count_b",
            type="count",
            attempt=2,
            attempts=2,
            state="succeeded",
            started=at(7),
            ended=at(9),
            host="node1",
            inputs=("parts/b.txt",),
            outputs=("counts/b.txt",),
            parents=("split",),
            tries=(failed,),
        ),
        ActivityInfo(
            id="plot",
            type="plot",
            state="cached",
            ended=at(9),
            inputs=("counts/a.txt", "counts/b.txt"),
            outputs=("plot.png",),
            parents=("count_a", "count_b"),
        ),
        ActivityInfo(id="mail", type="mail", state="skipped", parents=("plot",)),
    )
    run = RunDetails(
        id="r1",
        workflow="counting",
        version="3",
        engine="snakemake",
        engine_version="9.27.1",
        user="ann",
        host="login1",
        state="completed",
        started=at(0),
        ended=at(10),
        parent="r0",
        parameters={"threads": 4, "rate": 0.5, "name": "Ann's", "deep": {"a": [1]}, "dry": True},
        files=(FileInfo("Snakefile", "ab" * 32, SNAKEFILE),),
    )
    versions = (
        WorkflowVersion("counting", "3", previous="2"),
        WorkflowVersion("counting", "2", previous="1", previous_workflow="tallying"),
        WorkflowVersion("unrelated", "9", previous="8"),
    )
    return RunView(run, activities, versions)


HOSTILE = [
    "a b \"c\" 'd'",
    "line\nbreak\r\ttab",
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\Windows\\win.ini",
    "-dash.",
    ".",
    "..",
    "",
    "~",
    "%41",
    "A",
    "e(x, [prov:type='y'])",
    "endDocument",
    "日本語/é.txt",
    "http://example.org/a?b=c#d",
    "<urn:x> . } ]",
    "nul\x00bell\x07",
    "\U0001f514",
    "back\\slash",
    'tri"""ple',
]


def hostile_run() -> RunView:
    """Every text of it is something that a notation might take for its own."""
    activities = tuple(
        ActivityInfo(
            id=text,
            type=text,
            version=text,
            state="succeeded" if number % 3 else "failed",
            started=at(number),
            ended=at(number + 1),
            host=text or None,
            error=text,
            command=text,
            inputs=(text,),
            outputs=(HOSTILE[number - 1],),
            parents=(HOSTILE[number - 1],),
            resources={text: 1.0},
        )
        for number, text in enumerate(HOSTILE)
    )
    run = RunDetails(
        id='run "1"\n../x',
        workflow="w <b>\n",
        version="v 1\\",
        engine="snakemake\n",
        user='Bobby"); drop(',
        state="failed",
        error="it\nfailed",
        started=at(0),
        parameters={text: text for text in HOSTILE},
        files=tuple(FileInfo(text, "00", text) for text in HOSTILE),
    )
    return RunView(run, activities)

"""Which files of a workflow go to the broker with their text, and which never do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tocsin.integrations.files import DiskFiles
from tocsin.integrations.snakemake.plan import Facts
from tocsin.integrations.snakemake.sources import NAMED_MAX, Sources, sources_of
from tocsin.monitor.command_files import named_files


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    home = tmp_path / "flow"
    (home / "scripts").mkdir(parents=True)
    (home / "Snakefile").write_text("rule a: ...")
    (home / "scripts" / "plot.py").write_text("print(1)")
    (tmp_path / "secret.py").write_text("no")
    return home


def reported(flow: Path, *words: str) -> tuple[Sources, dict[str, Any]]:
    facts = Facts(("Snakefile",), versions={"plot": "v"}, named={"plot": words})
    sources = sources_of(facts, DiskFiles(flow), str(flow), str(flow))
    assert sources.files is not None
    return sources, {file["path"]: file["text"] for file in json.loads(sources.files)}


def test_a_program_that_a_command_names_is_sent_and_makes_the_version_of_its_rule(
    flow: Path,
) -> None:
    words = list(named_files("python scripts/plot.py {input} --style=bold.ini > {output}"))

    before, files = reported(flow, *words)

    assert files == {"Snakefile": "rule a: ...", "scripts/plot.py": "print(1)"}
    (flow / "scripts" / "plot.py").write_text("print(2)")
    after, _ = reported(flow, *words)
    assert after.rules != before.rules
    # As `tocsin wf record` has it, which does not read commands.
    assert after.version == before.version == reported(flow)[0].version


def test_nothing_outside_of_the_workflows_directory_is_sent_whatever_leads_there(
    flow: Path,
) -> None:
    (flow / "link.py").symlink_to("../secret.py")
    (flow / "all").symlink_to("..")

    _, files = reported(
        flow, "../secret.py", str(flow.parent / "secret.py"), "link.py", "all/secret.py"
    )

    assert files.keys() == {"Snakefile"}


def test_what_is_no_file_is_not_sent_and_what_is_long_goes_without_its_text(flow: Path) -> None:
    (flow / "long.py").write_text("#" * 100_000)

    _, files = reported(flow, "scripts", "python", "nowhere.py", "nul\0.py", "long.py")

    assert files == {"Snakefile": "rule a: ...", "long.py": None}


def test_no_more_files_are_sent_than_the_limit(flow: Path) -> None:
    words = [f"{number}.py" for number in range(NAMED_MAX + 5)]
    for word in words:
        (flow / word).touch()

    _, files = reported(flow, *words)

    assert len(files) == NAMED_MAX + 1


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("python scripts/plot.py {input}", ["python", "scripts/plot.py"]),
        ("./run.sh a.txt>b.txt 2>> log.txt", ["run.sh", "a.txt"]),
        ("Rscript -e 'source(\"lib/x.R\")' --in=c.tsv", ["Rscript", "source", "lib/x.R", "c.tsv"]),
        ("cat $HOME/x.py *.py ~/y.py {wildcards.a}.py", ["cat"]),
        ("curl https://example.org/x.py", ["curl"]),
        ("", []),
    ],
)
def test_the_words_of_a_command_that_may_be_files(command: str, words: list[str]) -> None:
    assert list(named_files(command)) == words

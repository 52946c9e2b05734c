"""Workflow languages: how a workflow's file is known, and how it is run again from a crate."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tocsin.wire.api.run_views import FileInfo

_TERMS: Final = "https://w3id.org/workflowhub/workflow-ro-crate#"


@dataclass(frozen=True, slots=True)
class Language:
    """A language as crates name it. `command` runs {main}, `options` hand it the {parameters}."""

    id: str
    name: str
    url: str
    names: tuple[str, ...]
    endings: tuple[str, ...]
    command: str
    options: str


LANGUAGES: Final[tuple[Language, ...]] = (
    Language(
        f"{_TERMS}snakemake",
        "Snakemake",
        "https://snakemake.readthedocs.io",
        ("snakefile",),
        (".smk",),
        "snakemake --cores 1 --snakefile {main}",
        " --configfile {parameters}",
    ),
    Language(
        f"{_TERMS}cwl",
        "Common Workflow Language",
        "https://www.commonwl.org/",
        (),
        (".cwl",),
        "cwltool {main}",
        " {parameters}",
    ),
    Language(
        f"{_TERMS}nextflow",
        "Nextflow",
        "https://www.nextflow.io/",
        ("main.nf",),
        (".nf",),
        "nextflow run {main}",
        " -params-file {parameters}",
    ),
    Language("#python", "Python", "https://www.python.org/", (), (".py",), "python {main}", ""),
)


def language_of(path: str) -> Language | None:
    """The language of a file, by its name."""
    name = posixpath.basename(path.replace("\\", "/")).casefold()
    for language in LANGUAGES:
        if name in language.names or name.endswith(language.endings):
            return language
    return None


def main_file(files: Sequence[FileInfo]) -> int | None:
    """The number of the file that the workflow is: the one that a language names so, else the first
    in a language, else the first of all; None if no text is known."""
    with_text = [number for number, file in enumerate(files) if file.text is not None]

    def rank(number: int) -> tuple[int, int]:
        language = language_of(files[number].path)
        name = posixpath.basename(files[number].path.replace("\\", "/")).casefold()
        if language is None:
            return len(LANGUAGES) + 1, number
        return 0 if name in language.names else 1 + LANGUAGES.index(language), number

    return min(with_text, key=rank, default=None)


def command(language: Language, main: str, parameters: str | None) -> str:
    """What to type to run it again."""
    text = language.command.format(main=shlex.quote(main))
    return text + (language.options.format(parameters=parameters) if parameters else "")

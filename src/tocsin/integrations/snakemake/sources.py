"""The files that make a workflow, sent with their text, and the versions that follow from them."""

from __future__ import annotations

import json
import os.path
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tocsin.integrations.files import Files
from tocsin.integrations.message_builder import content_hash
from tocsin.integrations.snakemake.log_text import path_within, version_of
from tocsin.integrations.snakemake.plan import Facts
from tocsin.monitor.command_files import is_program

TEXTS_CHARS_MAX = 384 << 10  # of all files; a message has a megabyte at most, and this is quoted
NAMED_MAX = 100  # files that commands name


@dataclass(frozen=True, slots=True)
class Sources:
    """The pair WorkflowFile, the version of the workflow, and that of each rule."""

    files: str | None
    version: str | None
    rules: Mapping[str, str]


def sources_of(facts: Facts, files: Files, home: str, directory: str) -> Sources:
    """The version of the workflow is that of its Snakefiles, configuration and scripts, as those
    are the files that `tocsin wf record` reads; the version of a rule is also that of the programs
    which its command names.
    """
    own = list(dict.fromkeys((*facts.files, *facts.scripts.values())))
    named = list(_named(facts, files, home, directory))
    left = TEXTS_CHARS_MAX
    listed: dict[str, dict[str, str | None]] = {}
    for path in dict.fromkeys((*own, *(path for _, path in named))):
        if (found := files.content(path)) is not None:
            digest, text = found
            left -= len(text or "")
            name = path_within(path, home, directory)
            listed[path] = {"path": name, "sha256": digest, "text": text if left >= 0 else None}
    rules = dict(facts.versions)
    programs = ((rule, path) for rule, path in named if is_program(path))
    for rule, path in (*facts.scripts.items(), *programs):
        if path in listed:
            rules[rule] = content_hash(rules.get(rule, ""), str(listed[path]["sha256"]))
    own_files = [listed[path] for path in own if path in listed]
    return Sources(
        json.dumps(list(listed.values()), ensure_ascii=False) if listed else None,
        version_of((str(file["path"]), str(file["sha256"])) for file in own_files),
        rules,
    )


def _named(facts: Facts, files: Files, home: str, directory: str) -> Iterator[tuple[str, str]]:
    """The rule and the file, for files in the workflow's own directory that a command names.

    Commands run in the working directory. Nothing outside of the workflow's directory is sent.
    """
    own = (*facts.files, *facts.scripts.values())
    known = {os.path.normpath(os.path.join(directory, path)) for path in own}
    seen: set[str] = set()
    for rule, words in facts.named.items():
        for word in words:
            path = os.path.normpath(os.path.join(directory, word))
            if path in known or files.size(path) is None or not files.is_below(path, home):
                continue
            seen.add(path)
            if len(seen) > NAMED_MAX:
                return
            yield rule, path

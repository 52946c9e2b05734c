"""The files that make a workflow, told with their text, and the versions that follow from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tocsin.client.engines.files import Files
from tocsin.client.engines.snakemake_plan import Facts
from tocsin.client.engines.snakemake_words import path_within, version_of
from tocsin.client.engines.telling import content_hash

TEXTS_CHARS_MAX = 384 << 10  # of all files; a message has a megabyte at most, and this is quoted


@dataclass(frozen=True, slots=True)
class Sources:
    """The pair WorkflowFile, the version of the workflow, and that of each rule."""

    files: str | None
    version: str | None
    rules: Mapping[str, str]


def sources_of(facts: Facts, files: Files, home: str, directory: str) -> Sources:
    """The version of the workflow is that of all its files: another script is another workflow."""
    left = TEXTS_CHARS_MAX
    listed: dict[str, dict[str, str | None]] = {}
    for path in dict.fromkeys((*facts.files, *facts.scripts.values())):
        if (found := files.content(path)) is not None:
            digest, text = found
            left -= len(text or "")
            name = path_within(path, home, directory)
            listed[path] = {"path": name, "sha256": digest, "text": text if left >= 0 else None}
    rules = dict(facts.versions)
    for rule, path in facts.scripts.items():
        if path in listed:
            rules[rule] = content_hash(rules.get(rule, ""), str(listed[path]["sha256"]))
    return Sources(
        json.dumps(list(listed.values()), ensure_ascii=False) if listed else None,
        version_of((str(file["path"]), str(file["sha256"])) for file in listed.values()),
        rules,
    )

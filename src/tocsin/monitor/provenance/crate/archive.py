"""A Workflow Run RO-Crate as a ZIP archive: the same bytes for the same run, wherever it is made.

After the profiles Process, Workflow and Provenance Run Crate 0.5, on RO-Crate 1.1. A run whose
workflow's files nobody sent is a Process Run Crate, as the others need the workflow itself.
"""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from tocsin.monitor.provenance.chunks import chunks
from tocsin.monitor.provenance.crate.actions import action_entities
from tocsin.monitor.provenance.crate.missing import missing, missing_lines, one_line
from tocsin.monitor.provenance.crate.plan import METADATA, PARAMETERS, README, CratePlan, crate_plan
from tocsin.monitor.provenance.crate.workflow import described
from tocsin.monitor.provenance.run_statements import clean
from tocsin.monitor.provenance.view import RunView

CONTEXT: Final = (
    "https://w3id.org/ro/crate/1.1/context",
    "https://w3id.org/ro/terms/workflow-run/context",
)
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)  # the earliest time that a ZIP archive can have
_FILE_MODE: Final = 0o100644 << 16


def crate_zip(view: RunView) -> bytes:
    """The crate of a run."""
    plan = crate_plan(view)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as crate:
        _put(crate, METADATA, crate_metadata_chunks(plan))
        _put(crate, README, chunks([_readme(plan)]))
        if view.run.parameters:
            text = json.dumps(dict(view.run.parameters), indent=2)
            _put(crate, PARAMETERS, chunks([text, "\n"]))
        for source, place in zip(plan.sources, plan.layout.places, strict=True):
            if source.text is not None:
                _put(crate, place, chunks([clean(source.text)]))
    return archive.getvalue()


def crate_metadata_chunks(plan: CratePlan) -> Iterator[bytes]:
    """The metadata file, piece by piece, an entity a line."""
    return chunks(_pieces(plan))


def _pieces(plan: CratePlan) -> Iterator[str]:
    yield f'{{"@context": {msgspec.json.encode(CONTEXT).decode()},\n"@graph": [\n'
    between = ""
    for entity in chain(described(plan), action_entities(plan)):
        yield between + msgspec.json.encode(entity).decode()
        between = ",\n"
    yield "\n]}\n"


def _put(crate: zipfile.ZipFile, place: str, content: Iterator[bytes]) -> None:
    info = zipfile.ZipInfo(place, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = _FILE_MODE
    info.create_system = 3  # Unix, wherever this runs
    with crate.open(info, "w", force_zip64=True) as entry:
        for chunk in content:
            entry.write(chunk)


def _readme(plan: CratePlan) -> str:
    run = plan.view.run
    lines = [
        f"# Run {one_line(run.id)} of {one_line(run.workflow or 'a workflow')}",
        "",
        "This is a Workflow Run RO-Crate: `ro-crate-metadata.json` describes what the run did.",
        "",
        f"The run's state when this was written: {run.state}.",
        "",
        "## Run it again",
        "",
    ]
    if plan.command:
        lines += [
            "```console",
            f"$ cd {shlex.quote(plan.layout.working_directory)}",
            f"$ {plan.command}",
            "```",
            "",
            "What the workflow's own programs import, call or open is not known to the broker.",
        ]
    lines += missing_lines(missing(plan))
    return "\n".join(lines).rstrip("\n") + "\n"

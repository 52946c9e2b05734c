"""Crates keep to the profiles that they claim: held against roc-validator, and by hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec import structs

from monitor.provenance.crates import ids, metadata, of_type, without_files
from monitor.provenance.runs import hostile_run, ordinary_run
from tocsin.monitor.provenance import RunView, crate_zip
from tocsin.wire.api.run_views import FileInfo

VALIDATOR = shutil.which("rocrate-validator")
VALIDATION_S = 120.0
TERMS = "https://w3id.org/ro/terms/workflow-run"
BIOSCHEMAS = "https://bioschemas.org"


def failed_run() -> RunView:
    """The first step failed, the others were never come to."""
    view = ordinary_run()
    first, *others = view.activities
    first = structs.replace(first, state="failed", exit_code=1, error="no space left")
    skipped = [structs.replace(each, state="skipped", started=None, tries=()) for each in others]
    run = structs.replace(view.run, state="failed", error="split failed")
    return replace(view, run=run, activities=(first, *skipped))


def python_run() -> RunView:
    view = ordinary_run()
    script = (FileInfo("count.py", "ab" * 32, "print()"),)
    return replace(view, run=structs.replace(view.run, engine="python", files=script))


def nothing_ran() -> RunView:
    view = ordinary_run()
    return replace(view, activities=view.activities[3:])


RUNS = {
    "ordinary": ordinary_run(),
    "hostile": hostile_run(),
    "failed": failed_run(),
    "python": python_run(),
    "nothing ran": nothing_ran(),
    "without files": without_files(ordinary_run()),
    "failed without files": without_files(failed_run()),
}


def highest_profile(view: RunView) -> str:
    claimed = " ".join(ids(metadata(view)["./"]["conformsTo"]))
    kinds = ("provenance", "workflow", "process")
    return next(f"{kind}-run-crate-0.5" for kind in kinds if f"wfrun/{kind}/" in claimed)


def contexts() -> dict[str, object]:
    """Those of RO-Crate 1.1 and of the profiles; the library has that of a later RO-Crate."""
    later = json.loads(files("rocrate").joinpath("data/ro-crate.jsonld").read_text())["@context"]
    types = {kind: f"{BIOSCHEMAS}/{kind}" for kind in ("ComputationalWorkflow", "FormalParameter")}
    slots = {word: f"{BIOSCHEMAS}/ComputationalWorkflow#{word}" for word in ("input", "output")}
    own = {word: f"{TERMS}#{word}" for word in ("resourceUsage", "containerImage", "sha256")}
    return {
        "https://w3id.org/ro/crate/1.1/context": {"@context": {**later, **types, **slots}},
        f"{TERMS}/context": {"@context": own},
    }


@pytest.mark.skipif(VALIDATOR is None, reason="needs roc-validator: pip install roc-validator")
def test_the_validator_finds_nothing_that_is_required_and_missing(tmp_path: Path) -> None:
    assert VALIDATOR is not None
    (tmp_path / "contexts.json").write_text(json.dumps(contexts()))
    arguments = []
    for number, view in enumerate(RUNS.values()):
        crate = tmp_path / f"{number}.zip"
        crate.write_bytes(crate_zip(view))
        arguments += [highest_profile(view), str(crate)]
    python = Path(VALIDATOR).parent / "python"
    program = Path(__file__).with_name("validate_crates.py")

    done = subprocess.run(
        [str(python), str(program), str(tmp_path / "contexts.json"), *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=VALIDATION_S,
    )

    assert done.returncode == 0, done.stderr
    issues = json.loads(done.stdout.splitlines()[-1])
    assert dict(zip(RUNS, issues, strict=True)) == {name: [] for name in RUNS}


@pytest.mark.parametrize("name", [name for name in RUNS if "without" not in name])
def test_the_engine_organised_steps_and_nothing_else(name: str) -> None:
    entities = metadata(RUNS[name])

    organised = of_type(entities, "OrganizeAction")

    assert len(organised) == (0 if name == "nothing ran" else 1)
    for action in organised:
        assert {entities[each]["@type"] for each in ids(action["object"])} == {"ControlAction"}


@pytest.mark.parametrize("name", [name for name in RUNS if "without" not in name])
def test_a_tool_of_the_workflow_is_one_that_an_action_used(name: str) -> None:
    entities = metadata(RUNS[name])
    used = {ids(action["instrument"])[0] for action in of_type(entities, "CreateAction")}

    [workflow] = of_type(entities, "ComputationalWorkflow")

    assert set(ids(workflow.get("hasPart", []))) <= used
    steps = of_type(entities, "HowToStep")
    assert [step["@id"] for step in steps] == ids(workflow["step"])
    assert all(ids(step["workExample"])[0] in entities for step in steps)


def test_a_crate_claims_no_profile_that_it_cannot_keep() -> None:
    claimed = {name: highest_profile(view).split("-")[0] for name, view in RUNS.items()}

    assert claimed == {
        "ordinary": "provenance",
        "hostile": "provenance",
        "failed": "provenance",
        "python": "provenance",
        "nothing ran": "workflow",
        "without files": "process",
        "failed without files": "process",
    }

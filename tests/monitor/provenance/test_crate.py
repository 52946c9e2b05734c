"""The crate, read by a library that others wrote for crates, and unpacked with suspicion."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from crates import as_list, dangling, ids, loaded, metadata, of_type, unpacked, without_files

from monitor.provenance.runs import (
    SNAKEFILE,
    hostile_run,
    ordinary_run,
)
from tocsin.monitor.provenance import RunView, crate_zip

SHARED = Path(__file__).parents[4] / "shared"
SAMPLE = SHARED / "data/workflows/engines/provenance_samples/runcrate_provenance_run_crate.json"


def test_the_crate_is_read_and_its_main_entity_is_the_workflow(tmp_path: Path) -> None:
    crate = loaded(unpacked(ordinary_run(), tmp_path))

    assert crate.mainEntity.id == "workflow/Snakefile"
    assert set(crate.mainEntity.type) >= {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    assert crate.mainEntity["programmingLanguage"]["name"] == "Snakemake"
    assert (tmp_path / "workflow/Snakefile").read_text() == SNAKEFILE
    profiles = {profile.id for profile in crate.root_dataset["conformsTo"]}
    assert "https://w3id.org/ro/wfrun/provenance/0.5" in profiles


def test_organised_then_controlled_then_created(tmp_path: Path) -> None:
    crate = loaded(unpacked(ordinary_run(), tmp_path))

    [run] = crate.root_dataset["mentions"]
    [organised] = crate.get_by_type("OrganizeAction")
    assert organised["result"] is run
    assert run["instrument"] is crate.mainEntity
    controls = [each for each in organised["object"] if "ControlAction" in as_list(each.type)]
    assert len(controls) == 3
    for control in controls:
        assert control["instrument"] in crate.mainEntity["step"]
        tool = control["instrument"]["workExample"]
        assert tool in crate.mainEntity["hasPart"]
        assert all(action["instrument"] is tool for action in as_list(control["object"]))


def test_the_run_has_its_parameters_inputs_and_results() -> None:
    entities = metadata(ordinary_run())
    run = entities["urn:tocsin:run:r1"]

    values = {entities[each]["name"]: entities[each].get("value") for each in ids(run["object"])}
    assert values == {
        "threads": "4",
        "rate": "0.5",
        "name": "Ann's",
        "deep": '{"a": [1]}',
        "dry": "true",
        "genome.fa": None,
    }
    formal = [entities[each]["exampleOfWork"]["@id"] for each in ids(run["object"])[:-1]]
    assert formal == ids(entities["workflow/Snakefile"]["input"])
    assert [entities[each]["name"] for each in ids(run["result"])] == ["plot.png"]


def test_a_failed_attempt_says_so_and_the_step_that_was_made_again_succeeded() -> None:
    entities = metadata(ordinary_run())

    failed = entities["urn:tocsin:run:r1:activity:count_b.1"]
    assert failed["actionStatus"].endswith("FailedActionStatus")
    assert failed["error"] == "Killed (exit code 137)"
    assert "result" not in failed
    control = entities["#control-count_b"]
    assert control["actionStatus"].endswith("CompletedActionStatus")
    assert len(ids(control["object"])) == 2


def test_what_was_skipped_or_cached_has_no_action() -> None:
    entities = metadata(ordinary_run())

    actions = of_type(entities, "CreateAction") + of_type(entities, "ControlAction")
    assert not [each for each in actions if "plot" in each["@id"] or "mail" in each["@id"]]
    plot = entities["urn:tocsin:run:r1:file:plot.png"]
    assert [entities[each]["name"] for each in ids(plot["isBasedOn"])] == [
        "counts/a.txt",
        "counts/b.txt",
    ]


def test_resources_have_units() -> None:
    entities = metadata(ordinary_run())

    action = entities["urn:tocsin:run:r1:activity:split.1"]
    used = {entities[each]["name"]: entities[each] for each in ids(action["resourceUsage"])}
    assert used["CpuSeconds"]["unitCode"] == "http://qudt.org/vocab/unit/SEC"
    assert used["CpuSeconds"]["propertyID"] == "urn:blackboard:wf#CpuSeconds"
    assert used["MemoryPeak"]["value"] == "2097152.0"


def test_every_word_is_one_that_the_contexts_know() -> None:
    context = json.loads(files("rocrate").joinpath("data/ro-crate.jsonld").read_text())["@context"]
    entities = metadata(ordinary_run()).values()

    words = {word for entity in entities for word in entity if not word.startswith("@")}
    words |= {kind for entity in entities for kind in as_list(entity["@type"])}
    # The one that comes from the context of the profiles.
    assert words - set(context) == {"resourceUsage"}


def test_a_step_comes_after_those_that_it_needs() -> None:
    steps = of_type(metadata(ordinary_run()), "HowToStep")

    order = sorted(steps, key=lambda step: int(step["position"]))
    assert [step["name"] for step in order] == ["split", "count", "plot", "mail"]


@pytest.mark.parametrize(
    "view",
    [ordinary_run(), hostile_run(), without_files(ordinary_run()), without_files(hostile_run())],
    ids=["ordinary", "hostile", "ordinary without files", "hostile without files"],
)
def test_every_reference_leads_somewhere_and_every_carried_file_is_there(
    view: RunView, tmp_path: Path
) -> None:
    assert not dangling(view)

    crate = loaded(unpacked(view, tmp_path))

    for entity in crate.data_entities:
        if not entity.id.startswith("urn:"):
            assert (tmp_path / unquote(entity.id)).is_file()
    in_archive = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    reported = {unquote(entity.id) for entity in crate.get_entities()}
    assert in_archive <= reported


def test_without_the_workflow_it_is_a_crate_of_processes() -> None:
    root = metadata(without_files(ordinary_run()))["./"]

    assert ids(root["conformsTo"]) == ["https://w3id.org/ro/wfrun/process/0.5"]
    assert "mainEntity" not in root
    assert len(ids(root["mentions"])) == 4


def test_a_crate_is_the_same_bytes_every_time() -> None:
    assert crate_zip(ordinary_run()) == crate_zip(ordinary_run())


@pytest.mark.skipif(not SAMPLE.exists(), reason="needs the recordings")
def test_what_links_what_is_as_in_a_crate_of_another_tool() -> None:
    theirs = {each["@id"]: each for each in json.loads(SAMPLE.read_text())["@graph"]}
    ours = metadata(ordinary_run())

    # An engine's events do not tell which slots the workflow has for its results, nor how slots
    # are connected.
    untold = {("ComputationalWorkflow", "output", "FormalParameter")}
    untold |= {("ComputationalWorkflow", "connection", "ParameterConnection")}
    assert shape(theirs) - shape(ours) == untold


def shape(entities: dict[str, dict[str, Any]]) -> set[tuple[str, str, str]]:
    """Which type of entity refers to which by what, of those that make up the run."""
    types = {"OrganizeAction", "ControlAction", "CreateAction", "ComputationalWorkflow", "Dataset"}
    found: set[tuple[str, str, str]] = set()
    for entity in entities.values():
        kind = next((each for each in as_list(entity["@type"]) if each in types), None)
        if kind is None:
            continue
        for name, value in entity.items():
            for each in as_list(value):
                target = entities.get(each["@id"]) if isinstance(each, dict) else None
                if target is not None:
                    found.add((kind, name, as_list(target["@type"])[0]))
    return found

"""The crate, read by a library that others wrote for crates, and unpacked with suspicion."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from rocrate.rocrate import ROCrate

from monitor.provenance.runs import (
    HOSTILE,
    SNAKEFILE,
    at,
    hostile_run,
    ordinary_run,
)
from tocsin.monitor.provenance import RunView, crate_zip
from tocsin.monitor.provenance.crate.layout import ROOT, layout
from tocsin.monitor.provenance.crate.missing import LISTED_MAX, missing_in
from tocsin.wire.api.run_views import ActivityInfo, FileInfo

SHARED = Path(__file__).parents[4] / "shared"
SAMPLE = SHARED / "data/workflows/engines/provenance_samples/runcrate_provenance_run_crate.json"


def unpacked(view: RunView, directory: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(crate_zip(view))) as archive:
        archive.extractall(directory)
    return directory


def metadata(view: RunView) -> dict[str, dict[str, Any]]:
    with zipfile.ZipFile(io.BytesIO(crate_zip(view))) as archive:
        graph = json.loads(archive.read("ro-crate-metadata.json"))["@graph"]
    found = {entity["@id"]: entity for entity in graph}
    assert len(found) == len(graph)
    return found


def loaded(directory: Path) -> ROCrate:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ROCrate(directory)


def of_type(entities: dict[str, dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [entity for entity in entities.values() if kind in as_list(entity["@type"])]


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def ids(value: Any) -> list[str]:
    return [each["@id"] for each in as_list(value)]


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


def dangling(view: RunView) -> set[str]:
    """References within the crate that lead nowhere."""
    entities = metadata(view)
    found: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if set(value) == {"@id"} and not value["@id"].startswith("http"):
                found.add(value["@id"])
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)

    walk(list(entities.values()))
    return found - set(entities)


def without_files(view: RunView) -> RunView:
    return replace(view, run=structs.replace(view.run, files=()))


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


def test_hostile_paths_stay_in_the_crate() -> None:
    with zipfile.ZipFile(io.BytesIO(crate_zip(hostile_run()))) as archive:
        names = archive.namelist()
        texts = {archive.read(name).decode() for name in names if name.startswith(f"{ROOT}/")}

    assert len(names) == len(set(names)) == len(HOSTILE) + 3
    for name in names:
        path = PurePosixPath(name)
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert name.isprintable()
    assert texts == set(HOSTILE)


segments = st.sampled_from(["a", "A", "b.smk", "..", ".", "", "c:", "a~2", "é", "x" * 300, "a."])
some_paths = st.lists(
    st.builds(
        lambda parts, lead: lead + "/".join(parts),
        st.lists(segments, max_size=5),
        st.sampled_from(["", "/", "../", "\\", "C:\\"]),
    ),
    min_size=1,
    max_size=8,
)


@given(some_paths, st.none() | st.sampled_from(["/", "/a", "/a/b", "../x", "a"]))
def test_any_paths_can_be_unpacked_side_by_side(paths: list[str], here: str | None) -> None:
    found = layout(paths, 0, here)

    parts = [PurePosixPath(place.casefold()).parts for place in found.places]
    assert len(set(parts)) == len(paths)
    for place in parts:
        assert place[0] == ROOT
        assert len(place) > 1
        assert ".." not in place
        assert not {place[:count] for count in range(1, len(place))} & set(parts)


def test_files_lie_to_each_other_as_they_did() -> None:
    paths = ["/home/ann/wf/workflow/Snakefile", "../shared/rules/map.smk", "config/config.yaml"]

    found = layout(paths, 0, "/home/ann/wf")

    assert found.places == (
        "workflow/wf/workflow/Snakefile",
        "workflow/shared/rules/map.smk",
        "workflow/wf/config/config.yaml",
    )
    assert found.working_directory == "workflow/wf"


def test_a_file_too_long_to_be_sent_is_named_and_not_carried(tmp_path: Path) -> None:
    view = ordinary_run()
    sources = (*view.run.files, FileInfo("big.smk", "cd" * 32, None))

    crate = loaded(unpacked(replace(view, run=structs.replace(view.run, files=sources)), tmp_path))

    assert not (tmp_path / "workflow/big.smk").exists()
    assert crate.get("urn:tocsin:run:r1:source:big.smk")["sha256"] == "cd" * 32


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


def test_files_of_a_directory_that_was_made_come_from_nowhere_else(tmp_path: Path) -> None:
    split = ActivityInfo(
        id="split",
        type="split",
        state="succeeded",
        started=at(1),
        ended=at(2),
        inputs=("genome.fa",),
        outputs=("parts",),
        output_bytes=7,
    )
    count = ActivityInfo(
        id="count",
        type="count",
        state="succeeded",
        started=at(3),
        ended=at(4),
        inputs=("parts/a.txt", "parts/b.txt"),
        outputs=("counts.txt",),
    )
    view = replace(ordinary_run(), activities=(split, count))

    entities = metadata(view)

    by_name = {entity.get("name"): entity for entity in entities.values()}
    directory = by_name["parts"]
    assert directory["@type"] == "Dataset"
    assert directory["contentSize"] == "7"
    members = [by_name["parts/a.txt"]["@id"], by_name["parts/b.txt"]["@id"]]
    assert ids(directory["hasPart"]) == members
    assert ids(by_name["split: split"]["result"]) == [directory["@id"], *members]
    whole = by_name["Run r1 of counting"]
    assert ids(whole["result"]) == [by_name["counts.txt"]["@id"]]
    assert not set(members) & set(ids(whole["object"]))
    steps = {each["name"]: each["position"] for each in of_type(entities, "HowToStep")}
    assert steps == {"split": "0", "count": "1"}
    readme = (unpacked(view, tmp_path) / "README.md").read_text()
    assert "- genome.fa" in readme
    assert "parts/" not in readme
    assert not dangling(view)
    assert loaded(tmp_path).get(directory["@id"]) is not None


def calling(view: RunView, command: str, **changed: Any) -> RunView:
    split, *others = view.activities
    return replace(view, activities=(structs.replace(split, command=command, **changed), *others))


def test_a_crate_that_lacks_a_program_of_a_command_says_so_where_people_look(
    tmp_path: Path,
) -> None:
    view = calling(ordinary_run(), "python scripts/cut.py genome.fa > parts/a.txt && ./tidy.sh")

    found = missing_in((unpacked(view, tmp_path) / "README.md").read_text())

    assert found == [
        "scripts/cut.py: called by the step split, not sent",
        "tidy.sh: called by the step split, not sent",
        "genome.fa: read by the run; a crate carries no data",
    ]
    description = metadata(view)["./"]["description"]
    assert "cannot be run again" in description
    assert "scripts/cut.py" in description


def test_a_crate_that_has_the_programs_of_its_commands_does_not_miss_them(tmp_path: Path) -> None:
    view = calling(ordinary_run(), "python /home/ann/wf/scripts/cut.py made.py", inputs=())
    made = structs.replace(view.activities[1], outputs=("made.py",), inputs=())
    sources = (*view.run.files, FileInfo("scripts/cut.py", "ef" * 32, "print()"))
    run = structs.replace(view.run, files=sources)
    view = replace(view, run=run, activities=(view.activities[0], made))

    readme = (unpacked(view, tmp_path) / "README.md").read_text()

    assert missing_in(readme) == []
    assert (tmp_path / "workflow/scripts/cut.py").read_text() == "print()"
    assert "cannot be run again" not in metadata(view)["./"]["description"]


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (without_files(ordinary_run()), "the workflow's files: nobody sent them"),
        (
            replace(
                ordinary_run(),
                run=structs.replace(ordinary_run().run, files=(FileInfo("flow.xyz", "ab", "a"),)),
            ),
            "the command: the language of workflow/flow.xyz is not known",
        ),
    ],
    ids=["no files", "unknown language"],
)
def test_why_there_is_no_command_to_run_it_again_is_said(
    view: RunView, reason: str, tmp_path: Path
) -> None:
    assert missing_in((unpacked(view, tmp_path) / "README.md").read_text())[0] == reason


def test_what_is_missing_is_listed_up_to_a_limit_that_is_said(tmp_path: Path) -> None:
    view = ordinary_run()
    many = tuple(f"in/{number}.txt" for number in range(LISTED_MAX + 1))
    view = replace(view, activities=(structs.replace(view.activities[0], inputs=many),))

    found = missing_in((unpacked(view, tmp_path) / "README.md").read_text())

    assert len(found) == LISTED_MAX + 1
    assert found[-1] == "and more of these"

"""The files of a crate and the programs of its commands: where they lie, and what is missing."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from crates import dangling, ids, loaded, metadata, of_type, unpacked, without_files
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from monitor.provenance.runs import (
    HOSTILE,
    at,
    hostile_run,
    ordinary_run,
)
from tocsin.monitor.provenance import RunView, crate_zip
from tocsin.monitor.provenance.crate.layout import ROOT, layout
from tocsin.monitor.provenance.crate.missing import LISTED_MAX, missing_in
from tocsin.wire.api.run_views import ActivityInfo, FileInfo


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

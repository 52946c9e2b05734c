"""A file that is written twice is two entities, and each reader read the one that was there."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from monitor.provenance.crates import dangling
from monitor.provenance.runs import at
from monitor.provenance.test_prov_notations import from_json, lines, read
from tocsin.monitor.provenance import RunView, prov_n, turtle
from tocsin.monitor.provenance.run_statements import statements
from tocsin.monitor.provenance.statements import ACTIVITY, ENTITY, GENERATED, USED
from tocsin.monitor.provenance.view import WorkflowVersion
from tocsin.wire.api.run_views import ACTIVITY_STATES, ActivityInfo, FileInfo, RunDetails


def reported(*activities: ActivityInfo) -> list[str]:
    view = RunView(RunDetails(id="r"), activities)
    return [line.strip() for line in prov_n(view).decode().splitlines()]


def did(name: str, start: int, reads: str = "", writes: str = "") -> ActivityInfo:
    return ActivityInfo(
        id=name,
        type=name,
        state="succeeded",
        started=at(start),
        ended=at(start + 1),
        inputs=tuple(reads.split()),
        outputs=tuple(writes.split()),
    )


def test_who_reads_between_two_writers_reads_the_first_version() -> None:
    found = reported(
        did("late", 8, reads="f"),
        did("second", 6, writes="f"),
        did("between", 3, reads="f"),
        did("first", 1, writes="f"),
    )

    assert "wasGeneratedBy(file:f, activity:first.1, -)" in found
    assert "wasGeneratedBy(rewritten:f.2, activity:second.1, -)" in found
    assert "used(activity:between.1, file:f, -)" in found
    assert "used(activity:late.1, rewritten:f.2, -)" in found
    revised = "wasDerivedFrom(rewritten:f.2, file:f, -, -, -"
    assert f"{revised}, [prov:type='prov:Revision'])" in found


def test_who_changes_a_file_in_place_reads_what_was_there_before() -> None:
    found = reported(did("sort", 1, reads="f", writes="f"), did("show", 3, reads="f"))

    assert "used(activity:sort.1, file:f, -)" in found
    assert "wasGeneratedBy(rewritten:f.2, activity:sort.1, -)" in found
    assert "used(activity:show.1, rewritten:f.2, -)" in found
    assert not [line for line in found if line.startswith("wasGeneratedBy(file:f,")]


def test_a_file_in_a_directory_was_made_by_who_made_the_directory() -> None:
    found = reported(
        did("cut", 1, reads="all.txt", writes="parts/"),
        did("count", 3, reads="parts/1.txt", writes="counts/1.txt"),
    )

    assert "wasGeneratedBy(file:parts%2F1.txt, activity:cut.1, -)" in found
    assert "used(activity:count.1, file:parts%2F1.txt, -)" in found
    assert "hadMember(file:parts%2F, file:parts%2F1.txt)" in found
    [directory] = [line for line in found if line.startswith("entity(file:parts%2F,")]
    assert "prov:type='prov:Collection'" in directory


def test_a_file_in_a_cached_directory_is_derived_from_what_that_was_made_of() -> None:
    cached = ActivityInfo(id="cut", state="cached", inputs=("all.txt",), outputs=("parts",))

    found = reported(cached, did("count", 3, reads="parts/1.txt", writes="n"))

    assert "wasDerivedFrom(file:parts%2F1.txt, file:all.txt, -, -, -)" in found
    assert "hadMember(file:parts, file:parts%2F1.txt)" in found


def test_a_file_in_a_directory_that_is_made_again_is_another_one() -> None:
    found = reported(
        did("cut", 1, writes="parts"),
        did("count", 3, reads="parts/1", writes="n"),
        did("cut again", 5, writes="parts"),
        did("count again", 7, reads="parts/1", writes="m"),
    )

    assert "used(activity:count.1, file:parts%2F1, -)" in found
    assert "used(activity:count%20again.1, rewritten:parts%2F1.2, -)" in found
    assert "hadMember(rewritten:parts.2, rewritten:parts%2F1.2)" in found


@pytest.mark.parametrize(
    "activities",
    [
        (did("look", 1, reads="d/f"), did("make", 3, writes="d")),
        (did("make", 1, reads="d/f", writes="d"), did("look", 3, reads="d/f")),
        (did("make", 1, writes="d"), did("look", 3, reads="d/../d/f")),
        (did("make", 1, writes="d"), did("look", 3, reads="dd/f")),
        (did("make", 1, writes="d"), did("name", 2, writes="d/f"), did("look", 3, reads="d/f")),
        (structs.replace(did("make", 1, writes="d"), state="failed"), did("look", 3, reads="d/f")),
        (did("make", 1, writes="/"), did("look", 3, reads="/d/f")),
        (did("make", 1, writes="/"), did("look", 3, reads="/" * 100_000 + "d")),
    ],
    ids=["before", "by its maker", "outside", "like it", "by name", "failed", "root", "hostile"],
)
def test_what_was_there_before_or_is_elsewhere_was_not_made_with_a_directory(
    activities: tuple[ActivityInfo, ...],
) -> None:
    assert not [line for line in reported(*activities) if line.startswith("hadMember")]


def test_an_end_before_the_beginning_is_told_as_hearsay() -> None:
    odd = structs.replace(did("odd", 9), ended=at(2))

    [line] = [line for line in reported(odd) if line.startswith("activity(activity:odd")]

    assert line.startswith(f"activity(activity:odd.1, {at(9)}, -, [")
    assert f'bb:EndTime="{at(2)}"' in line


def test_a_time_that_is_none_is_left_out() -> None:
    odd = structs.replace(did("odd", 1), started="yesterday", ended="2026-11-16")

    [line] = [line for line in reported(odd) if line.startswith("activity(activity:odd")]

    assert line.startswith("activity(activity:odd.1, -, 2026-11-16T00:00:00, [")


def test_many_cached_files_are_told_as_one_collection() -> None:
    cached = ActivityInfo(
        id="c",
        state="cached",
        inputs=tuple(f"in{number}" for number in range(1_000)),
        outputs=tuple(f"out{number}" for number in range(1_000)),
    )

    found = reported(cached)

    assert len(found) < 5_000
    assert "wasDerivedFrom(file:out7, inputs:c, -, -, -)" in found
    assert "hadMember(inputs:c, file:in7)" in found
    assert not dangling(RunView(RunDetails(id="r"), (cached,)))


def test_versions_that_go_round_in_a_circle_end() -> None:
    versions = (WorkflowVersion("w", "1", "2"), WorkflowVersion("w", "2", "1"))
    view = RunView(RunDetails(id="r", workflow="w", version="1"), (), versions)

    assert prov_n(view).count(b"prov:Revision") == 1


def test_a_text_that_utf_8_cannot_carry_harms_nobody() -> None:
    lone = "\ud800"
    file = FileInfo(lone, lone, lone)
    run = RunDetails(id=lone, workflow=lone, error=lone, parameters={lone: [lone]}, files=(file,))
    odd = ActivityInfo(id=lone, type=lone, state="failed", error=lone, inputs=(lone,), host=lone)
    view = RunView(run, (odd,))

    assert lines(from_json(view)) == lines(read(prov_n(view), "provn", profile="strict"))
    assert lines(from_json(view)) == lines(read(turtle(view), "rdf", rdf_format="turtle"))
    assert not dangling(view)


names = st.sampled_from(["a", "b", "c d", "é", "", "x'\n", "a/", "a/b", "a/b/c", "a/../b"])
times = st.none() | st.integers(0, 50).map(at)
some_activities = st.lists(
    st.builds(
        ActivityInfo,
        id=names,
        type=names,
        version=st.sampled_from(["", "1"]),
        state=st.sampled_from(ACTIVITY_STATES),
        started=times,
        ended=times,
        host=st.none() | names,
        exit_code=st.none() | st.integers(-1, 255),
        error=st.none() | st.text(max_size=5),
        inputs=st.lists(names, max_size=3).map(tuple),
        outputs=st.lists(names, max_size=3).map(tuple),
        parents=st.lists(names, max_size=2).map(tuple),
        input_bytes=st.none() | st.integers(0, 10**13),
        resources=st.dictionaries(names, st.floats(), max_size=2),
    ),
    unique_by=lambda activity: activity.id,
    max_size=5,
)


@settings(max_examples=60)
@given(some_activities, st.dictionaries(names, st.none() | st.booleans() | st.floats() | st.text()))
def test_whatever_was_told_the_notations_agree_and_nothing_is_made_twice(
    activities: list[ActivityInfo], parameters: dict[str, object]
) -> None:
    view = RunView(RunDetails(id="r", engine="e", parameters=parameters), activities)

    one = lines(from_json(view))
    assert lines(read(prov_n(view), "provn", profile="strict")) == one
    assert lines(read(turtle(view), "rdf", rdf_format="turtle")) == one

    said = list(statements(view))
    elements = Counter(each.name for each in said if each.name is not None)
    assert set(elements.values()) <= {1}
    made = Counter(each.places[0] for each in said if each.kind is GENERATED)
    assert set(made.values()) <= {1}
    known = {each.name for each in said if each.kind in (ENTITY, ACTIVITY)}
    assert {place for each in said if each.kind in (USED, GENERATED) for place in each.places} <= {
        *known,
        None,
    }
    assert not dangling(view)

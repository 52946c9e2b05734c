"""What changed between two definitions: the laws of the comparison, and each kind of change."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tocsin.monitor.evolution.changes import compare
from tocsin.monitor.evolution.definition import (
    TEXT_CHARS_MAX,
    Activity,
    Binding,
    Definition,
    short,
    with_unique_names,
)

texts = st.sampled_from(["", "a", "b", "sort {input}", "x/{i}.txt"])
words = st.dictionaries(st.sampled_from(["shell", "threads", "when"]), texts, max_size=3)
sources = st.tuples(st.sampled_from(["sort", "merge", ""]), st.sampled_from(["", "out"]))
bindings = st.lists(
    st.builds(
        Binding, st.sampled_from(["", "", "reads"]), texts, st.lists(sources, max_size=2).map(tuple)
    ),
    max_size=4,
    unique_by=lambda each: each.port or id(each),
).map(tuple)
activities = st.builds(
    Activity,
    name=st.sampled_from(["sort", "merge", "all", "align"]),
    does=words,
    inputs=bindings,
    outputs=bindings,
    parameters=words,
    logic=words,
)
definitions = st.builds(
    Definition,
    language=st.just("snakemake"),
    activities=st.lists(activities, max_size=4).map(with_unique_names),
    outputs=bindings,
    parameters=words,
    logic=words,
)

SORT = Activity(
    "sort",
    does={"shell": "sort {input} > {output}"},
    inputs=(Binding("", "d/{i}.txt", (("gen", ""),)),),
    outputs=(Binding("", "s/{i}.txt"),),
)
GEN = Activity("gen", does={"shell": "make {output}"}, outputs=(Binding("", "d/{i}.txt"),))
FLOW = Definition("snakemake", (GEN, SORT), logic={"target": "gen"})


def changed(was: Definition, now: Definition) -> list[tuple[str, str | None, str]]:
    return [(each.concept, each.activity, each.what) for each in compare(was, now)]


@given(definitions)
def test_nothing_changed_between_a_definition_and_itself(definition: Definition) -> None:
    assert compare(definition, definition) == []


@given(definitions, definitions)
def test_two_definitions_that_differ_have_a_change_that_says_so(
    was: Definition, now: Definition
) -> None:
    changes = compare(was, now)

    # The order of activities is none of their business: data decides what runs first.
    same = replace(was, activities=()) == replace(now, activities=()) and {
        each.name: each for each in was.activities
    } == {each.name: each for each in now.activities}
    assert bool(changes) != same or _only_mixed(was, now)


def _only_mixed(was: Definition, now: Definition) -> bool:
    """Named and nameless ports that changed places among each other are bound as before."""

    def sides(definition: Definition) -> list[object]:
        return [
            ([e for e in side if not e.port], {e.port: e for e in side if e.port})
            for a in sorted(definition.activities, key=lambda a: a.name)
            for side in (a.inputs, a.outputs)
        ] + [
            (
                [e for e in definition.outputs if not e.port],
                {e for e in definition.outputs if e.port},
            )
        ]

    return sides(was) == sides(now)


@given(definitions, definitions)
def test_what_is_added_one_way_is_removed_the_other(was: Definition, now: Definition) -> None:
    there, back = compare(was, now), compare(now, was)

    def count(changes: list[object], concept: str) -> int:
        return sum(each.concept == concept for each in changes)  # type: ignore[attr-defined]

    for added, removed in (
        ("ActivityAdded", "ActivityRemoved"),
        ("BindingAdded", "BindingRemoved"),
    ):
        assert count(there, added) == count(back, removed)  # type: ignore[arg-type]


@given(definitions)
def test_the_first_version_adds_every_activity(definition: Definition) -> None:
    changes = compare(None, definition)

    assert [each.activity for each in changes] == [each.name for each in definition.activities]
    assert {each.concept for each in changes} <= {"ActivityAdded"}


@given(definitions)
def test_a_definition_comes_back_from_json_as_it_was(definition: Definition) -> None:
    assert msgspec.json.decode(msgspec.json.encode(definition), type=Definition) == definition


def test_another_command_replaces_the_activity_and_says_both() -> None:
    now = replace(FLOW, activities=(GEN, replace(SORT, does={"shell": "sort -u {input}"})))

    [change] = compare(FLOW, now)

    assert (change.concept, change.activity, change.what) == ("ActivityReplaced", "sort", "shell")
    assert change.was == {"shell": "sort {input} > {output}"}
    assert change.now == {"shell": "sort -u {input}"}


def test_a_new_name_for_the_same_body_is_one_replacement_and_no_rebinding() -> None:
    make = replace(GEN, name="make")
    sort = replace(SORT, inputs=(Binding("", "d/{i}.txt", (("make", ""),)),))
    now = replace(FLOW, activities=(make, sort), logic={"target": "make"})

    [change] = compare(FLOW, now)

    assert (change.concept, change.what, change.was, change.now) == (
        "ActivityReplaced",
        "name",
        "gen",
        "make",
    )


def test_a_whole_chain_that_is_renamed_is_renamed_and_nothing_else() -> None:
    make = replace(GEN, name="make")
    order = replace(SORT, name="order", inputs=(Binding("", "d/{i}.txt", (("make", ""),)),))

    concepts = {each.concept for each in compare(FLOW, replace(FLOW, activities=(make, order)))}

    assert concepts == {"ActivityReplaced", "LogicChanged"}  # the target is what it was: gone


def test_a_new_name_and_a_new_body_are_another_activity() -> None:
    other = Activity("make", does={"shell": "quite another"})

    assert changed(FLOW, replace(FLOW, activities=(other, SORT)))[:2] == [
        ("ActivityRemoved", "gen", "activity"),
        ("ActivityAdded", "make", "activity"),
    ]


def test_the_same_file_from_another_activity_is_bound_anew() -> None:
    sort = replace(SORT, inputs=(Binding("", "d/{i}.txt", (("fetch", ""),)),))

    [change] = compare(FLOW, replace(FLOW, activities=(GEN, sort)))

    assert (change.concept, change.activity, change.what) == ("BindingChanged", "sort", "input")
    assert change.was == {"value": "d/{i}.txt", "from": ["gen"]}
    assert change.now == {"value": "d/{i}.txt", "from": ["fetch"]}


def test_an_input_before_the_others_is_one_that_was_added() -> None:
    sort = replace(SORT, inputs=(Binding("", "head.txt"), *SORT.inputs))

    assert changed(FLOW, replace(FLOW, activities=(GEN, sort))) == [
        ("BindingAdded", "sort", "input")
    ]


def test_inputs_that_changed_places_are_a_change_of_logic() -> None:
    one, two = Binding("", "1"), Binding("", "2")
    was = Definition("snakemake", (Activity("a", inputs=(one, two)),))
    now = Definition("snakemake", (Activity("a", inputs=(two, one)),))

    assert changed(was, now) == [("LogicChanged", "a", "order of inputs")]


def test_parameters_and_logic_are_told_one_by_one() -> None:
    was = Definition("cwl", (Activity("a", parameters={"k": "1"}, logic={"scatter": "x"}),))
    now = Definition(
        "cwl", (Activity("a", parameters={"k": "2", "n": "3"}),), parameters={"p": "4"}
    )

    assert changed(was, now) == [
        ("ParameterChanged", "a", "k"),
        ("ParameterChanged", "a", "n"),
        ("LogicChanged", "a", "scatter"),
        ("ParameterChanged", None, "p"),
    ]


def test_a_text_that_is_too_long_still_tells_itself_from_others() -> None:
    long = "x" * (TEXT_CHARS_MAX + 1)

    assert short(long) == short(long)
    assert short(long + "a") != short(long + "b")
    assert len(short(long * 10)) < TEXT_CHARS_MAX + 200

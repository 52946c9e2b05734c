"""CWL is read: steps, tools in other files, workflows in workflows, packed graphs; and bombs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors.services import BadWorkflowFile
from tocsin.integrations.workflow_files.workflow import read_workflow
from tocsin.monitor.evolution.changes import compare
from tocsin.monitor.evolution.definition import Activity, Definition

FLOW = """
cwlVersion: v1.2
class: Workflow
inputs:
  reads: File[]
  threads: {type: int, default: 4}
outputs:
  bam: {type: File, outputSource: merge/bam}
steps:
  align:
    run: align.cwl
    scatter: reads
    in: {reads: reads, threads: threads, mode: {default: fast}}
    out: [sam]
  merge:
    run:
      class: CommandLineTool
      baseCommand: [samtools, merge]
      inputs: {sams: {type: "File[]", inputBinding: {position: 1}}}
      outputs: {bam: {type: File, outputBinding: {glob: "*.bam"}}}
    in: {sams: {source: align/sam, linkMerge: merge_flattened}}
    out: [bam]
"""
TOOL = """
cwlVersion: v1.2
class: CommandLineTool
doc: Aligns.
baseCommand: bwa
arguments: [mem]
requirements: {DockerRequirement: {dockerPull: "bwa:1"}}
inputs: {reads: File, threads: int, mode: string}
outputs: {sam: stdout}
"""

Read = Callable[..., Definition]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes a workflow and its tool, and reads them."""

    def read(flow: str = FLOW, tool: str = TOOL, name: str = "flow.cwl") -> Definition:
        (tmp_path / name).write_text(flow)
        (tmp_path / "align.cwl").write_text(tool)
        return read_workflow(tmp_path / name).definition

    return read


def by_name(definition: Definition) -> dict[str, Activity]:
    return {activity.name: activity for activity in definition.activities}


def changes(was: Definition, now: Definition) -> list[tuple[str, str | None, str]]:
    return [(each.concept, each.activity, each.what) for each in compare(was, now)]


def test_steps_are_activities_with_their_tools_and_links(read: Read) -> None:
    definition = read()

    align, merge = definition.activities
    assert align.does["baseCommand"] == "bwa"
    assert align.inputs[0].sources == (("", "reads"),)
    assert align.parameters == {"mode": "fast"}
    assert align.logic == {"scatter": "reads"}
    assert merge.inputs[0].sources == (("align", "sam"),)
    assert merge.does["baseCommand"] == "samtools merge"
    assert definition.outputs[0].sources == (("merge", "bam"),)
    assert definition.parameters == {"reads": "File[]", "threads": "int = 4"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("[samtools, merge]", "[samtools, cat]", ("ActivityReplaced", "merge", "baseCommand")),
        ("    scatter: reads\n", "", ("LogicChanged", "align", "scatter")),
        ("    out: [sam]", "    when: $(true)\n    out: [sam]", ("LogicChanged", "align", "when")),
        ("default: fast", "default: slow", ("ParameterChanged", "align", "mode")),
        ("default: 4", "default: 8", ("ParameterChanged", None, "threads")),
        ("threads: threads,", "", ("BindingRemoved", "align", "input threads")),
        ("source: align/sam", "source: reads", ("BindingChanged", "merge", "input sams")),
        (
            "outputSource: merge/bam",
            "outputSource: align/sam",
            ("BindingChanged", None, "output bam"),
        ),
    ],
)
def test_each_edit_is_told_as_what_it_is(
    read: Read, before: str, after: str, expected: tuple[str, str | None, str]
) -> None:
    was = read()

    assert changes(was, read(FLOW.replace(before, after, 1))) == [expected]


def test_another_tool_in_another_file_replaces_the_activity(read: Read) -> None:
    was = read()

    now = read(tool=TOOL.replace("bwa:1", "bwa:2"))

    [change] = compare(was, now)
    assert (change.concept, change.activity, change.what) == (
        "ActivityReplaced",
        "align",
        "requirements",
    )


def test_words_for_people_and_the_way_of_writing_are_no_change(read: Read) -> None:
    was = read()

    now = read(
        FLOW.replace("  reads: File[]", "  reads: {type: 'File[]', doc: The reads.}"),
        TOOL.replace("Aligns.", "Aligns reads.").replace(
            '{DockerRequirement: {dockerPull: "bwa:1"}}',
            "\n  - class: DockerRequirement\n    dockerPull: bwa:1",
        ),
    )

    assert changes(was, now) == []


def test_a_tool_that_is_imported_is_the_tool(read: Read) -> None:
    was = read()

    assert changes(was, read(FLOW.replace("run: align.cwl", "run: {$import: align.cwl}"))) == []


def test_a_renamed_step_is_renamed_for_those_that_read_from_it(read: Read) -> None:
    was = read()

    now = read(FLOW.replace("  align:", "  map:").replace("align/sam", "map/sam"))

    assert changes(was, now) == [("ActivityReplaced", "map", "name")]


def test_a_packed_graph_is_the_same_workflow(read: Read, tmp_path: Path) -> None:
    packed = {
        "cwlVersion": "v1.2",
        "$graph": [
            {
                "class": "CommandLineTool",
                "id": "#align.cwl",
                "baseCommand": "bwa",
                "inputs": [{"id": "#align.cwl/reads", "type": "File"}],
                "outputs": [{"id": "#align.cwl/sam", "type": "stdout"}],
            },
            {
                "class": "Workflow",
                "id": "#main",
                "inputs": [{"id": "#main/reads", "type": "File"}],
                "outputs": [{"id": "#main/sam", "type": "File", "outputSource": "#main/align/sam"}],
                "steps": [
                    {
                        "id": "#main/align",
                        "run": "#align.cwl",
                        "scatter": "#main/align/reads",
                        "in": [{"id": "#main/align/reads", "source": "#main/reads"}],
                        "out": ["#main/align/sam"],
                    }
                ],
            },
        ],
    }
    plain = """
class: Workflow
inputs: {reads: File}
outputs: {sam: {type: File, outputSource: align/sam}}
steps:
  align: {run: align.cwl, scatter: reads, in: {reads: reads}, out: [sam]}
"""
    tool = (
        "class: CommandLineTool\nbaseCommand: bwa\ninputs: {reads: File}\noutputs: {sam: stdout}\n"
    )

    assert changes(read(plain, tool), read(json.dumps(packed), tool, "packed.json")) == []


def test_steps_of_a_workflow_in_a_workflow_have_its_name_before_theirs(tmp_path: Path) -> None:
    (tmp_path / "inner.cwl").write_text(FLOW)
    (tmp_path / "align.cwl").write_text(TOOL)
    (tmp_path / "outer.cwl").write_text(
        "class: Workflow\ninputs: {x: File}\n"
        "steps: {both: {run: inner.cwl, in: {reads: x}, out: [bam]}}\n"
    )

    workflow = read_workflow(tmp_path / "outer.cwl")

    found = by_name(workflow.definition)
    assert list(found) == ["both", "both/align", "both/merge"]
    assert found["both"].inputs[0].sources == (("", "x"),)
    assert found["both/align"].inputs[0].sources == (("both", "reads"),)
    assert found["both/merge"].inputs[0].sources == (("both/align", "sam"),)
    assert [file.path for file in workflow.files] == ["outer.cwl", "inner.cwl", "align.cwl"]


def test_a_tool_alone_is_one_activity(read: Read, tmp_path: Path) -> None:
    read()

    [tool] = read_workflow(tmp_path / "align.cwl").definition.activities

    assert tool.name == "align"
    assert [binding.port for binding in tool.inputs] == ["reads", "threads", "mode"]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[" * 10_000, "nested"),
        ("a: " * 3, "line 1"),
        ("".join(" " * n + "a:\n" for n in range(100)), "nested"),
        (BOMB, "nodes"),
        ("class: Workflow\nsteps: &s [*s]\n", "recursive|YAML"),
        ("{" * 100_000, "nested|characters"),
        ('{"a": ' * 5_000 + "1" + "}" * 5_000, "nested"),
        ("? [1, 2]\n: x\n", "YAML"),
        ("!!python/object/apply:os.system [exit]\n", "not CWL"),
        ("just text", "not CWL"),
        ("class: Nothing\n", "not CWL"),
        ("class: Workflow\nsteps: {a: {run: '../out.cwl', in: {}, out: []}}\n", "--root"),
        ("class: Workflow\nsteps: {a: {run: 'file:///etc/passwd', in: {}, out: []}}\n", "--root"),
        ("class: Workflow\nsteps: {a: {run: missing.cwl, in: {}, out: []}}\n", "cannot read"),
        ("class: Workflow\nsteps: {a: {run: flow.cwl, in: {}, out: []}}\n", "itself"),
        ("class: Workflow\nsteps: {a: {run: '#x', in: {}, out: []}}\n", "no process"),
    ],
)
def test_hostile_files_are_refused_in_a_sentence(read: Read, content: str, words: str) -> None:
    with pytest.raises(BadWorkflowFile, match=words):
        read(content)


@pytest.mark.parametrize(
    "content",
    [
        "class: Workflow\nsteps: [1, {}, {id: a}, [b]]\ninputs: 7\noutputs: [[]]\n",
        "class: Workflow\nsteps: {a: x, b: {run: [], in: [a, [b]], out: {c: d}, when: {e: 1}}}\n",
        "class: Workflow\nsteps: {a: {run: 'https://example.org/t.cwl', in: {}, out: []}}\n",
        "class: CommandLineTool\n",
    ],
)
def test_what_is_odd_but_readable_is_read(read: Read, content: str) -> None:
    definition = read(content)

    assert compare(definition, definition) == []


words = st.sampled_from(
    [
        "class",
        "steps",
        "in",
        "out",
        "run",
        "id",
        "source",
        "$graph",
        "$import",
        "inputs",
        "outputs",
        "requirements",
        "scatter",
        "default",
        "valueFrom",
        "outputSource",
        "baseCommand",
        "a",
        "#a",
    ]
)
scalars = st.sampled_from(["Workflow", "CommandLineTool", "a", "#a", "a/b", "#main", "", 1, None])
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(words, trees, max_size=6), st.booleans())
def test_any_tree_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object], is_flow: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.cwl"
    path.write_text(json.dumps({**tree, "class": "Workflow"} if is_flow else tree))
    try:
        definition = read_workflow(path).definition
    except BadWorkflowFile:
        return
    assert compare(definition, definition) == []


def test_workflows_that_run_each_other_many_times_are_bounded(tmp_path: Path) -> None:
    for n in range(20):
        steps = ", ".join(f"s{k}: {{run: w{n + 1}.cwl, in: {{}}, out: []}}" for k in range(4))
        (tmp_path / f"w{n}.cwl").write_text(f"class: Workflow\nsteps: {{{steps}}}\n")
    (tmp_path / "w20.cwl").write_text("class: CommandLineTool\n")

    with pytest.raises(BadWorkflowFile, match="steps"):
        read_workflow(tmp_path / "w0.cwl")

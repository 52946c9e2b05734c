"""Snakefiles are read, never run: rules, links, includes, what is inherited, what is hostile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from served import ROOT
from tocsin.errors.services import BadWorkflowFile
from tocsin.integrations.files import DiskFiles
from tocsin.integrations.snakemake.plan import Facts
from tocsin.integrations.snakemake.sources import sources_of
from tocsin.integrations.workflow_files.snakefile_links import fits
from tocsin.integrations.workflow_files.sources import FILE_BYTES_MAX
from tocsin.integrations.workflow_files.workflow import read_workflow
from tocsin.monitor.evolution.changes import compare
from tocsin.monitor.evolution.definition import Activity, Definition

REAL = ROOT.parent / "shared/data/workflows/engines/snakemake_repeats/Snakefile"

Read = Callable[..., Definition]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes the files of a workflow and reads them; the first text is the Snakefile's."""

    def read(text: str, **others: str) -> Definition:
        (tmp_path / "Snakefile").write_text(text)
        for name, other in others.items():
            path = tmp_path / name.replace("__", "/").replace("_smk", ".smk").replace("_py", ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(other)
        return read_workflow(tmp_path / "Snakefile").definition

    return read


def by_name(definition: Definition) -> dict[str, Activity]:
    return {activity.name: activity for activity in definition.activities}


def changes(was: Definition, now: Definition) -> list[tuple[str, str | None, str]]:
    return [(each.concept, each.activity, each.what) for each in compare(was, now)]


RULES = """
rule all:
    input: expand("s/{i}.txt", i=range(3))
rule gen:
    output: "d/{i}.txt"
    params: n=lambda w, input: f(w.i, 2), seed=7
    threads: 4
    shell: "gen {params.n} > {output}"
rule sort:
    input: "d/{i}.txt"
    output: temp("s/{i}.txt")
    shell:
        "sort {input}"
        " > {output}"
"""


@pytest.mark.skipif(not REAL.exists(), reason="needs the shared recordings")
def test_a_real_snakefile_is_read_with_all_its_links() -> None:
    workflow = read_workflow(REAL)

    links = {
        (source, activity.name)
        for activity in workflow.definition.activities
        for binding in activity.inputs
        for source, _ in binding.sources
    }
    assert workflow.name == "snakemake_repeats"
    assert links == {
        ("gen", "sort"),
        ("sort", "xz"),
        ("sort", "md5"),
        ("sort", "merge"),
        ("merge", "report"),
        ("xz", "report"),
        ("md5", "report"),
        ("report", "all"),
    }


def test_rules_are_activities_with_their_parts(read: Read) -> None:
    definition = read(RULES)

    gen, sort = by_name(definition)["gen"], by_name(definition)["sort"]
    assert gen.does == {"shell": "gen {params.n} > {output}"}
    assert gen.parameters == {
        "n": "lambda w, input:f(w.i, 2)",
        "seed": "7",
        "threads": "4",
    }
    assert sort.does == {"shell": "sort {input} > {output}"}
    assert sort.inputs[0].sources == (("gen", ""),)
    assert definition.logic == {"target": "all"}


def test_comments_spaces_quotes_and_breaks_are_no_change(read: Read) -> None:
    was = read(RULES)

    now = read(
        "# a comment\n"
        + RULES.replace("range(3))", "range( 3 ))  # three")
        .replace('output: "d/{i}.txt"', "output:\n        'd/{i}.txt',\n")
        .replace('"sort {input}"\n        " > {output}"', '"sort {input} > {output}"')
    )

    assert changes(was, now) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('"sort {input}"', '"sort -u {input}"', ("ActivityReplaced", "sort", "shell")),
        ("threads: 4", "threads: 8", ("ParameterChanged", "gen", "threads")),
        ("seed=7", "seed=8", ("ParameterChanged", "gen", "seed")),
        ("rule gen", "checkpoint gen", ("LogicChanged", "gen", "checkpoint")),
        ('input: "d/{i}.txt"', 'input: "e/{i}.txt"', ("BindingChanged", "sort", "input")),
        (
            'input: "d/{i}.txt"',
            'input: "d/{i}.txt", "head.txt"',
            ("BindingAdded", "sort", "input"),
        ),
        ("rule sort", "rule order", ("ActivityReplaced", "order", "name")),
        ("rule all", "N = 3\nrule all", ("ParameterChanged", None, "N")),
        ("rule all", "ruleorder: gen > sort\nrule all", ("LogicChanged", None, "ruleorder")),
        ("rule all", "def f(w, n):\n    return n\nrule all", ("LogicChanged", None, "code")),
        (
            "rule all",
            'rule more:\n    output: "m"\n    run:\n        open(output[0]).close()\nrule all',
            ("ActivityAdded", "more", "activity"),
        ),
    ],
)
def test_each_edit_is_told_as_what_it_is(
    read: Read, before: str, after: str, expected: tuple[str, str | None, str]
) -> None:
    was = read(RULES)

    found = changes(was, read(RULES.replace(before, after, 1)))

    assert expected in found
    rest = {change[0] for change in found if change != expected}
    assert rest <= {"LogicChanged"}  # the default target, where the first rule is another


def test_what_a_rule_is_called_does_not_rebind_those_that_name_it(read: Read) -> None:
    text = RULES + 'rule z:\n    input: rules.sort.output[0], x=rules.gen.output\n    shell: "z"\n'
    was = read(text)

    now = read(text.replace("rule sort", "rule order").replace("rules.sort", "rules.order"))

    assert was.activities[-1].inputs[0].sources == (("sort", ""),)
    assert changes(was, now) == [("ActivityReplaced", "order", "name")]


def test_rules_of_included_files_belong_to_the_workflow_and_loops_end(read: Read) -> None:
    definition = read(
        'include: "rules/a.smk"\nrule all:\n    input: "a"\n',
        rules__a_smk='include: "b.smk"\nrule a:\n    input: "b"\n    output: "a"\n',
        rules__b_smk='include: "../Snakefile"\ninclude: "a.smk"\nrule b:\n    output: "b"\n',
    )

    assert list(by_name(definition)) == ["b", "a", "all"]
    assert by_name(definition)["a"].inputs[0].sources == (("b", ""),)


def test_a_script_that_has_another_text_replaces_the_activity(read: Read) -> None:
    text = 'rule a:\n    output: "a"\n    script: "scripts/a.py"\n'
    was = read(text, scripts__a_py="print(1)")

    now = read(text, scripts__a_py="print(2)")

    assert changes(was, now) == [("ActivityReplaced", "a", "script sha256")]


def test_a_run_names_the_version_that_was_recorded(tmp_path: Path) -> None:
    for name, text in {
        "workflow/Snakefile": 'configfile: "config.yaml"\ninclude: "rules/a.smk"\n',
        "workflow/rules/a.smk": 'rule a:\n    output: "a"\n    script: "../scripts/a.py"\n',
        "workflow/scripts/a.py": "print(1)",
        "config.yaml": "k: 1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    # As Snakemake tells it when it runs there.
    facts = Facts(
        files=(
            str(tmp_path / "workflow/Snakefile"),
            str(tmp_path / "workflow/rules/a.smk"),
            "config.yaml",
        ),
        scripts={"a": str(tmp_path / "workflow/rules/../scripts/a.py")},
    )

    run = sources_of(facts, DiskFiles(tmp_path), str(tmp_path), str(tmp_path))

    workflow = read_workflow(tmp_path / "workflow/Snakefile")
    assert workflow.version == run.version
    assert workflow.name == tmp_path.name


def test_settings_of_a_config_file_are_parameters(read: Read, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("samples: [a, b]\nalign:\n  k: 21\n")
    was = read('configfile: "config.yaml"\nrule all:\n    input: "x"\n')
    (tmp_path / "config.yaml").write_text("samples: [a, b]\nalign:\n  k: 31\n")

    now = read('configfile: "config.yaml"\nrule all:\n    input: "x"\n')

    assert changes(was, now) == [("ParameterChanged", None, "config.align.k")]


def test_rules_under_a_condition_say_so(read: Read) -> None:
    definition = read(
        'if config["fast"]:\n    rule a:\n        shell: "fast"\n'
        'else:\n    rule a:\n        shell: "slow"\n'
    )

    fast, slow = definition.activities
    assert (fast.name, slow.name) == ("a", "a (2)")
    assert fast.logic["when"] == "if config['fast']"
    assert slow.logic["when"] == "else of if config['fast']"


def test_a_rule_like_another_has_its_parts_but_for_what_it_says(read: Read) -> None:
    definition = read(
        RULES + 'use rule sort as back with:\n    output: "r/{i}.txt"\n'
        'module other:\n    snakefile: "other.smk"\nuse rule * from other as other_*\n'
    )

    back = by_name(definition)["back"]
    assert back.does == by_name(definition)["sort"].does
    assert back.inputs == by_name(definition)["sort"].inputs
    assert back.outputs[0].value == "r/{i}.txt"
    assert by_name(definition)["other_*"].logic == {"like": "* of other"}
    assert definition.parameters == {"module other snakefile": "other.smk"}


def test_nothing_of_a_file_is_run(read: Read, tmp_path: Path) -> None:
    mark = tmp_path / "run"

    read(f"open({str(mark)!r}, 'w')\nrule a:\n    run: open({str(mark)!r}, 'w')\n")

    assert not mark.exists()


@pytest.mark.parametrize("name", ["../outside.smk", "/etc/passwd", "link.smk"])
def test_what_is_outside_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.smk").write_text("rule secret:\n    shell: 'x'\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / "link.smk").symlink_to(tmp_path / "outside.smk")
    (home / "Snakefile").write_text(f'include: "{name}"\n')

    with pytest.raises(BadWorkflowFile, match="--root"):
        read_workflow(home / "Snakefile")


def test_what_is_outside_is_read_if_the_root_is_wider(tmp_path: Path) -> None:
    (tmp_path / "outside.smk").write_text("rule shared:\n    shell: 'x'\n")
    home = tmp_path / "home"
    home.mkdir()
    (home / "Snakefile").write_text('include: "../outside.smk"\n')

    workflow = read_workflow(home / "Snakefile", root=tmp_path)

    assert [file.path for file in workflow.files] == ["home/Snakefile", "outside.smk"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x7fELF\x00\x80", "not text"),
        (b"rule a:\x00\n", "NUL"),
        (b"x" * (FILE_BYTES_MAX + 1), "bytes"),
        (b"x = " + b"(" * 200_000, "characters"),
        (b"rule a:\n    input: (\n", "line"),
        (b"rule a:\n        x\n    y\n", "line"),
        (b'x = "never closed\n"""', "line"),
        ("".join(" " * n + "if x:\n" for n in range(90)).encode() + b" " * 91 + b"y\n", "line"),
        (b"rule a:\n    shell: 'x'\n" * 6_000, "rules"),
        (b"x = 1\n" * 51_000, "words"),
    ],
)
def test_hostile_files_are_refused_in_a_sentence(
    tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "Snakefile").write_bytes(content)

    with pytest.raises(BadWorkflowFile, match=words):
        read_workflow(tmp_path / "Snakefile")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ('rule a: output "x\n', 1, "not closed"),
        ('rule a:\n    output: "x\n    shell: "y"\n', 2, "not closed"),
        ('rule a:\n    input: f("x\n', 2, "text .* not closed"),
        ("rule a:\n    shell:\n        '''x\n", 3, "text .* not closed"),
        ("N = [1,\n\n2\nrule a:\n", 1, r"'\[' there is not closed"),
        ("N = (1\n)\nM = 2)\n", 3, r"'\)' closes nothing"),
        ("N = (1]\n", 1, "closes nothing"),
        ("rule a:\n        input: 'x'\n    output: 'y'\n", 3, "unindent"),
        ("if x:\n\tN = 1\n        M = 1\n", 3, "tabs and spaces"),
        ("if x:\n        if y:\n\t\tM = 1\n", 3, "tabs and spaces"),
        ("N = 1\nM = 2 ? 3\n", 2, r"'\?' has no meaning"),
        ("N = 1\nM = !3\n", 2, "'!' has no meaning"),
        ("N = 1\n\u20ac = 2\n", 2, "\u20ac"),
        ("N = 1 + \\\n", 1, ""),
        ('rule a: output "x"\n', 1, "'output' needs a colon"),
        ("rule a:\n    input: 'x'\n    output 'y'\n", 3, "'output' needs a colon"),
    ],
)
def test_a_broken_file_is_refused_with_the_line_where_it_breaks(
    read: Read, text: str, line: int, why: str
) -> None:
    with pytest.raises(BadWorkflowFile, match=rf"Snakefile line {line} .*{why}"):
        read(text)


def test_what_looks_broken_and_is_not_is_read(read: Read) -> None:
    definition = read(
        "\fN = f'{a!r:>{w}} {{b}}'\r\n"
        "rule a: run:\n    shell('x')\n"
        "rule b:\n  # a comment\n\t\t# another\n  output: 'y'\n"
        "rule c:\n\toutput: 'z'\n"
    )

    assert [activity.name for activity in definition.activities] == ["a", "b", "c"]


def test_a_function_is_not_the_file_of_the_same_name(read: Read) -> None:
    definition = read(
        'checkpoint cut:\n    output: directory("parts")\n'
        "rule all:\n    input: parts\n"
        'rule count:\n    input: "parts"\n'
        "rule keep:\n    output: PLACE\nrule show:\n    input: PLACE\n"
    )

    sources = {
        name: each.inputs[0].sources for name, each in by_name(definition).items() if each.inputs
    }
    assert sources == {"all": (), "count": (("cut", ""),), "show": (("keep", ""),)}


def test_a_pipe_and_a_directory_are_no_workflow_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Snakefile")
    (tmp_path / "x").mkdir()

    for name in ("Snakefile", "x", "missing"):
        with pytest.raises(BadWorkflowFile):
            read_workflow(tmp_path / name)


@given(st.text(alphabet="ruleinputs: \n\t'\"(){}[],=#\\*f\u2028", max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "Snakefile"
    path.write_text(text, newline="")
    try:
        definition = read_workflow(path).definition
    except BadWorkflowFile:
        return
    assert compare(definition, definition) == []


def test_a_pattern_fits_where_its_wildcards_can_be_filled() -> None:
    assert fits("d/\0.txt", "d/1.txt")
    assert fits("d/\0.txt", "d/\0.txt")
    assert not fits("d/\0.txt", "d/.txt")
    assert not fits("d/\0.txt", "e/1.txt")
    assert not fits("\0\0", "x")


def test_hostile_patterns_take_no_time(read: Read) -> None:
    many = "".join(f'rule r{n}:\n    output: "{"{x}a" * 50}{n}"\n' for n in range(300))
    readers = "".join(f'rule q{n}:\n    input: "{"a" * 500}{n}"\n' for n in range(300))

    assert len(read(many + readers).activities) == 600


def test_a_snakefile_that_is_a_link_to_elsewhere_is_not_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret").write_text("rule a:\n  output: 'x'\n")
    (home / "Snakefile").symlink_to(tmp_path / "secret")

    with pytest.raises(BadWorkflowFile, match="points to"):
        read_workflow(home / "Snakefile")

    assert len(read_workflow(home / "Snakefile", root=tmp_path).files) == 1


def test_a_workflow_by_way_of_a_linked_directory_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "real" / "workflow" / "scripts").mkdir(parents=True)
    (tmp_path / "real" / "workflow" / "Snakefile").write_text("rule a:\n  output: 'x'\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ways = ("real/workflow", "link/workflow", "real/workflow/scripts/..")

    found = {read_workflow(tmp_path / way / "Snakefile").files for way in ways}

    assert [file.path for files in found for file in files] == ["workflow/Snakefile"]


def test_files_that_include_each_other_too_deep_are_refused(tmp_path: Path) -> None:
    for number in range(450):
        (tmp_path / f"{number}.smk").write_text(f"include: '{number + 1}.smk'\n")
    (tmp_path / "450.smk").write_text("rule a:\n  output: 'x'\n")

    with pytest.raises(BadWorkflowFile, match="too deep"):
        read_workflow(tmp_path / "0.smk")

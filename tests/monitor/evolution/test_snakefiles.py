"""Snakefiles are read, never run: rules, links, includes, what is inherited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from served import ROOT
from tocsin.integrations.files import DiskFiles
from tocsin.integrations.snakemake.plan import Facts
from tocsin.integrations.snakemake.sources import sources_of
from tocsin.integrations.workflow_files.snakefile_links import fits
from tocsin.integrations.workflow_files.workflow import read_workflow
from tocsin.monitor.evolution.changes import compare
from tocsin.monitor.evolution.definition import Activity, Definition

Read = Callable[..., Definition]


REAL = ROOT.parent / "shared/data/workflows/engines/snakemake_repeats/Snakefile"


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


def test_a_pattern_fits_where_its_wildcards_can_be_filled() -> None:
    assert fits("d/\0.txt", "d/1.txt")
    assert fits("d/\0.txt", "d/\0.txt")
    assert not fits("d/\0.txt", "d/.txt")
    assert not fits("d/\0.txt", "e/1.txt")
    assert not fits("\0\0", "x")


def test_a_workflow_by_way_of_a_linked_directory_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "real" / "workflow" / "scripts").mkdir(parents=True)
    (tmp_path / "real" / "workflow" / "Snakefile").write_text("rule a:\n  output: 'x'\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    ways = ("real/workflow", "link/workflow", "real/workflow/scripts/..")

    found = {read_workflow(tmp_path / way / "Snakefile").files for way in ways}

    assert [file.path for files in found for file in files] == ["workflow/Snakefile"]

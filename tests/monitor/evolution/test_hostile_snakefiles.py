"""Snakefiles that are hostile or broken, or lead elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.errors.services import BadWorkflowFile
from tocsin.integrations.workflow_files.sources import FILE_BYTES_MAX
from tocsin.integrations.workflow_files.workflow import read_workflow
from tocsin.monitor.evolution.changes import compare
from tocsin.monitor.evolution.definition import Definition

Read = Callable[..., Definition]


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


def test_files_that_include_each_other_too_deep_are_refused(tmp_path: Path) -> None:
    for number in range(450):
        (tmp_path / f"{number}.smk").write_text(f"include: '{number + 1}.smk'\n")
    (tmp_path / "450.smk").write_text("rule a:\n  output: 'x'\n")

    with pytest.raises(BadWorkflowFile, match="too deep"):
        read_workflow(tmp_path / "0.smk")

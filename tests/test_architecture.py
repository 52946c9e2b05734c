"""The rules of layout and style that a machine can keep."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from docs.layers import pure

ROOT = Path(__file__).parent.parent / "src" / "tocsin"
SOURCES = {path.relative_to(ROOT): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
TREES = {path: ast.parse(source) for path, source in SOURCES.items()}

PURE = {name.removeprefix("tocsin.") for name in pure()}
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "base", "manager", "lib"}
IMPURE = ("importlib.resources", "io.open", "io.FileIO", "numpy.random", "np.random")
SHIPPED_FILES = ("ontology/built_in.py", "wire/wsdl/documents.py")  # they are read, and kept
AMBIENT_CALLS = {"now", "utcnow", "today", "open", "print", "input"}

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60


def test_a_module_fits_in_one_sitting() -> None:
    sizes = {path: source.count("\n") for path, source in SOURCES.items()}
    assert not [path for path, lines in sizes.items() if lines > MODULE_LINES_MAX]


def test_a_function_fits_on_one_screen() -> None:
    functions = [
        (path, node)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert functions
    assert not [
        f"{path}:{node.name}"
        for path, node in functions
        if (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES_MAX
    ]


def test_a_module_opens_with_what_it_is_for() -> None:
    assert not [path for path, tree in TREES.items() if not ast.get_docstring(tree)]


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches those wrongly: `(?:ab?c)++` takes all of "aca"."""
    possessive = re.compile(r"(?<!\()\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>")
    assert possessive.search(r"(?:ab?c)++")

    assert not [path for path, source in SOURCES.items() if possessive.search(source)]


def test_a_file_name_says_something() -> None:
    assert not [path for path in SOURCES if EMPTY_NAMES & {path.stem, *path.parent.parts}]


def test_the_core_is_handed_its_time_and_its_input() -> None:
    def ambient(tree: ast.Module) -> set[str]:
        # Bare names, or an attribute of a module that has a clock; a method called `open` of
        # one of our own types is no file.
        found: set[str] = set()
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            call = node.func
            if isinstance(call, ast.Name) and call.id in AMBIENT_CALLS:
                found.add(call.id)
            if isinstance(call, ast.Attribute) and call.attr in {"now", "utcnow", "today"}:
                found.add(call.attr)
        return found

    core = {path: tree for path, tree in TREES.items() if path.parts[0] in PURE}
    assert not {path: found for path, tree in core.items() if (found := ambient(tree))}


def test_pure_packages_read_no_files_but_those_they_are_shipped_with() -> None:
    """The contracts forbid whole modules; of these a pure package may use the rest."""

    def impure(tree: ast.Module) -> set[str]:
        found: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found |= {f"{node.module}.{each.name}" for each in node.names}
            elif isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add(f"{node.value.id}.{node.attr}")
        return {each for each in found if each.startswith(IMPURE)}

    core = {path: tree for path, tree in TREES.items() if path.parts[0] in PURE}
    found = {str(path): names for path, tree in core.items() if (names := impure(tree))}
    assert found == {path: {"importlib.resources.files"} for path in SHIPPED_FILES}


def test_nothing_is_left_for_later() -> None:
    marks = ("TODO", "FIXME", "XXX", "NotImplementedError")
    assert not [path for path, text in SOURCES.items() if any(mark in text for mark in marks)]

"""The sentences that a person can meet, in messages, logs and help, say it in the usual words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tocsin

SOURCE = Path(tocsin.__file__).parent
# The simulator's traces are for those who develop the broker.
LEFT_OUT = ("sim", "monitor/estimate")

# Each reads like a translation, with what an engineer says instead.
UNUSUAL = {
    r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b)\w": "is not a ...",
    r"\b(?:is|are) none\b(?! of (?:these|those))": "is not valid, is not known",
    r"(?<!-)\banew\b": "again, rebuild",
    r"\b[Mm]end\b": "fix, correct",
    r"\bof late\b": "recently",
    r"\bhung up\b": "closed the connection",
    r"\bnot (?:spoken|read|done) here\b": "not supported",
    r"\bin its stead\b": "instead",
    r"\b(?:shall|told of|heard of|was heard|is told|are told)\b": "must, reported, notified",
    r"\bthere is not$": "does not exist",
}


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text of a module but the docstrings and the words of an assertion, with its line."""
    passed_over: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.msg is not None:
            passed_over.update(map(id, ast.walk(node.msg)))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            passed_over.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            passed_over.update(map(id, node.values))
            if id(node) not in passed_over:
                parts = [v.value if isinstance(v, ast.Constant) else "X" for v in node.values]
                yield node.lineno, "".join(map(str, parts))
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in passed_over
        ):
            yield node.lineno, node.value


@pytest.mark.parametrize("pattern", UNUSUAL)
def test_no_sentence_of_the_product_reads_like_a_translation(pattern: str) -> None:
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        place = file.relative_to(SOURCE).as_posix()
        if place.startswith(LEFT_OUT):
            continue
        for line, text in literals(ast.parse(file.read_text())):
            if re.search(pattern, text):
                found.append(f"{place}:{line}: {text.strip()[:120]}")

    assert not found, f"say: {UNUSUAL[pattern]}\n" + "\n".join(found)

"""The tables of the papers' claims name modules, tests and pages that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLES = sorted((ROOT / "docs" / "seeds").glob("*.md"))
_PACKAGES = {path.name for path in (ROOT / "src" / "tocsin").iterdir() if path.is_dir()}
_CODE = re.compile(r"`([\w./-]+)`")
_LINK = re.compile(r"\]\(([^)#\s]+\.md)")


def _named(text: str) -> set[str]:
    return {
        path.rstrip("/")
        for path in _CODE.findall(text)
        if path.partition("/")[0] in {*_PACKAGES, "tests", "bench", "examples"} and "/" in path
    }


def _is_there(path: str) -> bool:
    return (ROOT / path).exists() or (ROOT / "src" / "tocsin" / path).exists()


def test_each_resolution_of_decision_25_names_tests_that_are_there() -> None:
    text = (ROOT / "docs/adr/0025-similarity-forwarding-as-repaired.md").read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| A\d+ \|", line)]
    tests = "".join(path.read_text() for path in (ROOT / "tests/overlay").glob("*.py"))

    assert len(rows) == 24
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row.rsplit(" | ", 1)[1])
        assert names, row
        assert [name for name in names if f"def {name}(" not in tests] == [], row


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_what_a_table_of_claims_names_is_there(table: Path) -> None:
    text = table.read_text()
    named = _named(text)

    assert named
    assert [path for path in sorted(named) if not _is_there(path)] == []
    assert [link for link in _LINK.findall(text) if not (table.parent / link).exists()] == []

"""The pages can be found, read and built into a site."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
START = DOCS / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = sorted(ROOT.glob("*.md"))
PATHS = ("I run a broker", "I run workflows", "I connect a program", "I analyse history")
PAGES_ON_A_PATH_MAX = 7
LINE_MAX = 120
ROW_MAX = 450
WORDS_IN_TWO_MINUTES = 600
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def linked(page: Path, text: str) -> Iterator[Path]:
    """The files that a text links to, from where its page is."""
    for link in LINK.findall(text):
        if "//" not in link:
            yield (page.parent / link).resolve()


def test_every_page_is_linked_from_the_start_page() -> None:
    found = set(linked(START, START.read_text()))

    assert not [page for page in PAGES if page != START and page not in found]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_a_short_list_with_one_sentence_a_page(path: str) -> None:
    section = START.read_text().partition(f"## {path}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d\. \[.+?\]\(.+?\): .+\.$", section, re.MULTILINE)

    assert steps
    assert len(steps) == len(section.strip().splitlines())
    assert len(steps) <= PAGES_ON_A_PATH_MAX


def test_no_page_links_out_of_the_site() -> None:
    for page in PAGES:
        outside = [each for each in linked(page, page.read_text()) if DOCS not in each.parents]
        assert not outside, f"{page}: name the file without a link"


def pages_of(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Every page below some entries of the navigation."""
    for entry in entries:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from pages_of(target)


def test_the_navigation_has_every_page_once() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text())
    pages = list(pages_of(site["project"]["nav"]))

    assert sorted(pages) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


def test_the_site_asks_nobody_for_fonts() -> None:
    site = tomllib.loads((ROOT / "zensical.toml").read_text())

    assert site["project"]["theme"]["font"] is False


def long_lines(text: str) -> list[int]:
    """The numbers of lines of prose that are too long, and of rows of tables, which may be longer.
    Code and addresses may be."""
    found = []
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        words = LINK.sub("]()", line)
        limit = ROW_MAX if line.startswith("|") else LINE_MAX
        if len(words) > limit and not in_code and not line.startswith("    "):
            found.append(number)
    return found


@pytest.mark.parametrize("page", [*OTHERS, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_prose_are_of_readable_length(page: Path) -> None:
    assert not long_lines(page.read_text()), f"over {LINE_MAX} characters"


def test_a_long_line_is_found_in_prose_and_let_be_in_a_table_or_code() -> None:
    long = "word " * 30

    assert long_lines(f"short\n{long}\n") == [2]
    assert long_lines(f"| {long} |\n\n```\n{long}\n```\n\n    {long}\n") == []
    assert long_lines(f"| {long * 3} |\n") == [1]
    assert long_lines(f"[short](https://example.org/{'x' * LINE_MAX})\n") == []


def test_the_changelog_is_read_in_two_minutes() -> None:
    releases = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]

    assert releases
    assert not [
        words for words in releases if len(words.replace("|", " ").split()) > WORDS_IN_TWO_MINUTES
    ]
